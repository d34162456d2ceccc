"""The texts of policies on pages of findings: the lines of checks, and the part of a long text that is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import Policy
from scanner.model.scans.scan import PolicyRecord
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.document import document_of
from scanner.report.document.policy_text import MarkedText, mark_checks

from .records import binding, check, policy, small_record

FIRST, SECOND = "object.spec.replicas > 1", "has(object.metadata.labels)\n  && 'a' in object.metadata.labels"


def section_of(shown: Policy) -> PolicySection:
    """The section of a policy in a report."""
    used = PolicyRecord(shown, (binding("b", shown.name, "Deny"),), 0)
    (section,) = document_of(replace(small_record(), policies=(used,), tallies={}, found=lambda: (()))).policies
    return section


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (check(FIRST), ["  - expression: object.spec.replicas > 1"]),
        (
            check(SECOND, 1),
            [
                "  - expression: |-",
                "      has(object.metadata.labels)",
                "        && 'a' in object.metadata.labels",
            ],
        ),
        (check(SECOND, 7), ["  - expression: |-", *(f"      {line}" for line in SECOND.split("\n"))]),
        (Check(CheckKind.CONFIGURATION), []),
        (check("derived from the first"), ["  - expression: object.spec.replicas > 1"]),
        (check("of no place", 7), []),
    ],
)
def test_a_check_has_the_lines_of_its_expression(asked: Check, expected: list[str]) -> None:
    """Also where the expression stands at another place, or is derived from the one at the place of the check."""
    text = mark_checks(section_of(policy("p", FIRST, SECOND)), [asked])
    assert expected == [text.lines[number - 1] for number in text.places.get(asked, ())]


def test_a_short_text_is_shown_whole() -> None:
    """The lines of the check are marked."""
    text = MarkedText(("a", "b", "c"), {check("b"): range(2, 3)})
    assert [(1, "a", False), (2, "b", True), (3, "c", False)] == [
        (line.number, line.text, line.marked) for line in text.list_lines(10)
    ]


def test_of_a_long_text_the_lines_around_the_check_are_shown() -> None:
    """The numbers of the others are given, so that nothing is left out in silence."""
    text = MarkedText(tuple(f"line {number}" for number in range(1, 21)), {check("x"): range(10, 11)})
    shown = list(text.list_lines(50))
    assert [0, 7, 8, 9, 10, 11, 12, 13, 0] == [line.number for line in shown]
    assert ("… 6 lines left out", "… 7 lines left out") == tuple(shown[place].text for place in (0, -1))
