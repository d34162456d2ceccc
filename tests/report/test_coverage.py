"""How much of a cluster a scan listed, and which gaps are larger than a kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.scan import Coverage, CoverageState
from scanner.report.coverage import beyond_kinds, coverage_of, percent_listed
from tests.report.records import small_record


@pytest.mark.parametrize(
    ("states", "percent"),
    [
        ((), 100),
        (("listed",), 100),
        (("listed", "skipped"), 100),
        (("listed", "forbidden"), 50),
        (("listed", "partial", "inconsistent", "failed"), 25),
    ],
)
def test_the_share_of_kinds_that_were_listed(states: tuple[str, ...], percent: float) -> None:
    """What was excluded on request does not count; what was not listed to its end, at one moment, counts as missing."""
    coverage = tuple(Coverage("v1", f"Kind{number}", CoverageState(state)) for number, state in enumerate(states))
    assert percent == percent_listed(replace(small_record(), coverage=coverage))


def test_a_gap_of_a_kind_is_known_by_its_ledger_line() -> None:
    """A group that did not answer, or policies that could not be listed, may hide anything."""
    own = Gap(GapKind.LIST, "v1/Pod", "forbidden")
    more = (Gap(GapKind.DISCOVERY, "metrics.k8s.io/v1", "down"), Gap(GapKind.LIST, "scan", "interrupted"))
    record = replace(small_record(), coverage=(Coverage("v1", "Pod", CoverageState.FORBIDDEN),), gaps=(own, *more))
    assert more == beyond_kinds(record)


def test_an_inconsistent_list_is_named_first() -> None:
    """It is no complete one, and the report says what it lacks."""
    line = Coverage("v1", "Pod", CoverageState.INCONSISTENT, 7, note="the list expired")
    section = coverage_of(replace(small_record(), coverage=(line,)))
    assert ("Pod (v1): listed, but its pages show different moments, the list expired",) == section.unseen
