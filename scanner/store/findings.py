"""Reads stored findings, as streams in the order of a report.

The query sorts by names alone; messages, which may be long, are fetched for a portion of the rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, Row, Select, select

from scanner.model.evidence import NO_EVIDENCE, Evidence
from scanner.model.outcome import Finding
from scanner.model.scan import StoredFinding
from scanner.store.columns import (
    ROW,
    CheckColumns,
    FindingColumns,
    HistoryColumns,
    KindColumns,
    Verdict,
    VerdictColumns,
    columns_of,
    finding_of,
    slices_of,
)
from scanner.store.engine import among
from scanner.store.evidence import evidence_of
from scanner.store.interning import CHUNK, chunks
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import CHECKS, EVIDENCE, FINDINGS, KINDS, PREVIEW, SCANS, VERDICTS

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
    FINDINGS.c.namespace,
    FINDINGS.c.name,
    FINDINGS.c.fingerprint,
)


class FindingRow(NamedTuple):
    """A row of `findings`, its check and its kind; the verdict and the evidence are ids."""

    history: HistoryColumns
    columns: FindingColumns
    check: CheckColumns
    kind: KindColumns

    @classmethod
    def of(cls, row: Row[*tuple[Any, ...]]) -> FindingRow:
        """A row of `select_findings`."""
        return cls(
            HistoryColumns._make(row[_HISTORY]),
            FindingColumns._make(row[_FINDING]),
            CheckColumns._make(row[_CHECK]),
            KindColumns._make(row[_KIND]),
        )


_HISTORY, _FINDING, _CHECK, _KIND = slices_of(HistoryColumns, FindingColumns, CheckColumns, KindColumns)


def select_findings() -> Select[*tuple[Any, ...]]:
    """The query of the rows for `FindingRow.of`, in no order."""
    own = (FINDINGS.c[name] for name in ROW)
    joined = FINDINGS.join(CHECKS, CHECKS.c.id == FINDINGS.c.check).join(KINDS, KINDS.c.id == FINDINGS.c.kind)
    return select(*own, *columns_of(CHECKS, CheckColumns), *columns_of(KINDS, KindColumns)).select_from(joined)


def seen_by(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Iterator[StoredFinding]:
    """The findings of the scan of a revision, in the order of a report, with the status that they had then.

    `unchecked` are the ids of the rows that this scan did not check: they are left out.
    """
    covers = (FINDINGS.c.cluster == cluster) & (FINDINGS.c.since <= revision) & (FINDINGS.c.until > revision)
    times = times_of(connection, cluster)
    for row, finding in _streamed(connection, covers, without=unchecked):
        yield open_finding(row, finding, times, newest=revision, last_seen=revision)


def resolved_by(connection: Connection, cluster: int, revision: int) -> Iterator[StoredFinding]:
    """The findings that the scan of a revision resolved, in the order of a report."""
    # Only the row of a resolved finding has `last_seen`; a row that ended with a change continues in another row.
    ended = (FINDINGS.c.cluster == cluster) & (FINDINGS.c.until == revision) & FINDINGS.c.last_seen.is_not(None)
    times = times_of(connection, cluster)
    for row, finding in _streamed(connection, ended, without=RowIdSet()):
        yield resolved(row, finding, times)


def open_finding(row: FindingRow, finding: Finding, times: Times, *, newest: int, last_seen: int) -> StoredFinding:
    """An open finding as of the revision `newest`; `times` has the end of each scan by revision."""
    return StoredFinding(
        id=finding.fingerprint[:SHORT],
        finding=finding,
        status=_STATUS[row.history.event] if row.history.since == newest else "open",
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
        (row, finding_of(*row, verdicts[row.columns.verdict], evidence.get(row.columns.evidence or 0, NO_EVIDENCE)))
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


def _verdicts(connection: Connection, numbers: set[int]) -> dict[int, Verdict]:
    if not numbers:
        return {}
    wanted = select(VERDICTS.c.id, *columns_of(VERDICTS, VerdictColumns)).where(VERDICTS.c.id.in_(sorted(numbers)))
    return {number: VerdictColumns._make(columns).verdict() for number, *columns in connection.execute(wanted)}


def _evidence(connection: Connection, numbers: set[int]) -> dict[int, Evidence]:
    evidence: dict[int, Evidence] = {}
    for portion in chunks(sorted(numbers)):
        wanted = select(EVIDENCE.c.id, EVIDENCE.c.reasons).where(among(connection, EVIDENCE.c.id, portion))
        evidence.update({number: evidence_of(text) for number, text in connection.execute(wanted)})
    return evidence
