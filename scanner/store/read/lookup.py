"""Looks up scans by id, by the beginning of an id or as `last~1`, and findings and problems by the beginning of an id."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Final, TypeAlias

from sqlalchemy import Connection, Select, func, select

from scanner.errors import NoScans, NotFound, UsageError
from scanner.model.policy import Policy, PolicyKey
from scanner.model.reading import UNKNOWN_READING, Reading
from scanner.model.scans.cause import Cause
from scanner.model.scans.scan import Scan
from scanner.model.scans.stored_finding import StoredFinding
from scanner.posture.problem_ids import problem_id
from scanner.store.catalog.clusters import StoredCluster, find_cluster, read_clusters
from scanner.store.catalog.scans import LATEST_FIRST, USABLE, scan_of, select_scans
from scanner.store.database.engine import is_among
from scanner.store.history.problem_clocks import is_last_in_problem
from scanner.store.history.sightings import group_by_last_seen
from scanner.store.read.findings import (
    SHORT,
    FindingRow,
    ReadFinding,
    Times,
    build_open_finding,
    build_preview,
    build_resolved_finding,
    read_causes,
    read_findings,
    read_scan_ends,
    select_findings,
)
from scanner.store.read.kept_labels import KeptLabels
from scanner.store.rows import codec
from scanner.store.rows.columns import HistoryColumns, columns_of
from scanner.store.rows.shared_rows import select_policy_owner
from scanner.store.rows.tables import FINDINGS, OPEN, OUTDATED, POLICIES, SCAN_POLICIES, SCANS, SINGLE_SCAN_EVENTS

_LAST = re.compile(r"last(?:~(\d{1,9}))?")
_SHOWN = 5
_MOST_KNOWN: Final = 200
_HEX = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True, slots=True)
class FindingEvent:
    """A change of a finding by a scan: `event` is new, changed, reopened, continued or a reason of resolution.

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
    reading: Reading = UNKNOWN_READING
    events: tuple[FindingEvent, ...] = ()


def list_scans(connection: Connection, limit: int) -> tuple[Scan, ...]:
    """The newest `limit` scans in any state, newest first."""
    newest = select_scans().order_by(SCANS.c.number.desc()).limit(limit)
    return tuple(scan_of(row) for row in connection.execute(newest))


def find_latest_scan(connection: Connection, cluster: str | None, back: int = 0) -> Scan | None:
    """The newest scan in history, of a cluster (by name, UID or identity) or of any; or the scan `back` scans before it.

    Raises UsageError if several clusters have the name.

    A cluster's scans are ordered by revision, because clocks may be set back and a later scan may end earlier. Scans of several
    clusters are ordered by the newest scan that had begun in their cluster.
    """
    begun = func.max(SCANS.c.number).over(partition_by=SCANS.c.cluster, order_by=SCANS.c.revision)
    usable = _select_usable(connection, cluster)
    if usable is None:
        return None
    newest = usable.order_by(begun.desc(), SCANS.c.revision.desc()).offset(back).limit(1)
    row = connection.execute(newest).one_or_none()
    return None if row is None else scan_of(row)


def find_newest_scan(connection: Connection, cluster: int, until: datetime | None) -> Scan | None:
    """The newest scan in history of a cluster, by its id, or the one that answers a moment; None if there is none."""
    usable = select_scans().where(SCANS.c.cluster == cluster, SCANS.c.state.in_(USABLE))
    if until is not None:
        return _find_answering_scan(connection, usable, until)
    row = connection.execute(usable.order_by(SCANS.c.revision.desc()).limit(1)).one_or_none()
    return None if row is None else scan_of(row)


def find_first_scan(connection: Connection, cluster: int) -> Scan | None:
    """The first scan in history of a cluster, by its id; None if there is none."""
    usable = select_scans().where(SCANS.c.cluster == cluster, SCANS.c.state.in_(USABLE))
    row = connection.execute(usable.order_by(SCANS.c.revision).limit(1)).one_or_none()
    return None if row is None else scan_of(row)


def _select_usable(connection: Connection, cluster: str | None) -> Select[*tuple[object, ...]] | None:
    """The query of the scans in history of a cluster (by name, UID or identity) or of all; None for an unknown cluster."""
    usable = select_scans().where(SCANS.c.state.in_(USABLE))
    if cluster is None:
        return usable
    named = find_cluster(connection, cluster)
    return None if named is None else usable.where(SCANS.c.cluster == named.id)


