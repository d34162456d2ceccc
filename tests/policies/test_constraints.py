"""The match constraints of each form of a policy, which decide the kinds that a control needs."""

from __future__ import annotations

from dataclasses import replace

from scanner.model.json import JsonObject
from scanner.policies.kyverno import spec
from scanner.policies.language import list_constraints
from tests.report.records import policy


def test_an_admission_policy_has_its_own_constraints() -> None:
    """One form; none without constraints; and those that it states in an unknown language."""
    own = policy("a", "true")
    assert (own.match,) == list_constraints(own) == list_constraints(replace(own, language="Unknown"))
    assert (
        ()
        == list_constraints(replace(own, match=None))
        == list_constraints(replace(own, match=None, language="Unknown"))
    )


def test_a_policy_of_kyverno_about_pods_also_needs_their_controllers() -> None:
    """Autogen evaluates the policy for workloads that make Pods."""
    document: JsonObject = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "limited"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "validations": [{"expression": "true"}],
        },
    }
    own = spec.read_policy(document, source="cluster").written()
    resources = {name for match in list_constraints(own) for rule in match.rules for name in rule.resources}
    controllers = {"cronjobs", "daemonsets", "deployments", "jobs", "replicasets", "statefulsets"}
    assert {"pods"} | controllers == resources
