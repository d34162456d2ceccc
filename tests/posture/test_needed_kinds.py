"""The kinds of which a policy may match objects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.policy import MatchResources, Policy, Rule
from scanner.model.selector import EVERYTHING
from scanner.posture.policy_kinds import may_need
from tests.report.records import policy


def matching(group: str, *resources: str) -> Policy:
    """A policy that matches some resources of a group."""
    rule = Rule(("CREATE",), (group,), ("v1",), resources)
    return replace(policy("p", "true"), match=MatchResources((rule,), (), EVERYTHING, EVERYTHING))


@pytest.mark.parametrize(
    ("group", "resource", "kind", "needed"),
    [
        ("apps", "deployments", "apps/v1/Deployment", True),
        ("apps", "deployments", "apps/v1/StatefulSet", False),
        ("apps", "*", "apps/v1/StatefulSet", True),
        ("*", "deployments", "apps/v1/Deployment", True),
        ("apps", "deployments/scale", "apps/v1/Deployment", True),
        ("", "pods", "v1/Secret", False),
        ("", "endpoints", "v1/Endpoints", True),
        ("networking.k8s.io", "networkpolicies", "networking.k8s.io/v1/NetworkPolicy", True),
        ("networking.k8s.io", "ingresses", "networking.k8s.io/v1/Ingress", True),
        ("networking.k8s.io", "ingresses", "extensions/v1beta1/Ingress", True),
        ("rbac.authorization.k8s.io", "roles", "apps/v1/Deployment", False),
        ("metrics.k8s.io", "nodes", "metrics.k8s.io/v1beta1/NodeMetrics", True),
        ("example.com", "widgets", "example.com/v1/Gadget", True),
        ("example.com", "widgets", "example.org/v1/Widget", False),
    ],
)
def test_rules_show_what_a_policy_needs(group: str, resource: str, kind: str, needed: bool) -> None:  # noqa: FBT001
    """A doubt is a yes: a custom resource may have any plural."""
    api_version, _, name = kind.rpartition("/")

    assert needed == may_need(matching(group, resource), api_version, name)


def test_other_languages_need_every_kind() -> None:
    """Their rules can be generated from the text of a policy."""
    assert may_need(replace(matching("apps", "deployments"), language="ValidatingPolicy"), "v1", "Secret")
