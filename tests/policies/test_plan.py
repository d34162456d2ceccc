"""The kinds that a scan lists, their versions, and the policies for each list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from scanner.admission.auditability import explain_unauditable
from scanner.admission.dispatch import BoundPolicy
from scanner.model.policy import Binding, Policy
from scanner.model.resource import Kind
from scanner.policies.plan import find_equivalents, find_other_versions, group_families, plan, plan_lists
from scanner.policies.validating.language import bind, read_binding, read_policy
from tests import documents
from tests.documents import (
    DEPLOYMENTS,
    EVENTS,
    KINDS,
    NAMESPACES,
    NEW_EVENTS,
    NODES,
    PODS,
    SCALERS_V1,
    SCALERS_V2,
    Document,
    rule,
)


def with_rules(*rules: Document, name: str = "p", **match: Any) -> Policy:
    """A policy with these rules."""
    return read_policy(documents.policy(name, "true", matchConstraints={"resourceRules": list(rules), **match}))


def bound(*policies: Policy) -> tuple[BoundPolicy, ...]:
    """Policies that are in force."""
    return bind(policies, [read_binding(documents.binding(f"{policy.name}-b", policy.name)) for policy in policies])


def announced(policies: Iterable[Policy]) -> list[tuple[Policy, tuple[Binding, ...]]]:
    """Policies with their bindings, before they are compiled."""
    return [(each.policy, each.bindings) for each in bound(*policies)]


def listed(policy: Policy, kinds: tuple[Kind, ...] = KINDS) -> list[tuple[Kind, Kind]]:
    """The kinds to list, each with the kind a request names."""
    return [(line.kind, original) for line in plan(kinds, bound(policy)) for _, original in line.policies]


def on_scalers(*versions: str, **fields: Any) -> Document:
    """A rule on autoscalers in some versions."""
    return rule("horizontalpodautoscalers", group="autoscaling", apiVersions=list(versions), **fields)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (with_rules(rule("pods")), [(PODS, PODS)]),
        (with_rules(rule("pods/status")), []),
        (with_rules(rule("pods", operations=["DELETE"])), []),
        (with_rules(rule("pods", "nodes", scope="Cluster")), [(NODES, NODES)]),
        (with_rules(rule("*", group="apps")), [(DEPLOYMENTS, DEPLOYMENTS)]),
        (with_rules(rule("widgets", group="example.com")), []),
        (with_rules(rule("validatingadmissionpolicies", group="admissionregistration.k8s.io")), []),
    ],
)
def test_only_what_a_rule_can_match_is_listed(policy: Policy, expected: list[tuple[Kind, Kind]]) -> None:
    """Subresources, deletions, kinds that are not served and exempt kinds are not listed."""
    assert expected == listed(policy)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (with_rules(on_scalers("v1")), [(SCALERS_V1, SCALERS_V2)]),
        (with_rules(on_scalers("v2")), [(SCALERS_V2, SCALERS_V2)]),
        (with_rules(on_scalers("*")), [(SCALERS_V2, SCALERS_V2)]),
        (with_rules(on_scalers("v1", "v2")), [(SCALERS_V2, SCALERS_V2)]),
        (with_rules(on_scalers("v1"), matchPolicy="Exact"), [(SCALERS_V1, SCALERS_V1)]),
        (with_rules(on_scalers("v1", "v2"), matchPolicy="Exact"), [(SCALERS_V2, SCALERS_V2)]),
        (
            with_rules(on_scalers("v2", resourceNames=["web"]), on_scalers("v1")),
            [(SCALERS_V1, SCALERS_V2), (SCALERS_V2, SCALERS_V2)],
        ),
        (
            with_rules(on_scalers("v2", operations=["UPDATE"]), on_scalers("v1", operations=["CREATE"])),
            [(SCALERS_V1, SCALERS_V2), (SCALERS_V2, SCALERS_V2)],
        ),
        (with_rules(rule("events")), [(EVENTS, EVENTS)]),
        (with_rules(rule("events", group="events.k8s.io")), [(NEW_EVENTS, EVENTS)]),
        (with_rules(rule("events", group="*")), [(EVENTS, EVENTS)]),
        (with_rules(rule("events", group="events.k8s.io"), matchPolicy="Exact"), [(NEW_EVENTS, NEW_EVENTS)]),
    ],
)
def test_objects_are_listed_in_the_version_that_the_policy_names(
    policy: Policy, expected: list[tuple[Kind, Kind]]
) -> None:
    """A request names the preferred version; another version is listed only if a policy may need it."""
    assert expected == listed(policy)


COGS_V2 = Kind("shop.example", "v2", "Cog", "cogs", namespaced=True)
COGS_V1 = Kind("shop.example", "v1", "Cog", "cogs", namespaced=True)
ROUTES = tuple(
    Kind("gateway.networking.k8s.io", version, "HTTPRoute", "httproutes", namespaced=True)
    for version in ("v1", "v1beta1")
)
CUSTOM = (COGS_V2, COGS_V1, *ROUTES)


def on_cogs(name: str, version: str, match_policy: str = "Equivalent") -> Policy:
    """A policy for a version of a custom resource."""
    return with_rules(rule("cogs", group="shop.example", version=version), name=name, matchPolicy=match_policy)


@pytest.mark.parametrize(
    ("relabelled", "expected"),
    [
        ((), [("v1", "v1", "exact"), ("v1", "v2", "old"), ("v2", "v2", "new")]),
        ((COGS_V1, COGS_V2), [("v1", "v1", "exact"), ("v2", "v2", "new"), ("v2", "v2", "old")]),
    ],
)
def test_versions_that_differ_in_the_apiversion_alone_share_the_list_of_the_request(
    relabelled: tuple[Kind, ...], expected: list[tuple[str, str, str]]
) -> None:
    """A policy with `Exact` reads its own version; no policy is on two lists."""
    policies = (on_cogs("old", "v1"), on_cogs("new", "v2"), on_cogs("exact", "v1", "Exact"))
    lines = plan(CUSTOM, bound(*policies), relabelled=relabelled)
    flat = [
        (line.kind.version, original.version, bound_policy.policy.name)
        for line in lines
        for bound_policy, original in line.policies
    ]

    assert expected == flat
    assert tuple(line.kind for line in lines) == plan_lists(CUSTOM, announced(policies), relabelled=relabelled)


def to_cogs(name: str, *versions: str, **match: Any) -> Binding:
    """A binding of `p` to some versions of a custom resource."""
    rules = [rule("cogs", group="shop.example", version=version) for version in versions]
    return read_binding(documents.binding(name, "p", matchResources={"resourceRules": rules, **match}))


EXACT = {"matchPolicy": "Exact"}
NAMED: dict[str, Any] = {**rule("cogs", group="shop.example", version="v2"), "resourceNames": ["named"]}


@pytest.mark.parametrize(
    ("policy", "bindings", "expected"),
    [
        (on_cogs("p", "v2"), [to_cogs("b", "v1")], [("v2", "v2", "b")]),
        (on_cogs("p", "v2"), [to_cogs("b", "v1", **EXACT)], [("v2", "v1", "b")]),
        (on_cogs("p", "v1"), [to_cogs("b", "v1", **EXACT)], [("v1", "v1", "b")]),
        (on_cogs("p", "*"), [to_cogs("b", "v1", **EXACT)], [("v1", "v1", "b")]),
        (
            on_cogs("p", "v2"),
            [to_cogs("a", "v1", **EXACT), to_cogs("b", "v1", "v2", **EXACT)],
            [("v2", "v1", "a"), ("v2", "v2", "b")],
        ),
        (
            on_cogs("p", "*", "Exact"),
            [to_cogs("a", "v1", **EXACT), to_cogs("b", "v1")],
            [("v1", "v1", "a"), ("v2", "v2", "b")],
        ),
        (
            on_cogs("p", "*"),
            [to_cogs("b", excludeResourceRules=[rule("cogs", group="shop.example", version="v2")], **EXACT)],
            [("v1", "v1", "b")],
        ),
    ],
)
def test_a_binding_that_only_another_version_reaches_is_evaluated_for_it(
    policy: Policy, bindings: list[Binding], expected: list[tuple[str, str, str]]
) -> None:
    """The version of the list, that of the request and the binding: the API server would refuse requests in this version."""
    plans = plan(CUSTOM, bind([policy], bindings))
    found = [
        (line.kind.version, original.version, binding.name)
        for line in plans
        for bound_policy, original in line.policies
        for binding in bound_policy.bindings
    ]

    assert expected == found


@pytest.mark.parametrize(
    ("policy", "binding"),
    [
        (on_cogs("p", "v2", "Exact"), to_cogs("b", "v1", **EXACT)),
        (on_cogs("p", "v2"), to_cogs("b", "v3", **EXACT)),
        (on_cogs("p", "*"), to_cogs("b", excludeResourceRules=[rule("cogs", group="shop.example", version="v2")])),
    ],
)
def test_a_binding_that_no_request_reaches_is_evaluated_as_its_policy(policy: Policy, binding: Binding) -> None:
    """An error in the configuration of the policy denies what the policy matches, also where the binding does not."""
    plans = plan(CUSTOM, bind([policy], [binding]))

    assert [(COGS_V2, COGS_V2)] == [(line.kind, original) for line in plans for _, original in line.policies]


def test_only_custom_resources_in_another_version_than_the_requests_need_their_definition() -> None:
    """Built-in kinds are converted by rules of this program, and the version of the request needs no conversion."""
    policies = (
        on_cogs("old", "v1"),
        on_cogs("new", "v2"),
        on_cogs("exact", "v1", "Exact"),
        with_rules(on_scalers("v1"), name="scalers"),
        with_rules(rule("*", group="*", version="v1beta1"), name="beta"),
        with_rules(rule("*", group="*", version="*"), name="all"),
    )
    users = find_other_versions((*KINDS, *CUSTOM), announced(policies))

    assert {COGS_V1: ["old"], ROUTES[1]: ["beta"]} == {
        kind: [policy.name for policy in of_kind] for kind, of_kind in users.items()
    }


def test_policies_share_lists() -> None:
    """Several policies share one list; lists are ordered by kind."""
    lines = plan(KINDS, bound(with_rules(rule("pods", "nodes"), name="a"), with_rules(rule("pods"), name="b")))
    assert [(NODES, ["a"]), (PODS, ["a", "b"])] == [
        (line.kind, [bound_policy.policy.name for bound_policy, _ in line.policies]) for line in lines
    ]


def test_a_kind_that_discovery_names_twice_is_listed_once() -> None:
    """A finding is counted once."""
    assert [(PODS, PODS)] == listed(with_rules(rule("pods")), (PODS, PODS))


def test_families_begin_with_the_preferred_kind() -> None:
    """A family has all versions of a kind, and core events with those of events.k8s.io."""
    assert [(EVENTS, NEW_EVENTS), (SCALERS_V2, SCALERS_V1)] == [
        family for family in group_families(KINDS) if len(family) > 1
    ]


def test_equivalents_leave_out_the_kind_itself() -> None:
    """Equivalent kinds are in registration order."""
    by_kind = find_equivalents(KINDS)
    assert [(SCALERS_V1,), (EVENTS,), ()] == [by_kind[kind] for kind in (SCALERS_V2, NEW_EVENTS, NAMESPACES)]


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (with_rules(rule("pods")), ""),
        (with_rules(rule("pods", operations=["*"])), ""),
        (with_rules(rule("pods/*")), ""),
        (with_rules(rule("pods", operations=["DELETE", "CONNECT"])), "its rules name only CONNECT, DELETE: "),
        (with_rules(rule("pods/exec", "pods/attach")), "its rules name only subresources"),
        (with_rules(rule("pods", operations=["DELETE"]), rule("pods/status")), "its rules name only subresources"),
        (with_rules(rule("pods", operations=["DELETE"]), rule("pods")), ""),
    ],
)
def test_what_cannot_be_audited_says_why(policy: Policy, reason: str) -> None:
    """No stored object can be evaluated by such a policy."""
    reason_given = explain_unauditable(policy)
    assert reason_given.startswith(reason)
    assert bool(reason) == bool(reason_given)
