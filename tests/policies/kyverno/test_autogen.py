"""The variants that autogen makes of a policy for Pods, and the policies for which autogen makes variants."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.policies.kyverno.autogen import rewrite, variants
from tests.policies.kyverno.made import deployment, invocation_results, pod, policy

CRONJOB = "object.spec.jobTemplate.spec.template"


@pytest.mark.parametrize(
    ("expected", "variant", "expression"),
    [
        ("object.spec.template.spec", "defaults", "object.spec"),
        ("oldObject.spec.template.spec", "defaults", "oldObject.spec"),
        (f"{CRONJOB}.spec", "cronjobs", "object.spec"),
        ("object.spec.template.metadata", "defaults", "object.metadata"),
        ("oldObject.spec.template.metadata", "defaults", "oldObject.metadata"),
        ("object.spec.template.metadata.labels['app']", "defaults", "object.metadata.labels['app']"),
        ("object.metadata.namespace", "defaults", "object.metadata.namespace"),
        ("oldObject.metadata.namespace", "cronjobs", "oldObject.metadata.namespace"),
        ("!(object.metadata.namespace in ['a'])", "cronjobs", "!(object.metadata.namespace in ['a'])"),
        (
            "object.metadata.namespace == 'foo' && object.spec.template.metadata.labels['t'] == 'p'",
            "defaults",
            "object.metadata.namespace == 'foo' && object.metadata.labels['t'] == 'p'",
        ),
        ("object.spec.template.metadata.namespaceFoo", "defaults", "object.metadata.namespaceFoo"),
        ("object.spec.template.specialField", "defaults", "object.specialField"),
        ("request.object.spec.template.spec", "defaults", "request.object.spec"),
        ("object.?spec", "defaults", "object.?spec"),
        ("object['spec']", "defaults", "object['spec']"),
        ("namespaceObject.metadata.name", "defaults", "namespaceObject.metadata.name"),
        ("a < b && c > d", "defaults", "a < b && c > d"),
    ],
)
def test_paths_into_the_pod_lead_into_its_template(expected: str, variant: str, expression: str) -> None:
    """The rewriting replaces text in the whole spec, but not the object's own namespace."""
    assert {"a": [expected]} == rewrite({"a": [expression]}, variant)


def test_messages_and_names_are_rewritten_too() -> None:
    """The rewriting treats the whole spec as text."""
    spec = {"validations": [{"message": "look at object.spec"}], "auditAnnotations": [{"key": "object.metadata"}]}
    expected = {
        "validations": [{"message": "look at object.spec.template.spec"}],
        "auditAnnotations": [{"key": "object.spec.template.metadata"}],
    }
    assert expected == rewrite(spec, "defaults")


def test_the_generated_rules_name_every_controller() -> None:
    """Each group and version has one rule, with the operations and the namespace selector of the policy."""
    selector = {"matchLabels": {"tier": "product"}}
    spec = policy("true", match={"namespaceSelector": selector, "matchPolicy": "Equivalent"})["spec"]
    _, cronjobs, defaults = variants(spec)
    apps = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["daemonsets", "deployments", "replicasets", "statefulsets"],
    }
    batch = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"]}
    assert (
        {"namespaceSelector": selector, "resourceRules": [apps, {**batch, "resources": ["jobs"]}]},
        {"namespaceSelector": selector, "resourceRules": [{**batch, "resources": ["cronjobs"]}]},
    ) == (defaults.spec["matchConstraints"], cronjobs.spec["matchConstraints"])


def _with(controllers: Any) -> Any:
    return policy("true", autogen={"podControllers": {"controllers": controllers}})["spec"]


@pytest.mark.parametrize(
    ("expected", "spec"),
    [
        (["", "cronjobs", "defaults"], policy("true")["spec"]),
        (["", "cronjobs", "defaults"], _with(None)),
        ([""], _with([])),
        (["", "defaults"], _with(["deployments"])),
        (["", "cronjobs"], _with(["cronjobs", "Deployment"])),
        ([""], _with(["Deployment"])),
        (["", "cronjobs", "defaults"], policy("true", match={"objectSelector": {}})["spec"]),
        ([""], policy("true", match={"objectSelector": {"matchLabels": {"a": "b"}}})["spec"]),
        ([""], policy("true", match={"excludeResourceRules": [{"resources": ["pods"]}]})["spec"]),
        ([""], policy("true", resources=("pods", "services"))["spec"]),
        ([""], policy("true", resources=("*",))["spec"]),
        ([""], policy("true", resources=("deployments",), group="apps")["spec"]),
    ],
)
def test_autogen_is_for_policies_about_pods_alone(expected: list[str], spec: Any) -> None:
    """Other resources, selectors, names or exclusions disable autogen; a list of controllers narrows it."""
    assert expected == [variant.name for variant in variants(spec)]


def test_a_policy_for_pods_evaluates_deployments() -> None:
    """The variant evaluates the template; the policy keeps its name, and its binding names the variant."""
    (invocation_result,) = invocation_results(
        deployment(hostNetwork=True), policy("!object.spec.?hostNetwork.orValue(false) == true")
    )
    expected = ("checks", "autogen-defaults", "Violated")
    actual = (
        invocation_result.invocation.policy.name,
        invocation_result.invocation.binding.name,
        type(invocation_result.check_results[0].outcome).__name__,
    )
    assert expected == actual


def test_the_name_of_a_controller_is_out_of_reach() -> None:
    """`object.metadata.name` becomes a path into the template, which has no name, so it is an error, as in Kyverno."""
    (invocation_result,) = invocation_results(deployment(), policy("object.metadata.name != ''"))
    assert "error: no such key: name" == getattr(invocation_result.check_results[0].outcome, "message", "")


def test_a_pod_is_evaluated_by_the_policy_as_written() -> None:
    """Only one variant evaluates an object."""
    (invocation_result,) = invocation_results(pod(), policy("object.metadata.name != ''"))
    assert invocation_result.invocation.binding.name == "as-written"


@given(st.text(alphabet="abcdeijlnobpst._ ()'&", max_size=40), st.sampled_from(["defaults", "cronjobs"]))
def test_text_without_a_path_into_the_pod_stays(text: str, variant: str) -> None:
    """The rewriting keeps text without a path into the object's spec or metadata."""
    assert {"a": text.replace("ject.", "ject,")} == rewrite({"a": text.replace("ject.", "ject,")}, variant)
