"""Compares two stored scans: reads the findings that differ, problem by problem, and what changed besides objects.

The database sorts the findings, so memory holds those of one problem, and four bytes for the row of each listed finding.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, groupby
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, Engine, Select, exists, func, select

from scanner.errors import UsageError
from scanner.model.json import JsonObject, as_object, dig
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Binding, BindingKey, Policy, PolicyKey
from scanner.model.population import Workload
from scanner.model.resource import api_group_of
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.cause import CauseKind
from scanner.model.scans.census import OwnerOf
from scanner.model.scans.method import Method
from scanner.model.scans.scan import CoverageState, Scope
from scanner.posture.history.causes import CircumstanceChanges
from scanner.posture.history.scan_diff import (
    ComparedFinding,
    DifferingProblem,
    DiffPeriod,
    Effect,
    FindingChange,
    Kinds,
    ProblemChange,
    ProblemDifference,
    ProblemState,
    RuleDifference,
    RuleKind,
    ScanDiff,
    compare_problem,
    state_of,
)
from scanner.posture.problem_ids import problem_id
from scanner.store.catalog.scans import (
    find_abandoned_scans,
    find_incomparable_parts,
    find_newest_comparable,
    find_newest_pair,
    scan_of,
    select_scans,
)
from scanner.store.database.address import Address
from scanner.store.database.engine import is_among, select_numbers
from scanner.store.database.store_errors import as_store_error
from scanner.store.history.causes import (
    EarlierScan,
    FindingPlace,
    find_change_kinds,
    find_end_kinds,
    locate_finding,
    read_circumstances,
)
from scanner.store.history.resolution import Resolution, UnseenFinding, compute_listing_reach
from scanner.store.history.sightings import read_unchecked
from scanner.store.read.findings import MOVED, SHORT, Times, read_scan_ends, read_verdicts
from scanner.store.read.kept_labels import KeptLabels, read_object_owners
from scanner.store.read.recorded_objects import read_workloads
from scanner.store.read.stored_scan import ScanRow, read_scan_row
from scanner.store.rows import codec
from scanner.store.rows.columns import CheckColumns, VerdictColumns, columns_of
from scanner.store.rows.gap_lists import read_gaps
from scanner.store.rows.interning import CHUNK, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.shared_rows import read_owners
from scanner.store.rows.tables import (
    BINDINGS,
    CHECKS,
    COVERAGE,
    FINDINGS,
    KINDS,
    OBJECTS,
    POLICIES,
    POPULATION,
    SCAN_BINDINGS,
    SCAN_POLICIES,
    SCANS,
    SINGLE_SCAN_EVENTS,
)

_LATEST: Final = FINDINGS.alias()
_OF_LATEST: Final = (
    select(func.coalesce(_LATEST.c.problem, -_LATEST.c.id))
    .where(_LATEST.c.fingerprint == FINDINGS.c.fingerprint, _LATEST.c.cluster == FINDINGS.c.cluster)
    .where(_LATEST.c.superseded.is_(None))
    .correlate(FINDINGS)
    .scalar_subquery()
)
_PROBLEM: Final = func.coalesce(FINDINGS.c.problem, _OF_LATEST, -FINDINGS.c.id)
"""The problem of a row. That of a row of an older version is the problem of the finding's latest row, or the finding itself."""


def find_newest_scans_to_compare(connection: Connection, cluster: int, name: str) -> tuple[str, str]:
    """The ids of the two newest comparable scans of a cluster, complete or not. Raises UsageError without two."""
    pair = find_newest_pair(connection, cluster)
    if pair is None:
        raise UsageError(
            f"No two scans of {name} are comparable: these have the same scope, operation, requester and options, and none is a "
            "preview. "
            "Name two scans to compare them anyway. `assay scans` lists all scans."
        )
    earlier, later = (_find_id(connection, cluster, revision) for revision in pair)
    return earlier, later


