"""Reads scans, finds scans whose process died, and finds the scan with which another one is compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, Engine, Row, Select, delete, func, select, update

from scanner.model.resource import UserInfo
from scanner.model.scans.method import Method
from scanner.model.scans.scan import ClusterIdentity, ObjectCount, Scan, ScanState, Scope
from scanner.store.catalog.runs import ScanProcess
from scanner.store.database.engine import writing
from scanner.store.rows import codec
from scanner.store.rows.closing_sums import find_summed_scans, sum_report, sum_scan
from scanner.store.rows.logical_rows import SCANS_ENDED
from scanner.store.rows.search_index import index_new_rows
from scanner.store.rows.tables import CLUSTERS, SCANS, STAGED_PAGES

USABLE = (ScanState.COMPLETE.value, ScanState.INCOMPLETE.value)
"""The states of scans that are part of history and can be the latest scan."""

LATEST_FIRST = (SCANS.c.finished_at.desc(), SCANS.c.revision.desc(), SCANS.c.number.desc())
"""The order of scans in which the first one answers a moment: dates decide (ADR 44). The newest scan has the highest revision instead."""

_PRESENT_NAME = select(CLUSTERS.c.name).where(CLUSTERS.c.id == SCANS.c.cluster).correlate(SCANS).scalar_subquery()
_COLUMNS = (
    SCANS.c.id,
    SCANS.c.cluster_name,
    _PRESENT_NAME.label("present_name"),
    SCANS.c.cluster_uid,
    SCANS.c.server_version,
    SCANS.c.source,
    SCANS.c.started_at,
    SCANS.c.finished_at,
    SCANS.c.state,
    SCANS.c.scope,
    SCANS.c.tool_version,
    SCANS.c.findings,
    SCANS.c.new,
    SCANS.c.resolved,
    SCANS.c.requester,
    SCANS.c.policy_set_digest,
    SCANS.c.description_digest,
    SCANS.c.notes,
    SCANS.c.preview,
)


def select_scans() -> Select[*tuple[object, ...]]:
    """The query of the rows for `scan_of`."""
    return select(*_COLUMNS)


def scan_of(row: Row[*tuple[object, ...]]) -> Scan:
    """The scan in a row of `select_scans`. It shows the present name of its cluster."""
    earlier = "" if row.cluster_name == row.present_name else row.cluster_name
    cluster = ClusterIdentity(row.present_name, row.cluster_uid, row.server_version, row.source, earlier_name=earlier)
    return Scan(
        id=row.id,
        cluster=cluster,
        started_at=row.started_at,
        finished_at=row.finished_at,
        state=ScanState(row.state),
        scope=codec.from_text(Scope, row.scope),
        tool_version=row.tool_version,
        findings=row.findings,
        new=row.new,
        resolved=row.resolved,
        requester=codec.from_text(UserInfo, row.requester) if row.requester else UserInfo(),
        policy_set_digest=row.policy_set_digest,
        description_digest=row.description_digest,
        notes=tuple(orjson.loads(row.notes)) if row.notes else (),
        preview=row.preview,
    )


def find_pruned_scans(connection: Connection, ids: Sequence[str]) -> frozenset[str]:
    """Those of some scans, by id, that were pruned: only their tombstones are left."""
    wanted = select(SCANS.c.id).where(SCANS.c.id.in_(ids), SCANS.c.pruned_at.is_not(None))
    return frozenset(connection.execute(wanted).scalars())


class AbandonedScan(NamedTuple):
    """A running scan whose process is gone. It ended at its last heartbeat, or as it began if its clock was ahead of the database's."""

    number: int
    id: str
    end: datetime


def find_abandoned_scans(connection: Connection, now: datetime) -> tuple[AbandonedScan, ...]:
    """The scans that are recorded as running, but whose process is gone at the moment `now`."""
    columns = ("number", "id", "started_at", "heartbeat", "silence", "host", "process", "process_started")
    running = select(*(SCANS.c[name] for name in columns)).where(SCANS.c.state == ScanState.RUNNING.value)
    return tuple(
        AbandonedScan(number, scan_id, max(started, heartbeat))
        for number, scan_id, started, heartbeat, silence, *owner in connection.execute(running)
        if not ScanProcess(*owner).is_alive(heartbeat=heartbeat, now=now, silence=timedelta(seconds=silence))
    )


