"""Writes a scan: begin, stage each page, and merge the pages into history in one closing transaction.

Source of truth: the Protocol `Store` in `scanner.scan.edges`. Each function is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from scanner.errors import StoreError, UsageError
from scanner.model.outcome import Gap
from scanner.model.policy import Binding, Policy, PolicyKey
from scanner.model.reading import UNKNOWN_READING
from scanner.model.resource import Kind, UserInfo, api_group_of
from scanner.model.scans.scan import Emptiness, PageResult, Scan, ScanEnd, ScanStart, ScanState, Scope
from scanner.model.texts import clean
from scanner.posture.problem_ids import CONTINUATION_RULES
from scanner.posture.workloads import Workloads
from scanner.store.catalog.check_names import CheckNames
from scanner.store.catalog.clusters import is_deleted, register
from scanner.store.catalog.rules import write_rules
from scanner.store.catalog.runs import get_current_process
from scanner.store.catalog.scans import find_newest_comparable, scan_of, select_scans
from scanner.store.catalog.waivers import write_waived_checks, write_waivers
from scanner.store.database.address import Address
from scanner.store.database.engine import lock_history, share_bodies, share_texts, writing, writing_shared
from scanner.store.history.causes import Causes
from scanner.store.history.daily import ScanOfDay, record_day
from scanner.store.history.damage import accept_damage, damage_error, find_damage, note_acceptance
from scanner.store.history.endings import Endings, GoneObjects, MergedLists, SimulatedRequest, find_kind_ids
from scanner.store.history.later_scans import LaterScans, OlderList, find_older_lists, write_versions
from scanner.store.history.ledger import Ledger, write_unchecked
from scanner.store.history.merge import History, ScanPosition
from scanner.store.history.population import IntervalInForce, ListedObjects, PopulationWriter, RecordedList
from scanner.store.history.resolution import Reach, compute_reach
from scanner.store.history.sightings import select_open_findings
from scanner.store.history.staged_pages import StagedList, StagedLists, StagedPage, pack
from scanner.store.history.workload_states import ListedWorkloads
from scanner.store.rows import codec
from scanner.store.rows.closing_sums import ScanSums, sum_report, sum_scan
from scanner.store.rows.interning import Interner, Key, reserve_ids
from scanner.store.rows.logical_rows import REVISION_PARTS, SCANS_BEGUN, SCANS_ENDED
from scanner.store.rows.search_index import index_new_rows
from scanner.store.rows.shared_rows import Row, read_owners, share_rows
from scanner.store.rows.tables import (
    BINDINGS,
    CHECKS,
    HEAD,
    KINDS,
    POLICIES,
    SCAN_BINDINGS,
    SCAN_POLICIES,
    SCANS,
    STAGED_PAGES,
)

BEAT = timedelta(seconds=10)
"""The time between two heartbeats of a scan."""


def begin(engine: Engine, address: Address, start: ScanStart, now: datetime) -> None:
    """Record that a scan runs, with its policies, bindings, rules and method.

    Raises UsageError for the name of another cluster, StoreError if what the scan builds on is damaged, unless it accepts damage.
    """
    with writing_shared(engine) as connection:
        cluster = register(connection, start.cluster).id
    damage = find_damage(engine, cluster, everything=start.accept_damage)
    if damage and not start.accept_damage:
        raise damage_error(address, damage)
    notes = orjson.dumps([note_acceptance(damage)]).decode() if damage else ""
    with writing(engine) as connection:
        share_bodies(connection, cluster)
        if is_deleted(connection, cluster):
            raise UsageError(f"The history of {start.cluster.name} was deleted while the scan began. Start a new scan.")
        share_texts(connection)
        number = _insert_scan(connection, cluster, start, now, notes)
        policies = Interner(connection, POLICIES).intern([_encode_policy(item) for item in start.policies])
        bindings = Interner(connection, BINDINGS).intern([_encode_binding(item) for item in start.bindings])
        read = [codec.to_text(start.readings.get(item.key, UNKNOWN_READING)) for item in start.policies]
        used: list[Row] = [{"policy": item, "reading": text} for item, text in zip(policies, read, strict=True)]
        of = {
            "policies_of": share_rows(connection, SCAN_POLICIES, number, used),
            "bindings_of": share_rows(connection, SCAN_BINDINGS, number, [{"binding": item} for item in bindings]),
            "rules_of": write_rules(connection, number, start.rules),
        }
        if start.waivers is not None:
            write_waivers(connection, number, start.waivers)
        if any(of.values()):
            connection.execute(update(SCANS).where(SCANS.c.number == number).values(**of))
        sum_scan(connection, SCANS_BEGUN, number)


def pack_result(result: PageResult) -> PageResult:
    """The result with `content` in place of its findings."""
    return replace(result, content=pack(result), findings=(), places=())


def beat(engine: Engine, scan_id: str, now: datetime) -> None:
    """Record that a scan still runs; do nothing if it does not."""
    running = SCANS.c.id == scan_id, SCANS.c.state == ScanState.RUNNING.value
    with writing(engine, hurry=True) as connection:
        connection.execute(update(SCANS).where(*running).values(heartbeat=now))


def stage(engine: Engine, scan_id: str, result: PageResult, now: datetime) -> None:
    """Commit the results of a page together with its completion. Raises StoreError if the scan does not run."""
    columns = {"content": result.content or pack(result), "objects": result.examined, "sets": result.sets or None}
    _insert_page(
        engine, scan_id, now, api_version=result.api_version, kind=result.kind, number=result.number, **columns
    )


def stage_controllers(engine: Engine, scan_id: str, kind: Kind, objects: bytes, now: datetime) -> None:
    """Commit packed objects that were read for workloads alone. Raises StoreError if the scan does not run."""
    _insert_page(engine, scan_id, now, api_version=kind.api_version, kind=kind.kind, number=0, objects=objects)


def _insert_page(
    engine: Engine, scan_id: str, now: datetime, *, api_version: str, kind: str, **columns: object
) -> None:
    running = SCANS.c.id == scan_id, SCANS.c.state == ScanState.RUNNING.value
    with writing(engine) as connection:
        sign = connection.execute(select(SCANS.c.number, SCANS.c.heartbeat).where(*running).with_for_update())
        number, heartbeat = sign.one_or_none() or (0, now)
        if not number:
            raise _not_running_error(scan_id)
        if not timedelta() <= now - heartbeat < BEAT:
            connection.execute(update(SCANS).where(*running).values(heartbeat=now))
        page = {"scan": number, "api_version": clean(api_version), "kind": clean(kind), **columns}
        connection.execute(insert(STAGED_PAGES).values(page))


def finish(engine: Engine, scan_id: str, end: ScanEnd) -> Scan:
    """Merge the pages into history and make the scan visible, in one transaction.

    A failed scan keeps its counts, gaps and coverage, but adds no findings to history: they will be new in the next scan.
    """
    with writing(engine) as connection:
        running = _read_running_scan(connection, scan_id)
        share_texts(connection)
        lock_history(connection, running.cluster)
        if running.notes:
            accept_damage(connection)
            end = replace(end, notes=(*orjson.loads(running.notes), *end.notes))
        older = find_older_lists(connection, running.number, end)
        if older:
            end = _add_gaps(end, older)
        closed = (
            _record_failure(connection, running, end)
            if end.state is ScanState.FAILED
            else _Merge(connection, running, end, older).run()
        )
        connection.execute(delete(STAGED_PAGES).where(STAGED_PAGES.c.scan == running.number))
        opinion = codec.to_text(end.opinion) if end.opinion else ""
        index_new_rows(connection)
        now = {"state": end.state.value, "finished_at": end.finished_at, "opinion": opinion}
        connection.execute(update(SCANS).where(SCANS.c.number == running.number).values(**now, **closed))
        sum_scan(connection, SCANS_ENDED, running.number)
        sum_report(connection, running.number)
        return scan_of(connection.execute(select_scans().where(SCANS.c.number == running.number)).one())


class _RunningScan(NamedTuple):
    number: int
    cluster: int
    scope: str
    base: int
    requester: str
    notes: str


def _read_running_scan(connection: Connection, scan_id: str) -> _RunningScan:
    wanted = select(*(SCANS.c[name] for name in _RunningScan._fields))
    # The row is locked: until the end of the transaction, no other process marks the scan as failed.
    row = connection.execute(
        wanted.where(SCANS.c.id == scan_id, SCANS.c.state == ScanState.RUNNING.value).with_for_update()
    ).one_or_none()
    if row is None:
        raise _not_running_error(scan_id)
    return _RunningScan(*row)


def _add_gaps(end: ScanEnd, older: Collection[OlderList]) -> ScanEnd:
    """The end of a scan with a gap for each list that is older than an earlier one; such a metadata list proves no workload gone."""
    kinds = {(api_group_of(each.list_version.api_version), each.list_version.kind) for each in older}
    state = ScanState.INCOMPLETE if end.state is ScanState.COMPLETE else end.state
    gaps = *end.gaps, *(each.gap for each in older)
    return replace(end, state=state, gaps=gaps, metadata_kinds=end.metadata_kinds - kinds)


class _Merge:
    """The merge of one scan: its lists page by page, then the findings that it did not find again, then its record."""

    def __init__(
        self, connection: Connection, running: _RunningScan, end: ScanEnd, older: Collection[OlderList]
    ) -> None:
        """The connection is in a transaction that writes history; `older` are lists that show an earlier state."""
        self._connection = connection
        self._running = running
        self._end = end
        self._older = older
        self._scope = codec.from_text(Scope, running.scope)
        self._revision = _find_newest_revision(connection, running.cluster) + 1
        bindings = _read_bindings(connection, running.number)
        self._bindings = [binding.key for binding in bindings]
        self._previews = frozenset(binding.key for binding in bindings if binding.assumed)
        names = CheckNames(connection, running.cluster, running.number, self._revision)
        self._position = ScanPosition(running.cluster, self._revision, running.base)
        self._causes = Causes(connection, running.number, running.cluster, self._revision)
        self._sums = ScanSums(connection, running.number)
        self._history = History(connection, self._position, names, self._causes, self._sums, self._previews)
        self._ledger = Ledger()
        self._later = LaterScans(connection, running.number, end.lists, self._causes.circumstances)
        # A scan that suddenly has nothing to evaluate, or whose rules are of an earlier state, proves no finding fixed.
        self._resolves_nothing = any(each.list_version.rules for each in older) or (
            bool(end.emptiness)
            and end.emptiness is not _read_earlier_emptiness(connection, running.number, self._revision)
        )

    def run(self) -> dict[str, int | str]:
        """Merge the scan into history. Returns columns of its row."""
        lists = StagedLists(self._connection, self._running.number)
        workloads = lists.collect_workloads(self._end.controllers)
        population = PopulationWriter(self._connection, self._running.cluster, self._revision, workloads, self._sums)
        self._merge_lists(lists, population)
        population.close()
        self._ledger.gaps.update(self._end.gaps)
        self._end_findings(population, workloads)
        self._history.close()
        return self._write_record()

    def _merge_lists(self, lists: StagedLists, population: PopulationWriter) -> None:
        """Record the objects of all lists, and merge the findings of their pages."""
        gone = GoneObjects(
            self._connection, self._compute_reach(self._end.gaps), self._running.cluster, self._running.base
        )
        for listed in lists:
            objects = population.record(self._list_objects(listed, gone.make_list_test(listed)))
            self._merge_pages(listed.read_pages(), objects)
            sets = self._history.sets.write(objects.ids, listed.read_sets())
            self._ledger.sets[listed.api_version, listed.kind] = sets
        for listed in lists.list_namespaces():
            population.record(self._list_objects(listed, gone.make_label_test(self._scope)))
        for kind, same_kinds, is_gone in gone.list_unserved_kinds():
            population.record(ListedObjects(lambda: iter(()), kind, same_kinds, is_gone))

    def _compute_reach(self, gaps: Iterable[Gap], policies: Iterable[PolicyKey] = ()) -> Reach:
        return compute_reach(self._scope, self._bindings, self._end, gaps, policies, nothing=self._resolves_nothing)

    def _list_objects(self, listed: StagedList, is_gone: Callable[[IntervalInForce], bool]) -> ListedObjects:
        kind, same_kinds = find_kind_ids(self._connection, self._history.kinds, listed)
        newer = self._later.find_newer_lists(listed.api_version, listed.kind)
        return ListedObjects(listed.read_objects, kind, same_kinds, is_gone, newer)

    def _merge_pages(self, pages: Iterable[StagedPage], objects: RecordedList) -> None:
        """Merge the pages of a list, given all its objects in their order."""
        history = self._history
        start = 0
        for page in pages:
            checks, kinds = history.checks.intern(page.checks), history.kinds.intern(page.kinds)
            self._ledger.add(page, checks, kinds)
            place = slice(start, start + page.objects)
            history.merge(page, checks, kinds, RecordedList(objects.ids[place], objects.workloads[place]))
            start += page.objects

    def _end_findings(self, population: PopulationWriter, workloads: Workloads) -> None:
        """End the findings that the scan did not find again. Gaps of pages are known now, so its reach may be smaller."""
        reach = self._compute_reach(self._ledger.gaps, self._causes.circumstances.policies)
        listed_workloads = ListedWorkloads(
            kinds=reach.kinds,
            metadata_kinds=self._end.metadata_kinds,
            controllers=workloads,
            is_examined=population.has_recorded,
            is_unserved=lambda kind: reach.is_unserved(f"{kind[0]}/", kind[1]),
        )
        request = SimulatedRequest(self._scope.operation, self._running.requester)
        endings = Endings(self._connection, self._position, self._history, self._causes)
        endings.write(MergedLists(reach, request, listed_workloads, self._later))

    def _write_record(self) -> dict[str, int | str]:
        """Write what the scan records besides findings and objects. Returns columns of its row."""
        connection, cluster, number, end = self._connection, self._running.cluster, self._running.number, self._end
        counted = self._ledger.write(connection, number, end)
        write_unchecked(connection, cluster, number, self._history.unchecked)
        write_waived_checks(connection, cluster, number, self._revision)
        # A scan of a chosen part alone does not stand for the day of its cluster.
        if end.state is ScanState.COMPLETE and not self._scope.is_limited:
            tallies = self._ledger.list_tallies()
            record_day(connection, ScanOfDay(cluster, number, end.finished_at), tallies, self._previews)
        write_versions(connection, number, self._revision, end, self._older)
        for part in REVISION_PARTS:
            self._sums.read(part, part.table.c.cluster == cluster, part.table.c[part.revision] == self._revision)
        self._sums.write()
        return {
            "revision": self._revision,
            "changed_rules": ",".join(self._causes.changed_rules),
            "unchecked": self._history.unchecked.count,
            "emptiness": end.emptiness.value,
            **asdict(self._history.changes),
            **counted,
        }


def _read_earlier_emptiness(connection: Connection, number: int, revision: int) -> Emptiness:
    """The things that the newest comparable scan before a scan lacked."""
    before = find_newest_comparable(connection, number, revision)
    this = select(SCANS.c.cluster).where(SCANS.c.number == number).scalar_subquery()
    wanted = select(SCANS.c.emptiness).where(SCANS.c.cluster == this, SCANS.c.revision == before)
    return Emptiness(connection.execute(wanted).scalar() or "")


def _record_failure(connection: Connection, running: _RunningScan, end: ScanEnd) -> dict[str, int | str]:
    checks, kinds = Interner(connection, CHECKS), Interner(connection, KINDS)
    ledger = Ledger()
    for listed in StagedLists(connection, running.number):
        for page in listed.read_pages():
            ledger.add(page, checks.intern(page.checks), kinds.intern(page.kinds))
    ledger.gaps.update(end.gaps)
    counted = ledger.write(connection, running.number, end)
    still_open = select(func.count()).select_from(select_open_findings(running.cluster).subquery())
    return {"unchecked": connection.execute(still_open).scalar_one(), **counted}


def _read_bindings(connection: Connection, number: int) -> list[Binding]:
    """The bindings that a scan used."""
    whose = read_owners(connection, number).bindings
    used = select(BINDINGS.c.document).join(SCAN_BINDINGS).where(SCAN_BINDINGS.c.scan == whose)
    return [codec.from_text(Binding, document) for document in connection.execute(used).scalars()]


def _insert_scan(connection: Connection, cluster: int, start: ScanStart, now: datetime, notes: str) -> int:
    [number] = reserve_ids(connection, SCANS, 1)
    owner = get_current_process()
    values = {
        "number": number,
        "id": start.id,
        "cluster": cluster,
        "cluster_name": clean(start.cluster.name),
        "cluster_uid": clean(start.cluster.uid),
        "server_version": clean(start.cluster.server_version),
        "source": clean(start.cluster.source),
        "started_at": start.started_at,
        "state": ScanState.RUNNING.value,
        "scope": codec.to_text(start.scope),
        "tool_version": start.tool_version,
        "base": _find_newest_revision(connection, cluster),
        "host": clean(owner.host),
        "process": owner.process,
        "process_started": owner.started,
        "heartbeat": now,
        "requester": _encode_requester(start.requester),
        "policy_set_digest": start.policy_set_digest,
        "description_digest": start.description_digest,
        "method": codec.to_text(replace(start.method, schema_version=HEAD, ladder=CONTINUATION_RULES)),
        "silence": start.silence,
        "notes": notes,
        "preview": any(binding.assumed for binding in start.bindings),
    }
    connection.execute(insert(SCANS).values(values))
    return number


def _encode_requester(user: UserInfo) -> str:
    """The user as the store keeps it: name and groups, but no UID and no extra info."""
    return codec.to_text(UserInfo(user.username, groups=user.groups))


def _find_newest_revision(connection: Connection, cluster: int) -> int:
    newest = select(func.max(SCANS.c.revision)).where(SCANS.c.cluster == cluster)
    return connection.execute(newest).scalar() or 0


def _encode_policy(policy: Policy) -> Key:
    return clean(policy.language), clean(policy.name), clean(policy.digest), codec.to_text(policy)


def _encode_binding(binding: Binding) -> Key:
    names = clean(binding.language), clean(binding.name), clean(binding.policy_name)
    return *names, clean(binding.digest), codec.to_text(binding)


def _not_running_error(scan_id: str) -> StoreError:
    return StoreError(
        f"Scan {scan_id} is not running in this database: it has ended, or was marked as failed after a long time without a "
        "heartbeat. Start a new scan."
    )
