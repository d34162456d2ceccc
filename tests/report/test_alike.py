"""Differences of rules without what means the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.json import JsonObject
from scanner.posture.history.scan_diff import RuleDifference, RuleKind
from scanner.report.diff.alike import make_alike
from scanner.report.diff.words import rule_lines

SPEC: JsonObject = {
    "failurePolicy": "Fail",
    "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [{"resources": ["pods"], "scope": "*"}]},
    "validations": [{"expression": "true", "message": "no"}],
}
WRITTEN: JsonObject = {
    "validations": [{"message": "no", "expression": "true"}],
    "matchConstraints": {"resourceRules": [{"resources": ["pods"]}]},
}


def lines(before: JsonObject, now: JsonObject) -> list[str]:
    """The lines of a difference."""
    return rule_lines(RuleDifference(RuleKind.POLICY, "ValidatingAdmissionPolicy", "p", before, now))


def test_order_and_defaults_are_no_difference() -> None:
    """In either direction."""
    assert [] == lines(SPEC, WRITTEN) == lines(WRITTEN, SPEC)


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({**WRITTEN, "failurePolicy": "Ignore"}, "failurePolicy: Ignore"),
        ({**WRITTEN, "validations": [{"expression": "false", "message": "no"}]}, "expression: 'false'"),
        ({**WRITTEN, "matchConstraints": {"resourceRules": [{"resources": ["pods"], "scope": "Cluster"}]}}, "Cluster"),
        ({**WRITTEN, "validations": [*WRITTEN["validations"], {"expression": "x"}]}, "expression: x"),  # type: ignore[misc]
    ],
)
def test_what_decides_is_shown(changed: JsonObject, shown: str) -> None:
    """A value that is no default, a text, and an item more."""
    made = lines(SPEC, changed)
    assert any(line.startswith("+") and shown in line for line in made)
    assert 6 >= sum(line[:1] in "+-" for line in made)


def test_a_changed_default_is_a_difference() -> None:
    """Stated on both sides, or stated on one and another value on the other."""
    made = lines({"failurePolicy": "Fail"}, {"failurePolicy": "Ignore"})
    assert ["-failurePolicy: Fail", "+failurePolicy: Ignore"] == made[1:]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["Fail", "*", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["failurePolicy", "scope", "a", "b"]), inner, max_size=4)
    ),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(st.sampled_from(["failurePolicy", "objectSelector", "scope", "a", "b"]), _JSON, max_size=5)


@given(_OBJECTS, _OBJECTS)
def test_nothing_else_is_lost(before: JsonObject, now: JsonObject) -> None:
    """Texts that become equal differ in defaults alone: with the defaults filled in, they are equal as they are."""
    left, right = make_alike(before, now)
    if left == right:
        assert _fill(before, now) == _fill(now, before)
    assert make_alike(before, before) == (before, before)


def _fill(document: object, other: object) -> str:
    """A document with the defaults that the other one states, as text in one order."""
    defaults = {"failurePolicy": "Fail", "objectSelector": {}, "scope": "*"}

    def fill(value: object, beside: object) -> object:
        if isinstance(value, dict) and isinstance(beside, dict):
            added = {k: d for k, d in defaults.items() if k in beside and k not in value and beside[k] == d}
            return {k: fill(v, beside.get(k)) for k, v in {**value, **added}.items()}
        if isinstance(value, list) and isinstance(beside, list) and len(value) == len(beside):
            return [fill(v, b) for v, b in zip(value, beside, strict=True)]
        return value

    return json.dumps(fill(document, other), sort_keys=True)
