"""Ends the open findings that a scan would have found but did not: they continue in other findings, or are resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, case, func, select, update

from scanner.model.outcome import CheckKind, GapKind
from scanner.model.resource import api_group_of
from scanner.model.scans.scan import Scope
from scanner.posture.history.causes import CircumstanceChanges, Coordinates, coordinates_of
from scanner.posture.history.continuations import LocatedFinding, Pair, pair_continuations
from scanner.store.database.engine import is_among, select_numbers
from scanner.store.history.causes import Causes, select_located
from scanner.store.history.evaluated_sets import read_sets_of_scan
from scanner.store.history.later_scans import LaterScans
from scanner.store.history.merge import History, InsertedRows, ScanPosition
from scanner.store.history.population import IntervalInForce
from scanner.store.history.problem_clocks import end_moved_rows, record_fixes, set_clocks
from scanner.store.history.resolution import DecidingRules, MissingFindings, Reach, UnseenFinding, WorkloadState
from scanner.store.history.sightings import group_by_last_seen, read_merged_scans, select_open_findings
from scanner.store.history.staged_pages import StagedList
from scanner.store.history.workload_states import ListedWorkloads, WorkloadStates
from scanner.store.rows import codec
from scanner.store.rows.gap_lists import read_gaps
from scanner.store.rows.interning import CHUNK, Interner, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import (
    CHECKS,
    CONTINUED,
    FINDINGS,
    KINDS,
    OBJECTS,
    OPEN,
    POPULATION,
    SCANS,
)
from scanner.store.rows.tally_lists import read_tallied_checks

_AT_ONCE: Final = 50_000
"""The number of findings whose workloads are held in memory."""


class SimulatedRequest(NamedTuple):
    """The operation and the user (in the form of the store) of the requests that a scan simulated."""

    operation: str
    requester: str


@dataclass(frozen=True, slots=True)
class MergedLists:
    """The reach of a scan, the requests that it simulated, and the workloads that it listed.

    `later` are the scans that began after this one and were merged before it.
    """

    reach: Reach
    request: SimulatedRequest
    workloads: ListedWorkloads
    later: LaterScans


class Endings:
    """The end of the merge of one scan, after all its pages."""

    def __init__(self, connection: Connection, position: ScanPosition, history: History, causes: Causes) -> None:
        """The connection is in a transaction that writes history."""
        self._connection = connection
        self._position = position
        self._history = history
        self._causes = causes
        self._matched_objects: dict[tuple[str, ...], RowIdSet] = {}

    def write(self, merged: MergedLists) -> None:
        """Write what became of the findings that the scan did not find again, and the causes and clocks of those that it found.

        Findings that the scan would not have found are noted as unchecked.
        """
        inserted = self._history.inserted
        if merged.later:
            self._history.set_aside(list(self._find_overtaken(inserted, merged.later)))
        missing = self._find_missing(merged.reach)
        seen_at = self._group_by_last_seen(merged, missing)
        self._write_causes(inserted)
        self._write_changes(inserted)
        self._continue(seen_at, inserted)
        set_clocks(
            self._connection, self._position.cluster, inserted.appeared_rows + inserted.moved, self._position.revision
        )
        resolved = RowIdSet(number for numbers in seen_at.values() for number in numbers)
        states = WorkloadStates(self._connection, self._position.cluster, merged.workloads)
        for revision, numbers in seen_at.items():
            for start in range(0, len(numbers), _AT_ONCE):
                portion = numbers[start : start + _AT_ONCE]
                gone = list(missing.select_without_object(portion, merged.workloads.is_examined))
                self._resolve(missing, revision, portion, states.read_states(gone, resolved))
        if any(seen_at.values()):
            record_fixes(self._connection, self._position.cluster, self._position.revision)

    def _find_overtaken(self, inserted: InsertedRows, later: LaterScans) -> Iterator[int]:
        """The inserted rows that a later scan has overtaken: it listed the object later, and has no such finding, or the row before."""
        ended = [(0, inserted.new), *((key[0], numbers) for key, numbers in inserted.reopened.items())]
        for revision, numbers in ended:
            for portion in chunks(numbers):
                for number, place in self._causes.list_places(portion):
                    if later.overtook(place, revision):
                        yield number
        following = dict(zip(inserted.before, inserted.changed, strict=True))
        for portion in chunks(list(following)):
            wanted = select(FINDINGS.c.id, FINDINGS.c.since).where(is_among(self._connection, FINDINGS.c.id, portion))
            before = {following[row.id]: (row.id, row.since) for row in self._connection.execute(wanted)}
            for number, place in self._causes.list_places(list(before)):
                if later.saw(place, *before[number]):
                    yield number

    def _find_missing(self, reach: Reach) -> MissingFindings:
        """The open findings that this scan would have found but did not; the others are noted as unchecked."""
        position, sets = self._position, self._history.sets
        # A scan that was merged meanwhile may have seen objects that did not exist yet when this scan listed them.
        between = {"after": position.base, "before": position.revision}
        meanwhile = list(read_merged_scans(self._connection, position.cluster, **between))
        missing = MissingFindings()
        for number, since, check, object_id, finding in self._read_unseen():
            reached = reach.reaches(finding) and not sets.could_not_evaluate(check, object_id)
            if (reached or reach.unbinds(finding)) and not any(scan.saw(number, since) for scan in meanwhile):
                missing.add(number, object_id, check, finding.coordinates)
            else:
                self._history.unchecked.add(number)
        return missing

    def _group_by_last_seen(self, merged: MergedLists, missing: MissingFindings) -> dict[int, list[int]]:
        """The missing findings by the revision of the scan that last saw them, without those that this scan may not see."""
        position, unchecked = self._position, self._history.unchecked
        seen_at = group_by_last_seen(self._connection, position.cluster, missing.ids, before=position.revision)
        for revision, numbers in seen_at.items():
            for number in self._find_hidden(merged, missing, revision, numbers):
                unchecked.add(number)
        return {
            revision: [number for number in numbers if number not in unchecked] for revision, numbers in seen_at.items()
        }

    def _find_hidden(
        self, merged: MergedLists, missing: MissingFindings, revision: int, numbers: Sequence[int]
    ) -> Iterator[int]:
        """The findings last seen by the scan of a revision that may be missing for a reason of this scan."""
        if merged.reach.unread - self._read_unread_documents(revision):
            yield from numbers
            return
        yield from self._find_of_other_requests(revision, numbers, merged.request)
        comparison = self._causes.compare_since(revision)
        if comparison.before.sources != comparison.now.sources:
            yield from missing.select_rows(numbers, lambda finding: not self._is_bound(finding))

    def _is_bound(self, finding: Coordinates) -> bool:
        """Return whether the policy and the binding of a finding exist."""
        now = self._causes.circumstances
        return finding.policy_key in now.policies and finding.binding_key in now.bindings

    def _write_causes(self, inserted: InsertedRows) -> None:
        causes = self._causes
        if inserted.new:
            causes.attribute_new(inserted.new, causes.base)
        for (ended, end_cause), reopened in inserted.reopened.items():
            causes.attribute_reopened(reopened, ended, end_cause)

    def _write_changes(self, inserted: InsertedRows) -> None:
        """Write the causes of the findings that changed, and end the problems that some of them left."""
        if not inserted.changed:
            return
        following = dict(zip(inserted.before, inserted.changed, strict=True))
        seen_at = group_by_last_seen(
            self._connection, self._position.cluster, inserted.before, before=self._position.revision
        )
        for revision, numbers in seen_at.items():
            after = [following[number] for number in numbers]
            self._causes.attribute_changed(after, inserted.objects_changed, revision)
        left = RowIdSet(inserted.left)
        seen = {number: revision for revision, numbers in seen_at.items() for number in numbers if number in left}
        end_moved_rows(self._connection, zip(inserted.left, inserted.moved, strict=True), seen)

    def _continue(self, seen_at: dict[int, list[int]], inserted: InsertedRows) -> None:
        """Join findings that continue others, and take these from those to resolve."""
        revisions = {revision: RowIdSet(numbers) for revision, numbers in seen_at.items()}

        def compare_since(number: int) -> CircumstanceChanges:
            return self._causes.compare_since(next(revision for revision, rows in revisions.items() if number in rows))

        gone = [number for numbers in seen_at.values() for number in numbers]
        pairs = [
            (before.number, now.number)
            for before, now in find_continuations(self._connection, gone, inserted.appeared_rows, compare_since)
        ]
        join_rows(self._connection, pairs, self._position.revision)
        continued = RowIdSet(before for before, _ in pairs)
        for revision, numbers in seen_at.items():
            seen_at[revision] = [number for number in numbers if number not in continued]
        reopened = RowIdSet(number for numbers in inserted.reopened.values() for number in numbers)
        self._history.changes.new -= len(pairs)
        self._history.changes.reopened -= sum(now in reopened for _, now in pairs)

    def _resolve(
        self,
        missing: MissingFindings,
        revision: int,
        numbers: Sequence[int],
        workloads: Mapping[int, WorkloadState],
    ) -> None:
        """Resolve findings that the scan of a revision was the last to see; those that this scan cannot decide are unchecked."""
        comparison = self._causes.compare_since(revision)

        def find_rules(finding: Coordinates) -> DecidingRules:
            return DecidingRules(
                bound=self._is_bound(finding),
                invoked=comparison.invokes(finding),
                changed=bool(comparison.list_deciding(finding)),
                withheld=comparison.lacks_configuration(finding),
                failed=lambda: self._find_failed(finding),
                matched=lambda: self._find_matched(finding),
                cause=lambda resolution: self._causes.find_end_cause(finding, resolution, revision),
            )

        for reason, ids in missing.group_by_reason(
            numbers, workloads, find_rules, self._history.sets.find_evaluated
        ).items():
            if reason is None:
                for number in ids:
                    self._history.unchecked.add(number)
                continue
            resolution, cause = reason
            self._history.changes.resolved += len(ids)
            ended = {"until": self._position.revision, "last_seen": revision, "resolution": resolution.value}
            for portion in chunks(ids):
                chosen = is_among(self._connection, FINDINGS.c.id, portion)
                self._connection.execute(update(FINDINGS).where(chosen).values(**ended, end_cause=cause))

    def _find_matched(self, finding: Coordinates) -> RowIdSet:
        """The objects that this scan matched for the policy, binding and param of a finding."""
        return self._find_objects(finding, CheckKind)

    def _find_failed(self, finding: Coordinates) -> RowIdSet:
        """The objects for which the whole invocation of a finding has an error, which stands instead of its checks."""
        whole = [kind for kind in (CheckKind.CONDITIONS, CheckKind.CONFIGURATION) if kind is not finding.check]
        return self._find_objects(finding, whole)

    def _find_objects(self, finding: Coordinates, kinds: Iterable[CheckKind]) -> RowIdSet:
        """The objects that this scan matched for checks of some kinds of the invocation of a finding."""
        key = *finding.invocation, *kinds
        if key not in self._matched_objects:
            check = CHECKS.c
            place = check.language, check.policy, check.binding, check.param_namespace, check.param_name
            same = (column == text for column, text in zip(place, finding.invocation, strict=True))
            wanted = select(check.id).where(*same, check.kind.in_([kind.value for kind in kinds]))
            checks = frozenset(self._connection.execute(wanted).scalars())
            self._matched_objects[key] = self._history.sets.find_matched(checks)
        return self._matched_objects[key]

    def _find_of_other_requests(
        self, revision: int, numbers: Sequence[int], request: SimulatedRequest
    ) -> Sequence[int]:
        """The findings of a scan that may be missing now because this scan simulated another operation or user."""
        then = (SCANS.c.cluster == self._position.cluster) & (SCANS.c.revision == revision)
        number, scope, requester = self._connection.execute(
            select(SCANS.c.number, SCANS.c.scope, SCANS.c.requester).where(then)
        ).one()
        if codec.from_text(Scope, scope).operation != request.operation:
            return numbers
        return [] if requester == request.requester else self._find_depending_on_user(number, numbers)

    def _find_depending_on_user(self, scan: int, numbers: Sequence[int]) -> list[int]:
        """The findings whose outcome depended on the user of a scan's requests."""
        tallied = read_tallied_checks(self._connection, scan)
        checks = select_numbers(self._connection, sorted(check for check, depends in tallied.items() if depends))
        depending: list[int] = []
        for portion in chunks(numbers):
            chosen = is_among(self._connection, FINDINGS.c.id, portion) & FINDINGS.c.check.in_(checks)
            depending.extend(self._connection.execute(select(FINDINGS.c.id).where(chosen)).scalars())
        return depending

    def _read_unread_documents(self, revision: int) -> frozenset[str]:
        """The documents that the scan of a revision could not read."""
        of_revision = SCANS.c.cluster == self._position.cluster, SCANS.c.revision == revision
        scan = self._connection.execute(select(SCANS.c.number).where(*of_revision)).scalar() or 0
        gaps = read_gaps(self._connection, scan)
        return frozenset(gap.where for gap in gaps if gap.kind == GapKind.DOCUMENT.value)

    def _read_unseen(self) -> Iterator[tuple[int, int, int, int, UnseenFinding]]:
        """The open findings that this scan did not find: id, first revision, ids of check and object, and description."""
        still_open = select_open_findings(self._position.cluster)
        count = self._connection.execute(select(func.count()).select_from(still_open.subquery())).scalar_one()
        if count == self._history.seen_count:
            return
        numbers = self._connection.execute(still_open.execution_options(yield_per=CHUNK)).scalars()
        described = (
            select(FINDINGS.c.id, FINDINGS.c.since, FINDINGS.c.check, FINDINGS.c.object)
            .add_columns(CHECKS.c.language, CHECKS.c.policy, CHECKS.c.binding)
            .add_columns(CHECKS.c.param_namespace, CHECKS.c.param_name)
            .add_columns(KINDS.c.api_version, KINDS.c.kind, OBJECTS.c.namespace, OBJECTS.c.name)
            .add_columns(CHECKS.c.kind.label("check_kind"))
            .join(CHECKS, CHECKS.c.id == FINDINGS.c.check)
            .join(KINDS, KINDS.c.id == FINDINGS.c.kind)
            .join(OBJECTS, OBJECTS.c.id == FINDINGS.c.object)
        )
        for portion in chunks([number for number in numbers if not self._history.saw(number)]):
            for number, since, check, object_id, *about in self._connection.execute(
                described.where(is_among(self._connection, FINDINGS.c.id, portion))
            ):
                yield number, since, check, object_id, UnseenFinding(*about)


