"""A policy whose compilation would not end is skipped, with a reason on every object that it matches."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds
from scanner.model.outcome import Outcome, Skipped, SkipReason, Violated
from tests.documents import binding, pod, policy

MANY = 1000


def outcome(variables: list[str], validation: str) -> Outcome:
    """The outcome of a policy with these variables, `v0`, `v1` …, for a pod."""
    declared: Any = [{"name": f"v{number}", "expression": text} for number, text in enumerate(variables)]
    auditor = Auditor(
        policies=[policy("p", validation, variables=declared)], bindings=[binding("b", "p")], kinds=builtin_kinds()
    )
    [invocation_result] = auditor.evaluate(pod())
    [check_result] = invocation_result.check_results
    return check_result.outcome


def chain(first: str, then: str) -> list[str]:
    """Variables each of which reads the one before, whose number replaces `{}`."""
    return [first, *(then.format(*[number] * then.count("{}")) for number in range(MANY - 1))]


def test_a_thousand_variables_are_compiled_and_evaluated() -> None:
    """Each variable reads the one before."""
    result = outcome(chain("object.metadata.name", "variables.v{} + 'x'"), f"variables.v{MANY - 1} == 'web'")

    assert isinstance(result, Violated)


@pytest.mark.long
@pytest.mark.parametrize(
    ("variables", "validation", "why"),
    [
        (chain("[1]", "[variables.v{}]"), f"variables.v{MANY - 1} == []", "has more than 300 parts"),
        ([], f"optional.of(1){'.optMap(x, x)' * 22}.hasValue()", "expands to more than 100,000 nodes"),
        (
            [f"optional.of({number}){'.optMap(x, x)' * 11}" for number in range(5)],
            "true",
            "its expressions expand to more than 100,000 nodes",
        ),
    ],
    ids=["types", "one expression", "several expressions"],
)
def test_a_policy_that_grows_as_it_is_compiled_is_skipped(variables: list[str], validation: str, why: str) -> None:
    """The policy does not stall a scan, and does not count as passed."""
    result = outcome(variables, validation)

    assert isinstance(result, Skipped)
    assert (SkipReason.NOT_AUDITABLE, why) == (result.reason, result.detail[-len(why) :])
