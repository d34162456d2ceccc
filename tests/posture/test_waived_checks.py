"""Whether the check of a waiver still asks what the author of the waiver accepted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from scanner.model.json import EMPTY
from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import VALIDATING, NamedExpression, Policy, PolicyKey, Validation
from scanner.model.selector import Requirement, Selector
from scanner.model.waiver import WaivedCheck, Waiver
from scanner.posture.waivers.waived_checks import (
    NamedChecks,
    ReplacedCheck,
    find_replaced_checks,
    form_of,
    question_of,
    waiver_key,
)
from tests.posture.waivers import DAY, waiver

KEY: PolicyKey = (VALIDATING, "replicas")
FIRST = (CheckKind.VALIDATION, 0)


def policy(*texts: str, language: str = VALIDATING, name: str = "replicas") -> Policy:
    """A policy with validations of these expressions."""
    checks = tuple(map(Validation, texts))
    return Policy(language, name, None, None, (), (), checks, (), "Fail", EMPTY, "digest")


def named(*policies: Policy, evaluated: Iterable[tuple[PolicyKey, Check]] = ()) -> NamedChecks:
    """The checks of policies; the first validation of each has the id c-1."""
    ids = {(each.key, Check(*FIRST, each.validations[0].expression)): "c-1" for each in policies}
    return NamedChecks(policies, ids, evaluated)


def used(own: Waiver, of: Policy, since: int = 1) -> WaivedCheck:
    """The first validation of a policy, as a scan that used a waiver had it."""
    return WaivedCheck(waiver_key(own), form_of(of, FIRST), question_of(of, FIRST), since)


def is_replaced(own: Waiver, now: NamedChecks, *earlier: WaivedCheck) -> bool:
    """Return whether the check of a waiver asks something else."""
    return own.name in find_replaced_checks([own], now, earlier)


BY_ID = waiver(check="c-1")
WITH_DIGEST = waiver(check="c-1", check_digest=question_of(policy("a"), FIRST))


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (policy("a"), False),
        (policy(" a // the same"), False),
        (policy("b"), True),
        (policy("b", "a"), True),
    ],
)
def test_a_check_is_replaced_if_it_asks_something_else_than_the_waiver_accepts(now: Policy, *, expected: bool) -> None:
    """With the digest of a question, and with the first scan that used the waiver."""
    results = is_replaced(WITH_DIGEST, named(now)), is_replaced(BY_ID, named(now), used(BY_ID, policy("a")))
    assert (expected, expected) == results


def test_a_replaced_check_has_both_questions() -> None:
    """For readers who compare them."""
    expected = ReplacedCheck(frozenset({question_of(policy("a"), FIRST)}), frozenset({question_of(policy("b"), FIRST)}))
    assert {"legacy": expected} == find_replaced_checks([WITH_DIGEST], named(policy("b")), ())


def test_the_first_scan_that_used_a_waiver_decides() -> None:
    """Later ones do not, in any order of reading."""
    scans = used(BY_ID, policy("b"), since=3), used(BY_ID, policy("a"), since=2), used(BY_ID, policy("c"), since=4)
    results = [is_replaced(BY_ID, named(policy(text)), *scans) for text in ("a", "b", "c", "d")]
    assert [False, True, True, True] == results


def test_a_digest_counts_more_than_an_earlier_scan() -> None:
    """The person who wrote it saw the check."""
    assert not is_replaced(WITH_DIGEST, named(policy("a")), used(WITH_DIGEST, policy("b")))


def test_a_waiver_that_no_scan_used_is_about_the_checks_of_this_scan() -> None:
    """An edited waiver is another one."""
    edited = waiver(check="c-1", reason="another")
    assert not is_replaced(edited, named(policy("b")), used(BY_ID, policy("a")))


def test_a_waiver_whose_check_is_gone_has_no_replaced_check() -> None:
    """Nothing is asked any more."""
    assert not is_replaced(waiver(check="c-2", check_digest=WITH_DIGEST.check_digest), named(policy("a")))


def test_a_waiver_by_expression_is_about_each_check_that_has_the_expression() -> None:
    """Policies of two languages can have one name, and variables of the same name."""
    own = waiver(check="variables.few")
    few, many = (
        replace(policy("variables.few", language=language), variables=(NamedExpression("few", text),))
        for language, text in ((VALIDATING, "1"), ("ValidatingPolicy", "2"))
    )
    both = [used(own, few), used(own, many)]
    assert not is_replaced(own, named(few, many), *both)
    assert is_replaced(own, named(few, many), both[0])


def test_a_check_is_known_by_the_expression_that_was_evaluated() -> None:
    """Kyverno rewrites the expressions of a policy for Pods to those for the controllers of Pods."""
    own = waiver(check="rewritten")
    now = named(policy("b"), evaluated=[(KEY, Check(*FIRST, "rewritten"))])
    assert is_replaced(own, now, used(own, policy("a")))


@pytest.mark.parametrize(
    "fields",
    [
        *({name: "x"} for name in ("name", "policy", "reason", "requested_by", "approved_by", "cluster", "check")),
        *({name: "x"} for name in ("namespace", "workload", "object", "ticket", "control", "check_digest")),
        {"until": DAY + timedelta(days=1)},
        {"since": date(2026, 1, 1)},
        {"selector": Selector((Requirement("app", "Exists"),))},
    ],
)
def test_an_edited_waiver_is_another_one(fields: dict[str, Any]) -> None:
    """With each of its fields but the file."""
    assert waiver_key(waiver()) != waiver_key(waiver(**fields))


def test_a_waiver_that_moves_to_another_file_is_the_same() -> None:
    """No person edited it."""
    assert waiver_key(waiver()) == waiver_key(waiver(source="other.yaml"))


def test_the_key_of_a_waiver_never_changes() -> None:
    """Databases have it."""
    assert "1b9b962ad426557ec2fd25f2e1024af9cb1851f2030fa3a897b7e0ba8a820fc6" == waiver_key(waiver()).hex()
