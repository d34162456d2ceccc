"""Merges a scan into the history of its cluster.

A finding's row is written only when the finding appears, changes, is resolved or reopens. A scan with the findings of the
previous scan writes nothing here. Memory holds one page, and one bit for every finding ever stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, select, update

from scanner.model.outcome import GapKind
from scanner.model.policy import BindingKey
from scanner.model.scan import Scope
from scanner.posture.causes import Circumstances, Coordinates
from scanner.posture.problems import problem_number
from scanner.store import codec
from scanner.store.check_names import CheckNames
from scanner.store.columns import ROW, UNDECIDING, CheckColumns, FindingColumns, HistoryColumns, slices_of
from scanner.store.engine import among, insert_rows
from scanner.store.evaluated_sets import EvaluatedSets
from scanner.store.ids import reserve
from scanner.store.interning import CHUNK, Interned, chunks
from scanner.store.merged_pages import MergedPages, merged_key
from scanner.store.packing import Key, StagedPage
from scanner.store.population import RecordedList
from scanner.store.resolution import Reach, UnseenFinding
from scanner.store.resolutions import ResolvedFindings, changed_since
from scanner.store.row_ids import RowIdSet, Run
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
    POPULATION,
    PREVIEW,
    SCANS,
    TALLIES,
    VERDICTS,
)

_content: Callable[[FindingColumns], Key] = itemgetter(
    *(place for place, name in enumerate(FindingColumns._fields) if name not in UNDECIDING)
)
"""The columns that decide whether a finding changed. An object that was gone and is back has another row of `objects`: the old
row of a finding keeps the old one, which has the workload of its time."""


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
        self,
        connection: Connection,
        position: ScanPosition,
        check_names: CheckNames,
        previews: frozenset[BindingKey] = frozenset(),
    ) -> None:
        """Start at the position of a scan; the connection is in a transaction that writes history."""
        self._check_names = check_names
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
        self._matched_objects: dict[tuple[str, ...], RowIdSet] = {}
        self._merged = MergedPages(connection, position.cluster)

    def merge(self, page: StagedPage, checks: Sequence[int], kinds: Sequence[int], objects: RecordedList) -> None:
        """Merge the findings of a page, given the ids of its checks and kinds, and its objects.

        The first of equal fingerprints counts.
        """
        if not page.digest:
            return
        assumed = {index for index, key in enumerate(page.checks) if _binding_key(key) in self._previews}
        key = merged_key(page, objects)
        known = None if assumed else self._merged.known(key)
        if known is not None:
            self._see(known)
            return
        rows = self._rows(page, checks, kinds, objects)
        self._insert_previews({name: columns for name, place, columns in reversed(rows) if place in assumed})
        bound = [(name, columns) for name, place, columns in rows if place not in assumed]
        numbers: list[int] = []
        for start in range(0, len(bound), CHUNK):
            portion = dict(reversed(bound[start : start + CHUNK]))
            numbers += self._merge(portion, self._latest_rows(list(portion)))
        if not assumed:
            self._merged.keep(key, numbers)

    def _rows(
        self, page: StagedPage, checks: Sequence[int], kinds: Sequence[int], objects: RecordedList
    ) -> list[tuple[bytes, int, FindingColumns]]:
        """The findings of a page: fingerprint, the place of the check on the page, and the columns with ids."""
        findings = page.findings()
        verdicts, evidence = self._verdicts.ids(findings.verdicts), self._evidence.ids(findings.evidence)
        excerpts = self._excerpts.ids(findings.excerpts)
        names = self._check_names.of(page.checks)
        ids, workloads = objects
        return [
            (
                fingerprint,
                check,
                FindingColumns(
                    check=checks[check],
                    kind=kinds[kind],
                    object=ids[place],
                    resource_version=resource_version,
                    verdict=verdicts[verdict],
                    evidence=None if why is None else evidence[why],
                    excerpt=None if excerpt is None else excerpts[excerpt],
                    problem=problem_number(names[check], workloads[place]),
                ),
            )
            for fingerprint, (check, kind, place, resource_version, verdict, why, excerpt, _) in findings.staged
        ]

    def close(self) -> None:
        """Write what the merge of the next scan needs."""
        self._merged.write()

    def _insert_previews(self, findings: dict[bytes, FindingColumns]) -> None:
        """Insert the findings of assumed bindings, which end with this scan."""
        fresh = {key: columns for key, columns in findings.items() if key not in self._previewed}
        self._previewed.update(fresh)
        now = self._position.revision
        ended = (self._row(key, PREVIEW)._replace(until=now + 1, superseded=now) for key in fresh)
        self._see(Run(number, 1) for number in self._insert(zip(ended, fresh.values(), strict=True)))

    def resolve(
        self, reach: Reach, request: SimulatedRequest, is_there: Callable[[int], bool], circumstances: Circumstances
    ) -> None:
        """Resolve the open findings that the scan would have found but did not; note the others as unchecked.

        `is_there` returns whether the scan examined an object, by its id; `circumstances` are those of the scan.
        """
        now = self._position.revision
        # A scan that was merged meanwhile may have seen objects that did not exist yet when this scan listed them.
        meanwhile = list(merged_scans(self._connection, self._position.cluster, after=self._position.base, before=now))
        gone = ResolvedFindings()
        for number, since, check, object_id, missing in self._missing():
            reached = reach.reaches(missing) and not self.sets.not_evaluated(check, object_id)
            if reached and not any(scan.saw(number, since) for scan in meanwhile):
                gone.add(number, object_id, missing.coordinates)
            else:
                self.unchecked.add(number)
        for revision, numbers in last_seen(self._connection, self._position.cluster, gone.ids, before=now).items():
            hidden = (
                numbers
                if reach.unread - self._unread(revision)
                else self._of_other_requests(revision, numbers, request)
            )
            for number in hidden:
                self.unchecked.add(number)
            resolved = [number for number in numbers if number not in self.unchecked]
            changed = changed_since(self._connection, self._position.cluster, revision, circumstances)
            for resolution, ids in gone.by_resolution(resolved, is_there, self._matched, changed).items():
                self.changes.resolved += len(ids)
                self._update(ids, until=now, last_seen=revision, resolution=resolution.value)

    def _matched(self, finding: Coordinates) -> RowIdSet:
        """The objects that this scan matched for the policy, binding and param of a finding."""
        key = finding[:-1]
        if key not in self._matched_objects:
            own = CHECKS.c
            place = own.language, own.policy, own.binding, own.param_namespace, own.param_name
            wanted = select(own.id).where(*(column == text for column, text in zip(place, key, strict=True)))
            checks = frozenset(self._connection.execute(wanted).scalars())
            self._matched_objects[key] = self.sets.matched(checks)
        return self._matched_objects[key]

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
        for row in self._connection.execute(_LATEST_ROWS.where(chosen)).all():
            history = HistoryColumns._make(row[_HISTORY])
            latest[bytes(history.fingerprint)] = _LatestRow(history, FindingColumns._make(row[_FINDING]))
        return latest

    def _merge(self, findings: dict[bytes, FindingColumns], before: dict[bytes, _LatestRow]) -> list[int]:
        """Merge findings, given the latest row of each that has one. Returns the ids of their open rows."""
        self._adopt(findings, before)
        numbers: list[int] = []
        rows: list[tuple[HistoryColumns, FindingColumns]] = []
        changed: list[int] = []
        reopened: list[int] = []
        for key, columns in findings.items():
            if key not in before:
                rows.append((self._row(key, "new"), columns))
                continue
            latest, stored = before[key]
            if latest.id in self._seen:
                numbers.append(latest.id)
                continue
            if latest.until != OPEN:
                reopened.append(latest.id)
                row = self._row(key, "reopened", first=latest.first, reopened=latest.reopened + 1)
                rows.append((row, columns))
            elif _content(stored) != _content(columns):
                changed.append(latest.id)
                row = self._row(key, "changed", first=latest.first, reopened=latest.reopened, opened=latest.opened)
                rows.append((row, columns))
            else:
                numbers.append(latest.id)
        self.changes.new += len(rows) - len(changed)
        self.changes.reopened += len(reopened)
        self._update(changed, until=self._position.revision, superseded=self._position.revision)
        self._update(reopened, superseded=self._position.revision)
        numbers += self._insert(rows)
        self._see(Run(number, 1) for number in numbers)
        return numbers

    def _adopt(self, findings: dict[bytes, FindingColumns], latest: dict[bytes, _LatestRow]) -> None:
        """Let the rows of older versions have problems, and refer to recorded objects, which they did not."""
        moved = [row.finding.object for key, row in latest.items() if row.finding.object != findings[key].object]
        there = among(self._connection, POPULATION.c.object, moved)
        recorded = set(self._connection.execute(select(POPULATION.c.object).where(there)).scalars() if moved else ())
        older: dict[int, FindingColumns] = {}
        for key, row in latest.items():
            own, found = row.finding, findings[key]
            known = own._replace(
                object=own.object if own.object in recorded else found.object,
                problem=found.problem if own.problem is None else own.problem,
            )
            if known != own:
                older[row.history.id] = known
                latest[key] = row._replace(finding=known)
        if older:
            values = [{"row": number, "to": own.object, "of": own.problem} for number, own in older.items()]
            adopted = update(FINDINGS).where(FINDINGS.c.id == bindparam("row"))
            self._connection.execute(adopted.values(object=bindparam("to"), problem=bindparam("of")), values)

    def _insert(self, rows: Iterable[tuple[HistoryColumns, FindingColumns]]) -> range:
        """Insert new rows. Returns their ids."""
        new = list(rows)
        numbers = reserve(self._connection, FINDINGS, len(new))
        numbered = [(number, *history[1:], *finding) for number, (history, finding) in zip(numbers, new, strict=True)]
        insert_rows(self._connection, FINDINGS, ROW, numbered)
        return numbers

    def _row(
        self, key: bytes, event: str, *, first: int | None = None, reopened: int = 0, opened: int | None = None
    ) -> HistoryColumns:
        """A new open row, without its id. A changed finding goes on with the episode that `opened` at a revision."""
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
            opened=opened if event == "changed" else now,
            resolution=None,
        )

    def _see(self, runs: Iterable[Run]) -> None:
        """Note open rows that this scan saw."""
        for run in runs:
            self.changes.findings += self._seen.add_run(run)

    def _missing(self) -> Iterator[tuple[int, int, int, int, UnseenFinding]]:
        """The open findings that this scan did not find: id, first revision, ids of check and object, and description."""
        still_open = open_findings(self._position.cluster)
        count = self._connection.execute(select(func.count()).select_from(still_open.subquery())).scalar_one()
        if count == self._seen.count - len(self._previewed):
            return
        numbers = self._connection.execute(still_open.execution_options(yield_per=CHUNK)).scalars()
        described = (
            select(FINDINGS.c.id, FINDINGS.c.since, FINDINGS.c.check, FINDINGS.c.object)
            .add_columns(CHECKS.c.language, CHECKS.c.policy, CHECKS.c.binding)
            .add_columns(CHECKS.c.param_namespace, CHECKS.c.param_name)
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

    def _update(self, numbers: Sequence[int], **values: int | str) -> None:
        for portion in chunks(numbers):
            self._connection.execute(
                update(FINDINGS).where(among(self._connection, FINDINGS.c.id, portion)).values(**values)
            )


def _binding_key(key: Key) -> BindingKey:
    check = CheckColumns._make(key)
    return check.language, check.policy, check.binding
