"""Reads what became of the findings of some policies during a period of a cluster's history."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from sqlalchemy import Connection, select

from scanner.model.outcome import Finding
from scanner.model.scans.finding_period import (
    FindingEvent,
    FindingOfPeriod,
    OpenInterval,
    list_events,
    was_open_at_begin,
)
from scanner.store.database.engine import is_among
from scanner.store.history.sightings import read_unchecked
from scanner.store.read.findings import SHORT, FindingRow, Times, read_scan_ends, read_verdicts, select_findings
from scanner.store.rows.columns import finding_of
from scanner.store.rows.interning import CHUNK
from scanner.store.rows.tables import CHECKS, FINDINGS, SCANS, SINGLE_SCAN_EVENTS


class _ScanPlace(NamedTuple):
    number: int
    cluster: int
    revision: int


def read_findings_of_period(
    connection: Connection, before: str | None, last: str, policies: Collection[str]
) -> Iterator[FindingOfPeriod]:
    """The findings of policies, by name, that were open after the scan `before` (None: ever), up to the scan `last`, by full ids.

    They are in the order of policy, fingerprint. Previews and outdated findings belong to one scan alone, and are left out.
    """
    end = _find_place(connection, last)
    first = _find_place(connection, before).revision if before else 0
    finding = FINDINGS.c
    wanted = (
        select_findings()
        .where(finding.cluster == end.cluster, finding.until > first, finding.since <= end.revision)
        .where(finding.event.not_in(SINGLE_SCAN_EVENTS), is_among(connection, CHECKS.c.policy, sorted(policies)))
        .order_by(finding.fingerprint, finding.since)
        .execution_options(yield_per=CHUNK)
    )
    times, unchecked = read_scan_ends(connection, end.cluster), read_unchecked(connection, end.number)
    with connection.execute(wanted) as result:
        groups = groupby(map(FindingRow.from_row, result), lambda row: row.history.fingerprint)
        several = ([*rows] for _, rows in groups)
        while portion := [*islice(several, CHUNK)]:
            verdicts = read_verdicts(connection, {rows[-1].columns.verdict for rows in portion})
            for rows in portion:
                made = finding_of(
                    bytes(rows[-1].history.fingerprint).hex(),
                    rows[-1].columns.resource_version,
                    *rows[-1][2:],
                    verdicts[rows[-1].columns.verdict],
                    "",
                    "",
                )
                yield _build_finding(
                    made, rows, first, end.revision, times, checked=rows[-1].history.id not in unchecked
                )


def _build_finding(
    finding: Finding, rows: Sequence[FindingRow], first: int, last: int, times: Times, *, checked: bool
) -> FindingOfPeriod:
    """The finding of some rows, from the revision `first` to the revision `last`."""
    intervals = [_interval_of(row) for row in rows]
    return FindingOfPeriod(
        finding.fingerprint[:SHORT],
        finding,
        times[rows[0].history.first],
        was_open_at_begin(intervals, first),
        rows[-1].history.until > last,
        tuple(_list_events(intervals, first, last, times)),
        checked,
    )


def _find_place(connection: Connection, scan: str) -> _ScanPlace:
    wanted = select(SCANS.c.number, SCANS.c.cluster, SCANS.c.revision).where(SCANS.c.id == scan)
    return _ScanPlace(*connection.execute(wanted).one())


def _interval_of(row: FindingRow) -> OpenInterval:
    history = row.history
    # Only a row that a scan resolved has `last_seen`; older versions recorded no reason.
    resolution = history.resolution or "notKnown" if history.last_seen is not None else ""
    return OpenInterval(history.since, history.until, history.event, resolution)


def _list_events(intervals: Sequence[OpenInterval], first: int, last: int, times: Times) -> Iterator[FindingEvent]:
    return (
        FindingEvent(times[event.revision], event.change, event.reason) for event in list_events(intervals, first, last)
    )