def correct_state(scan: Scan, dead: Sequence[AbandonedScan]) -> Scan:
    """The scan for readers: an abandoned scan has failed, even if the database does not record it yet."""
    ended = next((dead_scan.end for dead_scan in dead if dead_scan.id == scan.id), None)
    return replace(scan, state=ScanState.FAILED, finished_at=ended) if ended else scan


def mark_dead_scans_failed(engine: Engine, now: datetime) -> None:
    """Mark the abandoned scans as failed, in a transaction that begins only if there are any."""
    with engine.connect() as connection:
        dead = find_abandoned_scans(connection, now)
    if dead:
        with writing(engine) as connection:
            _mark_failed(connection, dead)


def fail_scan_of_run(connection: Connection, scan_id: str, now: datetime) -> None:
    """Mark the scan of a run that ends as failed, if the scan has not ended: an error or a signal ended the run."""
    unfinished = select(SCANS.c.number, SCANS.c.id, SCANS.c.started_at).where(
        SCANS.c.id == scan_id, SCANS.c.state == ScanState.RUNNING.value
    )
    rows = connection.execute(unfinished).all()
    _mark_failed(connection, [AbandonedScan(row.number, row.id, max(row.started_at, now)) for row in rows])


def _mark_failed(connection: Connection, dead: Sequence[AbandonedScan]) -> None:
    """Mark scans as failed at their last heartbeat, and delete their staged pages.

    A scan whose row is locked merges its pages at this moment: it is alive, and stays as it is.
    """
    summed = find_summed_scans(connection)
    for scan in dead:
        running = SCANS.c.number == scan.number, SCANS.c.state == ScanState.RUNNING.value
        if not connection.execute(select(SCANS.c.number).where(*running).with_for_update(skip_locked=True)).first():
            continue
        failed = {"state": ScanState.FAILED.value, "finished_at": scan.end}
        connection.execute(update(SCANS).where(*running).values(failed))
        if scan.number in summed:
            sum_scan(connection, SCANS_ENDED, scan.number)
            sum_report(connection, scan.number)
        connection.execute(delete(STAGED_PAGES).where(STAGED_PAGES.c.scan == scan.number))
        # A scan indexes what it shares when it is closed, and this one never is.
        index_new_rows(connection)


# The counts of objects that a scan is reconciled with: a column of its row, in the order of its coverage.


def encode_object_counts(counts: Iterable[ObjectCount]) -> str:
    """JSON of the counts: excluded, at the start, at the end."""
    return orjson.dumps([(count.excluded, count.at_start, count.at_end) for count in counts]).decode()


def read_object_counts(connection: Connection, scan_id: str) -> tuple[ObjectCount, ...]:
    """The counts of a scan; empty for a scan of an older version."""
    text = connection.execute(select(SCANS.c.object_counts).where(SCANS.c.id == scan_id)).scalar()
    return tuple(ObjectCount(*values) for values in orjson.loads(text)) if text else ()


# Finds the scan with which another one is compared: the newest earlier one of the same scope, operation, requester
# and mode.
#
# A preview, which is a scan with assumed bindings, is compared with such a scan like any other, and is itself no
# baseline of a later one: differences, gates and the banner *the rules changed* compare what is in force. See ADR 7.


def find_newest_comparable(
    connection: Connection,
    number: int,
    before: int,
    *,
    with_report: bool = False,
    previews: bool = False,
    ended_by: datetime | None = None,
) -> int | None:
    """The highest revision below `before` whose scan is comparable with the scan of a number; None if there is none.

    The scan may be incomplete: what it did not check stays open in its history. `with_report` leaves out pruned scans, and
    `previews` includes previews. `ended_by` leaves out scans that ended later.
    """
    scan = SCANS.c
    same = scan.cluster, scan.source, scan.scope, scan.requester, scan.method
    *wanted, method = connection.execute(select(*same).where(scan.number == number)).one()
    earlier = (
        select(scan.revision, scan.method)
        .where(scan.state.in_(USABLE), scan.revision < before)
        .where(*(column == value for column, value in zip(same, wanted, strict=False)))
        .where(*([scan.pruned_at.is_(None)] if with_report else []), *([] if previews else [~scan.preview]))
        .where(*([] if ended_by is None else [scan.finished_at <= ended_by]))
        .order_by(scan.revision.desc())
        .execution_options(yield_per=1)  # usually the first row is the answer
    )
    with connection.execute(earlier) as rows:
        return next((row.revision for row in rows if mode_of(row.method) == mode_of(method)), None)


