"""Merges a scan into the history of its cluster.

A finding's row is written only when the finding appears, changes, is resolved or reopens. A scan with the findings of the
previous scan writes nothing here. Memory holds one page, and one bit for every finding ever stored.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, starmap
from operator import itemgetter
from typing import Final, NamedTuple

import orjson
from sqlalchemy import Connection, bindparam, delete, select, update

from scanner.model.policy import BindingKey
from scanner.posture.problem_ids import problem_number
from scanner.store.catalog.check_names import CheckNames
from scanner.store.database.engine import insert_rows, is_among
from scanner.store.history.causes import Causes
from scanner.store.history.evaluated_sets import EvaluatedSets
from scanner.store.history.population import RecordedList
from scanner.store.history.staged_pages import StagedPage
from scanner.store.rows.closing_sums import FINDING_PARTS, ScanSums, SumUpdater
from scanner.store.rows.columns import ROW, UNDECIDING, CheckColumns, FindingColumns, HistoryColumns, slices_of
from scanner.store.rows.interning import CHUNK, Interner, Key, chunks, reserve_ids
from scanner.store.rows.logical_rows import FINDINGS_BEGUN, FINDINGS_ENDED
from scanner.store.rows.row_ids import RowIdRun, RowIdSet
from scanner.store.rows.search_index import VerdictUses
from scanner.store.rows.tables import (
    CHECKS,
    EVIDENCE,
    EXCERPTS,
    FINDINGS,
    KINDS,
    MERGED_PAGES,
    OPEN,
    OUTDATED,
    POPULATION,
    PREVIEW,
    SINGLE_SCAN_EVENTS,
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


class _LatestRow(NamedTuple):
    history: HistoryColumns
    finding: FindingColumns


class InsertedRows:
    """The rows that a scan inserted, by id, unless it is the first of its cluster: a few bytes for each.

    `new` findings were never open; `reopened` ones by the revision and the cause that had ended them; `changed` ones, and their rows before.
    `moved` are changed ones whose problem is another now, `left` their rows before, and `objects_changed` those that moved, or whose
    objects have another resource version.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.new = array("I")
        self.reopened: defaultdict[tuple[int, int | None], array[int]] = defaultdict(lambda: array("I"))
        self.changed, self.before = array("I"), array("I")
        self.moved, self.left = array("I"), array("I")
        self.objects_changed = RowIdSet()

    def add(self, number: int, columns: FindingColumns, latest: _LatestRow | None) -> None:
        """Add a row and the latest row of its finding, if it has one."""
        if latest is None:
            self.new.append(number)
        elif latest.history.until != OPEN:
            self.reopened[latest.history.until, latest.history.end_cause].append(number)
        else:
            self.changed.append(number)
            self.before.append(latest.history.id)
            moves = latest.finding.problem != columns.problem
            if moves:
                self.moved.append(number)
                self.left.append(latest.history.id)
            if moves or latest.finding.resource_version != columns.resource_version:
                self.objects_changed.add(number)

    def remove(self, rows: RowIdSet) -> None:
        """Leave out rows."""
        stays_changed = [number not in rows for number in self.changed]
        self.changed = array("I", compress(self.changed, stays_changed))
        self.before = array("I", compress(self.before, stays_changed))
        stays_moved = [number not in rows for number in self.moved]
        self.moved = array("I", compress(self.moved, stays_moved))
        self.left = array("I", compress(self.left, stays_moved))
        self.new = array("I", (number for number in self.new if number not in rows))
        for key, numbers in self.reopened.items():
            self.reopened[key] = array("I", (number for number in numbers if number not in rows))

    @property
    def appeared_rows(self) -> array[int]:
        """The rows of findings that were not open before."""
        return sum(self.reopened.values(), start=self.new)


_HISTORY, _FINDING = slices_of(HistoryColumns, FindingColumns)
_LATEST_ROWS = select(*(FINDINGS.c[name] for name in ROW)).where(FINDINGS.c.superseded.is_(None))


