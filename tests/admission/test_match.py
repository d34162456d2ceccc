"""The requests that rules, selectors, scopes and equivalent kinds match."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.admission.match import MatchTarget, applies, could_match, is_exempt
from scanner.errors import ConfigurationError
from scanner.model.policy import MatchResources, Operation, Rule
from scanner.model.resource import Kind
from scanner.model.selector import EVERYTHING, Requirement, Selector
from tests.documents import (
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    NEW_EVENTS,
    NODES,
    PODS,
    POLICIES,
    SCALERS_V1,
    SCALERS_V2,
)

APP = Selector((Requirement("app", "In", ("web",)),))
PROD = Selector((Requirement("env", "In", ("prod",)),))
BROKEN = Selector((Requirement("app", "In", ()),))


def a_rule(**fields: Any) -> Rule:
    """A rule that matches everything, apart from the given fields."""
    given = {"operations": ("*",), "api_groups": ("*",), "api_versions": ("*",), "resources": ("*",), **fields}
    return Rule(**given)


def matching(*rules: Rule, **fields: Any) -> MatchResources:
    """Match resources with these rules."""
    given = {
        "rules": rules,
        "exclude_rules": (),
        "namespace_selector": EVERYTHING,
        "object_selector": EVERYTHING,
        **fields,
    }
    return MatchResources(**given)


def target(kind: Kind = PODS, *, operation: Operation = "CREATE", name: str = "web", **fields: Any) -> MatchTarget:
    """A request on an object of the namespace `default`, or on a cluster-scoped one."""
    given = {
        "namespace": "default" if kind.namespaced else "",
        "labels": {},
        "namespace_labels": {},
        **fields,
    }
    return MatchTarget(kind=kind, operation=operation, name=name, **given)


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("pods", True),
        ("*", True),
        ("*/*", True),
        ("pods/*", True),
        ("pods/status", False),
        ("*/scale", False),
        ("pod", False),
        ("deployments", False),
        ("", False),
    ],
)
def test_resources_name_the_main_resource(pattern: str, *, matched: bool) -> None:
    """`pods/*` and `*/*` include the main resource, other subresource patterns do not."""
    assert matched == (applies(matching(a_rule(resources=(pattern,))), target()) is not None)


@pytest.mark.parametrize(
    ("fields", "matched"),
    [
        ({"operations": ("CREATE",)}, True),
        ({"operations": ("UPDATE", "DELETE")}, False),
        ({"api_groups": ("",)}, True),
        ({"api_groups": ("apps",)}, False),
        ({"api_versions": ("v1",)}, True),
        ({"api_versions": ("v2",)}, False),
        ({"resource_names": ("web",)}, True),
        ({"resource_names": ("Web",)}, False),
        ({"resource_names": ("*",)}, False),
    ],
)
def test_every_field_of_a_rule_must_match(fields: dict[str, Any], *, matched: bool) -> None:
    """A rule matches where operation, group, version, resource and name all match."""
    assert matched == (applies(matching(a_rule(**fields)), target()) is not None)


@pytest.mark.parametrize(
    ("scope", "kind", "namespace", "matched"),
    [
        ("*", PODS, "default", True),
        ("Namespaced", PODS, "default", True),
        ("Cluster", PODS, "default", False),
        ("Cluster", NODES, "", True),
        ("Namespaced", NODES, "", False),
        ("Cluster", NAMESPACES, "prod", True),
        ("Namespaced", NAMESPACES, "prod", False),
    ],
)
def test_scopes(scope: str, kind: Kind, namespace: str, *, matched: bool) -> None:
    """Namespaces are cluster-scoped, although their requests carry a namespace."""
    matched_kind = applies(matching(a_rule(scope=scope)), target(kind, namespace=namespace))
    assert matched == (matched_kind is not None)


def test_a_generated_name_matches_no_resource_name() -> None:
    """A rule with resourceNames does not match a request without a name."""
    assert applies(matching(a_rule(resource_names=("web",))), target(name="")) is None


def test_excluding_beats_including() -> None:
    """One excluding rule is enough to exclude an object."""
    match = matching(a_rule(), exclude_rules=(a_rule(resources=("pods",)),))
    assert [None, NODES] == [applies(match, kind) for kind in (target(), target(NODES))]


def test_no_rules_match_everything_in_its_own_kind() -> None:
    """A binding can have selectors alone."""
    assert applies(matching(), target(NODES)) == NODES


@pytest.mark.parametrize(
    ("subject", "matched"),
    [
        (target(namespace_labels={"env": "prod"}), True),
        (target(namespace_labels={"env": "test"}), False),
        (target(NODES), True),
        (target(NODES, labels={"env": "test"}), True),
        (target(NAMESPACES, namespace="x", labels={"env": "prod"}, namespace_labels={"env": "test"}), True),
        (target(NAMESPACES, namespace="x", labels={"env": "test"}, namespace_labels={"env": "prod"}), False),
        (target(Kind("x.io", "v1", "Namespace", "namespaces", namespaced=True), labels={"env": "prod"}), True),
    ],
)
def test_namespace_selectors(subject: MatchTarget, *, matched: bool) -> None:
    """Namespace selectors never filter cluster-scoped objects, except namespaces of any group, by their own labels."""
    assert matched == (applies(matching(a_rule(), namespace_selector=PROD), subject) is not None)


def test_a_missing_namespace_is_a_configuration_error() -> None:
    """A server reports the error, too, and only if the selector is not empty."""
    missing = target(namespace="gone", namespace_labels=None)
    assert PODS == applies(matching(a_rule()), missing)
    with pytest.raises(ConfigurationError, match='namespaces "gone" not found'):
        applies(matching(a_rule(), namespace_selector=PROD), missing)


@pytest.mark.parametrize(("labels", "matched"), [({"app": "web"}, True), ({"app": "db"}, False), ({}, False)])
def test_object_selectors(labels: dict[str, str], *, matched: bool) -> None:
    """The object's labels decide in every scope."""
    match = matching(a_rule(), object_selector=APP)
    assert [matched, matched] == [applies(match, target(kind, labels=labels)) is not None for kind in (PODS, NODES)]