# Finds the new findings of a scan that continue others, and joins their rows: see `posture.history.continuations`.
#
# The database sorts both kinds of findings by problem, so memory holds those of one problem.


def find_continuations(
    connection: Connection, gone: Sequence[int], come: Sequence[int], since: Callable[[int], CircumstanceChanges]
) -> Iterator[Pair]:
    """The pairs of a row that ends and the row that continues it, of the rows with these ids.

    `since` returns what changed since the scan that last saw a row that ends.
    """
    if not gone or not come:
        return
    ends = RowIdSet(gone)
    ordered = (
        select_located(FINDINGS.c.problem, FINDINGS.c.id, FINDINGS.c.object)
        .where(FINDINGS.c.problem.is_not(None), FINDINGS.c.id.in_(select_numbers(connection, chain(gone, come))))
        .order_by(FINDINGS.c.problem, FINDINGS.c.id)
        .execution_options(yield_per=CHUNK)
    )
    with connection.execute(ordered) as rows:
        for _, group in groupby(rows, key=itemgetter(0)):
            findings = [_build_located_finding(*row) for _, *row in group]
            before = [finding for finding in findings if finding.number in ends]
            now = [finding for finding in findings if finding.number not in ends]
            yield from pair_continuations(before, now, lambda finding: since(finding.number))


