"""The objects of a list beside the API server's own count."""

from __future__ import annotations

import pytest

from scanner.model.scans.scan import Coverage, CoverageState, ObjectCount, Scope
from scanner.report.runs.document import Agreement, KindLine, kind_lines

EQUAL, CHANGED, DIFFERENT, NOT = Agreement


def line(count: ObjectCount, *, state: CoverageState = CoverageState.LISTED, scope: Scope | None = None) -> KindLine:
    """The line of a kind with ten examined objects."""
    coverage = Coverage("v1", "Pod", state, objects=10, note="" if state is CoverageState.LISTED else "a note")
    [compared] = kind_lines((coverage,), (count,), scope or Scope(), "")
    return compared


@pytest.mark.parametrize(
    ("count", "agreement", "difference"),
    [
        (ObjectCount(0, 10, 10), EQUAL, 0),
        (ObjectCount(0, 7, 10), EQUAL, 0),
        (ObjectCount(0, 10, 12), CHANGED, -2),
        (ObjectCount(0, 12, 9), CHANGED, 1),
        (ObjectCount(0, 12, 12), DIFFERENT, -2),
        (ObjectCount(0, 3, 5), DIFFERENT, 5),
        (ObjectCount(5, 15, 15), EQUAL, 0),
        (ObjectCount(5, 10, 10), DIFFERENT, 5),
        (ObjectCount(0, 10, None), EQUAL, 0),
        (ObjectCount(0, None, 11), DIFFERENT, -1),
        (ObjectCount(0, None, None), NOT, None),
    ],
)
def test_a_list_is_compared_with_the_count(count: ObjectCount, agreement: Agreement, difference: int | None) -> None:
    """Excluded objects are listed too; a number between both counts is a change during the scan."""
    compared = line(count)

    assert (agreement, difference) == (compared.agreement, compared.difference)


@pytest.mark.parametrize(
    ("state", "scope", "why_not"),
    [
        (CoverageState.SKIPPED, Scope(), "a note"),
        (CoverageState.PARTIAL, Scope(), "the list is not complete"),
        (CoverageState.INCONSISTENT, Scope(), "the list is not complete"),
        (CoverageState.LISTED, Scope(selector="app=web"), "--selector limits the list"),
        (CoverageState.LISTED, Scope(namespaces=("shop",)), "--namespace limits the list"),
    ],
)
def test_a_part_of_the_objects_is_not_compared(state: CoverageState, scope: Scope, why_not: str) -> None:
    """The reason takes the place of the difference."""
    compared = line(ObjectCount(0, 10, 10), state=state, scope=scope)

    assert (NOT, None, why_not) == (compared.agreement, compared.difference, compared.why_not)


def test_a_scan_of_an_older_version_has_no_counts() -> None:
    """Not even the number of listed objects is known, because excluded ones were not counted."""
    [compared] = kind_lines((Coverage("v1", "Pod", CoverageState.LISTED, objects=10),), (), Scope(), "")

    assert (10, None, None, NOT) == (compared.examined, compared.listed, compared.excluded, compared.agreement)
