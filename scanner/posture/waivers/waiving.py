"""The waivers of one report: which finding is waived, how each waiver is used, and what would fail without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from scanner.model.nearest import did_you_mean
from scanner.model.outcome import Check
from scanner.model.rule import RuleType
from scanner.model.scans.scan import ScanState
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.model.waiver import Candidate, Waiver, WaiverSet, WaiverSubject
from scanner.posture.waivers.waived_checks import NamedChecks, find_replaced_checks
from scanner.posture.waivers.waivers import (
    IN_FORCE,
    AppliedWaiver,
    WaiverIndex,
    WaiverRules,
    WaiverState,
    select_by_cluster,
    select_matching,
    state_on,
    subject_of,
)

_NAMED: Final = 5
_IN_TIME: Final = IN_FORCE | {WaiverState.EXPIRED}
"""The states, as far as they follow from the day, of waivers that apply or did so until they expired."""


@dataclass(frozen=True, slots=True)
class WaiverUse:
    """A waiver on the day of a report. `findings` are the open findings of the scan that match it, those of `problems` problems.

    An expired waiver, and one whose check asks something else now, has the findings that it would waive. `why` explains the
    state, and may be empty.
    """

    waiver: Waiver
    state: WaiverState
    findings: int = 0
    problems: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class ExceptionUse:
    """A policy exception of Kyverno, by namespace and name, with the number of findings that it excepts."""

    name: str
    findings: int


class LapsedWaiver(NamedTuple):
    """A waiver that is expired, or whose check asks something else now, and the number of findings that only such waivers match."""

    waiver: Waiver
    state: WaiverState
    findings: int


class WaivedProblem(NamedTuple):
    """A problem of which all open findings are waived, and the waiver that ends first. The namespace is that of its objects."""

    language: str
    policy: str
    check: Check
    namespace: str
    workload_kind: str
    workload_name: str
    waiver: AppliedWaiver


@dataclass(frozen=True, slots=True)
class Waived:
    """The changes that waivers make to the counts of a scan. Previewed, excepted and unchecked findings count nowhere.

    `rows` are the numbers in the database of all waived findings. `problems` are those whose findings are all waived. `tallies`
    has the outcomes of the waived findings, `by_problem` the waived problems by number. `lapsed` are the waivers that waive
    findings no longer.
    """

    uses: tuple[WaiverUse, ...] = ()
    findings: int = 0
    problems: int = 0
    rows: frozenset[int] = frozenset()
    tallies: Mapping[TallyKey, int] = field(default_factory=dict)
    lapsed: tuple[LapsedWaiver, ...] = ()
    by_problem: Mapping[int, WaivedProblem] = field(default_factory=dict)


class Waiving:
    """Applies a set of waivers to the findings of one scan, as of a day in UTC."""

    def __init__(self, waivers: WaiverSet | None, record: StoredScan, day: date, rules: WaiverRules) -> None:
        """Take the waivers of a report, or None if it has none. `replaced` are checks that ask something else, by waiver."""
        self.waivers = waivers
        self._record = record
        waivers_of_cluster = tuple(select_by_cluster(waivers.waivers, record.scan.cluster.names)) if waivers else ()
        states = {waiver.name: state_on(waiver, day, rules) for waiver in waivers_of_cluster}
        in_time = [waiver for waiver in waivers_of_cluster if states[waiver.name] in _IN_TIME]
        by_check = [waiver for waiver in in_time if waiver.check]
        self.replaced = find_replaced_checks(by_check, self.checks, record.waived_checks()) if by_check else {}
        for name in self.replaced:
            if states[name] in IN_FORCE:
                states[name] = WaiverState.UNKNOWN_CHECK
        self._states = {waiver.name: (waiver, states[waiver.name]) for waiver in waivers_of_cluster}
        self._in_force = frozenset(name for name, state in states.items() if state in IN_FORCE)
        # An expired waiver that would not apply on its days either waives nothing because of its check.
        self._index = WaiverIndex(
            waiver
            for waiver in in_time
            if waiver.name not in self.replaced or states[waiver.name] is WaiverState.UNKNOWN_CHECK
        )

    @cached_property
    def checks(self) -> NamedChecks:
        """The checks of the scan by the names that waivers have for them."""
        record = self._record
        policies = (used.policy for used in record.policies)
        evaluated = (((key.language, key.policy), key.check) for key in record.tallies)
        return NamedChecks(policies, record.check_ids, evaluated)

    def find_waiver(self, stored: StoredFinding) -> AppliedWaiver | None:
        """The waiver of a finding: of several, the one that applies longest. None for a finding that is resolved."""
        finding = stored.finding
        workload = stored.workload.name if stored.workload else finding.name
        labels = stored.kept.object.labels if stored.kept else ()
        places = finding.policy, finding.name, workload, finding.namespace, labels
        if not self._index.may_apply(*places) or stored.status == "resolved":
            return None
        check_id = self._record.check_ids.get((finding.policy_key, finding.check), "")
        for waiver in select_matching(self._index.find_near(*places), subject_of(stored, check_id)):
            if waiver.name in self._in_force:
                return self._apply(waiver)
        return None

    def _apply(self, waiver: Waiver) -> AppliedWaiver:
        return AppliedWaiver(waiver.name, self._states[waiver.name][1], waiver.until)

    @cached_property
    def waived(self) -> Waived:
        """The counts of waived findings, read from the scan once."""
        if not self._states:
            return Waived()
        return _WaivedCounter(self._record, self._index, self._in_force, self.checks).count(self._states)

    @cached_property
    def exceptions(self) -> tuple[ExceptionUse, ...]:
        """The policy exceptions of Kyverno that the scan used, by name. They are no waivers: the policy itself grants them."""
        names = sorted(rule.name for rule in self._record.rules if rule.type is RuleType.EXCEPTION)
        if not names:
            return ()
        numbers: Counter[str] = Counter()
        for excepted_by, number in self._record.count_excepted().items():
            numbers.update(dict.fromkeys(excepted_by.split(", "), number))
        return tuple(ExceptionUse(name, numbers[name]) for name in names)


class _WaivedCounter:
    """Counts the findings of each waiver in one pass."""

    def __init__(self, record: StoredScan, index: WaiverIndex, in_force: frozenset[str], named: NamedChecks) -> None:
        """The index has waivers that apply no longer, too; `in_force` are the names of the others."""
        self._record = record
        self._index = index
        self._in_force = in_force
        self._named = named
        self._findings: Counter[str] = Counter()
        self._used: set[str] = set()
        self._problems: dict[str, set[int]] = {}
        self._lapsed: Counter[str] = Counter()
        self._tallies: Counter[TallyKey] = Counter()
        self._rows: set[int] = set()
        self._waived: Counter[int] = Counter()
        self._first: dict[int, tuple[Candidate, Waiver]] = {}
        self._total = 0

    def count(self, states: Mapping[str, tuple[Waiver, WaiverState]]) -> Waived:
        for candidate in self._record.candidates(self._index.findings):
            self._add(candidate)
        everything = self._record.count_open_findings(frozenset(self._waived)) if self._waived else {}
        whole = {problem for problem, number in self._waived.items() if number == everything.get(problem)}
        uses = (self._use(waiver, state) for waiver, state in states.values())
        return Waived(
            uses=tuple(sorted(uses, key=lambda use: use.waiver.name)),
            findings=self._total,
            problems=len(whole),
            rows=frozenset(self._rows),
            tallies=self._known_tallies(),
            lapsed=tuple(LapsedWaiver(*states[name], number) for name, number in sorted(self._lapsed.items())),
            by_problem={number: self._describe_problem(self._first[number], states) for number in sorted(whole)},
        )

    def _describe_problem(
        self, first: tuple[Candidate, Waiver], states: Mapping[str, tuple[Waiver, WaiverState]]
    ) -> WaivedProblem:
        candidate, waiver = first
        invocation = candidate.check
        place = candidate.namespace, candidate.workload_kind, candidate.workload_name
        applied = AppliedWaiver(waiver.name, states[waiver.name][1], waiver.until)
        return WaivedProblem(invocation.language, invocation.policy, invocation.check, *place, applied)

    def _add(self, candidate: Candidate) -> None:
        """Count a finding for each waiver that matches it. Of waivers in force, the first of them waives the finding."""
        invocation = candidate.check
        places = candidate.name, candidate.workload_name, candidate.namespace, candidate.labels
        matching = select_matching(self._index.find_near(invocation.policy, *places), self._subject(candidate))
        in_force = [waiver for waiver in matching if waiver.name in self._in_force]
        lapsed = [waiver for waiver in matching if waiver.name not in self._in_force]
        self._used.update(waiver.name for waiver in in_force)
        if in_force:
            self._rows.add(candidate.row)
        if not candidate.counts:
            return
        for waiver in (*in_force, *lapsed):
            self._findings[waiver.name] += 1
            self._problems.setdefault(waiver.name, set()).add(candidate.problem)
        if in_force:
            self._total += 1
            self._waived[candidate.problem] += 1
            first = self._first.get(candidate.problem)
            if first is None or (in_force[0].until, in_force[0].name) < (first[1].until, first[1].name):
                self._first[candidate.problem] = candidate, in_force[0]
            self._tallies[_tally(candidate)] += 1
            return
        if lapsed:
            self._lapsed[lapsed[0].name] += 1

    def _subject(self, candidate: Candidate) -> WaiverSubject:
        invocation = candidate.check
        return WaiverSubject(
            invocation.policy,
            self._record.check_ids.get(((invocation.language, invocation.policy), invocation.check), ""),
            invocation.check.expression.strip(),
            candidate.namespace,
            candidate.kind[1],
            candidate.name,
            candidate.workload_kind,
            candidate.workload_name,
            candidate.labels,
        )

    def _use(self, waiver: Waiver, state: WaiverState) -> WaiverUse:
        """The use of a waiver. One in force that matches no finding is unused, or names an unknown policy or check."""
        numbers = self._findings[waiver.name], len(self._problems.get(waiver.name, ()))
        if state is WaiverState.UNKNOWN_CHECK:
            return WaiverUse(waiver, state, *numbers, why=_why_replaced(waiver))
        if state not in IN_FORCE or waiver.name in self._used or self._record.scan.state is ScanState.FAILED:
            return WaiverUse(waiver, state, *numbers)
        known = {used.policy.name for used in self._record.policies}
        if waiver.policy in known:
            return self._explain_unused(waiver, numbers)
        scope = self._record.scan.scope
        if scope.policies or scope.bindings:
            return WaiverUse(waiver, state, *numbers)
        why = f"the scan has no policy {waiver.policy}.{did_you_mean(waiver.policy, known)}"
        return WaiverUse(waiver, WaiverState.UNKNOWN_POLICY, *numbers, why=why)

    def _explain_unused(self, waiver: Waiver, numbers: tuple[int, int]) -> WaiverUse:
        if not waiver.check or self._named.find(waiver.policy, waiver.check):
            return WaiverUse(waiver, WaiverState.UNUSED, *numbers, why="no open finding matches")
        checks = self._record.check_ids.items()
        ids = [name for (policy, check), name in checks if policy[1] == waiver.policy and check.expression.strip()]
        why = f"no check of the policy has this id or expression; its checks are {_join_names(ids)}"
        return WaiverUse(waiver, WaiverState.UNKNOWN_CHECK, *numbers, why=why)

    def _known_tallies(self) -> dict[TallyKey, int]:
        """The waived outcomes by the keys of the scan's tallies, which also mark those that depend on the requester."""
        known: Counter[TallyKey] = Counter()
        for key, number in self._tallies.items():
            left = number
            for requester in (False, True):
                tally = key._replace(requester=requester)
                taken = min(left, self._record.tallies.get(tally, 0))
                if taken:
                    known[tally] += taken
                left -= taken
        return dict(known)