def _build_located_finding(
    number: int, object_id: int, check: str, api_version: str, kind: str, namespace: str, name: str, *invocation: str
) -> LocatedFinding:
    place = api_group_of(api_version), kind, namespace, name
    language, policy, binding, param_namespace, param_name = invocation
    invoked = language, policy, binding, param_namespace, param_name
    return LocatedFinding(number, object_id, place, coordinates_of(invoked, check, (api_version, *place[1:])))


def join_rows(connection: Connection, pairs: Sequence[tuple[int, int]], now: int) -> None:
    """Let rows continue others at a revision: they have the history of the rows that end, which are not resolved."""
    finding = FINDINGS.c
    wanted = select(finding.id, finding.fingerprint, finding.first, finding.opened, finding.reopened)
    # Parameters with names of their own: SQLAlchemy reserves those of the columns in an update.
    names = "row", "of", "begin", "opening", "times"
    joined = update(FINDINGS).where(finding.id == bindparam("row")).values(event=CONTINUED, continues=bindparam("of"))
    # A finding that was known before the one that it continues keeps its first scan.
    first = case((finding.first < bindparam("begin"), finding.first), else_=bindparam("begin"))
    joined = joined.values(first=first, opened=bindparam("opening"), reopened=bindparam("times"))
    for start in range(0, len(pairs), CHUNK):
        following = dict(pairs[start : start + CHUNK])
        rows = connection.execute(wanted.where(is_among(connection, finding.id, list(following)))).all()
        values = [dict(zip(names, (following[number], *columns), strict=True)) for number, *columns in rows]
        connection.execute(joined, values)
        ended = is_among(connection, finding.id, list(following))
        connection.execute(update(FINDINGS).where(ended).values(until=now, superseded=now))