def _find_answering_scan(connection: Connection, usable: Select[*tuple[object, ...]], moment: datetime) -> Scan | None:
    """The scan that answers a moment: of those that had ended by then, the one with the latest date (ADR 44)."""
    had_ended = usable.where(SCANS.c.finished_at <= moment).order_by(*LATEST_FIRST).limit(1)
    row = connection.execute(had_ended).one_or_none()
    return None if row is None else scan_of(row)


def find_scan_of_cluster(connection: Connection, cluster: int, scan_id: str) -> Scan | None:
    """The scan of a cluster with a full id; None if there is none."""
    row = connection.execute(select_scans().where(SCANS.c.cluster == cluster, SCANS.c.id == scan_id)).one_or_none()
    return None if row is None else scan_of(row)


def find_scan_at(connection: Connection, moment: datetime, cluster: str | None) -> Scan:
    """The scan in history that answers a moment, of one cluster or of any. Raises UsageError if there is none."""
    usable = _select_usable(connection, cluster)
    scan = None if usable is None else _find_answering_scan(connection, usable, moment)
    if scan is None:
        raise _no_scan_error(connection, f"No scan had ended by {moment:%Y-%m-%d %H:%M:%S%z}")
    return scan


def order_scans(connection: Connection, scans: Collection[str]) -> tuple[str, ...]:
    """Scans of a cluster, by their full ids, in the order of its history. Scans without a place in history come first."""
    place = func.coalesce(SCANS.c.revision, 0)
    return tuple(connection.execute(select(SCANS.c.id).where(SCANS.c.id.in_(scans)).order_by(place)).scalars())


def list_scanned_clusters(connection: Connection) -> tuple[StoredCluster, ...]:
    """The clusters with a scan in history, the oldest first."""
    usable = select(SCANS.c.cluster).where(SCANS.c.state.in_(USABLE)).distinct()
    scanned = frozenset(connection.execute(usable).scalars())
    return tuple(cluster for cluster in read_clusters(connection) if cluster.id in scanned)


def find_scan(connection: Connection, text: str, cluster: str | None) -> Scan:
    """The scan that `text` identifies. Raises UsageError with a list of scans unless it is exactly one."""
    if match := _LAST.fullmatch(text):
        scan = find_latest_scan(connection, cluster, int(match[1] or 0))
        if scan is None:
            raise _no_scan_error(connection, f"There is no scan {text!r}")
        return scan
    # No LIKE: the text of a user may contain wildcards, and case counts.
    begins = func.substr(SCANS.c.id, 1, len(text)) == text
    rows = connection.execute(select_scans().where(begins).order_by(SCANS.c.number.desc()).limit(_SHOWN + 1)).all()
    exact = [row for row in rows if row.id == text] or rows
    if text and len(exact) == 1:
        return scan_of(exact[0])
    if text and exact:
        raise UsageError(
            f"Scan {text!r} is ambiguous: {join_ids([row.id for row in rows])}. Give more characters of the id."
        )
    raise _no_scan_error(connection, f"There is no scan {text!r}")


def find_finding(connection: Connection, text: str) -> ExplainedFinding:
    """The finding whose fingerprint begins with `text`, or the one that continues it.

    Raises NotFound if there is none, another UsageError if there are several. If several clusters have it, the finding of the latest scan is returned.
    """
    rows = _find_latest_rows(connection, text.lower())
    fingerprints = {bytes(row.history.fingerprint).hex() for row in rows}
    if not rows:
        raise NotFound(f"There is no finding {text!r} in this database. The reports show the ids of findings.")
    if len(fingerprints) > 1:
        ids = sorted({fingerprint[:SHORT] for fingerprint in fingerprints})
        raise UsageError(f"Finding {text!r} is ambiguous: {join_ids(ids)}. Give more digits of the id.")
    return max(
        (explain_finding(connection, row) for row in drop_outdated(rows)), key=lambda each: each.stored.last_seen
    )


def drop_outdated(rows: Collection[FindingRow]) -> Collection[FindingRow]:
    """The rows without outdated ones, if there are others: an outdated finding is part of one report alone."""
    return [row for row in rows if row.history.event != OUTDATED] or rows


