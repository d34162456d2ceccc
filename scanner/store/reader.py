"""Reads the record of one stored scan, from which reports are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from functools import cache
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeVar

import orjson
from sqlalchemy import Connection, Engine, select

from scanner.errors import UsageError
from scanner.model.cause import CauseKind
from scanner.model.census import Census, OwnedCensus, OwnerOf
from scanner.model.finding_index import FindingIndex
from scanner.model.method import Method
from scanner.model.open_problems import GroupedProblems
from scanner.model.opinion import Opinion
from scanner.model.outcome import Gap, GapKind
from scanner.model.place import Places
from scanner.model.policy import Action, Binding, Policy, PolicyKey
from scanner.model.population import EvaluatedObjects, RecordedObject
from scanner.model.problem_group import ProblemGroup
from scanner.model.problem_totals import ProblemTotals
from scanner.model.reading import UNKNOWN, Reading
from scanner.model.register import PolicyDays, Register
from scanner.model.scan import (
    Coverage,
    CoverageState,
    Health,
    HealthKind,
    OutOfScope,
    OwnedTally,
    PolicyRecord,
    ProblemFinding,
    ProblemQuery,
    Scan,
    ScanRecord,
    ScanState,
    StoredFinding,
)
from scanner.model.uncovered import UncoveredKind
from scanner.model.waiver import Candidate, Near, WaivedCheck
from scanner.store import codec
from scanner.store.address import Address
from scanner.store.census import census_of_seen, number_of_resolved, owned_census, resolutions_of
from scanner.store.check_names import check_ids
from scanner.store.finding_index import findings_by_object, indexed
from scanner.store.findings import Times, by_problem, of_rows, resolved_by, seen_by, times_of
from scanner.store.grouped_problems import problems_by_namespace, problems_by_owner
from scanner.store.open_problems import Place
from scanner.store.open_workloads import OpenWorkload, open_workloads
from scanner.store.owned_tallies import tallies_by
from scanner.store.places import read_places
from scanner.store.policy_days import policy_days_of
from scanner.store.problem_counts import comparable
from scanner.store.problem_groups import problem_groups
from scanner.store.problem_totals import problem_totals
from scanner.store.read_tallies import read_tallies
from scanner.store.recorded_objects import evaluated_objects, namespaces_at, population_of
from scanner.store.register import register_of
from scanner.store.row_ids import RowIdSet, unpacked
from scanner.store.rules import read_rules
from scanner.store.scans import Abandoned, abandoned, scan_of, select_scans, with_current_state
from scanner.store.shared_rows import Owners, owners_of, read_rows
from scanner.store.store_errors import as_store_error
from scanner.store.tables import (
    BINDINGS,
    CHECKS,
    COVERAGE,
    GAPS,
    HEALTH,
    OUTSIDE,
    POLICIES,
    SCAN_BINDINGS,
    SCAN_POLICIES,
    SCANS,
    UNCHECKED,
    UNCOVERED,
)
from scanner.store.waivable import candidates, excepted, open_findings
from scanner.store.waived_checks import waived_checks

_Read = TypeVar("_Read")
_ACTIONS: tuple[Action, ...] = ("Deny", "Warn", "Audit")


class StoredScan(NamedTuple):
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


def record(engine: Engine, address: Address, scan_id: str, now: datetime) -> ScanRecord:
    """The record of a scan. Raises UsageError for an unknown id, a scan that still runs, and a pruned scan."""
    with engine.connect() as connection:
        dead = abandoned(connection, now)
        stored = stored_scan(connection, scan_id, dead)
        owners = owners_of(connection, stored.number)
        policies = _policies(connection, owners, stored.matched)
        scan = with_current_state(_scan(connection, SCANS.c.number == stored.number), dead)
        return ScanRecord(
            scan=scan,
            previous=_previous(connection, stored),
            policies=policies,
            check_ids=check_ids(
                connection, stored.cluster, [each.policy for each in policies], stored.revision or stored.base
            ),
            coverage=_coverage(connection, stored.number),
            health=tuple(
                Health(HealthKind(kind), *rest) for kind, *rest in read_rows(connection, HEALTH, owners.health)
            ),
            gaps=tuple(Gap(GapKind(kind), *rest) for kind, *rest in read_rows(connection, GAPS, stored.number)),
            tallies=read_tallies(connection, stored.number),
            findings=_streaming(engine, address, stored, _seen),
            resolved=_streaming(engine, address, stored, _resolved),
            by_problem=_streaming(engine, address, stored, _by_problem),
            by_problem_of=_by_problem_of(engine, address, stored),
            census=_census(engine, address, stored),
            census_by=_census_by(engine, address, stored),
            resolved_total=_resolved_total(connection, stored),
            resolutions=_resolutions(engine, address, stored),
            comparable=comparable(connection, scan_id),
            changed_rules=tuple(map(CauseKind, filter(None, stored.changed_rules.split(",")))),
            unchecked=stored.unchecked,
            outside=tuple(OutOfScope(*row) for row in read_rows(connection, OUTSIDE, owners.outside)),
            opinion=codec.from_text(Opinion, stored.opinion) if stored.opinion else None,
            population=_streaming(engine, address, stored, _population),
            evaluated=_streaming(engine, address, stored, _evaluated),
            namespaces=_streaming(engine, address, stored, _namespaces),
            tallies_by=_tallies_by(engine, address, stored),
            rules=read_rules(connection, owners.rules),
            uncovered=tuple(UncoveredKind(*row) for row in read_rows(connection, UNCOVERED, owners.uncovered)),
            method=codec.from_text(Method, stored.method) if stored.method else None,
            waivable=_waivable(engine, address, stored),
            open_of_problems=_open_of_problems(engine, address, stored),
            problem_totals=_problem_totals(engine, address, stored),
            problem_groups=_problem_groups(engine, address, stored),
            problems_by_namespace=_problems_by_namespace(engine, address, stored),
            problems_by_owner=_problems_by_owner(engine, address, stored),
            register=_register(engine, address, stored, _last_day(scan)),
            policy_days=_policy_days(engine, address, stored, _last_day(scan)),
            places=_places(engine, address, stored),
            findings_by_object=lambda: dict(_streaming(engine, address, stored, _by_object)()),
            indexed=_indexed(engine, address, stored),
            of_rows=_of_rows(engine, address, stored),
            exceptions=lambda: dict(_streaming(engine, address, stored, _excepted)()),
            waived_checks=lambda: tuple(_streaming(engine, address, stored, _waived_checks)()),
        )


def open_workloads_of(engine: Engine, scan_id: str, waived: frozenset[int], now: datetime) -> tuple[OpenWorkload, ...]:
    """The workloads with open problems of a finished scan. Raises UsageError as `record` does."""
    with engine.connect() as connection:
        stored = stored_scan(connection, scan_id, abandoned(connection, now))
        if stored.revision is None:
            return ()
        place = Place(stored.cluster, stored.revision, _unchecked(connection, stored))
        return tuple(open_workloads(connection, place, waived))


def _coverage(connection: Connection, number: int) -> tuple[Coverage, ...]:
    """The coverage of a scan. Older versions recorded no digests of pages."""
    own = (COVERAGE.c[item.name] for item in fields(Coverage))
    rows = connection.execute(select(*own).where(COVERAGE.c.scan == number).order_by(COVERAGE.c.position))
    coverage = (Coverage(api_version, kind, CoverageState(state), *rest) for api_version, kind, state, *rest in rows)
    return tuple(replace(each, page_digests=bytes(each.page_digests or b"")) for each in coverage)


def stored_scan(connection: Connection, scan_id: str, dead: Sequence[Abandoned]) -> StoredScan:
    """A finished scan, by its id. Raises UsageError for an unknown id, a scan that still runs, and a pruned scan."""
    wanted = select(*(SCANS.c[name] for name in StoredScan._fields)).where(SCANS.c.id == scan_id)
    row = connection.execute(wanted).one_or_none()
    if row is None:
        raise UsageError(f"There is no scan {scan_id} in this database. `assay scans` lists all scans.")
    stored = StoredScan(*row)
    if stored.pruned_at is not None:
        raise UsageError(
            f"Scan {scan_id} was pruned on {stored.pruned_at:%Y-%m-%d} and has no report any more. "
            "`assay scans` shows which scans have one."
        )
    if stored.state == ScanState.RUNNING.value and stored.number not in {scan.number for scan in dead}:
        raise UsageError(f"Scan {scan_id} is still running. Only a finished scan has a report.")
    return stored


def _scan(connection: Connection, chosen: Any) -> Scan:
    return scan_of(connection.execute(select_scans().where(chosen)).one())


def _previous(connection: Connection, stored: StoredScan) -> Scan | None:
    """The previous scan in the cluster's history; for a failed scan, the newest one when it began."""
    revision = stored.base if stored.revision is None else stored.revision - 1
    if not revision:
        return None
    return _scan(connection, (SCANS.c.cluster == stored.cluster) & (SCANS.c.revision == revision))


