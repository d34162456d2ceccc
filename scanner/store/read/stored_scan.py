"""Reads the record of one stored scan, from which reports are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from itertools import chain, repeat
from typing import Any, Final, NamedTuple, TypeVar

import orjson
from sqlalchemy import Connection, Engine, func, select

from scanner.errors import UsageError
from scanner.model.outcome import Finding, Gap, GapKind
from scanner.model.policy import ACTIONS, Binding, Policy, PolicyKey
from scanner.model.population import EvaluatedObjects, LabelledObject, RecordedObject
from scanner.model.reading import UNKNOWN_READING, Reading
from scanner.model.scans.cause import CauseKind
from scanner.model.scans.census import Census, OwnedCensus, OwnerOf
from scanner.model.scans.finding_index import FindingIndex
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.method import Method
from scanner.model.scans.opinion import Opinion
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.place import Places
from scanner.model.scans.problem_history import ProblemHistory
from scanner.model.scans.problem_numbers import (
    GroupedProblems,
    ProblemGroup,
    ProblemsByCheck,
    ProblemTotals,
    SeverityRanks,
)
from scanner.model.scans.register import MOST_RESOLVED, RECENT, DayCounts, PolicyDays, Register, ScanLine
from scanner.model.scans.rule_times import RuleKey, RuleTimes
from scanner.model.scans.scan import Coverage, CoverageState, PolicyRecord, Scan, ScanState, UncoveredKind
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.scans.tally import OwnedTally
from scanner.model.waiver import Candidate, CandidateFilter, WaivedCheck
from scanner.store.catalog.check_names import read_check_ids
from scanner.store.catalog.every_cluster import LastComplete, read_last_complete
from scanner.store.catalog.places import read_places
from scanner.store.catalog.rules import read_rules
from scanner.store.catalog.scans import AbandonedScan, correct_state, find_abandoned_scans, scan_of, select_scans
from scanner.store.catalog.waivers import read_waived_checks
from scanner.store.database.address import Address
from scanner.store.database.store_errors import as_store_error
from scanner.store.history.sightings import read_unchecked
from scanner.store.read.all_numbers import AllNumbers, read_all_numbers
from scanner.store.read.census import count_resolutions, count_seen, count_seen_by_owner
from scanner.store.read.finding_index import count_findings_by_object, index_findings
from scanner.store.read.findings import (
    Times,
    read_by_problem,
    read_findings_of_rows,
    read_resolved,
    read_resolved_before,
    read_scan_ends,
    read_seen,
)
from scanner.store.read.open_problems import (
    OpenProblem,
    OpenWorkload,
    ScanPlace,
    count_by_check,
    count_by_namespace,
    count_by_owner,
    count_problem_groups,
    read_open_problems,
    read_open_workloads,
)
from scanner.store.read.problem_counts import count_totals, find_comparable_scan
from scanner.store.read.problem_history import read_problem_history
from scanner.store.read.recorded_findings import read_by_fingerprint
from scanner.store.read.recorded_objects import (
    read_evaluated_objects,
    read_labelled_population,
    read_namespaces,
    read_population,
)
from scanner.store.read.rule_times import read_rule_times
from scanner.store.read.tallies import read_tallies, tally_by_owner
from scanner.store.read.trends import read_days, read_policy_days
from scanner.store.read.waivable import count_excepted, count_open_findings, read_candidates
from scanner.store.rows import codec
from scanner.store.rows.gap_lists import read_gaps
from scanner.store.rows.shared_rows import RowOwners, read_owners, read_rows
from scanner.store.rows.sizes import read_total_bytes
from scanner.store.rows.tables import (
    BINDINGS,
    CHECKS,
    COVERAGE,
    HEALTH,
    OUTSIDE,
    POLICIES,
    SCAN_BINDINGS,
    SCAN_POLICIES,
    SCANS,
    UNCOVERED,
)


def read_scan(engine: Engine, address: Address, scan_id: str, now: datetime) -> SqlScan:
    """A finished scan. Raises UsageError for an unknown id, a scan that still runs, and a pruned scan."""
    with engine.connect() as connection:
        dead = find_abandoned_scans(connection, now)
        stored = read_scan_row(connection, scan_id, dead)
        owners = read_owners(connection, stored.number)
        policies = _read_policies(connection, owners, stored.matched)
        earlier = find_comparable_scan(connection, scan_id)
        return SqlScan(
            engine=engine,
            address=address,
            row=stored,
            scan=correct_state(_read_scan_where(connection, SCANS.c.number == stored.number), dead),
            previous=_find_previous(connection, stored),
            policies=policies,
            check_ids=read_check_ids(
                connection, stored.cluster, [each.policy for each in policies], stored.revision or stored.base
            ),
            coverage=_read_coverage(connection, stored.number),
            health=tuple(
                Health(HealthKind(kind), *rest) for kind, *rest in read_rows(connection, HEALTH, owners.health)
            ),
            gaps=tuple(Gap(GapKind(kind), where, why) for _, kind, where, why in read_gaps(connection, stored.number)),
            tallies=read_tallies(connection, stored.number),
            comparable=earlier,
            comparable_method=_read_method(connection, earlier.id) if earlier else None,
            changed_rules=tuple(map(CauseKind, filter(None, stored.changed_rules.split(",")))),
            unchecked=stored.unchecked,
            outside=tuple(OutOfScope(*row) for row in read_rows(connection, OUTSIDE, owners.outside)),
            opinion=codec.from_text(Opinion, stored.opinion) if stored.opinion else None,
            rules=read_rules(connection, owners.rules),
            uncovered=tuple(UncoveredKind(*row) for row in read_rows(connection, UNCOVERED, owners.uncovered)),
            method=codec.from_text(Method, stored.method) if stored.method else None,
        )


def _read_method(connection: Connection, scan_id: str) -> Method | None:
    text = connection.execute(select(SCANS.c.method).where(SCANS.c.id == scan_id)).scalar_one()
    return codec.from_text(Method, text) if text else None


def _read_coverage(connection: Connection, number: int) -> tuple[Coverage, ...]:
    """The coverage of a scan. Older versions recorded no digests of pages."""
    columns = (COVERAGE.c[item.name] for item in fields(Coverage))
    rows = connection.execute(select(*columns).where(COVERAGE.c.scan == number).order_by(COVERAGE.c.position))
    coverage = (Coverage(api_version, kind, CoverageState(state), *rest) for api_version, kind, state, *rest in rows)
    return tuple(replace(each, page_digests=bytes(each.page_digests or b"")) for each in coverage)


def read_scan_row(connection: Connection, scan_id: str, dead: Sequence[AbandonedScan]) -> ScanRow:
    """A finished scan, by its id. Raises UsageError for an unknown id, a scan that still runs, and a pruned scan."""
    wanted = select(*(SCANS.c[name] for name in ScanRow._fields)).where(SCANS.c.id == scan_id)
    row = connection.execute(wanted).one_or_none()
    if row is None:
        raise UsageError(f"There is no scan {scan_id} in this database. `assay scans` lists all scans.")
    stored = ScanRow(*row)
    if stored.pruned_at is not None:
        raise UsageError(
            f"Scan {scan_id} was pruned on {stored.pruned_at:%Y-%m-%d} and has no report any more. "
            "`assay scans` shows which scans have one."
        )
    if stored.state == ScanState.RUNNING.value and stored.number not in {scan.number for scan in dead}:
        raise UsageError(f"Scan {scan_id} is still running. Only a finished scan has a report.")
    return stored


def _read_scan_where(connection: Connection, chosen: Any) -> Scan:
    return scan_of(connection.execute(select_scans().where(chosen)).one())


def _find_previous(connection: Connection, stored: ScanRow) -> Scan | None:
    """The previous scan in the cluster's history; for a failed scan, the newest one when it began."""
    revision = stored.base if stored.revision is None else stored.revision - 1
    if not revision:
        return None
    return _read_scan_where(connection, (SCANS.c.cluster == stored.cluster) & (SCANS.c.revision == revision))