@pytest.mark.parametrize(
    "match",
    [
        matching(a_rule(resources=("nodes",)), object_selector=BROKEN),
        matching(a_rule(), exclude_rules=(a_rule(),), object_selector=BROKEN),
        matching(a_rule(), namespace_selector=PROD, object_selector=BROKEN),
        matching(a_rule(), namespace_selector=BROKEN, object_selector=APP),
    ],
)
def test_a_broken_selector_is_invisible_where_something_else_does_not_match(match: MatchResources) -> None:
    """The error counts only if the rules and the other selector match."""
    assert applies(match, target()) is None


@pytest.mark.parametrize("which", ["namespace_selector", "object_selector"])
def test_a_broken_selector_is_an_error_where_the_rules_match(which: str) -> None:
    """The server reports a configuration error, not a mismatch."""
    with pytest.raises(ConfigurationError, match="values set can't be empty"):
        applies(matching(a_rule(), **{which: BROKEN}), target())


V1_RULE = a_rule(api_groups=("autoscaling",), api_versions=("v1",))
V2_RULE = a_rule(api_groups=("autoscaling",), api_versions=("v2",))


@pytest.mark.parametrize(
    ("match", "seen_as"),
    [
        (matching(V1_RULE), SCALERS_V1),
        (matching(V2_RULE), SCALERS_V2),
        (matching(V1_RULE, V2_RULE), SCALERS_V2),
        (matching(a_rule()), SCALERS_V2),
        (matching(V1_RULE, match_policy="Exact"), None),
        (matching(V2_RULE, match_policy="Exact"), SCALERS_V2),
        (matching(a_rule(), exclude_rules=(V1_RULE,)), None),
        (matching(a_rule(), exclude_rules=(V1_RULE,), match_policy="Exact"), SCALERS_V2),
        (matching(a_rule(api_versions=("v2",), resource_names=("other",)), V1_RULE), SCALERS_V1),
    ],
)
def test_equivalent_kinds(match: MatchResources, seen_as: Kind | None) -> None:
    """Equivalent tries all rules for the request's own kind first, then for the others; Exact only for its own."""
    assert seen_as == applies(match, target(SCALERS_V2, equivalents=(SCALERS_V1,)))


def test_events_are_seen_through_either_of_their_groups() -> None:
    """A rule on events.k8s.io matches core events in that form."""
    match = matching(a_rule(api_groups=("events.k8s.io",)))
    assert NEW_EVENTS == applies(match, target(EVENTS, equivalents=(NEW_EVENTS,)))


@pytest.mark.parametrize(
    ("kind", "static", "never"),
    [
        (PODS, False, False),
        (POLICIES, False, True),
        (POLICIES, True, False),
        (
            Kind("admissionregistration.k8s.io", "v1", "X", "validatingwebhookconfigurations", namespaced=False),
            False,
            False,
        ),
        (Kind("authorization.k8s.io", "v1", "X", "subjectaccessreviews", namespaced=False), True, True),
        (Kind("authentication.k8s.io", "v1", "X", "tokenreviews", namespaced=False), False, True),
        (Kind("example.com", "v1", "X", "tokenreviews", namespaced=False), False, False),
    ],
)
def test_exempt_kinds(kind: Kind, *, static: bool, never: bool) -> None:
    """Only static policies evaluate policies; no policy evaluates reviews; all evaluate webhook configurations."""
    assert never == is_exempt(kind, static=static)


@pytest.mark.parametrize(
    ("candidate", "possible"),
    [
        (a_rule(resource_names=("some-other",)), True),
        (a_rule(operations=("DELETE",)), False),
        (a_rule(operations=("UPDATE",)), True),
        (a_rule(scope="Cluster"), False),
        (a_rule(resources=("deployments/scale",)), False),
    ],
)
def test_what_a_rule_could_match(candidate: Rule, *, possible: bool) -> None:
    """Names of objects are ignored, because they are unknown before the list."""
    assert possible == could_match(candidate, DEPLOYMENTS, ("CREATE", "UPDATE"))
