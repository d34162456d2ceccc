"""Merges a scan into the history of its cluster.

A finding's row is written only when the finding appears, changes, is resolved or reopens. A scan with the findings of the
previous scan writes nothing here. Memory holds one page, and one bit for every finding ever stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select, update

from scanner.model.outcome import GapKind
from scanner.model.policy import BindingKey
from scanner.model.scan import Scope
from scanner.store import codec
from scanner.store.columns import ROW, CheckColumns, FindingColumns, HistoryColumns, slices_of
from scanner.store.engine import among, insert_rows
from scanner.store.evaluated_sets import EvaluatedSets
from scanner.store.ids import reserve
from scanner.store.interning import CHUNK, Interned, chunks
from scanner.store.packing import Key, StagedPage
from scanner.store.resolution import Reach, UnseenFinding
from scanner.store.row_ids import RowIdSet
from scanner.store.sightings import last_seen, merged_scans, open_findings
from scanner.store.tables import (
    CHECKS,
    EVIDENCE,
    EXCERPTS,
    FINDINGS,
    GAPS,
    KINDS,
    OBJECTS,
    OPEN,
    PREVIEW,
    SCANS,
    TALLIES,
    VERDICTS,
)

_OF_THE_FIRST_SCAN = ("object", "resource_version", "excerpt")
_content: Callable[[FindingColumns], Key] = itemgetter(
    *(place for place, name in enumerate(FindingColumns._fields) if name not in _OF_THE_FIRST_SCAN)
)
"""The columns that decide whether a finding changed: a status write changes only the resource version, and maybe the excerpt."""


class ScanPosition(NamedTuple):
    """The position of a scan in its cluster's history: its revision, and the newest revision when it began."""

    cluster: int
    revision: int
    base: int


class SimulatedRequest(NamedTuple):
    """The operation and the user (in the form of the store) of the requests that a scan simulated."""

    operation: str
    requester: str


class _LatestRow(NamedTuple):
    history: HistoryColumns
    finding: FindingColumns


_HISTORY, _FINDING = slices_of(HistoryColumns, FindingColumns)
_LATEST_ROWS = select(*(FINDINGS.c[name] for name in ROW)).where(FINDINGS.c.superseded.is_(None))


@dataclass
class Changes:
    """The numbers of a merge. `new` counts findings that were not open before, including the `reopened` ones."""

    findings: int = 0
    new: int = 0
    reopened: int = 0
    resolved: int = 0


