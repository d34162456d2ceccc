"""The difference of the findings of one problem, without a database."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from scanner.model.scans.cause import CauseKind
from scanner.posture.history.scan_diff import (
    ComparedFinding,
    DiffPeriod,
    Effect,
    FindingChange,
    Kinds,
    ProblemChange,
    ProblemDifference,
    ProblemPart,
    compare_problem,
)

PERIOD = DiffPeriod(10, 20)
OPEN = 99
VIOLATED = Effect("violated", "no", "Deny", denies=True, excepted_by="")


class Explained:
    """Gives every kind of change a cause of its own."""

    def explain_appearance(self, finding: ComparedFinding) -> Kinds:
        """A finding came."""
        return frozenset({CauseKind.OBJECT_CREATED})

    def explain_end(self, before: ComparedFinding, end: ComparedFinding) -> Kinds:
        """A finding went."""
        return frozenset({CauseKind.OBJECT_DELETED})

    def explain_change(self, before: ComparedFinding, now: ComparedFinding) -> Kinds:
        """A finding changed."""
        return frozenset({CauseKind.POLICY})


def row(
    fingerprint: str,
    since: int,
    until: int = OPEN,
    *,
    continues: str = "",
    resolution: str | None = None,
    effect: Effect = VIOLATED,
    unchecked: bool = False,
    first: int = 0,
) -> ComparedFinding:
    """An interval of a finding, with an object of the finding's own."""
    return ComparedFinding(
        number=since * 1000 + sum(fingerprint.encode()),
        fingerprint=fingerprint.encode(),
        continues=continues.encode() or None,
        since=since,
        until=until,
        first=first or since,
        problem_first=first or since,
        resolution=resolution,
        object_id=sum(fingerprint.encode()),
        resource_version="1",
        effect=effect,
        unchecked=unchecked,
    )


def compare(*rows: ComparedFinding) -> ProblemDifference:
    """The difference of a problem with these intervals."""
    return compare_problem(rows, PERIOD, Explained())


def counted(difference: ProblemDifference) -> list[FindingChange]:
    """The changes of the findings."""
    return sorted(change for change, _ in difference.findings)


@pytest.mark.parametrize(
    ("rows", "change"),
    [
        pytest.param([row("a", 11)], ProblemChange.NEW, id="it began after the earlier scan"),
        pytest.param([row("a", 11, first=5)], ProblemChange.REOPENED, id="it was known before"),
        pytest.param([row("a", 10)], None, id="it began with the earlier scan"),
        pytest.param([row("a", 20)], ProblemChange.NEW, id="it began with the later scan"),
        pytest.param([row("a", 5, 20, resolution="fixed")], ProblemChange.RESOLVED, id="the later scan resolved it"),
        pytest.param([row("a", 5, 20), row("b", 5)], None, id="another finding is open"),
        pytest.param([row("a", 5, 15), row("b", 15)], None, id="another finding came"),
        pytest.param([row("a", 5, 15), row("a", 17)], None, id="it was closed for a time"),
        pytest.param([row("a", 15, unchecked=True)], None, id="the later scan did not check the new finding"),
        pytest.param([row("a", 5, 15), row("b", 15, unchecked=True)], None, id="or the one that is left"),
    ],
)
def test_a_problem_is_open_while_a_finding_is(rows: Sequence[ComparedFinding], change: ProblemChange | None) -> None:
    """Only what both scans have open counts."""
    assert change == compare(*rows).change


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (("fixed", "fixed"), "fixed"),
        (("fixed", "objectGone"), "objectGone"),
        (("objectGone", "rulesChanged"), "rulesChanged"),
        (("fixed", None), ""),
    ],
)
def test_a_problem_is_fixed_only_if_all_its_findings_are(reasons: tuple[str | None, ...], expected: str) -> None:
    """An unknown reason makes that of the problem unknown."""
    rows = [
        row(name, 5, 15 + place, resolution=each) for place, (name, each) in enumerate(zip("ab", reasons, strict=True))
    ]
    difference = compare(*rows)

    assert (expected, 16) == (difference.resolution, difference.end)


def test_a_finding_is_followed_through_those_that_continue_it() -> None:
    """From fingerprint to fingerprint, and through changes."""
    rows = row("a", 5, 12), row("b", 12, 14, continues="a"), row("b", 14, 16), row("c", 16, continues="b")
    difference = compare(*rows)

    assert ([FindingChange.CONTINUED], None) == (counted(difference), difference.change)


def test_a_resolution_is_that_of_the_last_episode() -> None:
    """The finding came back between the scans."""
    rows = row("a", 5, 12, resolution="fixed"), row("a", 14, 16, resolution="objectGone")

    assert "objectGone" == compare(*rows).resolution


def test_the_findings_that_changed_explain_a_problem_before_those_that_came() -> None:
    """A new pod is not why the text of the others changed."""
    edited = VIOLATED._replace(message="still no")
    rows = row("a", 5, 12), row("a", 12, effect=edited), row("b", 15, effect=edited)
    difference = compare(*rows)

    assert ((ProblemPart.MESSAGE,), CauseKind.POLICY, ()) == (
        difference.parts,
        difference.cause.kind,
        difference.cause.also,
    )
    assert [FindingChange.CHANGED, FindingChange.NEW] == counted(difference)


def test_one_message_less_is_no_change() -> None:
    """A pod with a message of its own is gone."""
    rows = row("a", 5), row("b", 5, 15, effect=VIOLATED._replace(message="other"))

    assert compare(*rows).change is None


@pytest.mark.parametrize(
    ("effect", "parts"),
    [
        (VIOLATED._replace(outcome="errored"), (ProblemPart.OUTCOME,)),
        (VIOLATED._replace(message="other"), (ProblemPart.MESSAGE,)),
        (VIOLATED._replace(actions="Audit,Warn", denies=False), (ProblemPart.ACTION,)),
        (VIOLATED._replace(excepted_by="x", denies=False), (ProblemPart.EXCEPTION,)),
    ],
)
def test_replaced_findings_change_a_problem_in_their_parts(effect: Effect, parts: tuple[ProblemPart, ...]) -> None:
    """As a finding that goes on does."""
    assert parts == compare(row("a", 5, 15), row("b", 15, effect=effect)).parts
    assert parts == compare(row("a", 5, 15), row("a", 15, effect=effect)).parts


def test_an_exception_is_among_the_causes() -> None:
    """Also beside other changes."""
    difference = compare(row("a", 5, 15), row("a", 15, effect=VIOLATED._replace(excepted_by="x", denies=False)))

    assert {CauseKind.POLICY, CauseKind.EXCEPTION} == difference.kinds
