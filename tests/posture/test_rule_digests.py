"""The digests by which sets of rules are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.json import JsonObject
from scanner.model.policy import VALIDATING, Binding, Policy
from scanner.model.resource import LAST_APPLIED
from scanner.model.rule import RuleObject, RuleType
from scanner.posture.history.rule_digests import description_digest, policy_set_digest

POLICIES = tuple(
    Policy(VALIDATING, name, None, None, (), (), (), (), "Fail", {"metadata": {"name": name}}, f"spec of {name}")
    for name in ("limits", "owners")
)
BINDINGS = tuple(
    Binding(
        VALIDATING, f"{policy.name}-everywhere", policy.name, None, None, ("Deny",), {}, f"binding of {policy.name}"
    )
    for policy in POLICIES
)
RULES = (
    RuleObject(RuleType.PARAM, "ConfigMap shop/limits", "a" * 64, {}),
    RuleObject(RuleType.NAMESPACE_LABELS, "shop", "b" * 64, {}),
)
DIGEST = policy_set_digest(POLICIES, BINDINGS, RULES)


def test_the_order_does_not_matter() -> None:
    """Policies, bindings and rules can be read in any order."""
    assert DIGEST == policy_set_digest(POLICIES[::-1], BINDINGS[::-1], RULES[::-1])


@pytest.mark.parametrize(
    ("policies", "bindings", "rules"),
    [
        (POLICIES[:1], BINDINGS, RULES),
        ((replace(POLICIES[0], digest="another spec"), POLICIES[1]), BINDINGS, RULES),
        (POLICIES, BINDINGS[:1], RULES),
        (POLICIES, (replace(BINDINGS[0], digest="another spec"), BINDINGS[1]), RULES),
        (POLICIES, (replace(BINDINGS[0], assumed=True), BINDINGS[1]), RULES),
        (POLICIES, BINDINGS, RULES[:1]),
        (POLICIES, BINDINGS, (replace(RULES[0], digest="c" * 64), RULES[1])),
        (POLICIES, BINDINGS, (replace(RULES[0], name="ConfigMap shop/others"), RULES[1])),
        (POLICIES, BINDINGS, (replace(RULES[0], type=RuleType.EXCEPTION), RULES[1])),
    ],
)
def test_other_rules_have_another_digest(
    policies: tuple[Policy, ...], bindings: tuple[Binding, ...], rules: tuple[RuleObject, ...]
) -> None:
    """Each part counts: its kind, its name and its content."""
    assert DIGEST != policy_set_digest(policies, bindings, rules)


def test_a_binding_of_an_unknown_policy_decides_nothing() -> None:
    """The server ignores such a binding."""
    dangling = replace(BINDINGS[0], policy_name="gone")

    assert DIGEST == policy_set_digest(POLICIES, (*BINDINGS, dangling), RULES)


@pytest.mark.parametrize(("version", "has_digest"), [({"resourceVersion": "7"}, True), ({}, False)])
def test_withheld_content_needs_a_version(version: dict[str, str], has_digest: bool) -> None:  # noqa: FBT001
    """Without a version, a change of the withheld content would not be seen: no set is equal to this one."""
    rule = RuleObject(RuleType.PARAM, "Secret shop/limits", "d" * 64, {"metadata": version}, masked=True)

    assert has_digest == bool(policy_set_digest(POLICIES, BINDINGS, (rule,)))


@pytest.mark.parametrize(
    ("annotations", "same"),
    [({"title": "Limits"}, True), ({"title": "Limits", LAST_APPLIED: "{}"}, True), ({"title": "Other"}, False)],
)
def test_descriptions_are_annotations(annotations: dict[str, str], same: bool) -> None:  # noqa: FBT001
    """The copy that kubectl keeps describes nothing."""

    def described(more: dict[str, str]) -> str:
        manifest: JsonObject = {"metadata": {"name": "limits", "annotations": more}}
        return description_digest((replace(POLICIES[0], manifest=manifest),), BINDINGS)

    assert same == (described({"title": "Limits"}) == described(annotations))