def _find_latest_rows(connection: Connection, text: str) -> list[FindingRow]:
    """The latest row of each finding whose fingerprint begins with `text`, at most a few."""
    if not _HEX.fullmatch(text):
        return []
    low, high = bytes.fromhex(text.ljust(64, "0")), bytes.fromhex(text.ljust(64, "f"))
    rows = _read_latest_rows(connection, low, high)
    if any(row.history.event != OUTDATED for row in rows):
        return rows
    later = select(FINDINGS.c.fingerprint, FINDINGS.c.since).where(FINDINGS.c.continues.between(low, high))
    row = connection.execute(later.order_by(FINDINGS.c.since.desc()).limit(1)).one_or_none()
    return rows if row is None else _find_latest_rows(connection, bytes(row.fingerprint).hex())


def _read_latest_rows(connection: Connection, low: bytes, high: bytes) -> list[FindingRow]:
    wanted = (
        select_findings()
        .where(FINDINGS.c.fingerprint.between(low, high))
        .where(FINDINGS.c.superseded.is_(None) | (FINDINGS.c.event.in_(SINGLE_SCAN_EVENTS)))
        .order_by(FINDINGS.c.fingerprint, FINDINGS.c.cluster, FINDINGS.c.since.desc())
        .limit(_SHOWN + 1)
    )
    return list(map(FindingRow.from_row, connection.execute(wanted)))


def read_known_findings(connection: Connection, cluster: int, prefix: str) -> tuple[StoredFinding, ...]:
    """The last state of the findings of a cluster whose ids begin with some hex digits, at most 200."""
    low, high = bytes.fromhex(prefix.ljust(64, "0")), bytes.fromhex(prefix.ljust(64, "f"))
    wanted = (
        select_findings()
        .where(FINDINGS.c.cluster == cluster, FINDINGS.c.fingerprint.between(low, high))
        .where(FINDINGS.c.superseded.is_(None), FINDINGS.c.event.not_in(SINGLE_SCAN_EVENTS))
        .order_by(FINDINGS.c.fingerprint, FINDINGS.c.since.desc())
        .limit(_MOST_KNOWN)
    )
    rows = list(map(FindingRow.from_row, connection.execute(wanted)))
    if not rows:
        return ()
    times = read_scan_ends(connection, cluster)
    seen = _find_last_revisions(connection, cluster, rows, newest=max(times))
    read = read_findings(connection, rows, KeptLabels(connection, cluster, max(times)))
    return tuple(_build_finding(each, times, seen[each.row.history.id]) for each in read)


Histories: TypeAlias = Mapping[bytes, Sequence[HistoryColumns]]
"""The rows of findings by fingerprint, in the order of their revisions."""


def explain_finding(connection: Connection, row: FindingRow) -> ExplainedFinding:
    """A finding, by its latest row."""
    [finding] = explain_findings(connection, row.history.cluster, [row])
    return finding


def explain_findings(connection: Connection, cluster: int, rows: Sequence[FindingRow]) -> list[ExplainedFinding]:
    """Some findings of a cluster, by their latest rows, in their order."""
    times = read_scan_ends(connection, cluster)
    seen = _find_last_revisions(connection, cluster, rows, newest=max(times))
    read: dict[int, ReadFinding] = {}
    for revision in set(seen.values()):
        of_revision = [row for row in rows if seen[row.history.id] == revision]
        findings = read_findings(connection, of_revision, KeptLabels(connection, cluster, revision))
        read.update((each.row.history.id, each) for each in findings)
    histories = read_histories(connection, cluster, [row.history.fingerprint for row in rows])
    scans_at = _read_scans(connection, cluster, set(seen.values()))
    policy = cache(partial(_read_policy, connection))

    def explain(row: FindingRow) -> ExplainedFinding:
        history = row.history
        scan, read_finding = scans_at[seen[history.id]], read[history.id]
        used, reading = policy(scan.id, read_finding.finding.policy_key)
        events = tuple(_list_events(connection, history, times, histories))
        return ExplainedFinding(_build_finding(read_finding, times, seen[history.id]), scan, used, reading, events)

    return list(map(explain, rows))


def _find_last_revisions(
    connection: Connection, cluster: int, rows: Sequence[FindingRow], newest: int
) -> dict[int, int]:
    """The last revision that saw each row, by the id of the row."""
    history = [row.history for row in rows]
    still_open = [row.id for row in history if row.until == OPEN and row.event not in SINGLE_SCAN_EVENTS]
    seen = {row.id: row.since if row.event in SINGLE_SCAN_EVENTS else row.last_seen or row.since for row in history}
    if still_open:
        for revision, numbers in group_by_last_seen(connection, cluster, still_open, before=newest + 1).items():
            seen.update(dict.fromkeys(numbers, revision))
    return seen


