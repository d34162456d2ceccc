"""The score of a scan and its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.outcome import Check, CheckKind, Gap, GapKind
from scanner.model.scans.scan import Coverage, CoverageState, PolicyRecord, ScanState
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.posture.score import Score, Scores, default_severity
from scanner.posture.severity import Severity
from scanner.report.text.numbers import percent_ceil, percent_floor
from tests.report.in_memory import ScanInMemory
from tests.report.records import binding, check, policy, scan, small_record

ANNOTATION = Check(CheckKind.AUDIT_ANNOTATION, 0, "'x'")
CONFIGURATION = Check(CheckKind.CONFIGURATION)


def record_of(*counted: tuple[OutcomeName, int], checked: Check | None = None, of: str = "a") -> ScanInMemory:
    """A complete scan of one policy with these outcomes."""
    tallies = {
        TallyKey(of, "b", "", "", checked or check("true"), "v1", "Pod", "shop", outcome): number
        for outcome, number in counted
    }
    record = PolicyRecord(policy("a", "true"), (binding("b", "a", "Deny"),), 1)
    return replace(small_record(), policies=(record,), tallies=tallies, health=())


def score_of(record: ScanInMemory) -> Score:
    """The score of a scan of which no check has a severity."""
    return Scores(record, default_severity).score_scan()


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


def severity_of(key: tuple[str, str], _: str) -> Severity:
    """Policy `a` is critical, `b` is info, and others are low."""
    return {"a": Severity.CRITICAL, "b": Severity.INFO}.get(key[1], Severity.LOW)


def scored(*tallies: tuple[str, str, OutcomeName, int], **more: object) -> Scores:
    """The scores of policies `a`, `b` and `c`, given (policy, namespace, outcome, number)."""
    counted = {
        TallyKey(of, of, "", "", check("true"), "v1", "Pod", namespace, outcome): number
        for of, namespace, outcome, number in tallies
    }
    used = tuple(PolicyRecord(policy(name, "true"), (binding(name, name, "Deny"),), 1) for name in "abc")
    record = replace(small_record(), policies=used, tallies=counted, health=(), **more)  # type: ignore[arg-type]
    return Scores(record, severity_of)


PASSED, VIOLATED = OutcomeName.PASSED, OutcomeName.VIOLATED
THREE = (
    ("a", "shop", PASSED, 1),
    ("a", "shop", VIOLATED, 1),
    ("b", "shop", VIOLATED, 5),
    ("c", "pay", PASSED, 10),
    ("c", "shop", OutcomeName.ERRORED_ADMIT, 2),
)


def test_checks_weigh_as_much_as_their_severity() -> None:
    """Critical counts ten times as much as low, and info not at all."""
    score = scored(*THREE).score_scan()
    weighted = score.weighted

    assert (11, 17, 2) == (score.passed, score.decided, score.undecided)
    assert weighted is not None
    assert (20, 30, 2) == (weighted.passed, weighted.decided, weighted.undecided)


def test_parts_have_scores_of_their_own() -> None:
    """Policies and namespaces."""
    scores = scored(*THREE)
    by_policy = {key[1]: (score.passed, score.decided) for key, score in scores.score_by_policy().items()}
    by_namespace = {name: (score.passed, score.decided) for name, score in scores.score_by_namespace().items()}

    assert {"a": (1, 2), "b": (0, 5), "c": (10, 10)} == by_policy
    assert {"shop": (1, 7), "pay": (10, 10)} == by_namespace


def test_info_alone_has_no_weighted_score() -> None:
    """Nothing with a weight was decided."""
    weighted = scored(("b", "shop", PASSED, 5)).score_scan().weighted

    assert "no check with a weight was decided" == (weighted and weighted.why_not)


def test_a_policy_needs_its_own_kinds_alone() -> None:
    """A kind that could not be listed hides the score of the policies that may match it, and of the scan."""
    coverage = (Coverage("v1", "Secret", CoverageState.FORBIDDEN),)
    scores = scored(*THREE, coverage=coverage)

    assert "" == scores.score_by_policy()["ValidatingAdmissionPolicy", "a"].why_not
    assert "the number of objects is unknown for Secret" == scores.score_scan().why_not
    assert {"the number of objects is unknown for Secret"} == {
        each.why_not for each in scores.score_by_namespace().values()
    }


def test_a_policy_that_was_not_evaluated_hides_its_own_score() -> None:
    """Another policy keeps its score."""
    gap = Gap(GapKind.EVALUATION, "policy a", "its params could not be listed")
    by_policy = {key[1]: score.why_not for key, score in scored(*THREE, gaps=(gap,)).score_by_policy().items()}

    assert {"a": "the number of missed objects is unknown: 1 gap, first policy a", "b": "", "c": ""} == by_policy


def test_missed_objects_are_undecided_where_they_are() -> None:
    """In their namespace, and for the policies that may match them."""
    gap = Gap(GapKind.EVALUATION, "apps/v1/Deployment pay/web", "internal error")
    scores = scored(*THREE, gaps=(gap,))

    assert {"shop": 2, "pay": 3} == {name: score.undecided for name, score in scores.score_by_namespace().items()}
    assert 1 == scores.score_by_policy()["ValidatingAdmissionPolicy", "a"].undecided


def test_waived_checks_are_left_out() -> None:
    """The second figure counts neither the violations nor the errors that a waiver accepts."""
    record = record_of((PASSED, 6), (VIOLATED, 3), (OutcomeName.ERRORED_ADMIT, 1))
    waived = {key: number - 1 for key, number in record.tallies.items() if key.outcome is not PASSED}
    score = Scores(record, severity_of, waived).score_scan()

    assert (6, 7, 1) == (score.passed, score.decided, score.undecided)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["", "shop", "pay"]),
            st.sampled_from(OutcomeName),
            st.integers(0, 50),
        )
    )
)
def test_parts_add_up(tallies: list[tuple[str, str, OutcomeName, int]]) -> None:
    """The sums of policies, and of namespaces, are those of the scan."""
    scores = scored(*{each[:3]: each for each in tallies}.values())
    whole = scores.score_scan()
    for parts in (scores.score_by_policy().values(), scores.score_by_namespace().values()):
        sums = [sum(getattr(each, name) for each in parts) for name in ("passed", "decided", "undecided")]
        heavy = [sum(getattr(each.weighted, name) for each in parts) for name in ("passed", "decided", "undecided")]
        assert [whole.passed, whole.decided, whole.undecided] == sums
        assert whole.weighted is not None
        assert [whole.weighted.passed, whole.weighted.decided, whole.weighted.undecided] == heavy