def find_earlier_scan_to_compare(connection: Connection, scan_id: str, now: datetime) -> str:
    """The id of the newest earlier scan that is comparable with a scan and has a report. Raises UsageError without one."""
    scan = _read_merged_scan(connection, scan_id, now)
    earlier = find_newest_comparable(connection, scan.number, scan.revision or 0, with_report=True)
    if earlier is None:
        raise UsageError(
            f"No scan before {scan_id} is comparable with it: such a scan has the same scope, operation, requester and options, "
            "and is no preview. "
            "Name a second scan to compare these two anyway. `assay scans` lists all scans."
        )
    return _find_id(connection, scan.cluster, earlier)


def find_scan_before(connection: Connection, scan_id: str, days: int, now: datetime) -> str | None:
    """The id of the newest scan that is comparable with a scan, has a report, and ended so many days before it, or earlier.

    None if there is no such scan; with 0 days, of all scans before it.
    """
    scan = _read_merged_scan(connection, scan_id, now)
    ended = connection.execute(select(SCANS.c.finished_at).where(SCANS.c.number == scan.number)).scalar_one()
    latest = ended - timedelta(days=days) if days else None
    earlier = find_newest_comparable(connection, scan.number, scan.revision or 0, with_report=True, ended_by=latest)
    return None if earlier is None else _find_id(connection, scan.cluster, earlier)


def compare_scans(
    engine: Engine, address: Address, before_id: str, now_id: str, now: datetime, owner_of: OwnerOf | None
) -> ScanDiff:
    """The difference of two scans, by their full ids, the earlier one first; `now` decides which running scans are dead.

    A problem has the owner of its first object.

    Raises UsageError for scans of two clusters, for scans without findings or without a report, and for the wrong order.
    """
    with engine.connect() as connection:
        before, later = (_read_merged_scan(connection, scan_id, now) for scan_id in (before_id, now_id))
        _reject_pair(before, later, before_id, now_id)
        reading = _ComparedSides.read(connection, before, later, owner_of)
        comparison = reading.explanation.earlier.comparison
        index = _index_problems(connection, reading)
        scans = [
            scan_of(connection.execute(select_scans().where(SCANS.c.id == scan_id)).one())
            for scan_id in (before_id, now_id)
        ]

        def list_problems_of(kind: CauseKind, limit: int | None) -> Iterator[DifferingProblem]:
            with as_store_error(address), engine.connect() as separate:
                yield from _list_problems(separate, reading, index, kind, limit)

        return ScanDiff(
            before=scans[0],
            now=scans[1],
            methods=(_decode_method(before), _decode_method(later)),
            incomparable=find_incomparable_parts(connection, before.number, later.number),
            rules_changed=comparison.kinds,
            rules=tuple(find_rule_differences(connection, before.number, later.number, comparison)),
            problems=index.problems,
            findings=index.findings,
            unchecked=later.unchecked,
            list_problems=list_problems_of,
            gaps=(_read_gaps(connection, before.number), _read_gaps(connection, later.number)),
        )


def _read_merged_scan(connection: Connection, scan_id: str, now: datetime) -> ScanRow:
    """A scan in history. Raises UsageError as a report does, and for a failed scan."""
    scan = read_scan_row(connection, scan_id, find_abandoned_scans(connection, now))
    if scan.revision is None:
        raise UsageError(f"Scan {scan_id} failed and has no findings to compare. `assay scans` lists all scans.")
    return scan


def _reject_pair(before: ScanRow, now: ScanRow, before_id: str, now_id: str) -> None:
    if before.cluster != now.cluster:
        raise UsageError(
            f"Scans {before_id} and {now_id} are of different clusters: only scans of one cluster are compared"
        )
    if before_id == now_id:
        raise UsageError(f"Scan {now_id} is named twice: name two scans, such as last~1 and last")
    if (before.revision or 0) > (now.revision or 0):
        raise UsageError(
            f"Scan {before_id} is newer than {now_id}: name the earlier one first: assay diff {now_id} {before_id}"
        )


def _decode_method(scan: ScanRow) -> Method:
    return codec.from_text(Method, scan.method) if scan.method else Method()


def _find_id(connection: Connection, cluster: int, revision: int) -> str:
    at = SCANS.c.cluster == cluster, SCANS.c.revision == revision
    return str(connection.execute(select(SCANS.c.id).where(*at)).scalar_one())