def _read_policies(connection: Connection, owners: RowOwners, matched: str) -> tuple[PolicyRecord, ...]:
    bindings = _read_bindings(connection, owners.bindings)
    counts = chain(orjson.loads(matched or "[]"), repeat(0))
    used = SCAN_POLICIES.c
    wanted = (
        select(POLICIES.c.document, used.reading)
        .join(POLICIES)
        .where(used.scan == owners.policies)
        .order_by(used.position)
    )
    return tuple(
        _build_policy_record(codec.from_text(Policy, document), count, bindings, _decode_reading(read))
        for (document, read), count in zip(connection.execute(wanted), counts, strict=False)
    )


def _decode_reading(text: str) -> Reading:
    return codec.from_text(Reading, text) if text else UNKNOWN_READING


def _read_bindings(connection: Connection, number: int) -> tuple[Binding, ...]:
    used = SCAN_BINDINGS.c
    wanted = select(BINDINGS.c.document).join(SCAN_BINDINGS).where(used.scan == number).order_by(used.position)
    return tuple(codec.from_text(Binding, document) for document in connection.execute(wanted).scalars())


def _build_policy_record(policy: Policy, matched: int, bindings: tuple[Binding, ...], reading: Reading) -> PolicyRecord:
    of_policy = tuple(item for item in bindings if item.policy_key == policy.key)
    actions = {action for binding in of_policy for action in binding.actions}
    return PolicyRecord(policy, of_policy, matched, tuple(action for action in ACTIONS if action in actions), reading)