def _why_replaced(waiver: Waiver) -> str:
    earlier = "the one that the waiver accepts" if waiver.check_digest else "in the first scan that used the waiver"
    place = f" in {waiver.source}" if waiver.source else ""
    return (
        f"the check asks something else than {earlier}. Read the check; if its findings are acceptable, "
        f"replace the waiver{place} by one of `assay waiver propose`"
    )


@dataclass(frozen=True, slots=True)
class WaiverChanges:
    """The problems that are open in two scans, and waived in one of them, by number."""

    waived: Mapping[int, WaivedProblem] = field(default_factory=dict)
    no_longer: Mapping[int, WaivedProblem] = field(default_factory=dict)


NO_WAIVER_CHANGES: Final = WaiverChanges()


def waiver_changes(before: StoredScan, now: StoredScan, waived_before: Waived, waived_now: Waived) -> WaiverChanges:
    """The problems that a waiver covers in one of two scans only; each is open in both."""
    began = {number: each for number, each in waived_now.by_problem.items() if number not in waived_before.by_problem}
    ended = {number: each for number, each in waived_before.by_problem.items() if number not in waived_now.by_problem}
    there = before.count_open_findings(frozenset(began)) if began else {}
    still = now.count_open_findings(frozenset(ended)) if ended else {}
    return WaiverChanges(
        {number: each for number, each in began.items() if number in there},
        {number: each for number, each in ended.items() if number in still},
    )


def _tally(candidate: Candidate) -> TallyKey:
    invocation = candidate.check
    return TallyKey(
        policy=invocation.policy,
        binding=invocation.binding,
        param_namespace=invocation.param_namespace,
        param_name=invocation.param_name,
        check=invocation.check,
        api_version=candidate.kind[0],
        kind=candidate.kind[1],
        namespace=candidate.namespace,
        outcome=OutcomeName(candidate.outcome),
        language=invocation.language,
    )


def _join_names(names: Iterable[str]) -> str:
    several = sorted(names)
    more = f" and {len(several) - _NAMED} more" if len(several) > _NAMED else ""
    return ", ".join(islice(several, _NAMED)) + more