@dataclass
class MergeNumbers:
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
        causes: Causes,
        sums: ScanSums,
        previews: frozenset[BindingKey] = frozenset(),
    ) -> None:
        """Start at the position of a scan; the connection is in a transaction that writes history. `sums` are those of the scan."""
        self._sums = sums
        self._unsummed: list[range] = []
        self._check_names = check_names
        self._causes = causes
        self._first_cause = causes.first_scan_cause
        self.inserted: Final = InsertedRows()
        self._previews = previews
        self._previewed: set[bytes] = set()
        self._outdated = 0
        self.checks = Interner(connection, CHECKS)
        self.kinds = Interner(connection, KINDS)
        self.changes = MergeNumbers()
        self.unchecked: Final = RowIdSet()
        self._verdicts = Interner(connection, VERDICTS)
        self._evidence = Interner(connection, EVIDENCE)
        self._excerpts = Interner(connection, EXCERPTS)
        self.sets = EvaluatedSets(connection, self.checks)
        self._connection = connection
        self._position = position
        self._seen = RowIdSet()
        self._merged = MergedPages(connection, position.cluster)
        self._uses = VerdictUses(connection, position.cluster)

    def merge(self, page: StagedPage, checks: Sequence[int], kinds: Sequence[int], objects: RecordedList) -> None:
        """Merge the findings of a page, given the ids of its checks and kinds, and its objects.

        The first of equal fingerprints counts.
        """
        if not page.digest:
            return
        assumed = {index for index, key in enumerate(page.checks) if _binding_key_of(key) in self._previews}
        key = digest_page(page, objects)
        known = None if assumed else self._merged.find_known(key)
        if known is not None:
            self._note_seen(known)
            return
        rows = self._build_rows(page, checks, kinds, objects)
        self._insert_previews({name: columns for name, place, columns in reversed(rows) if place in assumed})
        bound = [(name, columns) for name, place, columns in rows if place not in assumed]
        numbers: list[int] = []
        for start in range(0, len(bound), CHUNK):
            # Reversed, so that the first of equal fingerprints stays in the dictionary.
            portion = dict(reversed(bound[start : start + CHUNK]))
            numbers += self._merge(portion, self._read_latest_rows(list(portion)))
        if not assumed:
            self._merged.keep(key, numbers)

    def _build_rows(
        self, page: StagedPage, checks: Sequence[int], kinds: Sequence[int], objects: RecordedList
    ) -> list[tuple[bytes, int, FindingColumns]]:
        """The findings of a page: fingerprint, the place of the check on the page, and the columns with ids."""
        findings = page.decode_findings()
        verdicts, evidence = self._verdicts.intern(findings.verdicts), self._evidence.intern(findings.evidence)
        excerpts = self._excerpts.intern(findings.excerpts)
        names = self._check_names.ids_of(page.checks)
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

    @property
    def seen_count(self) -> int:
        """The number of open findings that this scan saw."""
        return self._seen.count - len(self._previewed) - self._outdated

    def saw(self, number: int) -> bool:
        """Return whether this scan saw the finding of a row."""
        return number in self._seen

    def close(self) -> None:
        """Write what the merge of the next scan needs, and add up the rows that this merge has completed."""
        self._merged.write()
        finding = FINDINGS.c
        for numbers in self._unsummed:
            self._sums.read(FINDINGS_BEGUN, finding.id.between(numbers[0], numbers[-1]))
        ended = finding.cluster == self._position.cluster, finding.until == self._position.revision
        self._sums.read(FINDINGS_ENDED, *ended)

    def set_aside(self, outdated: Collection[int]) -> None:
        """Take rows that this scan inserted, by id, out of history: they belong to this scan alone, and the rows before are the latest.

        A finding that this scan changed stays as it was.
        """
        rows, finding, now = RowIdSet(outdated), FINDINGS.c, self._position.revision
        changed = [number for number in self.inserted.changed if number in rows]
        reopened = [number for numbers in self.inserted.reopened.values() for number in numbers if number in rows]
        before = dict(zip(self.inserted.changed, self.inserted.before, strict=True))
        alone = [number for number in rows if number not in before]
        for portion in chunks(changed):
            self._connection.execute(delete(FINDINGS).where(is_among(self._connection, finding.id, portion)))
        self._update([before[number] for number in changed], until=OPEN, superseded=None)
        self._update(alone, event=OUTDATED, until=now + 1, superseded=now)
        for names in chunks(self._read_fingerprints(reopened)):
            ended = (
                finding.cluster == self._position.cluster,
                finding.superseded == now,
                finding.event.not_in(SINGLE_SCAN_EVENTS),
            )
            chosen = is_among(self._connection, finding.fingerprint, names)
            self._connection.execute(update(FINDINGS).where(*ended, chosen).values(superseded=None, moved_to=None))
        self._note_seen(RowIdRun(before[number], 1) for number in changed)
        self.changes.findings -= len(changed)
        self._outdated = len(alone) + len(changed)
        self.changes.new -= len(alone)
        self.changes.reopened -= len(reopened)
        self.inserted.remove(rows)
        self._merged.forget()

    def _read_fingerprints(self, numbers: Sequence[int]) -> list[bytes]:
        names: list[bytes] = []
        for portion in chunks(numbers):
            chosen = is_among(self._connection, FINDINGS.c.id, portion)
            names += map(bytes, self._connection.execute(select(FINDINGS.c.fingerprint).where(chosen)).scalars())
        return names

    def _insert_previews(self, findings: dict[bytes, FindingColumns]) -> None:
        """Insert the findings of assumed bindings, which end with this scan."""
        fresh = {key: columns for key, columns in findings.items() if key not in self._previewed}
        self._previewed.update(fresh)
        now = self._position.revision
        ended = (self._new_row(key, PREVIEW)._replace(until=now + 1, superseded=now) for key in fresh)
        self._note_seen(RowIdRun(number, 1) for number in self._insert(zip(ended, fresh.values(), strict=True)))

    def _read_latest_rows(self, keys: list[bytes]) -> dict[bytes, _LatestRow]:
        chosen = (FINDINGS.c.cluster == self._position.cluster) & is_among(
            self._connection, FINDINGS.c.fingerprint, keys
        )
        latest: dict[bytes, _LatestRow] = {}
        for row in self._connection.execute(_LATEST_ROWS.where(chosen)).all():
            history = HistoryColumns._make(row[_HISTORY])
            latest[bytes(history.fingerprint)] = _LatestRow(history, FindingColumns._make(row[_FINDING]))
        return latest

    def _merge(self, findings: dict[bytes, FindingColumns], before: dict[bytes, _LatestRow]) -> list[int]:
        """Merge findings, given the latest row of each that has one. Returns the ids of their open rows."""
        self._adopt_older_rows(findings, before)
        numbers: list[int] = []
        rows: list[tuple[HistoryColumns, FindingColumns, _LatestRow | None]] = []
        ends: defaultdict[str, list[int]] = defaultdict(list)
        for key, columns in findings.items():
            latest = before.get(key)
            row = self._new_row(key, "new") if latest is None else self._choose_next_row(latest, columns)
            if row is not None:
                rows.append((row, columns, latest))
            if latest is not None:
                (numbers if row is None else ends[row.event]).append(latest.history.id)
        self.changes.new += len(rows) - len(ends["changed"])
        self.changes.reopened += len(ends["reopened"])
        self._update(ends["changed"], until=self._position.revision, superseded=self._position.revision)
        self._update(ends["reopened"], superseded=self._position.revision)
        elsewhere = [
            {"row": latest.history.id, "to": columns.problem}
            for _, columns, latest in rows
            if latest and latest.history.until != OPEN and latest.finding.problem not in (None, columns.problem)
        ]
        if elsewhere:
            named = update(FINDINGS).where(FINDINGS.c.id == bindparam("row")).values(moved_to=bindparam("to"))
            self._connection.execute(named, elsewhere)
        inserted = self._insert((history, columns) for history, columns, _ in rows)
        if self._causes.base:
            for number, (_, columns, latest) in zip(inserted, rows, strict=True):
                self.inserted.add(number, columns, latest)
        numbers += inserted
        self._note_seen(RowIdRun(number, 1) for number in numbers)
        return numbers

    def _choose_next_row(self, latest: _LatestRow, columns: FindingColumns) -> HistoryColumns | None:
        """The row that follows the latest one of a finding; None if that stays open as it is."""
        history, stored = latest
        if history.id in self._seen:
            return None
        if history.until != OPEN:
            row = self._new_row(history.fingerprint, "reopened")
            return row._replace(first=history.first, reopened=history.reopened + 1)
        if _content(stored) != _content(columns):
            return self._changed_row(history)
        return None

    def _adopt_older_rows(self, findings: dict[bytes, FindingColumns], latest: dict[bytes, _LatestRow]) -> None:
        """Let the rows of older versions have problems, and refer to recorded objects, which they did not."""
        moved = [row.finding.object for key, row in latest.items() if row.finding.object != findings[key].object]
        there = is_among(self._connection, POPULATION.c.object, moved)
        recorded = set(self._connection.execute(select(POPULATION.c.object).where(there)).scalars() if moved else ())
        older: dict[int, FindingColumns] = {}
        for key, row in latest.items():
            own, staged = row.finding, findings[key]
            known = own._replace(
                object=own.object if own.object in recorded else staged.object,
                problem=staged.problem if own.problem is None else own.problem,
            )
            if known != own:
                older[row.history.id] = known
                latest[key] = row._replace(finding=known)
        if older:
            values = [{"row": number, "to": own.object, "of": own.problem} for number, own in older.items()]
            adopted = update(FINDINGS).where(FINDINGS.c.id == bindparam("row"))
            with SumUpdater(self._connection).updating(
                FINDING_PARTS, is_among(self._connection, FINDINGS.c.id, list(older))
            ):
                self._connection.execute(adopted.values(object=bindparam("to"), problem=bindparam("of")), values)

    def _insert(self, rows: Iterable[tuple[HistoryColumns, FindingColumns]]) -> range:
        """Insert new rows. Returns their ids."""
        new = list(rows)
        if not new:
            return range(0)
        numbers = reserve_ids(self._connection, FINDINGS, len(new))
        numbered = [(number, *history[1:], *finding) for number, (history, finding) in zip(numbers, new, strict=True)]
        insert_rows(self._connection, FINDINGS, ROW, numbered)
        if self._causes.base:
            # The end of the merge writes their causes and clocks.
            self._unsummed.append(numbers)
        else:
            self._sums.add(FINDINGS_BEGUN, numbered)
        self._uses.add(finding for _, finding in new)
        return numbers

    def _new_row(self, key: bytes, event: str) -> HistoryColumns:
        """A row without an id, for a finding that was not open before."""
        now = self._position.revision
        return HistoryColumns(
            id=0,
            cluster=self._position.cluster,
            fingerprint=key,
            since=now,
            until=OPEN,
            superseded=None,
            first=now,
            event=event,
            reopened=0,
            last_seen=None,
            opened=now,
            resolution=None,
            cause=None if event in SINGLE_SCAN_EVENTS else self._first_cause,
            end_cause=None,
            continues=None,
            problem_first=now,
            problem_opened=now,
            moved_to=None,
        )

    def _changed_row(self, latest: HistoryColumns) -> HistoryColumns:
        """The row of a finding that goes on with other content. If its object has another workload, the clocks of its problem go on."""
        row = self._new_row(latest.fingerprint, "changed")
        row = row._replace(first=latest.first, reopened=latest.reopened, opened=latest.opened)
        return row._replace(problem_first=latest.problem_first, problem_opened=latest.problem_opened)

    def _note_seen(self, runs: Iterable[RowIdRun]) -> None:
        """Note open rows that this scan saw."""
        for run in runs:
            self.changes.findings += self._seen.add_run(run)

    def _update(self, numbers: Sequence[int], **values: int | str | None) -> None:
        for portion in chunks(numbers):
            self._connection.execute(
                update(FINDINGS).where(is_among(self._connection, FINDINGS.c.id, portion)).values(**values)
            )