def _policies(connection: Connection, owners: Owners, matched: str) -> tuple[PolicyRecord, ...]:
    bindings = _bindings(connection, owners.bindings)
    counts = chain(orjson.loads(matched or "[]"), repeat(0))
    used = SCAN_POLICIES.c
    wanted = (
        select(POLICIES.c.document, used.reading)
        .join(POLICIES)
        .where(used.scan == owners.policies)
        .order_by(used.position)
    )
    return tuple(
        _policy(codec.from_text(Policy, document), count, bindings, _reading(read))
        for (document, read), count in zip(connection.execute(wanted), counts, strict=False)
    )


def _reading(text: str) -> Reading:
    return codec.from_text(Reading, text) if text else UNKNOWN


def _bindings(connection: Connection, number: int) -> tuple[Binding, ...]:
    used = SCAN_BINDINGS.c
    wanted = select(BINDINGS.c.document).join(SCAN_BINDINGS).where(used.scan == number).order_by(used.position)
    return tuple(codec.from_text(Binding, document) for document in connection.execute(wanted).scalars())


def _policy(policy: Policy, matched: int, bindings: tuple[Binding, ...], reading: Reading) -> PolicyRecord:
    own = tuple(item for item in bindings if item.policy_key == policy.key)
    actions = {action for binding in own for action in binding.actions}
    return PolicyRecord(policy, own, matched, tuple(action for action in _ACTIONS if action in actions), reading)


