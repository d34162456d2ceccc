"""Finding what people mean: a scan by the beginning of its id or as `last~1`, a finding by its first hex digits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from scanner.errors import UsageError
from scanner.model.outcome import Finding
from scanner.model.policy import Policy
from scanner.model.reading import UNKNOWN, Reading
from scanner.model.scan import Scan, StoredFinding
from scanner.store import codec
from scanner.store.findings import (
    PREVIEW,
    SHORT,
    FindingRow,
    resolved,
    select_findings,
    still_there,
    supposed,
    times_of,
    with_findings,
)
from scanner.store.scans import USABLE, scan_of, select_scans
from scanner.store.shared_rows import policies_of
from scanner.store.sightings import last_seen
from scanner.store.tables import CLUSTERS, FINDINGS, OPEN, POLICIES, SCAN_POLICIES, SCANS

_LAST = re.compile(r"last(?:~(\d{1,9}))?")
_SHOWN = 5
_HEX = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True, slots=True)
class ExplainedFinding:
    """A finding as it stands now, the scan that saw it last, and the policy as that scan used and read it."""

    stored: StoredFinding
    scan: Scan
    policy: Policy | None
    reading: Reading = UNKNOWN


def scans(connection: Connection, limit: int) -> tuple[Scan, ...]:
    """The newest scans in any state, the newest first."""
    newest = select_scans().order_by(SCANS.c.number.desc()).limit(limit)
    return tuple(scan_of(row) for row in connection.execute(newest))


def latest(connection: Connection, cluster: str | None, back: int = 0) -> Scan | None:
    """The newest scan that is part of history, of a cluster (by name or UID) or of any; or one `back` before it.

    Clocks may be set back, and a scan may take longer than one that began after it: a cluster's scans are ordered by
    revision. Those of several clusters are ordered by the newest scan that their cluster had seen begin by then.
    """
    begun = func.max(SCANS.c.number).over(partition_by=SCANS.c.cluster, order_by=SCANS.c.revision)
    usable = select_scans().where(SCANS.c.state.in_(USABLE))
    if cluster is not None:
        named = (CLUSTERS.c.identity == cluster) | (CLUSTERS.c.name == cluster)
        usable = usable.where(SCANS.c.cluster.in_(select(CLUSTERS.c.id).where(named)))
    newest = usable.order_by(begun.desc(), SCANS.c.revision.desc()).offset(back).limit(1)
    row = connection.execute(newest).one_or_none()
    return None if row is None else scan_of(row)


def find_scan(connection: Connection, text: str, cluster: str | None) -> Scan:
    """The scan that `text` means. Raises UsageError, saying what there is, unless it means exactly one."""
    if found := _LAST.fullmatch(text):
        scan = latest(connection, cluster, int(found[1] or 0))
        if scan is None:
            raise UsageError(f"There is no scan {text!r}: {_what_there_is(connection)}")
        return scan
    begins = func.substr(SCANS.c.id, 1, len(text)) == text
    rows = connection.execute(select_scans().where(begins).order_by(SCANS.c.number.desc()).limit(_SHOWN + 1)).all()
    exact = [row for row in rows if row.id == text] or rows
    if text and len(exact) == 1:
        return scan_of(exact[0])
    if text and exact:
        raise UsageError(f"Scan {text!r} could be {_listed([row.id for row in rows])}. Give more of its id.")
    raise UsageError(f"There is no scan {text!r}: {_what_there_is(connection)}")


def find_finding(connection: Connection, text: str) -> ExplainedFinding:
    """The finding whose fingerprint begins with `text`. Raises UsageError unless there is exactly one.

    If several clusters have it, the one seen last speaks.
    """
    rows = _last_words(connection, text.lower())
    fingerprints = sorted({bytes(row.fingerprint).hex()[:SHORT] for _, row in rows})
    if not rows:
        raise UsageError(f"There is no finding {text!r} in this database. A report shows the ids of findings.")
    if len({bytes(row.fingerprint) for _, row in rows}) > 1:
        raise UsageError(f"Finding {text!r} could be {_listed(fingerprints)}. Give more digits of its id.")
    return max((_explained(connection, *row) for row in rows), key=lambda found: found.stored.last_seen)


def _last_words(connection: Connection, text: str) -> list[tuple[int, FindingRow]]:
    """The newest row of each finding whose fingerprint begins so, with its cluster; a few are enough."""
    if not _HEX.fullmatch(text):
        return []
    low, high = bytes.fromhex(text.ljust(64, "0")), bytes.fromhex(text.ljust(64, "f"))
    wanted = (
        select_findings()
        .add_columns(FINDINGS.c.cluster)
        .where(FINDINGS.c.fingerprint.between(low, high))
        .where(FINDINGS.c.superseded.is_(None) | (FINDINGS.c.event == PREVIEW))
        .order_by(FINDINGS.c.fingerprint, FINDINGS.c.cluster, FINDINGS.c.since.desc())
        .limit(_SHOWN + 1)
    )
    return [(cluster, FindingRow(*row)) for *row, cluster in connection.execute(wanted)]


def _explained(connection: Connection, cluster: int, row: FindingRow) -> ExplainedFinding:
    times = times_of(connection, cluster)
    [(_, finding)] = with_findings(connection, [row])
    newest = max(times)
    if row.event == PREVIEW:
        seen = row.since
        stored = supposed(row, finding, times)
    elif row.until == OPEN:
        [seen] = last_seen(connection, cluster, [row.id], before=newest + 1)
        stored = still_there(row, finding, times, newest=newest, last_seen=seen)
    else:
        seen = row.last_seen or row.since
        stored = resolved(row, finding, times)
    place = (SCANS.c.cluster == cluster) & (SCANS.c.revision == seen)
    scan = scan_of(connection.execute(select_scans().where(place)).one())
    return ExplainedFinding(stored, scan, *_policy(connection, scan.id, finding))


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


def _what_there_is(connection: Connection) -> str:
    ids = [scan.id for scan in scans(connection, _SHOWN + 1)]
    if not ids:
        return "this database holds no scan yet. Run: assay scan."
    return f"the newest are {_listed(ids)}. `assay scans` lists them all, and `last` means the newest finished one."


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_SHOWN]) + (" and others" if len(ids) > _SHOWN else "")