class History:
    """The history of one cluster while one scan is merged into it.

    `previews` are the bindings that `--assume-bound` added. Their findings belong to this scan alone: such a row begins and
    ends with the scan, and is never the latest row of its fingerprint.
    """

    def __init__(
        self, connection: Connection, position: ScanPosition, previews: frozenset[BindingKey] = frozenset()
    ) -> None:
        """Start at the position of a scan; the connection is in a transaction that writes history."""
        self._previews = previews
        self._previewed: set[bytes] = set()
        self.checks = Interned(connection, CHECKS)
        self.kinds = Interned(connection, KINDS)
        self.changes = Changes()
        self.unchecked = RowIdSet()
        self._verdicts = Interned(connection, VERDICTS)
        self._evidence = Interned(connection, EVIDENCE)
        self._excerpts = Interned(connection, EXCERPTS)
        self.sets = EvaluatedSets(connection, self.checks)
        self._connection = connection
        self._position = position
        self._seen = RowIdSet()

    def merge(self, page: StagedPage, checks: Sequence[int], kinds: Sequence[int], objects: Sequence[int]) -> None:
        """Merge the findings of a page, given the ids of its checks, kinds and objects. The first of equal fingerprints counts."""
        verdicts, evidence = self._verdicts.ids(page.verdicts), self._evidence.ids(page.evidence)
        excerpts = self._excerpts.ids(page.excerpts)
        assumed = {index for index, key in enumerate(page.checks) if _binding_key(key) in self._previews}
        bound: list[tuple[bytes, FindingColumns]] = []
        previews: dict[bytes, FindingColumns] = {}
        for fingerprint, staged in page.findings:
            key = bytes.fromhex(fingerprint)
            columns = FindingColumns(
                check=checks[staged.check],
                kind=kinds[staged.kind],
                object=objects[staged.object],
                resource_version=staged.resource_version,
                verdict=verdicts[staged.verdict],
                evidence=None if staged.evidence is None else evidence[staged.evidence],
                excerpt=None if staged.excerpt is None else excerpts[staged.excerpt],
            )
            if staged.check in assumed:
                previews.setdefault(key, columns)
            else:
                bound.append((key, columns))
        self._insert_previews(previews)
        for start in range(0, len(bound), CHUNK):
            portion = dict(reversed(bound[start : start + CHUNK]))
            self._merge(portion, self._latest_rows(list(portion)))

    def _insert_previews(self, findings: dict[bytes, FindingColumns]) -> None:
        """Insert the findings of assumed bindings, which end with this scan."""
        fresh = {key: columns for key, columns in findings.items() if key not in self._previewed}
        self._previewed.update(fresh)
        now = self._position.revision
        ended = (self._row(key, PREVIEW)._replace(until=now + 1, superseded=now) for key in fresh)
        self._insert(zip(ended, fresh.values(), strict=True))

    def resolve(self, reach: Reach, request: SimulatedRequest) -> None:
        """Resolve the open findings that the scan would have found but did not; note the others as unchecked."""
        now = self._position.revision
        # A scan that was merged meanwhile may have seen objects that did not exist yet when this scan listed them.
        meanwhile = list(merged_scans(self._connection, self._position.cluster, after=self._position.base, before=now))
        fixed: list[int] = []
        for number, since, check, object_id, missing in self._missing():
            reached = reach.reaches(missing) and not self.sets.not_evaluated(check, object_id)
            if reached and not any(scan.saw(number, since) for scan in meanwhile):
                fixed.append(number)
            else:
                self.unchecked.add(number)
        for revision, numbers in last_seen(self._connection, self._position.cluster, fixed, before=now).items():
            hidden = (
                numbers
                if reach.unread - self._unread(revision)
                else self._of_other_requests(revision, numbers, request)
            )
            for number in hidden:
                self.unchecked.add(number)
            gone = [number for number in numbers if number not in self.unchecked]
            self.changes.resolved += len(gone)
            self._update(gone, until=now, last_seen=revision)

    def _of_other_requests(self, revision: int, numbers: Sequence[int], request: SimulatedRequest) -> Sequence[int]:
        """The findings of a scan that may be missing now because this scan simulated another operation or user."""
        then = (SCANS.c.cluster == self._position.cluster) & (SCANS.c.revision == revision)
        number, scope, requester = self._connection.execute(
            select(SCANS.c.number, SCANS.c.scope, SCANS.c.requester).where(then)
        ).one()
        if codec.from_text(Scope, scope).operation != request.operation:
            return numbers
        return [] if requester == request.requester else self._depending_on_user(number, numbers)

    def _depending_on_user(self, scan: int, numbers: Sequence[int]) -> list[int]:
        """The findings whose outcome depended on the user of a scan's requests."""
        checks = select(TALLIES.c.check).where(TALLIES.c.scan == scan, TALLIES.c.requester)
        depending: list[int] = []
        for portion in chunks(numbers):
            chosen = among(self._connection, FINDINGS.c.id, portion) & FINDINGS.c.check.in_(checks)
            depending.extend(self._connection.execute(select(FINDINGS.c.id).where(chosen)).scalars())
        return depending

    def _unread(self, revision: int) -> frozenset[str]:
        """The documents that the scan of a revision could not read."""
        scan = (SCANS.c.cluster == self._position.cluster) & (SCANS.c.revision == revision)
        wanted = select(GAPS.c.where).join(SCANS).where(scan, GAPS.c.kind == GapKind.DOCUMENT.value)
        return frozenset(self._connection.execute(wanted).scalars())

    def _latest_rows(self, keys: list[bytes]) -> dict[bytes, _LatestRow]:
        chosen = (FINDINGS.c.cluster == self._position.cluster) & among(self._connection, FINDINGS.c.fingerprint, keys)
        latest: dict[bytes, _LatestRow] = {}
        for row in self._connection.execute(_LATEST_ROWS.where(chosen)):
            history = HistoryColumns._make(row[_HISTORY])
            latest[bytes(history.fingerprint)] = _LatestRow(history, FindingColumns._make(row[_FINDING]))
        return latest

    def _merge(self, findings: dict[bytes, FindingColumns], before: dict[bytes, _LatestRow]) -> None:
        rows: list[tuple[HistoryColumns, FindingColumns]] = []
        changed: list[int] = []
        reopened: list[int] = []
        moved: list[tuple[int, int]] = []
        for key, columns in findings.items():
            if key not in before:
                rows.append((self._row(key, "new"), columns))
                continue
            latest, stored = before[key]
            if latest.id in self._seen:
                continue
            if latest.until != OPEN:
                reopened.append(latest.id)
                row = self._row(key, "reopened", first=latest.first, reopened=latest.reopened + 1)
                rows.append((row, columns))
            elif _content(stored) != _content(columns):
                changed.append(latest.id)
                row = self._row(key, "changed", first=latest.first, reopened=latest.reopened)
                rows.append((row, columns))
            else:
                self._mark_seen(latest.id)
                if stored.object != columns.object:
                    moved.append((columns.object, latest.id))
        self.changes.new += len(rows) - len(changed)
        self.changes.reopened += len(reopened)
        self._update(changed, until=self._position.revision, superseded=self._position.revision)
        self._update(reopened, superseded=self._position.revision)
        self._move(moved)
        self._insert(rows)

    def _move(self, moved: Sequence[tuple[int, int]]) -> None:
        """Let rows refer to another row of the same object, which was gone and is back: pairs of object and finding."""
        if moved:
            row = update(FINDINGS).where(FINDINGS.c.id == bindparam("finding"))
            values = [{"finding": finding, "to": object_id} for object_id, finding in moved]
            self._connection.execute(row.values(object=bindparam("to")), values)

    def _insert(self, rows: Iterable[tuple[HistoryColumns, FindingColumns]]) -> None:
        """Insert new rows and give them their ids."""
        new = list(rows)
        numbers = reserve(self._connection, FINDINGS, len(new))
        numbered = [(number, *history[1:], *finding) for number, (history, finding) in zip(numbers, new, strict=True)]
        insert_rows(self._connection, FINDINGS, ROW, numbered)
        for number in numbers:
            self._mark_seen(number)

    def _row(self, key: bytes, event: str, *, first: int | None = None, reopened: int = 0) -> HistoryColumns:
        """A new open row, without its id."""
        now = self._position.revision
        return HistoryColumns(
            id=0,
            cluster=self._position.cluster,
            fingerprint=key,
            since=now,
            until=OPEN,
            superseded=None,
            first=now if first is None else first,
            event=event,
            reopened=reopened,
            last_seen=None,
        )

    def _mark_seen(self, number: int) -> None:
        self._seen.add(number)
        self.changes.findings += 1

    def _missing(self) -> Iterator[tuple[int, int, int, int, UnseenFinding]]:
        """The open findings that this scan did not find: id, first revision, ids of check and object, and description."""
        numbers = self._connection.execute(open_findings(self._position.cluster)).scalars()
        described = (
            select(FINDINGS.c.id, FINDINGS.c.since, FINDINGS.c.check, FINDINGS.c.object)
            .add_columns(CHECKS.c.language, CHECKS.c.policy, CHECKS.c.binding)
            .add_columns(KINDS.c.api_version, KINDS.c.kind, OBJECTS.c.namespace, OBJECTS.c.name)
            .join(CHECKS, CHECKS.c.id == FINDINGS.c.check)
            .join(KINDS, KINDS.c.id == FINDINGS.c.kind)
            .join(OBJECTS, OBJECTS.c.id == FINDINGS.c.object)
        )
        for portion in chunks([number for number in numbers if number not in self._seen]):
            for number, since, check, object_id, *about in self._connection.execute(
                described.where(among(self._connection, FINDINGS.c.id, portion))
            ):
                yield number, since, check, object_id, UnseenFinding(*about)

    def _update(self, numbers: Sequence[int], **values: int) -> None:
        for portion in chunks(numbers):
            self._connection.execute(
                update(FINDINGS).where(among(self._connection, FINDINGS.c.id, portion)).values(**values)
            )


def _binding_key(key: Key) -> BindingKey:
    check = CheckColumns._make(key)
    return check.language, check.policy, check.binding
