"""Reads stored findings, as streams in the order of a report.

The query sorts by names alone; messages, which may be long, are fetched for a portion of the rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, Select, select

from scanner.model.outcome import Finding
from scanner.model.scan import StoredFinding
from scanner.store.columns import (
    ROW,
    CheckColumns,
    FindingColumns,
    HistoryColumns,
    KindColumns,
    ObjectColumns,
    VerdictColumns,
    columns_of,
    finding_of,
    slices_of,
)
from scanner.store.engine import among
from scanner.store.interning import CHUNK, chunks
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import CHECKS, EVIDENCE, FINDINGS, KINDS, OBJECTS, PREVIEW, SCANS, VERDICTS

SHORT = 12
"""The number of hex digits of a finding's id."""

Times: TypeAlias = Mapping[int, datetime]
_Status: TypeAlias = Literal["new", "open", "reopened", "preview"]
_STATUS: Mapping[str, _Status] = {"new": "new", "reopened": "reopened", "changed": "open", PREVIEW: PREVIEW}

CHECK_ORDER: tuple[ColumnElement[Any], ...] = (
    CHECKS.c.policy,
    CHECKS.c.language,
    CHECKS.c.binding,
    CHECKS.c.param_namespace,
    CHECKS.c.param_name,
    CHECKS.c.kind,
    CHECKS.c.index,
    CHECKS.c.expression,
    KINDS.c.kind,
    KINDS.c.api_version,
)
"""The order of checks and kinds in a report."""
_ORDER = (
    *CHECK_ORDER,
    OBJECTS.c.namespace,
    OBJECTS.c.name,
    FINDINGS.c.fingerprint,
)


class FindingRow(NamedTuple):
    """A row of `findings`, its check and its kind; the verdict and the evidence are ids."""

    history: HistoryColumns
    columns: FindingColumns
    check: CheckColumns
    kind: KindColumns
    identity: ObjectColumns

    @classmethod
    def of(cls, row: Row[*tuple[Any, ...]]) -> FindingRow:
        """A row of `select_findings`."""
        return cls(
            HistoryColumns._make(row[_HISTORY]),
            FindingColumns._make(row[_FINDING]),
            CheckColumns._make(row[_CHECK]),
            KindColumns._make(row[_KIND]),
            ObjectColumns._make(row[_OBJECT]),
        )


_COLUMNS = HistoryColumns, FindingColumns, CheckColumns, KindColumns, ObjectColumns
_HISTORY, _FINDING, _CHECK, _KIND, _OBJECT = slices_of(*_COLUMNS)


def select_findings() -> Select[*tuple[Any, ...]]:
    """The query of the rows for `FindingRow.of`, in no order."""
    own = (FINDINGS.c[name] for name in ROW)
    referred = *columns_of(CHECKS, CheckColumns), *columns_of(KINDS, KindColumns), *columns_of(OBJECTS, ObjectColumns)
    joined = FINDINGS.join(CHECKS, CHECKS.c.id == FINDINGS.c.check).join(KINDS, KINDS.c.id == FINDINGS.c.kind)
    return select(*own, *referred).select_from(joined.join(OBJECTS, OBJECTS.c.id == FINDINGS.c.object))