def _binding_key_of(key: Key) -> BindingKey:
    check = CheckColumns._make(key)
    return check.language, check.policy, check.binding


# The findings of the pages of a cluster's newest merged scan, so that an unchanged page is merged without reading its
# findings.
#
# If a page has the digest of a page of the scan before, then each of its findings has an open row with this content:
# nothing is to be written. Only the rows of the newest scan are kept, because any merge may resolve or change rows of
# others.


class MergedPages:
    """The pages of the newest merged scan of a cluster, and those of the scan that is being merged."""

    def __init__(self, connection: Connection, cluster: int) -> None:
        """Read the digests; the connection is in a transaction that writes history."""
        self._connection = connection
        self._cluster = cluster
        merged_page = MERGED_PAGES.c
        wanted = select(merged_page.digest, merged_page.findings).where(merged_page.cluster == cluster)
        self._before = {bytes(digest): bytes(runs) for digest, runs in connection.execute(wanted)}
        self._now: dict[bytes, bytes] = {}

    def find_known(self, key: bytes) -> list[RowIdRun] | None:
        """The row ids of the findings of a page that the scan before had, too; None for another page."""
        packed = self._before.get(key)
        if packed is None:
            return None
        self._now[key] = packed
        return list(starmap(RowIdRun, orjson.loads(zlib.decompress(packed))))

    def keep(self, key: bytes, numbers: Sequence[int]) -> None:
        """Record the row ids of the findings of a page."""
        self._now[key] = zlib.compress(orjson.dumps(list(_find_runs(sorted(numbers)))), 6)

    def forget(self) -> None:
        """Let the next scan merge every page of this one anew."""
        self._now.clear()

    def write(self) -> None:
        """Replace the pages of the scan before by those of this scan."""
        merged_page = MERGED_PAGES.c
        for portion in chunks([key for key in self._before if key not in self._now]):
            gone = merged_page.cluster == self._cluster, is_among(self._connection, merged_page.digest, portion)
            self._connection.execute(delete(MERGED_PAGES).where(*gone))
        rows = [(self._cluster, key, runs) for key, runs in self._now.items() if key not in self._before]
        insert_rows(self._connection, MERGED_PAGES, ("cluster", "digest", "findings"), rows)


def digest_page(page: StagedPage, objects: RecordedList) -> bytes:
    """The digest of a page with findings and of its objects, 16 bytes."""
    text = page.digest + objects.ids.tobytes() + objects.workloads.tobytes()
    return hashlib.blake2b(text, digest_size=16).digest()


def _find_runs(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers as pairs of the first number of a run and its length."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs
