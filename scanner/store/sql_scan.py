"""A scan that is stored in the database: each question is a query over a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, select

from scanner.model.census import Census, OwnedCensus, OwnerOf
from scanner.model.finding_index import FindingIndex
from scanner.model.open_problems import GroupedProblems
from scanner.model.place import Places
from scanner.model.policy import PolicyKey
from scanner.model.population import EvaluatedObjects, RecordedObject
from scanner.model.problem_group import ProblemGroup
from scanner.model.problem_totals import ProblemTotals
from scanner.model.register import PolicyDays, Register
from scanner.model.scan import OwnedTally, ProblemFinding, StoredFinding
from scanner.model.stored_scan import StoredScan
from scanner.model.waiver import Candidate, Near, WaivedCheck
from scanner.store.address import Address
from scanner.store.census import census_of_seen, owned_census, resolutions_of
from scanner.store.finding_index import findings_by_object, indexed
from scanner.store.findings import Times, by_problem, of_rows, resolved_by, seen_by, times_of
from scanner.store.grouped_problems import problems_by_namespace, problems_by_owner
from scanner.store.open_problems import Place
from scanner.store.open_workloads import OpenWorkload, open_workloads
from scanner.store.owned_tallies import tallies_by
from scanner.store.places import read_places
from scanner.store.policy_days import policy_days_of
from scanner.store.problem_groups import problem_groups
from scanner.store.problem_totals import problem_totals
from scanner.store.recorded_objects import evaluated_objects, namespaces_at, population_of
from scanner.store.register import register_of
from scanner.store.row_ids import unpacked
from scanner.store.store_errors import as_store_error
from scanner.store.tables import CHECKS, UNCHECKED
from scanner.store.waivable import candidates, excepted, open_findings
from scanner.store.waived_checks import waived_checks

_AnswerT = TypeVar("_AnswerT")


class ScanRow(NamedTuple):
    """The columns of a scan that its record is read from."""

    number: int
    cluster: int
    base: int
    revision: int | None
    unchecked: int
    state: str
    opinion: str
    matched: str
    method: str
    pruned_at: datetime | None
    changed_rules: str


@dataclass(frozen=True, kw_only=True)
class SqlScan(StoredScan):
    """A stored scan. A failed scan has no findings: it is not in history."""

    engine: Engine
    address: Address
    row: ScanRow

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with as_store_error(self.address), self.engine.connect() as connection:
            yield connection

    @cached_property
    def _place(self) -> Place | None:
        """The scan in history."""
        if self.row.revision is None:
            return None
        with self._reading() as connection:
            wanted = select(UNCHECKED.c.findings).where(UNCHECKED.c.scan == self.row.number)
            return Place(self.row.cluster, self.row.revision, unpacked(connection.execute(wanted).scalar()))

    @cached_property
    def _times(self) -> Times:
        with self._reading() as connection:
            return times_of(connection, self.row.cluster)

    def _stream(self, read: Callable[[Connection, Place], Iterator[_AnswerT]]) -> Iterator[_AnswerT]:
        if self._place is None:
            return
        with self._reading() as connection:
            yield from read(connection, self._place)

    def _answer(self, read: Callable[[Connection, Place], _AnswerT], nothing: _AnswerT) -> _AnswerT:
        if self._place is None:
            return nothing
        with self._reading() as connection:
            return read(connection, self._place)

    def findings(self) -> Iterator[StoredFinding]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: seen_by(connection, *place))

    def resolved(self) -> Iterator[StoredFinding]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: resolved_by(connection, place.cluster, place.revision))

    def by_problem(self, policies: frozenset[PolicyKey] | None = None) -> Iterator[ProblemFinding]:
        """See `StoredScan`."""
        if policies is None:
            return self._stream(lambda connection, place: by_problem(connection, *place))
        chosen = CHECKS.c.policy.in_(sorted({name for _, name in policies}))
        every = self._stream(lambda connection, place: by_problem(connection, *place, chosen))
        return (each for each in every if each.stored.finding.policy_key in policies)

    def of_rows(self, rows: Sequence[int]) -> Iterator[tuple[int, ProblemFinding]]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: of_rows(connection, *place, rows, self._times))

    def indexed(self, owner_of: OwnerOf) -> FindingIndex:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: indexed(connection, *place, owner_of), FindingIndex())

    def findings_by_object(self) -> Mapping[int, int]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: findings_by_object(connection, *place), {})

    def census(self) -> Census:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: census_of_seen(connection, *place), {})

    def census_by(self, owner_of: OwnerOf) -> Iterator[OwnedCensus]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: owned_census(connection, *place, owner_of))

    def tallies_by(self, owner_of: OwnerOf) -> Iterator[OwnedTally]:
        """See `StoredScan`."""
        number = self.row.number
        return self._stream(
            lambda connection, place: tallies_by(connection, place.cluster, number, *place[1:], owner_of)
        )

    def resolutions(self) -> Mapping[str, int]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: resolutions_of(connection, place.cluster, place.revision), {})

    def problem_totals(
        self, ranks: Mapping[PolicyKey, int], waived: frozenset[int], most: int
    ) -> tuple[ProblemTotals, tuple[ProblemFinding, ...]]:
        """See `StoredScan`."""
        nothing: tuple[ProblemTotals, tuple[ProblemFinding, ...]] = ProblemTotals(), ()
        return self._answer(lambda connection, place: problem_totals(connection, place, ranks, waived, most), nothing)

    def problem_groups(self, waived: frozenset[int]) -> tuple[ProblemGroup, ...]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: problem_groups(connection, place, waived), ())

    def problems_by_namespace(self, waived: frozenset[int]) -> GroupedProblems:
        """See `StoredScan`."""
        return self._answer(
            lambda connection, place: problems_by_namespace(connection, place, waived), GroupedProblems()
        )

    def problems_by_owner(self, owner_of: OwnerOf, waived: frozenset[int]) -> GroupedProblems:
        """See `StoredScan`."""
        return self._answer(
            lambda connection, place: problems_by_owner(connection, place, owner_of, waived), GroupedProblems()
        )

    def open_workloads(self, waived: frozenset[int]) -> tuple[OpenWorkload, ...]:
        """The workloads with open problems."""
        return tuple(self._stream(lambda connection, place: open_workloads(connection, place, waived)))

    def candidates(self, near: Near) -> Iterator[Candidate]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: candidates(connection, *place, near))

    def open_findings(self, problems: frozenset[int]) -> Mapping[int, int]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: open_findings(connection, place, problems), {})

    def excepted(self) -> Mapping[str, int]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: excepted(connection, place.cluster, place.revision), {})

    def waived_checks(self) -> Sequence[WaivedCheck]:
        """See `StoredScan`."""
        return self._answer(
            lambda connection, place: tuple(waived_checks(connection, place.cluster, place.revision)), ()
        )

    def population(self) -> Iterator[RecordedObject]:
        """See `StoredScan`."""
        number = self.row.number
        return self._stream(lambda connection, place: population_of(connection, place.cluster, number, place.revision))

    def evaluated(self) -> Iterator[EvaluatedObjects]:
        """See `StoredScan`."""
        return self._stream(lambda connection, _: evaluated_objects(connection, self.row.number))

    def namespaces(self) -> Iterator[str]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: namespaces_at(connection, place.cluster, place.revision))

    def places(self) -> Places | None:
        """See `StoredScan`."""
        with self._reading() as connection:
            return read_places(connection, self.row.number)

    def register(self) -> Register:
        """See `StoredScan`."""
        with self._reading() as connection:
            return register_of(connection, self.row.cluster, self.row.number, self._last_day)

    def policy_days(self, policy: PolicyKey | None) -> PolicyDays:
        """See `StoredScan`."""
        with self._reading() as connection:
            return policy_days_of(connection, self.row.cluster, self._last_day, policy)

    @property
    def _last_day(self) -> date:
        """The day of UTC on which the scan ended, or began."""
        return (self.scan.finished_at or self.scan.started_at).astimezone(UTC).date()
