"""The score of a scan and its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.outcome import Check, CheckKind, Gap, GapKind
from scanner.model.scan import (
    Coverage,
    CoverageState,
    OutcomeName,
    PolicyRecord,
    ScanRecord,
    ScanState,
    TallyKey,
)
from scanner.posture.score import score_of
from scanner.report.words import percent_ceil, percent_floor
from tests.report.records import binding, check, policy, scan, small_record

ANNOTATION = Check(CheckKind.AUDIT_ANNOTATION, 0, "'x'")
CONFIGURATION = Check(CheckKind.CONFIGURATION)


def record_of(*counted: tuple[OutcomeName, int], checked: Check | None = None, of: str = "a") -> ScanRecord:
    """A complete scan of one policy with these outcomes."""
    tallies = {
        TallyKey(of, "b", "", "", checked or check("true"), "v1", "Pod", "shop", outcome): number
        for outcome, number in counted
    }
    record = PolicyRecord(policy("a", "true"), (binding("b", "a", "Deny"),), 1)
    return replace(small_record(), policies=(record,), tallies=tallies, health=())


def test_share_of_decided_checks() -> None:
    """The score is the number of passes, divided by passes, violations and errors that deny."""
    score = score_of(
        record_of((OutcomeName.PASSED, 6), (OutcomeName.VIOLATED, 1), (OutcomeName.ERRORED_DENY, 1)),
    )
    assert (6, 8, 0.75, 0.75, 0.75) == (score.passed, score.decided, score.value, score.low, score.high)


def test_errors_that_admit_are_undecided() -> None:
    """An error that admission ignores is neither a pass nor a failure, and widens the bounds."""
    score = score_of(record_of((OutcomeName.PASSED, 6), (OutcomeName.VIOLATED, 2), (OutcomeName.ERRORED_ADMIT, 2)))
    assert (0.75, 0.6, 0.8) == (score.value, score.low, score.high)


def test_skipped_checks_do_not_count() -> None:
    """A check that was not evaluated changes nothing."""
    score = score_of(record_of((OutcomeName.PASSED, 3), (OutcomeName.VIOLATED, 1), (OutcomeName.SKIPPED, 90)))
    assert (0.75, 0.75, 0.75) == (score.value, score.low, score.high)


def test_not_auditable_checks_are_undecided() -> None:
    """Checks that only a server can decide widen the bounds."""
    counted = (OutcomeName.PASSED, 3), (OutcomeName.VIOLATED, 1), (OutcomeName.NOT_AUDITABLE, 4)
    score = score_of(record_of(*counted))
    assert (0.75, 0.375, 0.875) == (score.value, score.low, score.high)


def test_annotations_are_no_passes() -> None:
    """A published audit annotation is no passed validation, but an annotation that denies counts as a failure."""
    passes = score_of(record_of((OutcomeName.PASSED, 5), checked=ANNOTATION))
    denied = score_of(record_of((OutcomeName.ERRORED_DENY, 5), checked=CONFIGURATION))
    assert (0, "no check was decided") == (passes.decided, passes.why_not)
    assert (5, 0.0) == (denied.decided, denied.value)


def test_objects_not_evaluated_are_undecided() -> None:
    """An object that was listed but not evaluated may fail or pass every validation."""
    record = record_of((OutcomeName.PASSED, 3), (OutcomeName.VIOLATED, 1))
    record = replace(record, gaps=(Gap(GapKind.EVALUATION, "v1/Pod shop/web", "internal error"),))
    score = score_of(record)
    assert (1, 0.75, 0.6, 0.8) == (score.undecided, score.value, score.low, score.high)


@pytest.mark.parametrize("state", [CoverageState.PARTIAL, CoverageState.FORBIDDEN, CoverageState.FAILED])
def test_no_score_without_a_population(state: CoverageState) -> None:
    """The number of objects of a needed kind is not known."""
    record = replace(record_of((OutcomeName.PASSED, 3)), coverage=(Coverage("v1", "Pod", state),))
    score = score_of(record)
    assert (None, None, None) == (score.value, score.low, score.high)
    assert score.why_not == "the number of objects is unknown for Pod"


@pytest.mark.parametrize(
    "gap",
    [
        Gap(GapKind.DOCUMENT, "a.yaml", "not YAML"),
        Gap(GapKind.DISCOVERY, "metrics.k8s.io/v1", "unavailable"),
        Gap(GapKind.LIST, "scan", "interrupted"),
        Gap(GapKind.OBJECT, "v1/Pod", "the page could not be decoded"),
        Gap(GapKind.EVALUATION, "policy limits", "its params could not be listed"),
    ],
)
def test_no_score_with_a_gap_of_unknown_size(gap: Gap) -> None:
    """The gap may hide any number of objects or checks."""
    score = score_of(replace(record_of((OutcomeName.PASSED, 3)), gaps=(gap,)))
    assert f"the number of missed objects is unknown: 1 gap, first {gap.where}" == score.why_not


def test_no_score_for_a_failed_scan() -> None:
    """A failed scan has no score, even with findings."""
    assert score_of(replace(record_of((OutcomeName.PASSED, 3)), scan=scan(ScanState.FAILED))).value is None


def test_a_kind_left_out_on_request_needs_no_count() -> None:
    """A kind that the user skipped does not remove the score."""
    skipped = (Coverage("v1", "Secret", CoverageState.SKIPPED),)
    assert score_of(replace(record_of((OutcomeName.PASSED, 3)), coverage=skipped)).value == 1.0


@given(st.dictionaries(st.sampled_from(OutcomeName), st.integers(0, 1_000)), st.integers(0, 3))
def test_bounds_contain_the_score(counted: dict[OutcomeName, int], gaps: int) -> None:
    """The score lies between its bounds, which lie between 0 and 1."""
    missed = tuple(Gap(GapKind.OBJECT, f"v1/Pod shop/web-{number}", "unknown") for number in range(gaps))
    score = score_of(replace(record_of(*counted.items()), gaps=missed))
    if score.value is None or score.low is None or score.high is None:
        assert not score.decided
    else:
        assert 0 <= score.low <= score.value <= score.high <= 1


@pytest.mark.parametrize(
    ("share", "low", "high"),
    [(1.0, "100.0 %", "100.0 %"), (0.99996, "99.9 %", "100.0 %"), (0.0, "0.0 %", "0.0 %"), (0.875, "87.5 %", "87.5 %")],
)
def test_percentages_do_not_flatter(share: float, low: str, high: str) -> None:
    """A score is rounded down and an upper bound up, so that 100 % means all."""
    assert (low, high) == (percent_floor(share), percent_ceil(share))
