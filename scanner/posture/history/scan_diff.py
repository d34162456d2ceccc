"""The changes between two scans of a cluster: its problems, by cause, and the numbers of its findings.

A problem is new if none of its findings was open in the earlier scan, and resolved if none is open in the later one. A problem
whose findings only were replaced, as in a rollout, has changed if its outcome, its message, its action or an exception has. A
problem of which the later scan checked no finding is open and not checked: an incomplete scan resolves nothing that it did not see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeAlias

from scanner.model.json import JsonObject
from scanner.model.outcome import Check, Gap
from scanner.model.policy import PolicyKey
from scanner.model.population import Workload
from scanner.model.scans.cause import Cause, CauseKind, cause_of
from scanner.model.scans.method import Method
from scanner.model.scans.scan import Scan
from scanner.posture.problem_rows import choose_strictest, choose_weakest


class ProblemChange(StrEnum):
    """The changes of a problem, in the order of a list."""

    NEW = "new"
    REOPENED = "reopened"
    CHANGED = "changed"
    RESOLVED = "resolved"
    NOT_CHECKED = "notChecked"


class FindingChange(StrEnum):
    """The changes of a finding. A `continued` one is open in both scans, and has another identity since its rules changed."""

    NEW = "new"
    REOPENED = "reopened"
    CHANGED = "changed"
    CONTINUED = "continued"
    RESOLVED = "resolved"
    NOT_CHECKED = "notChecked"


class ProblemPart(StrEnum):
    """The parts of a problem that can change while it is open."""

    OUTCOME = "outcome"
    MESSAGE = "message"
    ACTION = "action"
    EXCEPTION = "exception"


class Effect(NamedTuple):
    """The verdict of a finding: `message` is the text or its template, `actions` has commas between the actions."""

    outcome: str
    message: str
    actions: str
    denies: bool
    excepted_by: str


class ComparedFinding(NamedTuple):
    """A finding in an interval of revisions without a change: from `since` up to, but without, `until`.

    `continues` is the fingerprint of the finding that it continues, `first` the first revision of the finding, and
    `problem_first` that of its problem, `opened` the first one of its episode. `resolution` is the reason if the interval ended with
    a resolution. `unchecked` tells that the later scan left the finding open without checking it, and `missed` that the finding is in
    the scope of that scan. `unchecked_before` is the same of the earlier scan. `moved_to` is the id of the problem in which the
    finding goes on after the interval; `open_elsewhere` tells that it is open in the later scan.
    """

    number: int
    fingerprint: bytes
    continues: bytes | None
    since: int
    until: int
    first: int
    problem_first: int
    resolution: str | None
    object_id: int
    resource_version: str
    effect: Effect
    unchecked: bool
    opened: int | None = None
    moved_to: str = ""
    open_elsewhere: bool = False
    missed: bool = False
    unchecked_before: bool = False


class DiffPeriod(NamedTuple):
    """The revisions of the earlier and the later scan."""

    before: int
    now: int

    def was_open(self, finding: ComparedFinding) -> bool:
        """Return whether a finding was open in the earlier scan."""
        return finding.since <= self.before < finding.until

    def was_open_elsewhere(self, finding: ComparedFinding) -> bool:
        """Return whether a finding that begins after the earlier scan was open in it, as a finding of another problem."""
        return finding.opened is not None and finding.opened <= self.before < finding.since

    def is_open(self, finding: ComparedFinding) -> bool:
        """Return whether a finding is open in the later scan, which may have left it unchecked."""
        return finding.since <= self.now < finding.until


Kinds: TypeAlias = frozenset[CauseKind]


class ChangeExplanation(Protocol):
    """Finds what changed between the two scans for a finding."""

    def explain_appearance(self, finding: ComparedFinding) -> Kinds:
        """The changes of a finding of the later scan that was not open in the earlier one."""

    def explain_end(self, before: ComparedFinding, end: ComparedFinding) -> Kinds:
        """The changes of a finding that is not open any more; `end` is its last interval."""

    def explain_change(self, before: ComparedFinding, now: ComparedFinding) -> Kinds:
        """The changes of a finding that is open in both scans."""


@dataclass(frozen=True, slots=True)
class ProblemDifference:
    """The difference of one problem; `change` is None if only its findings differ, or nothing does.

    `before` and `now` are its findings in the scans, without those that the later scan left unchecked; of a problem that was not
    checked, all its findings. `unchecked` is the number of those that the later scan left open without checking them. `findings`
    has the cause of each finding that differs, and `end` the last revision of a resolved problem. A finding that moved from or to
    another problem is open in both scans, and does not differ; `moved_to` are the problems in which those of a resolved problem go on.
    """

    change: ProblemChange | None
    kinds: Kinds
    parts: tuple[ProblemPart, ...]
    resolution: str
    before: tuple[ComparedFinding, ...]
    now: tuple[ComparedFinding, ...]
    findings: tuple[tuple[FindingChange, Cause], ...]
    end: int | None
    moved_to: tuple[str, ...] = ()
    unchecked: int = 0

    @property
    def cause(self) -> Cause:
        """The cause of the change: that of all findings that differ."""
        return cause_of(self.kinds)


def compare_problem(
    rows: Sequence[ComparedFinding], period: DiffPeriod, explanation: ChangeExplanation
) -> ProblemDifference:
    """Compare the findings of one problem. `rows` are all their intervals that reach into the period."""
    pairs, gone = _follow(rows, period)
    unchecked = [row for row in rows if period.is_open(row) and row.unchecked]
    missed = [row for row in unchecked if row.missed]
    checked = [(before, now) for before, now in pairs if not now.unchecked]
    paired = {now.number for _, now in pairs}
    come = [row for row in rows if period.is_open(row) and not row.unchecked and row.number not in paired]
    still_open = any(map(period.is_open, rows))
    # A problem goes on from another one also if the later scan did not check the finding that moved.
    elsewhere = any(period.was_open_elsewhere(row) for row in rows if period.is_open(row))
    was_open = bool(pairs or gone)
    if missed and not checked and not come:
        return _make_not_checked(pairs, gone, missed, explanation)
    before = tuple(row for row, _ in (*checked, *gone))
    now = (*(row for _, row in checked), *come)
    parts = _parts(checked, before, now) if was_open and still_open else ()
    changes = [
        *(
            (
                FindingChange.REOPENED if row.first <= period.before else FindingChange.NEW,
                explanation.explain_appearance(row),
            )
            for row in come
            if not period.was_open_elsewhere(row)
        ),
        *((FindingChange.RESOLVED, explanation.explain_end(*each)) for each in gone if not each[1].open_elsewhere),
        *_list_changed(checked, explanation),
    ]
    change = _change([] if elsewhere else come, period, was_open=was_open, still_open=still_open, parts=parts)
    resolved = change is ProblemChange.RESOLVED
    moved = [(FindingChange.RESOLVED, explanation.explain_end(*each)) for each in gone if each[1].open_elsewhere]
    return ProblemDifference(
        change=change,
        kinds=_kinds(changes or moved),
        parts=parts if change is ProblemChange.CHANGED else (),
        resolution=_resolution([end for _, end in gone]) if resolved else "",
        before=before,
        now=now,
        findings=(*((status, cause_of(kinds)) for status, kinds in changes), *_list_missed(missed)),
        end=max(end.until for _, end in gone) if resolved else None,
        moved_to=tuple(sorted({end.moved_to for _, end in gone if end.moved_to})) if resolved else (),
        unchecked=len(unchecked),
    )


_Pair: TypeAlias = tuple[ComparedFinding, ComparedFinding]
_COVERAGE: Final = frozenset({CauseKind.COVERAGE})


def _make_not_checked(
    pairs: Sequence[_Pair], gone: Sequence[_Pair], missed: Sequence[ComparedFinding], explanation: ChangeExplanation
) -> ProblemDifference:
    """The difference of a problem of which the later scan checked no finding. Some of its findings may be gone."""
    resolved = ((FindingChange.RESOLVED, cause_of(explanation.explain_end(*each))) for each in gone)
    return ProblemDifference(
        change=ProblemChange.NOT_CHECKED,
        kinds=_COVERAGE,
        parts=(),
        resolution="",
        before=tuple(row for row, _ in (*pairs, *gone)),
        now=tuple(missed),
        findings=(*resolved, *_list_missed(missed)),
        end=None,
        unchecked=len(missed),
    )


def _list_missed(missed: Sequence[ComparedFinding]) -> Iterator[tuple[FindingChange, Cause]]:
    return ((FindingChange.NOT_CHECKED, cause_of(_COVERAGE)) for _ in missed)


def _follow(rows: Sequence[ComparedFinding], period: DiffPeriod) -> tuple[list[_Pair], list[_Pair]]:
    """The findings of the earlier scan with their last intervals: those that are open in the later one, and the others."""
    following: defaultdict[bytes, list[ComparedFinding]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.since):
        following[row.fingerprint].append(row)
        if row.continues is not None:
            following[row.continues].append(row)
    ends = [(row, _find_end(row, following, period)) for row in rows if period.was_open(row)]
    pairs = [(row, end) for row, end in ends if period.is_open(end)]
    return pairs, [(row, end) for row, end in ends if not period.is_open(end)]


def _find_end(
    row: ComparedFinding, following: Mapping[bytes, Sequence[ComparedFinding]], period: DiffPeriod
) -> ComparedFinding:
    """The interval of a finding, or of the one that continues it, that the later scan has, or else the last one."""
    while not period.is_open(row):
        until = row.until
        later = next((each for each in following[row.fingerprint] if each.since >= until), None)
        if later is None:
            return row
        row = later
    return row


def _kinds(changes: Sequence[tuple[FindingChange, Kinds]]) -> Kinds:
    """The changes of a problem: of its findings that changed, else for those that came and went."""
    changed = [kinds for status, kinds in changes if status is FindingChange.CHANGED]
    others = [kinds for status, kinds in changes if status is not FindingChange.CONTINUED]
    return frozenset[CauseKind]().union(*(changed or others))


def _list_changed(pairs: Sequence[_Pair], explanation: ChangeExplanation) -> Iterator[tuple[FindingChange, Kinds]]:
    for before, now in pairs:
        if before.effect != now.effect:
            exception = (
                {CauseKind.EXCEPTION}
                if ProblemPart.EXCEPTION in _list_differing(before, now)
                else frozenset[CauseKind]()
            )
            yield FindingChange.CHANGED, explanation.explain_change(before, now) | exception
        elif before.fingerprint != now.fingerprint:
            yield FindingChange.CONTINUED, explanation.explain_change(before, now)


def _change(
    begun: Sequence[ComparedFinding],
    period: DiffPeriod,
    *,
    was_open: bool,
    still_open: bool,
    parts: Collection[ProblemPart],
) -> ProblemChange | None:
    if not was_open:
        if not begun:
            return None
        first = min(row.problem_first for row in begun)
        return ProblemChange.REOPENED if first <= period.before else ProblemChange.NEW
    if not still_open:
        return ProblemChange.RESOLVED
    return ProblemChange.CHANGED if parts else None


def _parts(
    pairs: Sequence[_Pair], before: Sequence[ComparedFinding], now: Sequence[ComparedFinding]
) -> tuple[ProblemPart, ...]:
    """The parts of an open problem that changed: of a finding, or of all of them."""
    parts = {part for pair in pairs for part in _list_differing(*pair)}
    if before and now:
        parts |= set(_list_differing_together(before, now))
    return tuple(part for part in ProblemPart if part in parts)


def _list_differing(before: ComparedFinding, now: ComparedFinding) -> Iterator[ProblemPart]:
    earlier, later = before.effect, now.effect
    if earlier.outcome != later.outcome:
        yield ProblemPart.OUTCOME
    if earlier.message != later.message:
        yield ProblemPart.MESSAGE
    if (earlier.actions, earlier.denies) != (later.actions, later.denies) and earlier.excepted_by == later.excepted_by:
        yield ProblemPart.ACTION
    if earlier.excepted_by != later.excepted_by:
        yield ProblemPart.EXCEPTION


def _list_differing_together(
    before: Sequence[ComparedFinding], now: Sequence[ComparedFinding]
) -> Iterator[ProblemPart]:
    """The parts in which all findings of a problem differ. One message less is no change."""
    earlier, later = state_of(before), state_of(now)
    if earlier.outcomes != later.outcomes:
        yield ProblemPart.OUTCOME
    if {row.effect.message for row in now} - {row.effect.message for row in before}:
        yield ProblemPart.MESSAGE
    if earlier.excepted != later.excepted:
        yield ProblemPart.EXCEPTION
    elif (earlier.action, earlier.denies) != (later.action, later.denies):
        yield ProblemPart.ACTION


def _resolution(ends: Sequence[ComparedFinding]) -> str:
    """The reason of a resolved problem: fixed only if all its findings are; empty if that of a finding is not known."""
    reasons = {end.resolution or "" for end in ends}
    return "" if "" in reasons else choose_weakest(reasons)


@dataclass(frozen=True, slots=True)
class ProblemState:
    """A problem in one of the scans. `action` is the strictest; `excepted` tells that all its findings are excepted.

    `findings` is the number of those that the scan checked, `unchecked` of those that it did not; `message` is that of one finding.
    """

    findings: int
    outcomes: tuple[str, ...]
    action: str
    denies: bool
    excepted: bool
    message: str = ""
    unchecked: int = 0


def state_of(findings: Sequence[ComparedFinding]) -> ProblemState:
    """The state of a problem with these findings, without its message."""
    effects = [finding.effect for finding in findings]
    actions = {action for effect in effects for action in effect.actions.split(",")}
    return ProblemState(
        findings=len(findings),
        outcomes=tuple(sorted({effect.outcome for effect in effects})),
        action=choose_strictest(actions),
        denies=any(effect.denies for effect in effects),
        excepted=all(effect.excepted_by for effect in effects),
    )


@dataclass(frozen=True, slots=True)
class DifferingProblem:
    """A problem that differs. `before` is None for one that was not open, `now` for a resolved one.

    `moved_to` are the problems in which the findings of a resolved problem go on.
    `parts` are those that changed; `resolution` is empty if the problem is not resolved, or the reason is not known. `owner` is
    empty for none, and if the diff is without owners.
    """

    id: str
    change: ProblemChange
    cause: Cause
    language: str
    policy: str
    check: Check
    workload: Workload
    first_seen: datetime
    resolved_at: datetime | None
    resolution: str
    parts: tuple[ProblemPart, ...]
    before: ProblemState | None
    now: ProblemState | None
    owner: str = ""
    moved_to: tuple[str, ...] = ()

    @property
    def severity_key(self) -> tuple[PolicyKey, str]:
        """The policy and the expression of the check, which have the severity."""
        return (self.language, self.policy), self.check.expression

    @property
    def unchecked_before(self) -> bool:
        """Return whether the problem appeared, and the earlier scan did not evaluate an object of it: the problem may have existed then."""
        return self.change in _APPEARED and CauseKind.COVERAGE in self.cause.kinds


_APPEARED: Final = (ProblemChange.NEW, ProblemChange.REOPENED)


class RuleKind(StrEnum):
    """The objects whose text decides, in the order of their causes."""

    POLICY = "policy"
    BINDING = "binding"
    PARAM = "param"
    EXCEPTION = "exception"
    GLOBAL_CONTEXT = "globalContext"
    NAMESPACE_LABELS = "namespaceLabels"
    CONFIGURATION = "configuration"


class RuleDifference(NamedTuple):
    """A rule that differs: its redacted content in both scans, None where a scan does not have the rule.

    `name` is that of the object; that of a binding begins with the name of its policy and a slash. `language` is empty for
    objects that belong to no language.
    """

    kind: RuleKind
    language: str
    name: str
    before: JsonObject | None
    now: JsonObject | None


@dataclass(frozen=True, slots=True)
class ScanDiff:
    """The difference of two scans of one cluster.

    `incomparable` names the parts (source, scope, operation, requester, mode) in which comparable scans would be equal, and
    `rules_changed` what changed besides objects. `problems` and `findings` are numbers; `unchecked` is the number of findings that
    the later scan left open without checking them, also of those outside its scope. `list_problems` yields the problems of a cause, new
    ones first. `gaps` are those of the earlier and of the later scan.
    """

    before: Scan
    now: Scan
    methods: tuple[Method, Method]
    incomparable: tuple[str, ...]
    rules_changed: tuple[CauseKind, ...]
    rules: tuple[RuleDifference, ...]
    problems: Mapping[tuple[CauseKind, ProblemChange], int]
    findings: Mapping[tuple[CauseKind, FindingChange], int]
    unchecked: int
    list_problems: Callable[[CauseKind, int | None], Iterator[DifferingProblem]]
    gaps: tuple[tuple[Gap, ...], tuple[Gap, ...]] = ((), ())

    @property
    def causes(self) -> tuple[CauseKind, ...]:
        """The causes of the differences, in their order."""
        present = {kind for kind, _ in (*self.problems, *self.findings)}
        return tuple(kind for kind in CauseKind if kind in present)

    def problems_of(self, kind: CauseKind) -> int:
        """The number of problems with a cause."""
        return sum(number for (cause, _), number in self.problems.items() if cause is kind)