class _ComparedRow(NamedTuple):
    """A finding of a problem, with what its cause and its text need.

    `deleted` tells that its object existed in the earlier scan only, `there` that the object existed after the row ended.
    """

    problem: int
    finding: ComparedFinding
    place: FindingPlace
    check: CheckColumns
    deleted: bool
    there: bool
    verdict: VerdictColumns


class _Explanation:
    """The changes of a finding between two scans; the rows of the present problem are known by their numbers."""

    def __init__(self, earlier: EarlierScan) -> None:
        self.earlier = earlier
        self._rows: dict[int, _ComparedRow] = {}

    def use(self, rows: Iterable[_ComparedRow]) -> None:
        """Take the rows of a problem."""
        self._rows = {row.finding.number: row for row in rows}

    def explain_appearance(self, finding: ComparedFinding) -> Kinds:
        return frozenset(self.earlier.changes(self._rows[finding.number].place))

    def explain_end(self, before: ComparedFinding, end: ComparedFinding) -> Kinds:
        row = self._rows[before.number]
        resolution = Resolution(end.resolution) if end.resolution else None
        # An object that another one of its workload replaced was fixed with its workload.
        replaced = resolution is Resolution.FIXED and not self._rows[end.number].there
        return find_end_kinds(self._comparison, row.place.coordinates, resolution, deleted=row.deleted and not replaced)

    def explain_change(self, before: ComparedFinding, now: ComparedFinding) -> Kinds:
        coordinates = self._rows[now.number].place.coordinates
        if before.object_id != now.object_id:
            texts = self._comparison.list_changes(coordinates) if before.effect != now.effect else ()
            return self.explain_appearance(now).union(texts)
        object_changed = before.resource_version != now.resource_version
        return find_change_kinds(self._comparison, coordinates, object_changed=object_changed)

    @property
    def _comparison(self) -> CircumstanceChanges:
        return self.earlier.comparison


@dataclass(frozen=True, slots=True)
class _ComparedSides:
    """The sides of a comparison: a cluster, the revisions of both scans, and the findings that each of them left unchecked.

    `in_scope` tells whether a finding is in the scope of the later scan. `moved` are the fingerprints of the findings that moved to
    another problem between the scans, and are open in the later one.
    """

    cluster: int
    period: DiffPeriod
    unchecked_before: RowIdSet
    unchecked: RowIdSet
    in_scope: Callable[[UnseenFinding], bool]
    explanation: _Explanation
    times: Times
    owner_of: OwnerOf | None
    moved: frozenset[bytes] = frozenset()

    @classmethod
    def read(cls, connection: Connection, before: ScanRow, now: ScanRow, owner_of: OwnerOf | None) -> _ComparedSides:
        """Read what both passes need."""
        earlier = EarlierScan(connection, before.number, read_circumstances(connection, now.number))
        period = DiffPeriod(before.revision or 0, now.revision or 0)
        times = read_scan_ends(connection, now.cluster)
        return cls(
            cluster=now.cluster,
            period=period,
            unchecked_before=read_unchecked(connection, before.number),
            unchecked=read_unchecked(connection, now.number),
            in_scope=_make_scope_test(connection, now.number),
            explanation=_Explanation(earlier),
            times=times,
            owner_of=owner_of,
            moved=_find_moved(connection, now.cluster, period),
        )

    def compare(self, rows: Sequence[_ComparedRow]) -> ProblemDifference:
        """Compare the findings of one problem."""
        self.explanation.use(rows)
        return compare_problem([row.finding for row in rows], self.period, self.explanation)


def _find_moved(connection: Connection, cluster: int, period: DiffPeriod) -> frozenset[bytes]:
    finding, later = FINDINGS.c, FINDINGS.alias("later").c
    ended = (
        finding.cluster == cluster,
        finding.until > period.before,
        finding.until <= period.now,
        finding.resolution == MOVED,
    )
    still_open = later.cluster == cluster, later.since <= period.now, later.until > period.now
    moved = select(finding.fingerprint).where(*ended)
    open_moved = connection.execute(
        select(later.fingerprint).where(*still_open, later.fingerprint.in_(moved))
    ).scalars()
    return frozenset(map(bytes, open_moved))


def _read_gaps(connection: Connection, number: int) -> tuple[Gap, ...]:
    return tuple(Gap(GapKind(kind), where, why) for _, kind, where, why in read_gaps(connection, number))


def _make_scope_test(connection: Connection, number: int) -> Callable[[UnseenFinding], bool]:
    """Return whether a finding is in the scope of a scan, however much of its scope the scan could list."""
    coverage = COVERAGE.c
    scope = codec.from_text(
        Scope, connection.execute(select(SCANS.c.scope).where(SCANS.c.number == number)).scalar_one()
    )
    wanted = select(coverage.api_version, coverage.kind).where(
        coverage.scan == number, coverage.state != CoverageState.SKIPPED.value
    )
    kinds = frozenset((api_group_of(row.api_version), row.kind) for row in connection.execute(wanted))
    some = bool(scope.kinds or scope.skip_kinds)
    reach = compute_listing_reach(scope, (), ())
    return lambda finding: (
        reach.selects(finding) and (not some or (api_group_of(finding.api_version), finding.kind) in kinds)
    )


class _ListedProblems:
    """The problems of one cause with one change: the ids of their rows, and how many rows each has."""

    def __init__(self) -> None:
        self.rows = array("I")
        self.sizes = array("I")

    def add(self, rows: Sequence[_ComparedRow]) -> None:
        """Add a problem."""
        self.rows.extend(row.finding.number for row in rows)
        self.sizes.append(len(rows))

    def split_portions(self, limit: int | None) -> Iterator[list[array[int]]]:
        """The ids of the rows of each problem, for some problems at a time."""
        portion: list[array[int]] = []
        start = held = 0
        for size in self.sizes[:limit]:
            portion.append(self.rows[start : start + size])
            start, held = start + size, held + size
            if held >= CHUNK:
                yield portion
                portion, held = [], 0
        if portion:
            yield portion


@dataclass(frozen=True, slots=True)
class _Index:
    """The numbers of differences by cause, and the listed problems."""

    problems: Counter[tuple[CauseKind, ProblemChange]]
    findings: Counter[tuple[CauseKind, FindingChange]]
    listed: defaultdict[tuple[CauseKind, ProblemChange], _ListedProblems]


def _index_problems(connection: Connection, reading: _ComparedSides) -> _Index:
    """Compare all problems of which a finding differs."""
    index = _Index(Counter(), Counter(), defaultdict(_ListedProblems))
    for rows in _read_problems(connection, reading):
        difference = reading.compare(rows)
        index.findings.update((cause.kind, change) for change, cause in difference.findings)
        if difference.change is not None:
            key = difference.cause.kind, difference.change
            index.problems[key] += 1
            index.listed[key].add(rows)
    return index


def _list_problems(
    connection: Connection, reading: _ComparedSides, index: _Index, kind: CauseKind, limit: int | None
) -> Iterator[DifferingProblem]:
    """The first problems of a cause: those of each change in the order of policies and objects."""
    left = limit
    for change in ProblemChange:
        listed = index.listed.get((kind, change))
        if listed is None or left == 0:
            continue
        for portion in listed.split_portions(left):
            yield from _build_problems(connection, reading, portion)
        left = None if left is None else left - min(left, len(listed.sizes))


def _build_problems(
    connection: Connection, reading: _ComparedSides, problems: Sequence[array[int]]
) -> Iterator[DifferingProblem]:
    read = {row.finding.number: row for row in _read_rows(connection, reading, list(chain.from_iterable(problems)))}
    differing = []
    for numbers in problems:
        rows = [read[number] for number in numbers]
        differing.append((rows, reading.compare(rows)))
    places = _read_places(connection, reading, [difference for _, difference in differing])
    for rows, difference in differing:
        yield _build_problem(rows, difference, reading.times, places)


class _ObjectPlaces(NamedTuple):
    """The workloads and the owners of objects, by their ids."""

    workloads: dict[int, Workload | None]
    owners: dict[int, str]


def _read_places(
    connection: Connection, reading: _ComparedSides, differences: Sequence[ProblemDifference]
) -> _ObjectPlaces:
    """The places of the first objects of problems: of resolved ones at the earlier scan, of others at the later one."""
    places = _ObjectPlaces({}, {})
    for revision, resolved in ((reading.period.before, True), (reading.period.now, False)):
        chosen = [each for each in differences if (each.change is ProblemChange.RESOLVED) is resolved]
        ids = [_first_finding(each).object_id for each in chosen]
        places.workloads.update(read_workloads(connection, ids, revision))
        if reading.owner_of is not None:
            labels = KeptLabels(connection, reading.cluster, revision, reading.owner_of.names)
            places.owners.update(read_object_owners(labels, reading.owner_of, ids))
    return places


def _first_finding(difference: ProblemDifference) -> ComparedFinding:
    return (difference.now or difference.before)[0]


def _build_problem(
    rows: Sequence[_ComparedRow], difference: ProblemDifference, times: Times, places: _ObjectPlaces
) -> DifferingProblem:
    by_number = {row.finding.number: row for row in rows}
    row = by_number[_first_finding(difference).number]
    place, check = row.place, row.check
    itself = Workload(place.api_version, place.kind, place.coordinates.namespace, place.name)
    before, now = _choose_messages(difference)
    was_checked = sum(not each.unchecked_before for each in difference.before)
    is_checked = sum(not each.unchecked for each in difference.now)
    assert difference.change is not None  # noqa: S101 - only such problems are listed
    return DifferingProblem(
        id=problem_id(row.problem) if row.problem >= 0 else row.finding.fingerprint.hex()[:SHORT],
        change=difference.change,
        cause=difference.cause,
        language=check.language,
        policy=check.policy,
        check=check.make_check(),
        workload=places.workloads.get(place.object_id) or itself,
        first_seen=times[min(each.finding.problem_first for each in rows)],
        resolved_at=times[difference.end] if difference.end else None,
        resolution=difference.resolution,
        parts=difference.parts,
        before=_build_state(difference.before, by_number, before, checked=was_checked),
        now=_build_state(difference.now, by_number, now, checked=is_checked, unchecked=difference.unchecked),
        owner=places.owners.get(place.object_id, ""),
        moved_to=difference.moved_to,
    )


def _choose_messages(difference: ProblemDifference) -> tuple[ComparedFinding | None, ComparedFinding | None]:
    """The findings whose messages stand for the problem in both scans: if there are, those with another message."""
    before, now = difference.before, difference.now
    return _choose_message(before, now), _choose_message(now, before)


def _choose_message(findings: Sequence[ComparedFinding], others: Sequence[ComparedFinding]) -> ComparedFinding | None:
    messages = {each.effect.message for each in others}
    return next((each for each in findings if each.effect.message not in messages), findings[0] if findings else None)


def _build_state(
    findings: Sequence[ComparedFinding],
    rows: dict[int, _ComparedRow],
    shown: ComparedFinding | None,
    *,
    checked: int,
    unchecked: int | None = None,
) -> ProblemState | None:
    """The state of a problem with the numbers of its findings that the scan checked and did not. None if it was not open."""
    if shown is None:
        return None
    row = rows[shown.number]
    message = row.verdict.make_verdict_on(row.place.name, row.place.coordinates.namespace).outcome.message
    left = len(findings) - checked if unchecked is None else unchecked
    return replace(state_of(findings), message=message, findings=checked, unchecked=left)


def _read_problems(connection: Connection, reading: _ComparedSides) -> Iterator[list[_ComparedRow]]:
    """The rows of each problem of which a row begins or ends between the scans, or was not checked, ordered by policy and object."""
    finding = FINDINGS.c
    before, now = reading.period
    reaching = (
        finding.cluster == reading.cluster,
        finding.until > before,
        finding.since <= now,
        finding.event.not_in(SINGLE_SCAN_EVENTS),
    )
    differs = (finding.since > before) | (finding.until <= now)
    if reading.unchecked.count:
        differs |= finding.id.in_(select_numbers(connection, reading.unchecked))
    differing = select(_PROBLEM).where(*reaching, differs)
    names = (func.min(column).over(partition_by=_PROBLEM) for column in (OBJECTS.c.namespace, OBJECTS.c.name))
    ordered = (
        _select_rows(reading)
        .where(*reaching, _PROBLEM.in_(differing))
        .order_by(
            CHECKS.c.policy,
            CHECKS.c.language,
            *names,
            _PROBLEM,
            finding.since,
            finding.id,
        )
        .execution_options(yield_per=CHUNK)
    )
    with connection.execute(ordered) as result:
        rows = (row for portion in result.partitions() for row in _build_rows(connection, reading, portion))
        for _, group in groupby(rows, key=_number_of_problem):
            yield list(group)


def _number_of_problem(row: _ComparedRow) -> int:
    return row.problem


def _read_rows(connection: Connection, reading: _ComparedSides, numbers: Sequence[int]) -> Iterator[_ComparedRow]:
    for portion in chunks(numbers):
        rows = connection.execute(_select_rows(reading).where(is_among(connection, FINDINGS.c.id, portion))).all()
        yield from _build_rows(connection, reading, rows)


def _select_rows(reading: _ComparedSides) -> Select[Any]:
    """The query of the rows for `_build_rows`, in no order."""
    finding, of_object = FINDINGS.c, OBJECTS.c
    history = (
        finding.id,
        finding.fingerprint,
        finding.continues,
        finding.since,
        finding.until,
        finding.first,
        finding.opened,
        finding.moved_to,
    )
    return (
        select(_PROBLEM, *history, func.coalesce(finding.problem_first, finding.first), finding.resolution)
        .add_columns(finding.object, finding.resource_version, finding.verdict, finding.check)
        .add_columns(KINDS.c.api_version, KINDS.c.kind, of_object.namespace, of_object.name)
        .add_columns(_has_existed(reading.period.before), _has_existed(reading.period.now), _has_existed(finding.until))
        .add_columns(*columns_of(CHECKS, CheckColumns))
        .select_from(
            FINDINGS.join(CHECKS, CHECKS.c.id == finding.check)
            .join(KINDS, KINDS.c.id == finding.kind)
            .join(OBJECTS, of_object.id == finding.object)
        )
    )


def _has_existed(revision: int | ColumnElement[int]) -> ColumnElement[bool]:
    """The condition that the object of a finding is in the population at a revision."""
    interval = POPULATION.c
    of_object = interval.object == FINDINGS.c.object
    return exists().where(of_object, interval.since <= revision, interval.until > revision)


def _build_rows(
    connection: Connection, reading: _ComparedSides, portion: Sequence[Sequence[Any]]
) -> Iterator[_ComparedRow]:
    verdicts = read_verdicts(connection, {row[13] for row in portion})
    for row in portion:
        problem, *history, resolution, object_id, version, verdict_id, check_id = row[:15]
        api_version, kind, namespace, name, existed, exists_now, there = row[15:22]
        check, verdict = CheckColumns._make(row[22:]), verdicts[verdict_id]
        effect = Effect(verdict.outcome, verdict.message, verdict.actions, verdict.denies, verdict.excepted_by)
        number, fingerprint, continues, since, until, first, opened, moved_to, problem_first = history
        finding = ComparedFinding(
            number=number,
            fingerprint=bytes(fingerprint),
            continues=None if continues is None else bytes(continues),
            since=since,
            until=until,
            first=first,
            problem_first=problem_first,
            resolution=resolution,
            object_id=object_id,
            resource_version=version,
            effect=effect,
            unchecked=number in reading.unchecked,
            opened=opened,
            moved_to=problem_id(moved_to or 0) if resolution == MOVED else "",
            open_elsewhere=bytes(fingerprint) in reading.moved,
            missed=number in reading.unchecked
            and reading.in_scope(_build_unseen(check, api_version, kind, namespace, name)),
            unchecked_before=number in reading.unchecked_before,
        )
        invocation = check.language, check.policy, check.binding, check.param_namespace, check.param_name
        place = locate_finding(check_id, object_id, check.kind, (api_version, kind, namespace, name), invocation)
        yield _ComparedRow(problem, finding, place, check, bool(existed and not exists_now), bool(there), verdict)


def _build_unseen(check: CheckColumns, api_version: str, kind: str, namespace: str, name: str) -> UnseenFinding:
    invocation = check.language, check.policy, check.binding, check.param_namespace, check.param_name
    return UnseenFinding(*invocation, api_version, kind, namespace, name)


# Reads the text of the rules that differ between two scans: specs of policies and bindings, and redacted rule
# objects.

_KINDS: Final[Mapping[RuleType, RuleKind]] = {
    RuleType.PARAM: RuleKind.PARAM,
    RuleType.EXCEPTION: RuleKind.EXCEPTION,
    RuleType.GLOBAL_CONTEXT: RuleKind.GLOBAL_CONTEXT,
    RuleType.NAMESPACE_LABELS: RuleKind.NAMESPACE_LABELS,
    RuleType.CONFIGURATION: RuleKind.CONFIGURATION,
}
_Text: TypeAlias = JsonObject | None


def find_rule_differences(
    connection: Connection, before: int, now: int, comparison: CircumstanceChanges
) -> Iterator[RuleDifference]:
    """The rules that differ between two scans, by their numbers, in the order of their kinds and names."""
    earlier, later = (_read_policies(connection, scan, comparison.policies) for scan in (before, now))
    for policy in sorted(comparison.policies):
        yield RuleDifference(RuleKind.POLICY, *policy, earlier.get(policy), later.get(policy))
    was, is_now = (_read_bindings(connection, scan, comparison.bindings) for scan in (before, now))
    for binding in sorted(comparison.bindings):
        language, policy_name, name = binding
        yield RuleDifference(RuleKind.BINDING, language, f"{policy_name}/{name}", was.get(binding), is_now.get(binding))
    for difference in _compare_objects(comparison.before.rules, comparison.now.rules):
        # A label that was not recorded before, because nothing read it, does not differ.
        if difference.kind is not RuleKind.NAMESPACE_LABELS or difference.name in comparison.namespaces:
            yield difference


def _read_policies(connection: Connection, scan: int, keys: Collection[PolicyKey]) -> dict[PolicyKey, _Text]:
    used, columns = SCAN_POLICIES.c, POLICIES.c
    wanted = select(columns.document).join(SCAN_POLICIES).where(used.scan == read_owners(connection, scan).policies)
    specs: dict[PolicyKey, _Text] = {}
    for names in chunks(sorted({name for _, name in keys})):
        for document in connection.execute(wanted.where(is_among(connection, columns.name, names))).scalars():
            policy = codec.from_text(Policy, document)
            specs[policy.key] = _spec_of(policy.manifest)
    return specs


def _read_bindings(connection: Connection, scan: int, keys: Collection[BindingKey]) -> dict[BindingKey, _Text]:
    used, columns = SCAN_BINDINGS.c, BINDINGS.c
    wanted = select(columns.document).join(SCAN_BINDINGS).where(used.scan == read_owners(connection, scan).bindings)
    specs: dict[BindingKey, _Text] = {}
    for names in chunks(sorted({name for _, _, name in keys})):
        for document in connection.execute(wanted.where(is_among(connection, columns.name, names))).scalars():
            binding = codec.from_text(Binding, document)
            specs[binding.key] = _spec_of(binding.manifest)
    return specs


def _spec_of(manifest: JsonObject) -> JsonObject:
    return as_object(dig(manifest, "spec"))


def _compare_objects(before: Iterable[RuleObject], now: Iterable[RuleObject]) -> Iterator[RuleDifference]:
    earlier, later = ({(rule.type, rule.name): rule for rule in rules} for rules in (before, now))
    for kind in RuleType:
        names = {name for own, name in earlier.keys() | later.keys() if own is kind}
        for name in sorted(names):
            was, is_now = earlier.get((kind, name)), later.get((kind, name))
            if was is None or is_now is None or was.digest != is_now.digest:
                documents = (rule.document if rule else None for rule in (was, is_now))
                yield RuleDifference(_KINDS[kind], "", name, *documents)