# A scan that is stored in the database: each question is a query over a connection of its own.

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

    # A frozen dataclass without slots has a dictionary, in which `cached_property` keeps its value.
    @cached_property
    def _place(self) -> ScanPlace | None:
        """The scan in history."""
        if self.row.revision is None:
            return None
        with self._reading() as connection:
            return ScanPlace(self.row.cluster, self.row.revision, read_unchecked(connection, self.row.number))

    @cached_property
    def _times(self) -> Times:
        with self._reading() as connection:
            return read_scan_ends(connection, self.row.cluster)

    def _stream(self, read: Callable[[Connection, ScanPlace], Iterator[_AnswerT]]) -> Iterator[_AnswerT]:
        if self._place is None:
            return
        with self._reading() as connection:
            yield from read(connection, self._place)

    def _answer(self, read: Callable[[Connection, ScanPlace], _AnswerT], nothing: _AnswerT) -> _AnswerT:
        if self._place is None:
            return nothing
        with self._reading() as connection:
            return read(connection, self._place)

    def findings(self) -> Iterator[StoredFinding]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: read_seen(connection, *place))

    def findings_by_fingerprint(self) -> Iterator[Finding]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: read_by_fingerprint(connection, *place))

    def resolved_findings(self) -> Iterator[StoredFinding]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: read_resolved(connection, place.cluster, place.revision))

    def resolved_before(self) -> Iterator[StoredFinding]:
        """See `StoredScan`."""
        first = datetime.combine(self._last_day - timedelta(days=RECENT), time(), UTC)
        return self._stream(
            lambda connection, place: read_resolved_before(
                connection, place.cluster, place.revision, first, MOST_RESOLVED
            )
        )

    def findings_by_problem(self, policies: frozenset[PolicyKey] | None = None) -> Iterator[ProblemFinding]:
        """See `StoredScan`."""
        if policies is None:
            return self._stream(lambda connection, place: read_by_problem(connection, *place))
        chosen = CHECKS.c.policy.in_(sorted({name for _, name in policies}))
        every = self._stream(lambda connection, place: read_by_problem(connection, *place, chosen))
        return (each for each in every if each.stored.finding.policy_key in policies)

    def findings_of_rows(self, rows: Sequence[int]) -> Iterator[tuple[int, ProblemFinding]]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: read_findings_of_rows(connection, *place, rows, self._times))

    def index_findings(self, owner_of: OwnerOf) -> FindingIndex:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: index_findings(connection, *place, owner_of), FindingIndex())

    def count_findings_by_object(self, policies: frozenset[PolicyKey] | None = None) -> Mapping[int, int]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: count_findings_by_object(connection, *place, policies), {})

    def census(self) -> Census:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: count_seen(connection, *place), {})

    def census_by_owner(self, owner_of: OwnerOf) -> Iterator[OwnedCensus]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: count_seen_by_owner(connection, *place, owner_of))

    def tallies_by_owner(self, owner_of: OwnerOf) -> Iterator[OwnedTally]:
        """See `StoredScan`."""
        number = self.row.number
        return self._stream(
            lambda connection, place: tally_by_owner(connection, place.cluster, number, *place[1:], owner_of)
        )

    def resolutions(self) -> Mapping[str, int]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: count_resolutions(connection, place.cluster, place.revision), {})

    def problem_totals(
        self, ranks: SeverityRanks, waived: frozenset[int], most: int
    ) -> tuple[ProblemTotals, tuple[ProblemFinding, ...]]:
        """See `StoredScan`."""
        nothing: tuple[ProblemTotals, tuple[ProblemFinding, ...]] = ProblemTotals(), ()
        return self._answer(lambda connection, place: count_totals(connection, place, ranks, waived, most), nothing)

    def problem_groups(self, ranks: SeverityRanks, waived: frozenset[int]) -> tuple[ProblemGroup, ...]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: count_problem_groups(connection, place, ranks, waived), ())

    def problems_by_check(self, waived: frozenset[int]) -> ProblemsByCheck:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: count_by_check(connection, place, waived), {})

    def problems_by_namespace(self, waived: frozenset[int]) -> GroupedProblems:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: count_by_namespace(connection, place, waived), GroupedProblems())

    def problems_by_owner(self, owner_of: OwnerOf, waived: frozenset[int]) -> GroupedProblems:
        """See `StoredScan`."""
        return self._answer(
            lambda connection, place: count_by_owner(connection, place, owner_of, waived), GroupedProblems()
        )

    def all_numbers(self, owner_of: OwnerOf, ranks: SeverityRanks, waived: frozenset[int], most: int) -> AllNumbers:
        """All numbers that the first page of the scan shows: the answers to several questions of `StoredScan` at once."""
        number = self.row.number
        return self._answer(
            lambda connection, place: read_all_numbers(connection, place, number, owner_of, ranks, waived, most),
            AllNumbers(),
        )

    def open_workloads(self, ranks: SeverityRanks, waived: frozenset[int]) -> tuple[OpenWorkload, ...]:
        """The workloads with open problems, by policy and severity."""
        return tuple(self._stream(lambda connection, place: read_open_workloads(connection, place, ranks, waived)))

    def open_problems(self, waived: frozenset[int]) -> Iterator[OpenProblem]:
        """The open problems by their content, in no order."""
        return self._stream(lambda connection, place: read_open_problems(connection, place, waived))

    def candidates(self, candidate_filter: CandidateFilter) -> Iterator[Candidate]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: read_candidates(connection, *place, candidate_filter))

    def count_open_findings(self, problems: frozenset[int]) -> Mapping[int, int]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: count_open_findings(connection, place, problems), {})

    def count_excepted(self) -> Mapping[str, int]:
        """See `StoredScan`."""
        return self._answer(lambda connection, place: count_excepted(connection, place.cluster, place.revision), {})

    def waived_checks(self) -> Sequence[WaivedCheck]:
        """See `StoredScan`."""
        return self._answer(
            lambda connection, place: tuple(read_waived_checks(connection, place.cluster, place.revision)), ()
        )

    def population(self) -> Iterator[RecordedObject]:
        """See `StoredScan`."""
        number = self.row.number
        return self._stream(
            lambda connection, place: read_population(connection, place.cluster, number, place.revision)
        )

    def labelled_population(self) -> Iterator[LabelledObject]:
        """See `StoredScan`."""
        number = self.row.number
        return self._stream(
            lambda connection, place: read_labelled_population(connection, place.cluster, number, place.revision)
        )

    def evaluated_objects(self) -> Iterator[EvaluatedObjects]:
        """See `StoredScan`."""
        return self._stream(lambda connection, _: read_evaluated_objects(connection, self.row.number))

    def namespaces(self) -> Iterator[str]:
        """See `StoredScan`."""
        return self._stream(lambda connection, place: read_namespaces(connection, place.cluster, place.revision))

    def places(self) -> Places | None:
        """See `StoredScan`."""
        with self._reading() as connection:
            return read_places(connection, self.row.number)

    def register(self) -> Register:
        """See `StoredScan`."""
        with self._reading() as connection:
            return read_register(connection, self.row.cluster, self.row.number, self._last_day)

    def policy_days(self) -> PolicyDays:
        """See `StoredScan`."""
        with self._reading() as connection:
            return read_policy_days(connection, self.row.cluster, self._last_day)

    def problem_history(self, ranks: SeverityRanks, waived: frozenset[int]) -> ProblemHistory:
        """See `StoredScan`."""
        return self._answer(
            lambda connection, place: read_problem_history(connection, place, ranks, waived, self._last_day),
            ProblemHistory(),
        )

    def rule_times(self) -> Mapping[RuleKey, RuleTimes]:
        """See `StoredScan`."""
        return self._answer(
            lambda connection, place: read_rule_times(connection, place.cluster, self.row.number),
            dict[RuleKey, RuleTimes](),
        )

    @property
    def _last_day(self) -> date:
        """The day of UTC on which the scan ended, or began."""
        return (self.scan.finished_at or self.scan.started_at).astimezone(UTC).date()


