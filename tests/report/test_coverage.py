"""The share of a cluster that a scan listed, and gaps larger than a kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.scan import Coverage, CoverageState
from scanner.report.document.coverage import beyond_kinds, coverage_of, percent_listed
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
    """Excluded kinds do not count; kinds that were not listed completely, at one moment, count as missing."""
    coverage = tuple(Coverage("v1", f"Kind{number}", CoverageState(state)) for number, state in enumerate(states))
    assert percent == percent_listed(replace(small_record(), coverage=coverage))


def test_gaps_beyond_kinds_are_those_without_a_coverage_line() -> None:
    """A group that did not answer, or policies that could not be listed, may hide any object."""
    own = Gap(GapKind.LIST, "v1/Pod", "forbidden")
    more = (Gap(GapKind.DISCOVERY, "metrics.k8s.io/v1", "down"), Gap(GapKind.LIST, "scan", "interrupted"))
    record = replace(small_record(), coverage=(Coverage("v1", "Pod", CoverageState.FORBIDDEN),), gaps=(own, *more))
    assert more == beyond_kinds(record)


def test_an_inconsistent_list_is_named_first() -> None:
    """The list is not complete, and the report states the reason."""
    line = Coverage("v1", "Pod", CoverageState.INCONSISTENT, 7, note="the list expired")
    section = coverage_of(replace(small_record(), coverage=(line,)))
    assert ("Pod (v1): listed, but its pages show different moments, the list expired",) == section.unseen
