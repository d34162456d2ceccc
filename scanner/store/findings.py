"""Stored findings as nouns, streamed in the order of a report.

The order is made from names alone; messages, which may be long, are fetched for a portion at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from sqlalchemy import ColumnElement, Connection, Row, Select, select

from scanner.model.evidence import NO_EVIDENCE, Evidence
from scanner.model.outcome import Check, CheckKind, Errored, Finding, Violated, WouldChange
from scanner.model.policy import Action, Operation
from scanner.model.scan import StoredFinding
from scanner.store.drift import drift_of
from scanner.store.engine import among
from scanner.store.evidence import evidence_of
from scanner.store.interning import CHUNK, chunks
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import CHECKS, EVIDENCE, FINDINGS, KINDS, SCANS, VERDICTS

PREVIEW: Final = "preview"
"""The event of a row that one scan only supposed: it is nobody's history."""

SHORT = 12
"""How many hex digits of a fingerprint people type."""

Times: TypeAlias = Mapping[int, datetime]
_Status: TypeAlias = Literal["new", "open", "reopened", "preview"]
_STATUS: Mapping[str, _Status] = {"new": "new", "reopened": "reopened", "changed": "open", PREVIEW: PREVIEW}

_ORDER: tuple[ColumnElement[Any], ...] = (
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
    FINDINGS.c.namespace,
    FINDINGS.c.name,
    FINDINGS.c.fingerprint,
)


class FindingRow(NamedTuple):
    """A row of `findings`, its check and its kind; the verdict and the evidence are numbers."""

    id: int
    fingerprint: bytes
    since: int
    until: int
    first: int
    event: str
    last_seen: int | None
    namespace: str
    name: str
    uid: str
    resource_version: str
    verdict: int
    evidence: int | None
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    check_kind: str
    check_index: int
    expression: str
    language: str
    api_version: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Verdict:
    outcome: Violated | WouldChange | Errored
    operation: Operation
    actions: tuple[Action, ...]
    denies: bool
    excepted_by: str


def select_findings() -> Select[*tuple[Any, ...]]:
    """Rows of `FindingRow`, in no order."""
    own = (FINDINGS.c[name] for name in FindingRow._fields[:13])
    names = ("policy", "binding", "param_namespace", "param_name", "kind", "index", "expression", "language")
    check = (CHECKS.c[name] for name in names)
    joined = FINDINGS.join(CHECKS, CHECKS.c.id == FINDINGS.c.check).join(KINDS, KINDS.c.id == FINDINGS.c.kind)
    return select(*own, *check, KINDS.c.api_version, KINDS.c.kind).select_from(joined)