# Counts the scans of a cluster by state, lists the newest of them, and measures the database.

NEWEST: Final = 60
"""The scans that a register lists."""
_FIELDS: Final = ("id", "state", "started_at", "finished_at", "tool_version", "findings", "new", "resolved")


def read_register(connection: Connection, cluster: int, scan: int, until: date) -> Register:
    """The register of a cluster, by its number, with the scans up to one, by its number, and the days up to one. A scan that was pruned counts."""
    own = SCANS.c.cluster == cluster
    states = connection.execute(select(SCANS.c.state, func.count()).where(own).group_by(SCANS.c.state)).all()
    last = read_last_complete(connection, cluster).get(cluster, LastComplete())
    return Register(
        scans=dict(sorted((state, number) for state, number in states)),
        last_complete=last.complete,
        last_whole=last.whole,
        database_bytes=read_total_bytes(connection),
        days=tuple(_read_days(connection, cluster, until))[-RECENT:],
        lines=_read_lines(connection, cluster, scan),
    )


def _read_days(connection: Connection, cluster: int, until: date) -> Iterator[DayCounts]:
    for each in read_days(connection, cluster, until - timedelta(days=4 * RECENT), until):
        yield DayCounts(each.day, each.findings, each.new, each.resolved)


def _read_lines(connection: Connection, cluster: int, scan: int) -> tuple[ScanLine, ...]:
    """The newest scans up to one of them, the newest first."""
    table = SCANS.c
    scope = connection.execute(select(table.scope).where(table.number == scan)).scalar_one()
    columns = (
        *(table[name] for name in _FIELDS),
        (table.scope == scope).label("alike"),
        table.policy_set_digest,
        table.preview,
    )
    wanted = select(*columns).where(table.cluster == cluster, table.number <= scan)
    rows = connection.execute(wanted.order_by(table.number.desc()).limit(NEWEST)).all()
    lines: list[ScanLine] = []
    digest = ""
    for row in reversed(rows):
        rules = row.policy_set_digest if row.alike and not row.preview else ""
        facts = {name: getattr(row, name) for name in _FIELDS}
        lines.append(ScanLine(**facts, alike=bool(row.alike), rules_changed=bool(digest and rules) and digest != rules))
        digest = rules or digest
    return tuple(reversed(lines))
