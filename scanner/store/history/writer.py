"""Writes a scan: begin, stage each page, and merge the pages into history in one closing transaction.

Source of truth: the Protocol `Store` in `scanner.scan.edges`. Each function is one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from scanner.errors import StoreError
from scanner.model.policy import Binding, Policy
from scanner.model.reading import UNKNOWN_READING
from scanner.model.resource import Kind, UserInfo
from scanner.model.scans.scan import Emptiness, PageResult, Scan, ScanEnd, ScanStart, ScanState, Scope
from scanner.model.texts import clean
from scanner.posture.problem_ids import CONTINUATION_RULES
from scanner.store.catalog.check_names import CheckNames
from scanner.store.catalog.clusters import register
from scanner.store.catalog.rules import write_rules
from scanner.store.catalog.runs import get_current_process
from scanner.store.catalog.scans import find_newest_comparable, scan_of, select_scans
from scanner.store.catalog.waivers import write_waived_checks, write_waivers
from scanner.store.database.address import Address
from scanner.store.database.engine import lock_history, share_bodies, share_texts, writing, writing_shared
from scanner.store.history.causes import Causes
from scanner.store.history.daily import covers_a_day, record_day
from scanner.store.history.damage import accept_damage, damage_error, find_damage, note_acceptance
from scanner.store.history.endings import Endings, GoneObjects, MergedLists, SimulatedRequest, find_kind_ids
from scanner.store.history.later_scans import LaterScans, OlderList, find_older_lists, write_versions
from scanner.store.history.ledger import Ledger, write_unchecked
from scanner.store.history.merge import History, ScanPosition
from scanner.store.history.population import ListedObjects, PopulationWriter, RecordedList
from scanner.store.history.resolution import compute_reach
from scanner.store.history.sightings import select_open_findings
from scanner.store.history.staged_pages import StagedLists, StagedPage, pack
from scanner.store.history.workload_states import ListedWorkloads
from scanner.store.rows import codec
from scanner.store.rows.closing_sums import ScanSums, sum_report, sum_scan
from scanner.store.rows.interning import Interner, Key, reserve_ids
from scanner.store.rows.logical_rows import REVISION_PARTS, SCANS_BEGUN, SCANS_ENDED
from scanner.store.rows.search_index import index_new_rows
from scanner.store.rows.shared_rows import NO_OWNERS, Row, RowOwners, read_owners, share_rows
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
        share_texts(connection)
        number = _insert_scan(connection, cluster, start, now, notes)
        policies = Interner(connection, POLICIES).intern([_encode_policy(item) for item in start.policies])
        bindings = Interner(connection, BINDINGS).intern([_encode_binding(item) for item in start.bindings])
        read = [codec.to_text(start.readings.get(item.key, UNKNOWN_READING)) for item in start.policies]
        used: list[Row] = [{"policy": item, "reading": text} for item, text in zip(policies, read, strict=True)]
        earlier = _read_earlier_owners(connection, number)
        of = {
            "policies_of": share_rows(connection, SCAN_POLICIES, number, used, earlier.policies),
            "bindings_of": share_rows(
                connection, SCAN_BINDINGS, number, [{"binding": item} for item in bindings], earlier.bindings
            ),
            "rules_of": write_rules(connection, number, start.rules, earlier.rules),
        }
        if start.waivers is not None:
            write_waivers(connection, number, start.waivers)
        if any(of.values()):
            connection.execute(update(SCANS).where(SCANS.c.number == number).values(**of))
        sum_scan(connection, SCANS_BEGUN, number)


def _read_earlier_owners(connection: Connection, number: int) -> RowOwners:
    """The owners of the shared rows of the newest scan when this scan began, or NO_OWNERS."""
    this = select(SCANS.c.cluster, SCANS.c.base).where(SCANS.c.number == number).subquery()
    before = select(SCANS.c.number).where(SCANS.c.cluster == this.c.cluster, SCANS.c.revision == this.c.base)
    newest = connection.execute(before).scalar()
    return read_owners(connection, newest) if newest else NO_OWNERS


def pack_result(result: PageResult) -> PageResult:
    """The result with `content` in place of its findings."""
    return replace(result, content=pack(result), findings=(), places=())


def beat(engine: Engine, scan_id: str, now: datetime) -> None:
    """Record that a scan still runs; do nothing if it does not."""
    running = SCANS.c.id == scan_id, SCANS.c.state == ScanState.RUNNING.value
    with writing(engine) as connection:
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
            else _merge(connection, running, end, older)
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
    kinds = {(each.list_version.api_version.rpartition("/")[0], each.list_version.kind) for each in older}
    state = ScanState.INCOMPLETE if end.state is ScanState.COMPLETE else end.state
    gaps = *end.gaps, *(each.gap for each in older)
    return replace(end, state=state, gaps=gaps, metadata_kinds=end.metadata_kinds - kinds)


def _merge(
    connection: Connection, running: _RunningScan, end: ScanEnd, older: Collection[OlderList] = ()
) -> dict[str, int | str]:
    revision = _find_newest_revision(connection, running.cluster) + 1
    bindings = _read_bindings(connection, running.number)
    previews = frozenset(binding.key for binding in bindings if binding.assumed)
    names = CheckNames(connection, running.cluster, running.number, revision)
    position = ScanPosition(running.cluster, revision, running.base)
    causes = Causes(connection, running.number, running.cluster, revision)
    sums = ScanSums(connection, running.number)
    history = History(connection, position, names, causes, sums, previews)
    ledger = Ledger()
    scope = codec.from_text(Scope, running.scope)
    used = [binding.key for binding in bindings]
    lists = StagedLists(connection, running.number)
    workloads = lists.collect_workloads(end.controllers)
    population = PopulationWriter(connection, running.cluster, revision, workloads, sums)
    nothing = any(each.list_version.rules for each in older) or (
        bool(end.emptiness) and end.emptiness is not _read_earlier_emptiness(connection, running.number, revision)
    )
    reach = compute_reach(scope, used, end, end.gaps, nothing=nothing)
    gone = GoneObjects(connection, reach, running.cluster, running.base)
    later = LaterScans(connection, running.number, end.lists, causes.circumstances)
    for listed in lists:
        kind, same_kinds = find_kind_ids(connection, history.kinds, listed)
        newer = later.find_newer_lists(listed.api_version, listed.kind)
        objects = population.record(
            ListedObjects(listed.read_objects, kind, same_kinds, gone.make_list_test(listed), newer)
        )
        _merge_pages(listed.read_pages(), objects, history, ledger)
        ledger.sets[listed.api_version, listed.kind] = history.sets.write(objects.ids, listed.read_sets())
    for listed in lists.list_namespaces():
        kind, same_kinds = find_kind_ids(connection, history.kinds, listed)
        newer = later.find_newer_lists(listed.api_version, listed.kind)
        population.record(ListedObjects(listed.read_objects, kind, same_kinds, gone.make_label_test(scope), newer))
    for kind, same_kinds, is_gone in gone.list_unserved_kinds():
        population.record(ListedObjects(lambda: iter(()), kind, same_kinds, is_gone))
    population.close()
    ledger.gaps.update(end.gaps)
    request = SimulatedRequest(scope.operation, running.requester)
    reach = compute_reach(scope, used, end, ledger.gaps, causes.circumstances.policies, nothing=nothing)
    listed_workloads = ListedWorkloads(
        kinds=reach.kinds,
        metadata_kinds=end.metadata_kinds,
        controllers=workloads,
        is_examined=population.has_recorded,
        is_unserved=lambda kind: reach.is_unserved(f"{kind[0]}/", kind[1]),
    )
    Endings(connection, position, history, causes).write(MergedLists(reach, request, listed_workloads, later))
    history.close()
    counted = ledger.write(connection, running.number, end, _read_earlier_owners(connection, running.number))
    write_unchecked(connection, running.cluster, running.number, history.unchecked)
    write_waived_checks(connection, running.cluster, running.number, revision)
    if end.state is ScanState.COMPLETE and covers_a_day(scope):
        record_day(connection, running.cluster, running.number, end.finished_at, previews)
    write_versions(connection, running.number, revision, end, older)
    for part in REVISION_PARTS:
        sums.read(part, part.table.c.cluster == running.cluster, part.table.c[part.revision] == revision)
    sums.write()
    changed_rules = ",".join(causes.changed_rules)
    return {
        "revision": revision,
        "changed_rules": changed_rules,
        "unchecked": history.unchecked.count,
        "emptiness": end.emptiness.value,
        **asdict(history.changes),
        **counted,
    }


def _read_earlier_emptiness(connection: Connection, number: int, revision: int) -> Emptiness:
    """The things that the newest comparable scan before a scan lacked."""
    before = find_newest_comparable(connection, number, revision)
    this = select(SCANS.c.cluster).where(SCANS.c.number == number).scalar_subquery()
    wanted = select(SCANS.c.emptiness).where(SCANS.c.cluster == this, SCANS.c.revision == before)
    return Emptiness(connection.execute(wanted).scalar() or "")


def _merge_pages(pages: Iterable[StagedPage], objects: RecordedList, history: History, ledger: Ledger) -> None:
    """Merge the pages of a list, given all its objects in their order."""
    start = 0
    for page in pages:
        checks, kinds = history.checks.intern(page.checks), history.kinds.intern(page.kinds)
        ledger.add(page, checks, kinds)
        place = slice(start, start + page.objects)
        history.merge(page, checks, kinds, RecordedList(objects.ids[place], objects.workloads[place]))
        start += page.objects


def _record_failure(connection: Connection, running: _RunningScan, end: ScanEnd) -> dict[str, int | str]:
    checks, kinds = Interner(connection, CHECKS), Interner(connection, KINDS)
    ledger = Ledger()
    for listed in StagedLists(connection, running.number):
        for page in listed.read_pages():
            ledger.add(page, checks.intern(page.checks), kinds.intern(page.kinds))
    ledger.gaps.update(end.gaps)
    counted = ledger.write(connection, running.number, end, NO_OWNERS)
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