def find_newest_pair(connection: Connection, cluster: int) -> tuple[int, int] | None:
    """The revisions of the two newest comparable scans of a cluster that have a report, neither of them a preview; None without two."""
    scan = SCANS.c
    of_cluster = scan.cluster == cluster, scan.state.in_(USABLE), scan.pruned_at.is_(None), ~scan.preview
    newest = select(scan.number, scan.revision).where(*of_cluster).order_by(scan.revision.desc())
    for number, revision in connection.execute(newest).all():
        earlier = find_newest_comparable(connection, number, revision, with_report=True)
        if earlier is not None:
            return earlier, revision
    return None


def find_incomparable_parts(connection: Connection, before: int, now: int) -> tuple[str, ...]:
    """The parts in which two scans, by their numbers, would be equal if they were comparable; empty if they are."""
    scan = SCANS.c
    wanted = select(scan.source, scan.scope, scan.requester, scan.method)
    earlier, later = (connection.execute(wanted.where(scan.number == number)).one() for number in (before, now))
    scopes = [codec.from_text(Scope, row.scope) for row in (earlier, later)]
    differ = {
        "source": earlier.source != later.source,
        "scope": replace(scopes[0], operation="") != replace(scopes[1], operation=""),
        "operation": scopes[0].operation != scopes[1].operation,
        "requester": earlier.requester != later.requester,
        "mode": mode_of(earlier.method) != mode_of(later.method),
    }
    return tuple(part for part, differs in differ.items() if differs)


def mode_of(text: str) -> tuple[object, ...]:
    """The part of the method of a scan, given as stored, that its verdicts can depend on."""
    method = codec.from_text(Method, text) if text else Method()
    sources = bool(method.policy_files), method.without_cluster_policies
    return method.kyverno_compat, method.network, method.network_to, sources


# The scans of a cluster a page at a time, and the newest scan of every cluster.


class ListedScan(NamedTuple):
    """A scan in any state. Of a pruned one, only the totals are left."""

    number: int
    scan: Scan
    pruned: bool


class ScanPage(NamedTuple):
    """Some scans of a cluster, the newest first, and the number of all."""

    scans: tuple[ListedScan, ...]
    total: int


def read_scan_page(connection: Connection, cluster: int, now: datetime, *, before: int | None, limit: int) -> ScanPage:
    """The newest scans of a cluster whose numbers are lower than `before`."""
    scan = SCANS.c
    wanted = select_scans().add_columns(scan.number, scan.pruned_at).where(scan.cluster == cluster)
    if before is not None:
        wanted = wanted.where(scan.number < before)
    rows = connection.execute(wanted.order_by(scan.number.desc()).limit(limit)).all()
    dead = find_abandoned_scans(connection, now)
    total = connection.execute(select(func.count()).where(scan.cluster == cluster)).scalar_one()
    scans = (ListedScan(row.number, correct_state(scan_of(row), dead), row.pruned_at is not None) for row in rows)
    return ScanPage(tuple(scans), total)


def find_newest_scan_of_clusters(connection: Connection) -> Mapping[int, Scan]:
    """The newest scan in history of every cluster, by the id of the cluster."""
    scan = SCANS.c
    usable = scan.state.in_(USABLE)
    newest = (
        select(scan.cluster, func.max(scan.revision).label("revision")).where(usable).group_by(scan.cluster).subquery()
    )
    of_cluster = (newest.c.cluster == scan.cluster) & (newest.c.revision == scan.revision)
    wanted = select_scans().add_columns(scan.cluster).join(newest, of_cluster)
    return {row.cluster: scan_of(row) for row in connection.execute(wanted)}
