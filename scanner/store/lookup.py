"""Looks up scans by id, by the beginning of an id or as `last~1`, and findings by the beginning of a fingerprint."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from sqlalchemy import Connection, func, select

from scanner.errors import NotFound, UsageError
from scanner.model.cause import Cause
from scanner.model.outcome import Finding
from scanner.model.policy import Policy
from scanner.model.reading import UNKNOWN, Reading
from scanner.model.scan import Scan, StoredFinding
from scanner.store import codec
from scanner.store.clusters import StoredCluster, find_cluster, stored_clusters
from scanner.store.columns import HistoryColumns, columns_of
from scanner.store.engine import among
from scanner.store.findings import (
    SHORT,
    FindingRow,
    Times,
    causes_of,
    open_finding,
    previewed,
    resolved,
    select_findings,
    times_of,
    with_findings,
)
from scanner.store.kept_labels import KeptLabels
from scanner.store.scans import USABLE, scan_of, select_scans
from scanner.store.shared_rows import policies_of
from scanner.store.sightings import last_seen
from scanner.store.tables import FINDINGS, OPEN, POLICIES, PREVIEW, SCAN_POLICIES, SCANS

_LAST = re.compile(r"last(?:~(\d{1,9}))?")
_SHOWN = 5
_HEX = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True, slots=True)
class FindingEvent:
    """What a scan changed about a finding: `event` is new, changed, reopened, continued or a reason of resolution.

    `continues` is the id of the finding that goes on under this one's id.
    """

    at: datetime
    event: str
    cause: Cause | None
    continues: str = ""


@dataclass(frozen=True, slots=True)
class ExplainedFinding:
    """The current state of a finding, the latest scan with it, the policy as that scan used it, and its events, oldest first.

    Events of pruned scans may be missing.
    """

    stored: StoredFinding
    scan: Scan
    policy: Policy | None
    reading: Reading = UNKNOWN
    events: tuple[FindingEvent, ...] = ()


def scans(connection: Connection, limit: int) -> tuple[Scan, ...]:
    """The newest `limit` scans in any state, newest first."""
    newest = select_scans().order_by(SCANS.c.number.desc()).limit(limit)
    return tuple(scan_of(row) for row in connection.execute(newest))


def latest(connection: Connection, cluster: str | None, back: int = 0, until: datetime | None = None) -> Scan | None:
    """The newest scan in history, of a cluster (by name, UID or identity) or of any; or the scan `back` scans before it.

    With `until`, scans that ended later are left out.

    Raises UsageError if several clusters have the name.

    A cluster's scans are ordered by revision, because clocks may be set back and a later scan may end earlier. Scans of several
    clusters are ordered by the newest scan that had begun in their cluster.
    """
    begun = func.max(SCANS.c.number).over(partition_by=SCANS.c.cluster, order_by=SCANS.c.revision)
    usable = select_scans().where(SCANS.c.state.in_(USABLE))
    if until is not None:
        usable = usable.where(SCANS.c.finished_at <= until)
    if cluster is not None:
        named = find_cluster(connection, cluster)
        if named is None:
            return None
        usable = usable.where(SCANS.c.cluster == named.id)
    newest = usable.order_by(begun.desc(), SCANS.c.revision.desc()).offset(back).limit(1)
    row = connection.execute(newest).one_or_none()
    return None if row is None else scan_of(row)


def newest_of_cluster(connection: Connection, cluster: int, until: datetime | None) -> Scan | None:
    """The newest scan in history of a cluster, by its id, that had ended at a moment; None if there is none."""
    usable = select_scans().where(SCANS.c.cluster == cluster, SCANS.c.state.in_(USABLE))
    if until is not None:
        usable = usable.where(SCANS.c.finished_at <= until)
    row = connection.execute(usable.order_by(SCANS.c.revision.desc()).limit(1)).one_or_none()
    return None if row is None else scan_of(row)


def scan_of_cluster(connection: Connection, cluster: int, scan_id: str) -> Scan | None:
    """The scan of a cluster with a full id; None if there is none."""
    row = connection.execute(select_scans().where(SCANS.c.cluster == cluster, SCANS.c.id == scan_id)).one_or_none()
    return None if row is None else scan_of(row)


def scan_at(connection: Connection, moment: datetime, cluster: str | None) -> Scan:
    """The newest scan in history that had ended at a moment, of one cluster or of any. Raises UsageError if there is none."""
    scan = latest(connection, cluster, until=moment)
    if scan is None:
        raise UsageError(f"No scan had ended by {moment:%Y-%m-%d %H:%M:%S%z}: {_newest_scans(connection)}")
    return scan


def scanned_clusters(connection: Connection) -> tuple[StoredCluster, ...]:
    """The clusters with a scan in history, the oldest first."""
    usable = select(SCANS.c.cluster).where(SCANS.c.state.in_(USABLE)).distinct()
    scanned = frozenset(connection.execute(usable).scalars())
    return tuple(cluster for cluster in stored_clusters(connection) if cluster.id in scanned)


def find_scan(connection: Connection, text: str, cluster: str | None) -> Scan:
    """The scan that `text` identifies. Raises UsageError with a list of scans unless it is exactly one."""
    if match := _LAST.fullmatch(text):
        scan = latest(connection, cluster, int(match[1] or 0))
        if scan is None:
            raise UsageError(f"There is no scan {text!r}: {_newest_scans(connection)}")
        return scan
    begins = func.substr(SCANS.c.id, 1, len(text)) == text
    rows = connection.execute(select_scans().where(begins).order_by(SCANS.c.number.desc()).limit(_SHOWN + 1)).all()
    exact = [row for row in rows if row.id == text] or rows
    if text and len(exact) == 1:
        return scan_of(exact[0])
    if text and exact:
        raise UsageError(
            f"Scan {text!r} is ambiguous: {listed([row.id for row in rows])}. Give more characters of the id."
        )
    raise UsageError(f"There is no scan {text!r}: {_newest_scans(connection)}")


def find_finding(connection: Connection, text: str) -> ExplainedFinding:
    """The finding whose fingerprint begins with `text`, or the one that continues it.

    Raises NotFound if there is none, another UsageError if there are several. If several clusters have it, the finding of the latest scan is returned.
    """
    rows = _latest_rows(connection, text.lower())
    fingerprints = {bytes(row.history.fingerprint).hex() for row in rows}
    if not rows:
        raise NotFound(f"There is no finding {text!r} in this database. The reports show the ids of findings.")
    if len(fingerprints) > 1:
        ids = sorted({fingerprint[:SHORT] for fingerprint in fingerprints})
        raise UsageError(f"Finding {text!r} is ambiguous: {listed(ids)}. Give more digits of the id.")
    return max((explained(connection, row) for row in rows), key=lambda each: each.stored.last_seen)


def _latest_rows(connection: Connection, text: str) -> list[FindingRow]:
    """The latest row of each finding whose fingerprint begins with `text`, at most a few."""
    if not _HEX.fullmatch(text):
        return []
    low, high = bytes.fromhex(text.ljust(64, "0")), bytes.fromhex(text.ljust(64, "f"))
    if rows := _latest_between(connection, low, high):
        return rows
    later = select(FINDINGS.c.fingerprint, FINDINGS.c.since).where(FINDINGS.c.continues.between(low, high))
    row = connection.execute(later.order_by(FINDINGS.c.since.desc()).limit(1)).one_or_none()
    return [] if row is None else _latest_rows(connection, bytes(row.fingerprint).hex())


def _latest_between(connection: Connection, low: bytes, high: bytes) -> list[FindingRow]:
    wanted = (
        select_findings()
        .where(FINDINGS.c.fingerprint.between(low, high))
        .where(FINDINGS.c.superseded.is_(None) | (FINDINGS.c.event == PREVIEW))
        .order_by(FINDINGS.c.fingerprint, FINDINGS.c.cluster, FINDINGS.c.since.desc())
        .limit(_SHOWN + 1)
    )
    return list(map(FindingRow.of, connection.execute(wanted)))


Histories: TypeAlias = Mapping[bytes, Sequence[HistoryColumns]]
"""The rows of findings by fingerprint, in the order of their revisions."""


def explained(connection: Connection, row: FindingRow, histories: Histories | None = None) -> ExplainedFinding:
    """A finding, by its latest row. `histories` are those of the findings of its cluster that were read before."""
    history = row.history
    cluster = history.cluster
    times = times_of(connection, cluster)
    newest = max(times)
    if history.event == PREVIEW:
        seen = history.since
    elif history.until == OPEN:
        [seen] = last_seen(connection, cluster, [history.id], before=newest + 1)
    else:
        seen = history.last_seen or history.since
    [read] = with_findings(connection, [row], KeptLabels(connection, cluster, seen))
    if history.event == PREVIEW:
        stored = previewed(read, times)
    elif history.until == OPEN:
        stored = open_finding(read, times, newest=newest, last_seen=seen)
    else:
        stored = resolved(read, times)
    place = (SCANS.c.cluster == cluster) & (SCANS.c.revision == seen)
    scan = scan_of(connection.execute(select_scans().where(place)).one())
    events = tuple(_events(connection, history, times, histories or {}))
    return ExplainedFinding(stored, scan, *_policy(connection, scan.id, read.finding), events)


def histories_of(connection: Connection, cluster: int, fingerprints: Sequence[bytes]) -> Histories:
    """The rows of some findings of a cluster. All rows of the cluster are read for them: no index has earlier rows by fingerprint."""
    own = FINDINGS.c
    chosen = own.cluster == cluster, among(connection, own.fingerprint, fingerprints)
    wanted = select(*columns_of(FINDINGS, HistoryColumns)).where(*chosen).order_by(own.since)
    rows: defaultdict[bytes, list[HistoryColumns]] = defaultdict(list)
    for row in map(HistoryColumns._make, connection.execute(wanted)):
        rows[bytes(row.fingerprint)].append(row)
    return rows


def _events(
    connection: Connection, latest: HistoryColumns, times: Times, histories: Histories
) -> Iterator[FindingEvent]:
    """The events of a finding, and before them those of the findings that it continues."""
    key = bytes(latest.fingerprint)
    known = histories.get(key) or histories_of(connection, latest.cluster, [key]).get(key, ())
    rows = [row for row in known if row.since <= latest.since]
    first = next((row for row in rows if row.continues), None)
    if first is not None and first.continues is not None:
        earlier = first._replace(fingerprint=first.continues, since=first.since - 1)
        yield from _events(connection, earlier, times, histories)
    causes = causes_of(connection, {cause for row in rows for cause in (row.cause, row.end_cause)})
    for row in rows:
        continues = row.continues.hex()[:SHORT] if row.continues else ""
        yield FindingEvent(times[row.since], row.event, causes[row.cause], continues)
        if row.resolution:
            yield FindingEvent(times[row.until], row.resolution, causes[row.end_cause])


def _policy(connection: Connection, scan_id: str, finding: Finding) -> tuple[Policy | None, Reading]:
    used = (
        select(POLICIES.c.document, SCAN_POLICIES.c.reading)
        .select_from(SCAN_POLICIES.join(POLICIES).join(SCANS, SCAN_POLICIES.c.scan == policies_of()))
        .where(SCANS.c.id == scan_id, POLICIES.c.name == finding.policy, POLICIES.c.language == finding.language)
        .order_by(SCAN_POLICIES.c.position)
        .limit(1)
    )
    row = connection.execute(used).one_or_none()
    if row is None:
        return None, UNKNOWN
    return codec.from_text(Policy, row.document), codec.from_text(Reading, row.reading) if row.reading else UNKNOWN


def _newest_scans(connection: Connection) -> str:
    ids = [scan.id for scan in scans(connection, _SHOWN + 1)]
    if not ids:
        return "the database has no scans. Run: assay scan."
    return f"the newest are {listed(ids)}. `assay scans` lists all scans, and `last` is the newest finished one."


def listed(ids: Sequence[str]) -> str:
    """The first ids, with a note that there are others."""
    return ", ".join(ids[:_SHOWN]) + (" and others" if len(ids) > _SHOWN else "")
