"""A scan in a store: its record, and the questions that only the store can answer. A store has a class for it, and so do tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scanner.model.outcome import Finding
from scanner.model.policy import PolicyKey
from scanner.model.population import EvaluatedObjects, LabelledObject, RecordedObject
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
from scanner.model.scans.scan import ScanRecord
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.model.scans.tally import OwnedTally
from scanner.model.waiver import Candidate, CandidateFilter, WaivedCheck


class ReportCounts(Protocol):
    """The numbers of a scan that every report needs."""

    def census(self) -> Census:
        """The numbers of the findings."""
        ...

    def census_by_owner(self, owner_of: OwnerOf, /) -> Iterator[OwnedCensus]:
        """The same of one owner after another, in no order."""
        ...

    def tallies_by_owner(self, owner_of: OwnerOf, /) -> Iterator[OwnedTally]:
        """The tallies by owner; none for a scan of an older version."""
        ...

    def problem_totals(
        self, ranks: SeverityRanks, waived: frozenset[int], most: int, /
    ) -> tuple[ProblemTotals, tuple[ProblemFinding, ...]]:
        """The numbers of problems without waived rows, given the ranks of severities, and the findings of the worst ones, at most so many.

        See `posture.worst_problems`.
        """
        ...

    def problem_groups(self, ranks: SeverityRanks, waived: frozenset[int], /) -> tuple[ProblemGroup, ...]:
        """The open problems without waived rows by policy, severity, action and outcome, in ascending order."""
        ...

    def problems_by_namespace(self, waived: frozenset[int], /) -> GroupedProblems:
        """The same problems by the namespace of their objects."""
        ...

    def problems_by_owner(self, owner_of: OwnerOf, waived: frozenset[int], /) -> GroupedProblems:
        """The same problems by the owner of their objects."""
        ...


@dataclass(frozen=True)
class StoredScan(ScanRecord, ABC):
    """A scan in a store. Each call asks anew; findings are streams, because there can be many."""

    @abstractmethod
    def findings(self) -> Iterator[StoredFinding]:
        """The findings of the scan, ordered by policy, binding, param, check, kind, namespace and name."""

    @abstractmethod
    def findings_by_fingerprint(self) -> Iterator[Finding]:
        """The same findings in ascending order of their fingerprints, without their excerpts."""

    @abstractmethod
    def resolved_findings(self) -> Iterator[StoredFinding]:
        """The findings that the scan resolved, in the same order."""

    @abstractmethod
    def resolved_before(self) -> Iterator[StoredFinding]:
        """The findings that earlier scans of the last `RECENT` days resolved, and that were not found again up to this scan.

        The newest resolution comes first; at most `MOST_RESOLVED`.
        """

    @abstractmethod
    def findings_by_problem(self, policies: frozenset[PolicyKey] | None = None) -> Iterator[ProblemFinding]:
        """Both, and the findings that are still open but that the scan did not check, those of a problem together, ordered by policy.

        Of some policies alone, if these are given.
        """

    @abstractmethod
    def findings_of_rows(self, rows: Sequence[int]) -> Iterator[tuple[int, ProblemFinding]]:
        """The findings of some rows of `findings_by_problem` or of previews, with the id of the row, in no order."""

    @abstractmethod
    def index_findings(self, owner_of: OwnerOf) -> FindingIndex:
        """The findings of `findings_by_problem` and the previews, without their texts."""

    @abstractmethod
    def count_findings_by_object(self, policies: frozenset[PolicyKey] | None = None) -> Mapping[int, int]:
        """The numbers of findings of some policies, or of all, by the ids of `population`."""

    @abstractmethod
    def census(self) -> Census:
        """See `ReportCounts`."""

    @abstractmethod
    def census_by_owner(self, owner_of: OwnerOf) -> Iterator[OwnedCensus]:
        """See `ReportCounts`."""

    @abstractmethod
    def tallies_by_owner(self, owner_of: OwnerOf) -> Iterator[OwnedTally]:
        """See `ReportCounts`."""

    @abstractmethod
    def resolutions(self) -> Mapping[str, int]:
        """The numbers of resolved findings by the reason of the resolution."""

    @abstractmethod
    def problem_totals(
        self, ranks: SeverityRanks, waived: frozenset[int], most: int
    ) -> tuple[ProblemTotals, tuple[ProblemFinding, ...]]:
        """See `ReportCounts`."""

    @abstractmethod
    def problem_groups(self, ranks: SeverityRanks, waived: frozenset[int]) -> tuple[ProblemGroup, ...]:
        """The numbers of open problems without waived rows by policy, severity, action and outcome, in ascending order."""

    @abstractmethod
    def problems_by_check(self, waived: frozenset[int]) -> ProblemsByCheck:
        """The numbers of open problems without waived rows by policy and expression of their check."""

    @abstractmethod
    def problems_by_namespace(self, waived: frozenset[int]) -> GroupedProblems:
        """The numbers of open problems without waived rows by namespace; the empty name stands for cluster-scoped objects."""

    @abstractmethod
    def problems_by_owner(self, owner_of: OwnerOf, waived: frozenset[int]) -> GroupedProblems:
        """The same by owner; the empty name stands for objects without an owner."""

    @abstractmethod
    def candidates(self, candidate_filter: CandidateFilter) -> Iterator[Candidate]:
        """The open findings to which waivers may apply, and maybe others of their policies, without their texts, in no order."""

    @abstractmethod
    def count_open_findings(self, problems: frozenset[int]) -> Mapping[int, int]:
        """The numbers of the open findings of problems that gates count: checked ones, without previews and excepted findings."""

    @abstractmethod
    def count_excepted(self) -> Mapping[str, int]:
        """The numbers of findings by the exceptions and filters that except them."""

    @abstractmethod
    def waived_checks(self) -> Sequence[WaivedCheck]:
        """The checks of scans up to this one, as the waivers that these scans used name them."""

    @abstractmethod
    def population(self) -> Iterator[RecordedObject]:
        """The objects that the scan examined; none for a scan of an older version."""

    @abstractmethod
    def labelled_population(self) -> Iterator[LabelledObject]:
        """The same objects in the same order, with the kept labels that name their owners."""

    @abstractmethod
    def evaluated_objects(self) -> Iterator[EvaluatedObjects]:
        """The objects that each check matched; none for a scan of an older version."""

    @abstractmethod
    def namespaces(self) -> Iterator[str]:
        """The namespaces of which the scan knows that they exist."""

    @abstractmethod
    def places(self) -> Places | None:
        """The files and lines of the objects; None if they came from no files."""

    @abstractmethod
    def register(self) -> Register:
        """The scans of the cluster, this one included."""

    @abstractmethod
    def policy_days(self) -> PolicyDays:
        """The failing checks of each policy by day."""

    @abstractmethod
    def problem_history(self, ranks: SeverityRanks, waived: frozenset[int]) -> ProblemHistory:
        """The problems of the last days of the cluster up to this scan, and the ages and places of its open ones without waived rows."""

    @abstractmethod
    def rule_times(self) -> Mapping[RuleKey, RuleTimes]:
        """Since when the rules of the scan have had their content, as far as earlier scans with its scope are kept."""