def _streaming(
    engine: Engine,
    address: Address,
    stored: StoredScan,
    read: Callable[[Connection, StoredScan, int], Iterator[_Read]],
) -> Callable[[], Iterator[_Read]]:
    """A stream of findings with a connection of its own. A failed scan has no findings: it is not in history."""

    def stream() -> Iterator[_Read]:
        if stored.revision is None:
            return
        with as_store_error(address), engine.connect() as connection:
            yield from read(connection, stored, stored.revision)

    return stream


def _seen(connection: Connection, stored: StoredScan, revision: int) -> Iterator[StoredFinding]:
    return seen_by(connection, stored.cluster, revision, _unchecked(connection, stored))


def _by_problem(connection: Connection, stored: StoredScan, revision: int) -> Iterator[ProblemFinding]:
    return by_problem(connection, stored.cluster, revision, _unchecked(connection, stored))


def _by_problem_of(
    engine: Engine, address: Address, stored: StoredScan
) -> Callable[[frozenset[PolicyKey]], Iterator[ProblemFinding]]:
    """The findings of some policies by problem, over a connection of its own."""

    def of_policies(policies: frozenset[PolicyKey]) -> Iterator[ProblemFinding]:
        def read(connection: Connection, scan: StoredScan, revision: int) -> Iterator[ProblemFinding]:
            unchecked = _unchecked(connection, scan)
            chosen = CHECKS.c.policy.in_(sorted({name for _, name in policies}))
            for each in by_problem(connection, scan.cluster, revision, unchecked, chosen):
                if each.stored.finding.policy_key in policies:
                    yield each

        return _streaming(engine, address, stored, read)()

    return of_policies


def _indexed(engine: Engine, address: Address, stored: StoredScan) -> Callable[[OwnerOf], FindingIndex]:
    """The findings without their texts, over a connection of its own."""

    def with_owners(owner_of: OwnerOf) -> FindingIndex:
        if stored.revision is None:
            return FindingIndex()
        with as_store_error(address), engine.connect() as connection:
            return indexed(connection, stored.cluster, stored.revision, _unchecked(connection, stored), owner_of)

    return with_owners


def _of_rows(
    engine: Engine, address: Address, stored: StoredScan
) -> Callable[[Sequence[int]], Iterator[tuple[int, ProblemFinding]]]:
    """The findings of some rows, over a connection of its own. What is the same for all rows is read once."""
    common: list[tuple[RowIdSet, Times]] = []

    def chosen(rows: Sequence[int]) -> Iterator[tuple[int, ProblemFinding]]:
        def read(connection: Connection, scan: StoredScan, revision: int) -> Iterator[tuple[int, ProblemFinding]]:
            if not common:
                common.append((_unchecked(connection, scan), times_of(connection, scan.cluster)))
            unchecked, times = common[0]
            return of_rows(connection, scan.cluster, revision, unchecked, rows, times)

        return _streaming(engine, address, stored, read)()

    return chosen


def _waivable(engine: Engine, address: Address, stored: StoredScan) -> Callable[[Near], Iterator[Candidate]]:
    """The open findings to which waivers may apply, over a connection of its own."""

    def near_waivers(near: Near) -> Iterator[Candidate]:
        def read(connection: Connection, scan: StoredScan, revision: int) -> Iterator[Candidate]:
            return candidates(connection, scan.cluster, revision, _unchecked(connection, scan), near)

        return _streaming(engine, address, stored, read)()

    return near_waivers


def _waived_checks(connection: Connection, stored: StoredScan, revision: int) -> Iterator[WaivedCheck]:
    yield from waived_checks(connection, stored.cluster, revision)


def _open_of_problems(
    engine: Engine, address: Address, stored: StoredScan
) -> Callable[[frozenset[int]], Mapping[int, int]]:
    """The numbers of the open findings of problems, over a connection of its own."""

    def of_problems(problems: frozenset[int]) -> Mapping[int, int]:
        def read(connection: Connection, scan: StoredScan, revision: int) -> Iterator[tuple[int, int]]:
            place = Place(scan.cluster, revision, _unchecked(connection, scan))
            yield from open_findings(connection, place, problems).items()

        return dict(_streaming(engine, address, stored, read)())

    return of_problems


def _problem_totals(engine: Engine, address: Address, stored: StoredScan) -> ProblemQuery:
    """Counts the problems, over a connection of its own. A failed scan has none."""

    def totals(
        ranks: Mapping[PolicyKey, int], waived: frozenset[int], most: int
    ) -> tuple[ProblemTotals, tuple[ProblemFinding, ...]]:
        if stored.revision is None:
            return ProblemTotals(), ()
        with as_store_error(address), engine.connect() as connection:
            place = Place(stored.cluster, stored.revision, _unchecked(connection, stored))
            return problem_totals(connection, place, ranks, waived, most)

    return totals


def _problem_groups(
    engine: Engine, address: Address, stored: StoredScan
) -> Callable[[frozenset[int]], tuple[ProblemGroup, ...]]:
    """Counts the open problems, over a connection of its own. A failed scan has none."""

    def groups(waived: frozenset[int]) -> tuple[ProblemGroup, ...]:
        if stored.revision is None:
            return ()
        with as_store_error(address), engine.connect() as connection:
            place = Place(stored.cluster, stored.revision, _unchecked(connection, stored))
            return problem_groups(connection, place, waived)

    return groups


def _problems_by_namespace(
    engine: Engine, address: Address, stored: StoredScan
) -> Callable[[frozenset[int]], GroupedProblems]:
    """Counts the open problems, over a connection of its own. A failed scan has none."""

    def by_namespace(waived: frozenset[int]) -> GroupedProblems:
        if stored.revision is None:
            return GroupedProblems()
        with as_store_error(address), engine.connect() as connection:
            place = Place(stored.cluster, stored.revision, _unchecked(connection, stored))
            return problems_by_namespace(connection, place, waived)

    return by_namespace


def _problems_by_owner(
    engine: Engine, address: Address, stored: StoredScan
) -> Callable[[OwnerOf, frozenset[int]], GroupedProblems]:
    """Counts the open problems, over a connection of its own. A failed scan has none."""

    def by_owner(owner_of: OwnerOf, waived: frozenset[int]) -> GroupedProblems:
        if stored.revision is None:
            return GroupedProblems()
        with as_store_error(address), engine.connect() as connection:
            place = Place(stored.cluster, stored.revision, _unchecked(connection, stored))
            return problems_by_owner(connection, place, owner_of, waived)

    return by_owner


def _last_day(scan: Scan) -> date:
    """The day of UTC on which a scan ended, or began."""
    return (scan.finished_at or scan.started_at).astimezone(UTC).date()


def _policy_days(
    engine: Engine, address: Address, stored: StoredScan, until: date
) -> Callable[[PolicyKey | None], PolicyDays]:
    """Counts the failing checks of one policy or of all by day, over a connection of its own."""

    def policy_days(policy: PolicyKey | None) -> PolicyDays:
        with as_store_error(address), engine.connect() as connection:
            return policy_days_of(connection, stored.cluster, until, policy)

    return policy_days


def _places(engine: Engine, address: Address, stored: StoredScan) -> Callable[[], Places | None]:
    """The places of the objects, over a connection of its own."""

    def places() -> Places | None:
        with as_store_error(address), engine.connect() as connection:
            return read_places(connection, stored.number)

    return places


def _register(engine: Engine, address: Address, stored: StoredScan, until: date) -> Callable[[], Register]:
    """Counts the scans of the cluster, over a connection of its own."""

    def register() -> Register:
        with as_store_error(address), engine.connect() as connection:
            return register_of(connection, stored.cluster, stored.number, until)

    return register


def _excepted(connection: Connection, stored: StoredScan, revision: int) -> Iterator[tuple[str, int]]:
    yield from excepted(connection, stored.cluster, revision).items()


def _by_object(connection: Connection, stored: StoredScan, revision: int) -> Iterator[tuple[int, int]]:
    yield from findings_by_object(connection, stored.cluster, revision, _unchecked(connection, stored)).items()


def _unchecked(connection: Connection, stored: StoredScan) -> RowIdSet:
    data = connection.execute(select(UNCHECKED.c.findings).where(UNCHECKED.c.scan == stored.number)).scalar()
    return unpacked(data)


def _census(engine: Engine, address: Address, stored: StoredScan) -> Callable[[], Census]:
    """Counts the findings, once. A failed scan has none."""

    @cache
    def census() -> Census:
        if stored.revision is None:
            return {}
        with as_store_error(address), engine.connect() as connection:
            return census_of_seen(connection, stored.cluster, stored.revision, _unchecked(connection, stored))

    return census


def _census_by(engine: Engine, address: Address, stored: StoredScan) -> Callable[[OwnerOf], Iterator[OwnedCensus]]:
    """Counts the findings by owner, as a stream."""

    def stream(owner_of: OwnerOf) -> Iterator[OwnedCensus]:
        def read(connection: Connection, scan: StoredScan, revision: int) -> Iterator[OwnedCensus]:
            return owned_census(connection, scan.cluster, revision, _unchecked(connection, scan), owner_of)

        return _streaming(engine, address, stored, read)()

    return stream


def _tallies_by(engine: Engine, address: Address, stored: StoredScan) -> Callable[[OwnerOf], Iterator[OwnedTally]]:
    """Counts the outcomes by owner, as a stream."""

    def stream(owner_of: OwnerOf) -> Iterator[OwnedTally]:
        def read(connection: Connection, scan: StoredScan, revision: int) -> Iterator[OwnedTally]:
            unchecked = _unchecked(connection, scan)
            return tallies_by(connection, scan.cluster, scan.number, revision, unchecked, owner_of)

        return _streaming(engine, address, stored, read)()

    return stream


def _resolved_total(connection: Connection, stored: StoredScan) -> int:
    return 0 if stored.revision is None else number_of_resolved(connection, stored.cluster, stored.revision)


def _resolutions(engine: Engine, address: Address, stored: StoredScan) -> Callable[[], Mapping[str, int]]:
    """Counts the resolved findings by reason, over a connection of its own. A failed scan has none."""

    def resolutions() -> Mapping[str, int]:
        if stored.revision is None:
            return {}
        with as_store_error(address), engine.connect() as connection:
            return resolutions_of(connection, stored.cluster, stored.revision)

    return resolutions


def _population(connection: Connection, stored: StoredScan, revision: int) -> Iterator[RecordedObject]:
    return population_of(connection, stored.cluster, stored.number, revision)


def _namespaces(connection: Connection, stored: StoredScan, revision: int) -> Iterator[str]:
    return namespaces_at(connection, stored.cluster, revision)


def _evaluated(connection: Connection, stored: StoredScan, _: int) -> Iterator[EvaluatedObjects]:
    return evaluated_objects(connection, stored.number)


def _resolved(connection: Connection, stored: StoredScan, revision: int) -> Iterator[StoredFinding]:
    return resolved_by(connection, stored.cluster, revision)
