"""A stored scan in memory: it answers from its findings what a database answers with queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap

from scanner.model.outcome import Errored, Finding, WouldChange
from scanner.model.policy import PolicyKey
from scanner.model.population import EvaluatedObjects, KeptOfObject, LabelledObject, RecordedObject
from scanner.model.scans.census import Census, OwnedCensus, OwnerOf
from scanner.model.scans.finding_index import FindingIndex
from scanner.model.scans.place import Places
from scanner.model.scans.problem_history import ProblemHistory
from scanner.model.scans.problem_numbers import (
    GroupedProblems,
    ProblemGroup,
    ProblemsByCheck,
    ProblemTotals,
    SeverityRanks,
)
from scanner.model.scans.register import PolicyDays, Register
from scanner.model.scans.rule_times import RuleKey, RuleTimes
from scanner.model.scans.stored_finding import (
    SINGLE_SCAN_STATUSES,
    ProblemFinding,
    StoredFinding,
    make_census,
    make_census_by_owner,
)
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.scans.tally import OwnedTally, name_outcome
from scanner.model.waiver import Candidate, CandidateFilter, CheckOfFinding, WaivedCheck
from scanner.posture.grouped_problems import count_by_check, count_groups, group_problems
from scanner.posture.worst_problems import count_problems


@dataclass(frozen=True, kw_only=True)
class ScanInMemory(StoredScan):
    """A scan whose findings are streams or lists: those that it has, and those that it resolved.

    `joined` are both by problem, by default each as a problem of its own. The other fields are the answers to the questions of their names.
    """

    found: Callable[[], Iterable[StoredFinding]] = tuple
    ended: Callable[[], Iterable[StoredFinding]] = tuple
    earlier: Sequence[StoredFinding] = ()
    joined: Callable[[], Iterable[ProblemFinding]] | None = None
    objects: Sequence[RecordedObject] = ()
    sets: Sequence[EvaluatedObjects] = ()
    by_object: Mapping[int, int] = field(default_factory=dict)
    reasons: Mapping[str, int] | None = None
    history: Register = field(default_factory=Register)
    days: PolicyDays = field(default_factory=dict)
    files: Places | None = None
    charted: ProblemHistory = field(default_factory=ProblemHistory)
    times_of_rules: Mapping[RuleKey, RuleTimes] = field(default_factory=dict)

    def findings(self) -> Iterator[StoredFinding]:
        """See `StoredScan`."""
        return iter(self.found())

    def findings_by_fingerprint(self) -> Iterator[Finding]:
        """See `StoredScan`."""
        return iter(sorted((stored.finding for stored in self.found()), key=lambda finding: finding.fingerprint))

    def resolved_findings(self) -> Iterator[StoredFinding]:
        """See `StoredScan`."""
        return iter(self.ended())

    def resolved_before(self) -> Iterator[StoredFinding]:
        """See `StoredScan`."""
        return iter(self.earlier)

    def findings_by_problem(self, policies: frozenset[PolicyKey] | None = None) -> Iterator[ProblemFinding]:
        """See `StoredScan`."""
        every = as_problems([*self.found(), *self.ended()]) if self.joined is None else iter(self.joined())
        return (each for each in every if policies is None or each.stored.finding.policy_key in policies)

    def findings_of_rows(self, rows: Sequence[int]) -> Iterator[tuple[int, ProblemFinding]]:
        """See `StoredScan`."""
        every = enumerate(self.found())
        return ((row, ProblemFinding(stored, checked=True, episode="open")) for row, stored in every if row in rows)

    def index_findings(self, owner_of: OwnerOf) -> FindingIndex:
        """See `StoredScan`."""
        return FindingIndex()

    def count_findings_by_object(self, policies: frozenset[PolicyKey] | None = None) -> Mapping[int, int]:
        """See `StoredScan`."""
        return self.by_object

    def census(self) -> Census:
        """See `StoredScan`."""
        return make_census(self.found())

    def census_by_owner(self, owner_of: OwnerOf) -> Iterator[OwnedCensus]:
        """See `StoredScan`."""
        return make_census_by_owner(self.found(), owner_of)

    def tallies_by_owner(self, owner_of: OwnerOf) -> Iterator[OwnedTally]:
        """See `StoredScan`."""
        return iter(())

    def resolutions(self) -> Mapping[str, int]:
        """See `StoredScan`."""
        return Counter(stored.resolution for stored in self.ended()) if self.reasons is None else self.reasons

    def problem_totals(
        self, ranks: SeverityRanks, waived: frozenset[int], most: int
    ) -> tuple[ProblemTotals, tuple[ProblemFinding, ...]]:
        """See `StoredScan`."""
        return count_problems(self.findings_by_problem(), ranks, self._waived(waived), most)

    def problem_groups(self, ranks: SeverityRanks, waived: frozenset[int]) -> tuple[ProblemGroup, ...]:
        """See `StoredScan`."""
        return count_groups(self.findings_by_problem(), ranks, self._waived(waived))

    def problems_by_check(self, waived: frozenset[int]) -> ProblemsByCheck:
        """See `StoredScan`."""
        return count_by_check(self.findings_by_problem(), self._waived(waived))

    def problems_by_namespace(self, waived: frozenset[int]) -> GroupedProblems:
        """See `StoredScan`."""
        return group_problems(self.findings_by_problem(), self._waived(waived), lambda stored: stored.finding.namespace)

    def problems_by_owner(self, owner_of: OwnerOf, waived: frozenset[int]) -> GroupedProblems:
        """See `StoredScan`."""
        return group_problems(self.findings_by_problem(), self._waived(waived), lambda stored: owner_of(stored.kept))

    def _waived(self, rows: Collection[int]) -> Callable[[StoredFinding], bool]:
        waived = {stored.finding.fingerprint for row, stored in enumerate(self.found()) if row in rows} if rows else ()
        return lambda stored: stored.status != "resolved" and stored.finding.fingerprint in waived

    def candidates(self, near: CandidateFilter) -> Iterator[Candidate]:
        """See `StoredScan`."""
        every = enumerate(self.found())
        return (_candidate(stored, row) for row, stored in every if stored.finding.policy in near.policies)

    def count_open_findings(self, problems: frozenset[int]) -> Mapping[int, int]:
        """See `StoredScan`."""
        every = starmap(lambda row, stored: _candidate(stored, row), enumerate(self.found()))
        return Counter(each.problem for each in every if each.counts and each.problem in problems)

    def count_excepted(self) -> Mapping[str, int]:
        """See `StoredScan`."""
        return Counter(stored.finding.excepted_by for stored in self.found() if stored.finding.excepted_by)

    def waived_checks(self) -> Sequence[WaivedCheck]:
        """See `StoredScan`."""
        return ()

    def population(self) -> Iterator[RecordedObject]:
        """See `StoredScan`."""
        return iter(self.objects)

    def labelled_population(self) -> Iterator[LabelledObject]:
        """See `StoredScan`."""
        return (LabelledObject(each, KeptOfObject()) for each in self.objects)

    def evaluated_objects(self) -> Iterator[EvaluatedObjects]:
        """See `StoredScan`."""
        return iter(self.sets)

    def namespaces(self) -> Iterator[str]:
        """See `StoredScan`."""
        return iter(())

    def places(self) -> Places | None:
        """See `StoredScan`."""
        return self.files

    def register(self) -> Register:
        """See `StoredScan`."""
        return self.history

    def policy_days(self) -> PolicyDays:
        """See `StoredScan`."""
        return self.days

    def problem_history(self, ranks: SeverityRanks, waived: frozenset[int]) -> ProblemHistory:
        """See `StoredScan`."""
        return self.charted

    def rule_times(self) -> Mapping[RuleKey, RuleTimes]:
        """See `StoredScan`."""
        return self.times_of_rules


def as_problems(findings: Iterable[StoredFinding]) -> Iterator[ProblemFinding]:
    """The findings as problems of their own, all of them checked; previews belong to no problem."""
    for stored in findings:
        match stored.status:
            case "preview":
                pass
            case "new" | "reopened":
                yield ProblemFinding(stored, checked=True, episode=stored.status)
            case _:
                yield ProblemFinding(stored, checked=True, episode="open")


def _candidate(stored: StoredFinding, row: int) -> Candidate:
    finding = stored.finding
    workload = stored.workload
    outcome = finding.outcome
    match outcome:
        case Errored():
            name = name_outcome("errored", would_deny=outcome.would_deny, excepted_by=finding.excepted_by)
        case WouldChange():
            name = name_outcome("wouldChange", would_deny=False, excepted_by=finding.excepted_by)
        case _:
            name = name_outcome("violated", would_deny=False, excepted_by=finding.excepted_by)
    return Candidate(
        row=row,
        problem=int(stored.problem.rpartition("-")[2], 16) if stored.problem else -int(stored.id or "0", 16),
        check=CheckOfFinding(
            finding.language,
            finding.policy,
            finding.binding,
            finding.param_namespace,
            finding.param_name,
            finding.check,
        ),
        kind=(finding.api_version, finding.kind),
        namespace=finding.namespace,
        name=finding.name,
        outcome=name.value,
        checked=True,
        preview=stored.status in SINGLE_SCAN_STATUSES,
        workload_kind=workload.kind if workload else finding.kind,
        workload_name=workload.name if workload else finding.name,
        labels=stored.kept.object.labels if stored.kept else (),
    )