def _read_scans(connection: Connection, cluster: int, revisions: Collection[int]) -> Mapping[int, Scan]:
    """Scans of a cluster by revision."""
    wanted = select_scans().add_columns(SCANS.c.revision.label("place"))
    chosen = SCANS.c.cluster == cluster, SCANS.c.revision.in_(sorted(revisions))
    return {row.place: scan_of(row) for row in connection.execute(wanted.where(*chosen))}


def _build_finding(read: ReadFinding, times: Times, seen: int) -> StoredFinding:
    if read.row.history.event in SINGLE_SCAN_EVENTS:
        return build_preview(read, times)
    if read.row.history.until == OPEN:
        return build_open_finding(read, times, newest=max(times), last_seen=seen)
    return build_resolved_finding(read, times)


def read_histories(connection: Connection, cluster: int, fingerprints: Sequence[bytes]) -> Histories:
    """The rows of some findings of a cluster. All rows of the cluster are read for them: no index has earlier rows by fingerprint."""
    finding = FINDINGS.c
    chosen = finding.cluster == cluster, is_among(connection, finding.fingerprint, fingerprints)
    wanted = select(*columns_of(FINDINGS, HistoryColumns)).where(*chosen).order_by(finding.since)
    rows: defaultdict[bytes, list[HistoryColumns]] = defaultdict(list)
    for row in map(HistoryColumns._make, connection.execute(wanted)):
        rows[bytes(row.fingerprint)].append(row)
    return rows


def _list_events(
    connection: Connection, latest: HistoryColumns, times: Times, histories: Histories
) -> Iterator[FindingEvent]:
    """The events of a finding, and before them those of the findings that it continues. `histories` has the rows of some findings."""
    key = bytes(latest.fingerprint)
    known = histories.get(key) or read_histories(connection, latest.cluster, [key]).get(key, ())
    rows = [row for row in known if row.since <= latest.since]
    first = next((row for row in rows if row.continues), None)
    if first is not None and first.continues is not None:
        earlier = first._replace(fingerprint=first.continues, since=first.since - 1)
        yield from _list_events(connection, earlier, times, histories)
    causes = read_causes(connection, {cause for row in rows for cause in (row.cause, row.end_cause)})
    for row in rows:
        continues = row.continues.hex()[:SHORT] if row.continues else ""
        yield FindingEvent(times[row.since], row.event, causes[row.cause], continues)
        if row.resolution:
            yield FindingEvent(times[row.until], row.resolution, causes[row.end_cause])


def _read_policy(connection: Connection, scan_id: str, key: PolicyKey) -> tuple[Policy | None, Reading]:
    language, name = key
    used = (
        select(POLICIES.c.document, SCAN_POLICIES.c.reading)
        .select_from(SCAN_POLICIES.join(POLICIES).join(SCANS, SCAN_POLICIES.c.scan == select_policy_owner()))
        .where(SCANS.c.id == scan_id, POLICIES.c.name == name, POLICIES.c.language == language)
        .order_by(SCAN_POLICIES.c.position)
        .limit(1)
    )
    row = connection.execute(used).one_or_none()
    if row is None:
        return None, UNKNOWN_READING
    return codec.from_text(Policy, row.document), codec.from_text(
        Reading, row.reading
    ) if row.reading else UNKNOWN_READING


def _no_scan_error(connection: Connection, sentence: str) -> UsageError:
    """The error of a scan that does not exist: the sentence, and the scans that do."""
    ids = [scan.id for scan in list_scans(connection, _SHOWN + 1)]
    if not ids:
        return NoScans(f"{sentence}: the database has no scans. Run: assay scan.")
    if find_latest_scan(connection, None) is None:
        return NoScans(
            f"{sentence}: the newest are {join_ids(ids)}, and none of them has finished. `assay scans` lists all scans."
        )
    newest = f"the newest are {join_ids(ids)}. `assay scans` lists all scans, and `last` is the newest finished one."
    return UsageError(f"{sentence}: {newest}")


def join_ids(ids: Sequence[str]) -> str:
    """The first ids, with a note that there are others."""
    return ", ".join(ids[:_SHOWN]) + (" and others" if len(ids) > _SHOWN else "")


_ID: Final = re.compile(r"p-([0-9a-f]{1,12})")
_DIGITS: Final = 12
_MOST: Final = 20
_AMBIGUOUS: Final = 6