def seen_by(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Iterator[StoredFinding]:
    """What the scan of a revision saw, in order, as it looked then."""
    covers = (FINDINGS.c.cluster == cluster) & (FINDINGS.c.since <= revision) & (FINDINGS.c.until > revision)
    times = times_of(connection, cluster)
    for row, finding in _streamed(connection, covers, without=unchecked):
        yield still_there(row, finding, times, newest=revision, last_seen=revision)


def resolved_by(connection: Connection, cluster: int, revision: int) -> Iterator[StoredFinding]:
    """What the scan of a revision saw fixed, in order."""
    # Only a row that ended in a fix says when it was seen last; one that ended in a change goes on in another row.
    ended = (FINDINGS.c.cluster == cluster) & (FINDINGS.c.until == revision) & FINDINGS.c.last_seen.is_not(None)
    times = times_of(connection, cluster)
    for row, finding in _streamed(connection, ended, without=RowIdSet()):
        yield resolved(row, finding, times)


def still_there(row: FindingRow, finding: Finding, times: Times, *, newest: int, last_seen: int) -> StoredFinding:
    """An open finding as of the revision `newest`."""
    return StoredFinding(
        id=finding.fingerprint[:SHORT],
        finding=finding,
        status=_STATUS[row.event] if row.since == newest else "open",
        first_seen=times[row.first],
        last_seen=times[last_seen],
    )


def supposed(row: FindingRow, finding: Finding, times: Times) -> StoredFinding:
    """A finding that only the scan of its revision knows."""
    seen = times[row.since]
    return StoredFinding(finding.fingerprint[:SHORT], finding, PREVIEW, first_seen=seen, last_seen=seen)


def resolved(row: FindingRow, finding: Finding, times: Times) -> StoredFinding:
    """A finding whose row has ended in a fix."""
    return StoredFinding(
        id=finding.fingerprint[:SHORT],
        finding=finding,
        status="resolved",
        first_seen=times[row.first],
        last_seen=times[row.last_seen or row.since],
        resolved_at=times[row.until],
    )


def times_of(connection: Connection, cluster: int) -> Times:
    """When each merged scan of a cluster ended."""
    ended = select(SCANS.c.revision, SCANS.c.finished_at).where(
        SCANS.c.cluster == cluster, SCANS.c.revision.is_not(None)
    )
    return {row.revision: row.finished_at for row in connection.execute(ended)}


def with_findings(connection: Connection, rows: Iterable[FindingRow]) -> list[tuple[FindingRow, Finding]]:
    """Rows and what they say."""
    portion = list(rows)
    verdicts = _verdicts(connection, {row.verdict for row in portion})
    evidence = _evidence(connection, {row.evidence for row in portion if row.evidence is not None})
    return [
        (row, _finding(row, verdicts[row.verdict], evidence.get(row.evidence or 0, NO_EVIDENCE))) for row in portion
    ]


def _streamed(
    connection: Connection, chosen: ColumnElement[bool], *, without: RowIdSet
) -> Iterator[tuple[FindingRow, Finding]]:
    ordered = select_findings().where(chosen).order_by(*_ORDER).execution_options(yield_per=CHUNK)
    with connection.execute(ordered) as result:
        for portion in result.partitions():
            yield from with_findings(connection, (FindingRow(*row) for row in portion if row[0] not in without))


def _verdicts(connection: Connection, numbers: set[int]) -> dict[int, _Verdict]:
    if not numbers:
        return {}
    wanted = select(VERDICTS).where(VERDICTS.c.id.in_(sorted(numbers)))
    return {row.id: _verdict(row) for row in connection.execute(wanted)}


def _evidence(connection: Connection, numbers: set[int]) -> dict[int, Evidence]:
    found: dict[int, Evidence] = {}
    for portion in chunks(sorted(numbers)):
        wanted = select(EVIDENCE.c.id, EVIDENCE.c.reasons).where(among(connection, EVIDENCE.c.id, portion))
        found.update({number: evidence_of(text) for number, text in connection.execute(wanted)})
    return found


def _verdict(row: Row[*tuple[Any, ...]]) -> _Verdict:
    actions = tuple(row.actions.split(",")) if row.actions else ()
    return _Verdict(_outcome(row), row.operation, cast("tuple[Action, ...]", actions), row.denies, row.excepted_by)


def _outcome(row: Row[*tuple[Any, ...]]) -> Violated | WouldChange | Errored:
    match row.outcome:
        case "violated":
            return Violated(row.message, row.reason, row.code)
        case "wouldChange":
            return drift_of(row.message)
        case _:
            return Errored(row.message, row.would_deny, row.always, row.reason, row.code)


@lru_cache(maxsize=4096)
def _check(kind: str, index: int, expression: str) -> Check:
    """Few checks speak about many objects: their findings share them."""
    return Check(CheckKind(kind), index, expression)


def _finding(row: FindingRow, verdict: _Verdict, evidence: Evidence) -> Finding:
    return Finding(
        fingerprint=bytes(row.fingerprint).hex(),
        policy=row.policy,
        binding=row.binding,
        param_namespace=row.param_namespace,
        param_name=row.param_name,
        check=_check(row.check_kind, row.check_index, row.expression),
        outcome=verdict.outcome,
        api_version=row.api_version,
        kind=row.kind,
        namespace=row.namespace,
        name=row.name,
        uid=row.uid,
        resource_version=row.resource_version,
        operation=verdict.operation,
        actions=verdict.actions,
        denies=verdict.denies,
        excepted_by=verdict.excepted_by,
        language=row.language,
        evidence=evidence,
    )
