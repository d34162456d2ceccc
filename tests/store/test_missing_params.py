"""A param that goes and comes back: the cause is `param`, and what it ends has the resolution `rulesChanged`."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from scanner.store import SqlStore
from tests.documents import CONFIG_MAPS, KINDS, LIMITS, Document, binding, namespace, pod, policy, rule, thing
from tests.store.scanned import Story, facts, versioned

PARAM_KINDS = {
    "ConfigMap": {"apiVersion": "v1", "kind": "ConfigMap"},
    "Limit": {"apiVersion": "example.com/v1", "kind": "Limit"},
}
SHOP, BANK = versioned(pod("web", "shop"), 1), versioned(pod("web", "bank"), 1)
SPACES = namespace("shop"), namespace("bank"), namespace("settings")
LABELS = {"tier": "strict"}


def limits(where: str, most: str = "0", name: str = "limits") -> Document:
    """A param; without a namespace it is cluster-scoped."""
    kind = CONFIG_MAPS if where else LIMITS
    return versioned(thing(kind, name, where, metadata={"labels": LABELS}, data={"most": most}), 1)


def rules(kind: str, action: str, **reference: Any) -> tuple[Document, ...]:
    """A policy that no Pod passes with a param of 0, and its binding with a reference to params."""
    expression = "object.metadata.name.size() <= int(params.data.most)"
    reference = {"parameterNotFoundAction": action, **reference}
    return policy("p", expression, paramKind=PARAM_KINDS[kind]), binding("b", "p", "Deny", paramRef=reference)


REFERENCES = [
    pytest.param("ConfigMap", "settings", {"name": "limits", "namespace": "settings"}, id="by name"),
    pytest.param("ConfigMap", "shop", {"name": "limits"}, id="by name, in the namespace of the object"),
    pytest.param("ConfigMap", "shop", {"selector": {"matchLabels": LABELS}}, id="by selector"),
    pytest.param("ConfigMap", "settings", {"selector": {}, "namespace": "settings"}, id="all of a namespace"),
    pytest.param("Limit", "", {"name": "limits"}, id="by name, cluster-scoped"),
    pytest.param("Limit", "", {"selector": {"matchLabels": LABELS}}, id="by selector, cluster-scoped"),
]
WEB = ("validation", "shop/web")
LACKING = ("configuration", "shop/web")


@pytest.mark.long
@pytest.mark.parametrize(("kind", "where", "reference"), REFERENCES)
def test_a_param_that_goes_and_comes_back_has_the_cause_param(
    store: SqlStore, kind: str, where: str, reference: Document
) -> None:
    """Without it the object has an error of the configuration, whose end is no remediation; differences are those of history."""
    story, own = Story(store), (*SPACES, SHOP, *rules(kind, "Deny", **reference))
    story.scan([*own, limits(where)])

    gone, back = facts(story.scan(own)), facts(story.scan([*own, limits(where)]))
    assert {("resolved", *WEB): ("rulesChanged", "param"), ("new", *LACKING): ("param",)} == gone
    assert {("resolved", *LACKING): ("rulesChanged", "param"), ("reopened", *WEB): ("param",)} == back
    assert {
        ("new", "configuration", "", "param"),
        ("resolved", "validation", "rulesChanged", "param"),
    } == differing(store, 1, 2)
    assert {
        ("reopened", "validation", "", "param"),
        ("resolved", "configuration", "rulesChanged", "param"),
    } == differing(store, 2, 3)


@pytest.mark.parametrize(("kind", "where", "reference"), REFERENCES)
def test_a_param_that_comes_first_has_the_cause_param(
    store: SqlStore, kind: str, where: str, reference: Document
) -> None:
    """There never was a scan with the param."""
    story, own = Story(store), (*SPACES, SHOP, *rules(kind, "Deny", **reference))
    story.scan(own)

    come = facts(story.scan([*own, limits(where)]))
    assert {("resolved", *LACKING): ("rulesChanged", "param"), ("new", *WEB): ("param",)} == come


@pytest.mark.long
@pytest.mark.parametrize(("kind", "where", "reference"), REFERENCES)
def test_a_param_that_may_be_missing_has_the_cause_param(
    store: SqlStore, kind: str, where: str, reference: Document
) -> None:
    """With the action Allow nothing is evaluated, and nothing is fixed."""
    story, own = Story(store), (*SPACES, SHOP, *rules(kind, "Allow", **reference))
    story.scan([*own, limits(where)])

    gone = facts(story.scan(own))
    back = facts(story.scan([*own, limits(where)]))
    assert ({("resolved", *WEB): ("rulesChanged", "param")}, {("reopened", *WEB): ("param",)}) == (gone, back)


def differing(store: SqlStore, before: int, now: int) -> set[tuple[str, ...]]:
    """The change, the kind of the check, the resolution and the causes of each problem that differs."""
    diff = store.compare_scans(f"scan-{before}", f"scan-{now}")
    return {
        (each.change.value, each.check.kind.value, each.resolution, *(kind.value for kind in each.cause.kinds))
        for cause in diff.causes
        for each in diff.list_problems(cause, None)
    }


def test_a_missing_param_of_a_namespace_changes_no_finding_of_others(store: SqlStore) -> None:
    """Each namespace has a param of its own."""
    story, own = Story(store), (*SPACES, SHOP, BANK, *rules("ConfigMap", "Deny", name="limits"))
    story.scan([*own, limits("shop"), limits("bank")])

    gone = facts(story.scan([*own, limits("bank")]))
    assert {("resolved", *WEB): ("rulesChanged", "param"), ("new", *LACKING): ("param",)} == gone


def test_an_object_that_comes_while_a_param_is_missing_elsewhere_was_created(store: SqlStore) -> None:
    """The param of its own namespace was missing before, and that of another namespace is gone now."""
    story, own = Story(store), (*SPACES, SHOP, *rules("ConfigMap", "Deny", name="limits"))
    story.scan([*own, limits("bank")])

    assert {("new", "configuration", "shop/api"): ("objectCreated",)} == facts(
        story.scan([*own, versioned(pod("api", "shop"), 1)])
    )


def test_a_namespace_lacks_the_param_of_its_own_name(store: SqlStore) -> None:
    """Params of a Namespace without a reference to another one are in the Namespace itself."""
    story = Story(store)
    [checked, bound] = rules("ConfigMap", "Deny", name="limits")
    checked["spec"]["matchConstraints"] = {"resourceRules": [rule("namespaces")]}
    own = [*(versioned(each, 1) for each in SPACES), checked, bound]
    params = [limits("shop"), limits("bank"), limits("settings")]
    story.scan([*own, *params])

    gone, back = facts(story.scan([*own, *params[1:]])), facts(story.scan([*own, *params]))
    assert {
        ("resolved", "validation", "shop"): ("rulesChanged", "param"),
        ("new", "configuration", "shop"): ("param",),
    } == gone
    assert {
        ("resolved", "configuration", "shop"): ("rulesChanged", "param"),
        ("reopened", "validation", "shop"): ("param",),
    } == back


def test_a_missing_param_is_gone_as_an_object_too(store: SqlStore) -> None:
    """The finding about the param itself is resolved because its object is gone."""
    story = Story(store)
    [checked, bound] = rules("ConfigMap", "Deny", name="limits")
    checked["spec"]["matchConstraints"] = {"resourceRules": [rule("configmaps")]}
    own = [*SPACES, checked, bound, versioned(thing(CONFIG_MAPS, "app", "shop"), 1)]
    story.scan([*own, limits("shop")])

    assert {
        ("resolved", "validation", "shop/limits"): ("objectGone", "param", "objectDeleted"),
        ("resolved", "validation", "shop/app"): ("rulesChanged", "param"),
        ("new", "configuration", "shop/app"): ("param",),
    } == facts(story.scan(own))


@pytest.mark.parametrize(
    ("later", "cause"),
    [
        pytest.param({"name": "other", "namespace": "settings"}, ("binding",), id="another reference"),
        pytest.param(
            {"selector": {"matchLabels": {"tier": "lax"}}, "namespace": "settings"}, ("binding",), id="another selector"
        ),
        pytest.param(None, ("binding",), id="no reference"),
    ],
)
def test_a_param_that_a_binding_leaves_to_others_is_lost(
    store: SqlStore, later: Document | None, cause: tuple[str, ...]
) -> None:
    """Another binding still has the param; the object is still matched, so it is not `notMatched`."""
    story = Story(store)
    checked, bound = rules("ConfigMap", "Allow", name="limits", namespace="settings")
    other = {**bound, "metadata": {"name": "other"}}
    changed = {**bound, "spec": {**bound["spec"], "paramRef": {"parameterNotFoundAction": "Allow", **(later or {})}}}
    if later is None:
        del changed["spec"]["paramRef"]
    own = [*SPACES, SHOP, limits("settings"), checked, other]
    story.scan([*own, bound])

    assert ("rulesChanged", *cause) == facts(story.scan([*own, changed]))["resolved", *WEB]


def test_a_param_that_a_selector_no_longer_selects_is_lost(store: SqlStore) -> None:
    """Its label changed; another binding still has the param."""
    story = Story(store)
    checked, bound = rules("ConfigMap", "Deny", selector={"matchLabels": LABELS})
    other = binding("other", "p", "Deny", paramRef={"name": "limits", "parameterNotFoundAction": "Deny"})
    own = [*SPACES, SHOP, checked]
    story.scan([*own, bound, other, limits("shop")])
    relabelled = limits("shop")
    relabelled["metadata"] = {**relabelled["metadata"], "labels": {"tier": "lax"}}
    record = story.scan([*own, bound, other, relabelled])

    [lost] = record.resolved_findings()
    assert ("b", "rulesChanged", "param") == (
        lost.finding.binding,
        lost.resolution,
        lost.cause and lost.cause.kind.value,
    )
    assert ("param",) == facts(record)["new", *LACKING]


def test_a_missing_param_that_is_allowed_now_is_no_remediation(store: SqlStore) -> None:
    """The binding changed, and the object is still matched."""
    story, own = Story(store), (*SPACES, SHOP)
    story.scan([*own, *rules("ConfigMap", "Deny", name="limits")])

    allowed = facts(story.scan([*own, *rules("ConfigMap", "Allow", name="limits")]))
    assert {("resolved", *LACKING): ("rulesChanged", "binding")} == allowed


def test_an_object_that_is_deleted_while_its_param_is_missing_is_gone(store: SqlStore) -> None:
    """No param changed."""
    story, own = Story(store), (*SPACES, *rules("ConfigMap", "Deny", name="limits"))
    story.scan([*own, SHOP, BANK])

    assert {("resolved", *LACKING): ("objectGone", "objectDeleted")} == facts(story.scan([*own, BANK]))


def test_a_param_kind_that_is_removed_has_the_cause_param(store: SqlStore) -> None:
    """The error of the configuration has another message, though no object changed."""
    own = (*SPACES, SHOP, *rules("Limit", "Deny", name="limits"))
    Story(store).scan(own)
    without = Story(store, kinds=tuple(kind for kind in KINDS if kind != LIMITS), days=count(2))

    assert {("open", *LACKING): ("param",)} == facts(without.scan(own))