@dataclass(frozen=True, slots=True)
class ExplainedProblem:
    """A problem of one cluster: the latest state of its findings, at most 20, and the numbers of all that are open and resolved.

    `alone` is the number of previews and outdated findings, which belong to one scan alone.
    """

    id: str
    findings: tuple[ExplainedFinding, ...]
    open: int
    resolved: int
    alone: int


def find_problem(connection: Connection, text: str, cluster: str | int | None = None) -> ExplainedProblem:
    """The problem whose id begins with `text`, of a cluster (by what names it, or by its id) or of the one that a scan saw it in last.

    Raises UsageError unless there is exactly one.
    """
    match = _ID.fullmatch(text.lower())
    if match is None:
        raise UsageError(f"{text!r} is not the id of a problem: p- and at most {_DIGITS} hex digits.")
    number = _find_problem_number(connection, text, match[1])
    rows = _read_problem_rows(connection, number, cluster)
    if not rows:
        if not cluster:
            raise _no_problem_error(text)
        raise UsageError(f"The cluster {cluster!r} has no problem {text!r}.")
    still_open = sum(row.history.until == OPEN for row in rows)
    shown = explain_findings(connection, rows[0].history.cluster, rows[:_MOST])
    alone = sum(row.history.event in SINGLE_SCAN_EVENTS for row in rows)
    resolved = len(rows) - still_open - alone
    return ExplainedProblem(
        problem_id(number), tuple(sorted(shown, key=_order_worst_first)), still_open, resolved, alone
    )


def _order_worst_first(finding: ExplainedFinding) -> tuple[bool, bool]:
    return finding.stored.status == "resolved", not finding.stored.finding.denies


def _find_problem_number(connection: Connection, text: str, digits: str) -> int:
    """The only problem whose id has these first digits; all digits are those of one problem, which need not exist."""
    if len(digits) == _DIGITS:
        return int(digits, 16)
    low, high = int(digits.ljust(_DIGITS, "0"), 16), int(digits.ljust(_DIGITS, "f"), 16)
    begins = select(FINDINGS.c.problem).where(FINDINGS.c.problem.between(low, high)).distinct()
    numbers = connection.execute(begins.order_by(FINDINGS.c.problem).limit(_AMBIGUOUS)).scalars().all()
    if not numbers:
        raise _no_problem_error(text)
    if len(numbers) > 1:
        ids = join_ids([problem_id(number) for number in numbers])
        raise UsageError(f"Problem {text!r} is ambiguous: {ids}. Give more digits of the id.")
    return int(numbers[0])


def _no_problem_error(text: str) -> UsageError:
    return UsageError(f"There is no problem {text!r} in this database. `assay findings --problems` lists them.")


def _read_problem_rows(connection: Connection, number: int, cluster: str | int | None) -> list[FindingRow]:
    """The latest rows of the findings of a problem in one cluster: the open ones first, then those that were seen last.

    An outdated finding was never open: its row explains a problem without other rows alone.
    """
    finding = FINDINGS.c
    latest = is_last_in_problem() | finding.event.in_(SINGLE_SCAN_EVENTS)
    wanted = select_findings().where(finding.problem == number, latest).order_by(finding.since)
    if isinstance(cluster, str) and cluster:
        named = find_cluster(connection, cluster)
        wanted = wanted.where(FINDINGS.c.cluster == (named.id if named else None))
    elif cluster:
        wanted = wanted.where(FINDINGS.c.cluster == cluster)
    of_clusters: dict[int, dict[tuple[bytes, bool], FindingRow]] = {}
    for row in map(FindingRow.from_row, connection.execute(wanted)):
        # A finding that left the problem may have come back: its last row in this problem counts.
        of_clusters.setdefault(row.history.cluster, {})[
            row.history.fingerprint, row.history.event in SINGLE_SCAN_EVENTS
        ] = row
    ordered = [sorted(drop_outdated(rows.values()), key=_order_rows) for rows in of_clusters.values()]
    if len(ordered) <= 1:
        return ordered[0] if ordered else []
    return max(ordered, key=lambda rows: explain_finding(connection, rows[0]).stored.last_seen)


def _order_rows(row: FindingRow) -> tuple[bool, bool, int, bytes]:
    history = row.history
    return (
        history.until != OPEN,
        history.event in SINGLE_SCAN_EVENTS,
        -max(history.last_seen or 0, history.since),
        history.fingerprint,
    )