# The objects that are gone: a scan ends the interval of an object only if it would have listed the object.
#
# A scan that was merged after this one began may have seen objects that did not exist yet when this scan listed their
# kind.


class GoneObjects:
    """Decides which objects of a cluster are gone."""

    def __init__(self, connection: Connection, reach: Reach, cluster: int, base: int) -> None:
        """Take the reach of a scan, and the newest revision of its cluster when the scan began."""
        self._connection = connection
        self._cluster = cluster
        self._reach = reach
        self._base = base
        merged = select(SCANS.c.number).where(SCANS.c.cluster == cluster, SCANS.c.revision > base)
        self._meanwhile = [
            (api_group_of(api_version), kind, sets.examined)
            for scan in connection.execute(merged).scalars().all()
            for api_version, kind, sets in read_sets_of_scan(connection, scan)
        ]

    def make_list_test(self, listed: StagedList) -> Callable[[IntervalInForce], bool]:
        """Return a function that returns whether an object which a list does not have is gone."""
        seen: list[RowIdSet] = [ids for *group_kind, ids in self._meanwhile if tuple(group_kind) == listed.group_kind]

        def is_gone(row: IntervalInForce) -> bool:
            if row.since > self._base or any(row.object_id in ids for ids in seen):
                return False
            return self._reach.lists(listed.api_version, listed.kind, row.identity.namespace, row.identity.name)

        return is_gone

    def list_unserved_kinds(self) -> Iterator[tuple[int, Sequence[int], Callable[[IntervalInForce], bool]]]:
        """The kinds with recorded objects that the cluster does not serve any more.

        Each has the id of the kind, as a single id and as a list, and a function that returns whether an object is gone.
        """
        kinds = {
            row.id: row
            for row in self._connection.execute(select(KINDS.c.id, KINDS.c.api_version, KINDS.c.kind))
            if self._reach.is_unserved(row.api_version, row.kind)
        }
        interval = POPULATION.c
        in_force = interval.cluster == self._cluster, interval.until == OPEN, interval.kind.in_(kinds)
        for number in self._connection.execute(select(interval.kind).where(*in_force).distinct()).scalars().all():
            yield number, [number], partial(self._is_gone, kinds[number].api_version, kinds[number].kind)

    def _is_gone(self, api_version: str, kind: str, row: IntervalInForce) -> bool:
        if row.since > self._base:
            return False
        return self._reach.lists(api_version, kind, row.identity.namespace, row.identity.name)

    def make_label_test(self, scope: Scope) -> Callable[[IntervalInForce], bool]:
        """Return a function that returns whether a namespace is gone that is absent from a list read for labels alone."""
        everything = not (scope.namespaces or scope.exclude_namespaces)
        return lambda row: everything and row.since <= self._base


def find_kind_ids(connection: Connection, kinds: Interner, listed: StagedList) -> tuple[int, Sequence[int]]:
    """The id of the kind of a list, and the ids of the kind in all versions of its group."""
    [number] = kinds.intern([(listed.api_version, listed.kind)])
    group, kind = listed.group_kind
    rows = connection.execute(select(KINDS.c.id, KINDS.c.api_version).where(KINDS.c.kind == kind)).all()
    return number, [row.id for row in rows if api_group_of(row.api_version) == group]
