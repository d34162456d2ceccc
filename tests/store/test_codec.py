"""Nouns as JSON text and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.policy import (
    AuditAnnotation,
    Binding,
    MatchResources,
    NamedExpression,
    ParamKind,
    ParamRef,
    Policy,
    Rule,
    Validation,
)
from scanner.model.scans.method import Method
from scanner.model.scans.scan import Scope
from scanner.model.selector import Requirement, Selector
from scanner.store.rows.codec import from_text, to_text
from scanner.store.rows.row_ids import RowIdSet, unpack_row_ids

RULE = Rule(("CREATE", "*"), ("apps",), ("v1",), ("deployments", "*/scale"), "Namespaced", ("web",))
SELECTOR = Selector((Requirement("tier", "In", ("a", "b")), Requirement("x", "Exists")))
MATCH = MatchResources((RULE,), (), SELECTOR, Selector(), "Exact")
POLICY = Policy(
    language="vap",
    name="replicas",
    match=MATCH,
    param_kind=ParamKind("v1", "ConfigMap"),
    match_conditions=(NamedExpression("not-system", "true"),),
    variables=(),
    validations=(Validation("object.spec.replicas <= 5", reason="Forbidden"),),
    audit_annotations=(AuditAnnotation("k", "'v'"),),
    failure_policy="Ignore",
    manifest={"spec": {"list": [1, 2.5, None, {"deep": ["ä"]}]}},
    digest="00",
    source="policies.yaml",
)
BINDING = Binding(
    "vap", "b", "replicas", ParamRef("", "shop", SELECTOR, "Deny"), None, ("Deny",), {}, "d", assumed=True
)
nouns = st.builds(Policy) | st.builds(Binding) | st.builds(Scope)


@pytest.mark.parametrize(
    "noun", [POLICY, replace(POLICY, match=None, param_kind=None), BINDING, Scope(("a",), selector="x=y")]
)
def test_a_noun_is_read_as_it_was_written(noun: object) -> None:
    """Nested nouns, tuples, absent parts and manifests are included."""
    assert noun == from_text(type(noun), to_text(noun))


@given(selector=st.builds(Selector), name=st.text(), actions=st.sampled_from([(), ("Deny",), ("Warn", "Audit")]))
def test_any_text_is_read_as_it_was_written(selector: Selector, name: str, actions: tuple[str, ...]) -> None:
    """Text that is not valid Unicode is included."""
    noun = replace(BINDING, name=name, param_ref=ParamRef(name, "", selector, "Deny"), actions=actions)  # type: ignore[arg-type]

    assert noun == from_text(Binding, to_text(noun))


def test_fields_of_another_version_do_no_harm() -> None:
    """Unknown fields are left out, and missing fields have their defaults."""
    stored = json.loads(to_text(POLICY))
    del stored["source"]
    stored["owner"] = "nobody"

    assert replace(POLICY, source="cluster") == from_text(Policy, json.dumps(stored))


def test_other_json_is_rejected() -> None:
    """A list is not a policy."""
    with pytest.raises(ValueError, match="not a stored Policy"):
        from_text(Policy, "[]")


@pytest.mark.parametrize("length", [10, 100_000])
def test_a_text_is_read_alike_each_time(length: int) -> None:
    """Short texts, whose objects are kept, and long ones; one text may be of two classes."""
    policy = replace(POLICY, name="x" * length)

    assert [policy, policy] == [from_text(Policy, to_text(policy)) for _ in range(2)]
    assert (Scope(), Method()) == (from_text(Scope, "{}"), from_text(Method, "{}"))


@given(numbers=st.sets(st.integers(0, 5000)), number=st.integers(0, 6000))
def test_a_set_of_numbers_survives_packing(numbers: set[int], number: int) -> None:
    """The members and their count are the same."""
    packed = unpack_row_ids(RowIdSet(numbers).pack())

    assert (number in numbers, sorted(numbers), len(numbers)) == (number in packed, list(packed), packed.count)


@given(numbers=st.sets(st.integers(0, 500)))
def test_a_set_of_numbers_has_flags(numbers: set[int]) -> None:
    """A byte for each number up to the highest: they choose the objects of a set from a column."""
    flags = RowIdSet(numbers).flags()

    assert sorted(numbers) == [number for number, flag in enumerate(flags) if flag]


def test_a_run_of_numbers_takes_next_to_no_space() -> None:
    """A hundred thousand unchecked findings take less than 100 bytes."""
    assert 100 > len(RowIdSet(range(1, 100_001)).pack())