def seen_by(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Iterator[StoredFinding]:
    """The findings of the scan of a revision, in the order of a report, with the status that they had then.

    `unchecked` are the ids of the rows that this scan did not check: they are left out.
    """
    times = times_of(connection, cluster)
    for row, finding in _streamed(connection, seen_in(cluster, revision), without=unchecked):
        yield still_there(row, finding, times, newest=revision, last_seen=revision)


def resolved_by(connection: Connection, cluster: int, revision: int) -> Iterator[StoredFinding]:
    """The findings that the scan of a revision resolved, in the order of a report."""
    times = times_of(connection, cluster)
    for row, finding in _streamed(connection, resolved_in(cluster, revision), without=RowIdSet()):
        yield resolved(row, finding, times)


def seen_in(cluster: int, revision: int) -> ColumnElement[bool]:
    """The condition that a finding was open in a revision; its scan may have left the finding unchecked."""
    return (FINDINGS.c.cluster == cluster) & (FINDINGS.c.since <= revision) & (FINDINGS.c.until > revision)


def resolved_in(cluster: int, revision: int) -> ColumnElement[bool]:
    """The condition that a scan resolved a finding."""
    # Only the row of a resolved finding has `last_seen`; a row that ended with a change continues in another row.
    return (FINDINGS.c.cluster == cluster) & (FINDINGS.c.until == revision) & FINDINGS.c.last_seen.is_not(None)


def status_of(event: str, *, begins: bool) -> _Status:
    """The status of an open finding, given the event of its row, and whether the row begins with the newest revision."""
    return _STATUS[event] if begins else "open"


def still_there(row: FindingRow, finding: Finding, times: Times, *, newest: int, last_seen: int) -> StoredFinding:
    """An open finding as of the revision `newest`; `times` has the end of each scan by revision."""
    return StoredFinding(
        id=finding.fingerprint[:SHORT],
        finding=finding,
        status=status_of(row.history.event, begins=row.history.since == newest),
        first_seen=times[row.history.first],
        last_seen=times[last_seen],
    )


def previewed(row: FindingRow, finding: Finding, times: Times) -> StoredFinding:
    """A preview, which belongs to the scan of its revision alone."""
    seen = times[row.history.since]
    return StoredFinding(finding.fingerprint[:SHORT], finding, PREVIEW, first_seen=seen, last_seen=seen)


def resolved(row: FindingRow, finding: Finding, times: Times) -> StoredFinding:
    """A resolved finding."""
    return StoredFinding(
        id=finding.fingerprint[:SHORT],
        finding=finding,
        status="resolved",
        first_seen=times[row.history.first],
        last_seen=times[row.history.last_seen or row.history.since],
        resolved_at=times[row.history.until],
    )


def times_of(connection: Connection, cluster: int) -> Times:
    """The end of each merged scan of a cluster, by revision."""
    ended = select(SCANS.c.revision, SCANS.c.finished_at).where(
        SCANS.c.cluster == cluster, SCANS.c.revision.is_not(None)
    )
    return {row.revision: row.finished_at for row in connection.execute(ended)}


def with_findings(connection: Connection, rows: Iterable[FindingRow]) -> list[tuple[FindingRow, Finding]]:
    """Rows with their findings, in the order of the rows; verdicts and evidence are read at once."""
    portion = list(rows)
    verdicts = _verdicts(connection, {row.columns.verdict for row in portion})
    evidence = _evidence(connection, {row.columns.evidence for row in portion if row.columns.evidence is not None})
    return [
        (row, finding_of(*row, verdicts[row.columns.verdict], evidence.get(row.columns.evidence or 0, "")))
        for row in portion
    ]


def _streamed(
    connection: Connection, chosen: ColumnElement[bool], *, without: RowIdSet
) -> Iterator[tuple[FindingRow, Finding]]:
    ordered = select_findings().where(chosen).order_by(*_ORDER).execution_options(yield_per=CHUNK)
    with connection.execute(ordered) as result:
        for portion in result.partitions():
            rows = map(FindingRow.of, portion)
            yield from with_findings(connection, (row for row in rows if row.history.id not in without))


def _verdicts(connection: Connection, numbers: set[int]) -> dict[int, VerdictColumns]:
    if not numbers:
        return {}
    wanted = select(VERDICTS.c.id, *columns_of(VERDICTS, VerdictColumns)).where(VERDICTS.c.id.in_(sorted(numbers)))
    return {number: VerdictColumns._make(columns) for number, *columns in connection.execute(wanted)}


def _evidence(connection: Connection, numbers: set[int]) -> dict[int, str]:
    evidence: dict[int, str] = {}
    for portion in chunks(sorted(numbers)):
        wanted = select(EVIDENCE.c.id, EVIDENCE.c.reasons).where(among(connection, EVIDENCE.c.id, portion))
        evidence.update((number, text) for number, text in connection.execute(wanted))
    return evidence
