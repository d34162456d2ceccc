"""How a scan becomes history: what it saw, set against what was open.

A finding's row is touched only when it appears, looks different, is resolved or comes back. A scan that sees the same
as the one before writes nothing here. Memory is bounded by one page, and one bit for every finding ever stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection, func, select, update

from scanner.model.outcome import GapKind
from scanner.model.policy import BindingKey
from scanner.model.scan import Scope
from scanner.store import codec
from scanner.store.engine import Value, among, insert_rows
from scanner.store.interning import CHUNK, Interned, chunks
from scanner.store.packing import StagedPage
from scanner.store.resolution import Reach, UnseenFinding
from scanner.store.row_ids import RowIdSet
from scanner.store.sightings import last_seen, merged_scans, open_findings
from scanner.store.tables import CHECKS, EVIDENCE, FINDINGS, GAPS, KINDS, OPEN, SCANS, TALLIES, VERDICTS

_FindingContent: TypeAlias = tuple[int, int, int, str, str, str, str, int | None]
_COLUMNS = (
    *("id", "cluster", "fingerprint", "since", "until", "event", "first", "reopened"),
    *("check", "verdict", "kind", "namespace", "name", "uid", "resource_version", "evidence"),
)


class Place(NamedTuple):
    """Where a scan stands in its cluster's history: its revision, and the newest one when it began."""

    cluster: int
    revision: int
    base: int


class Asked(NamedTuple):
    """What a scan asked of every object: which operation, made by whom (as the store writes it)."""

    operation: str
    requester: str


class _LatestRow(NamedTuple):
    id: int
    fingerprint: bytes
    since: int
    until: int
    first: int
    reopened: int
    check: int
    verdict: int
    kind: int
    namespace: str
    name: str
    uid: str
    resource_version: str
    evidence: int | None


_LAST_WORDS = select(*(FINDINGS.c[name] for name in _LatestRow._fields)).where(FINDINGS.c.superseded.is_(None))


@dataclass
class Changes:
    """What a merge adds up to. `new` are findings that were not open before; `reopened` those of them that once were."""

    findings: int = 0
    new: int = 0
    reopened: int = 0
    resolved: int = 0


class History:
    """The history of one cluster while one scan is merged into it.

    `previews` are the bindings that the scan only assumed. What they find belongs to this scan alone: its
    row begins and ends with it, and is no finding's last word.
    """

    def __init__(self, connection: Connection, place: Place, previews: frozenset[BindingKey] = frozenset()) -> None:
        """Start where a scan stands; the connection is in a transaction that writes history."""
        self._previews = previews
        self._previewed: set[bytes] = set()
        self.checks = Interned(connection, CHECKS)
        self.kinds = Interned(connection, KINDS)
        self.changes = Changes()
        self.unchecked = RowIdSet()
        self._verdicts = Interned(connection, VERDICTS)
        self._evidence = Interned(connection, EVIDENCE)
        self._connection = connection
        self._place = place
        self._seen = RowIdSet()
        self._next = (connection.execute(select(func.max(FINDINGS.c.id))).scalar() or 0) + 1

    def see(self, page: StagedPage, checks: Sequence[int], kinds: Sequence[int]) -> None:
        """Merge what one page shows, given the numbers of its checks and kinds. A fingerprint that turns up twice in a scan counts once, as first seen."""
        verdicts = self._verdicts.ids(page.verdicts)
        evidence = [None, *self._evidence.ids(page.evidence[1:])]
        assumed = {place for place, key in enumerate(page.checks) if (key[-1], *key[:2]) in self._previews}
        looks: list[tuple[bytes, _FindingContent]] = []
        previews: dict[bytes, _FindingContent] = {}
        for item in page.sightings:
            numbers = checks[item[1]], verdicts[item[2]], kinds[item[3]]
            key, look = bytes.fromhex(item[0]), (*numbers, *item[4:8], evidence[item[8]])
            if item[1] in assumed:
                previews.setdefault(key, look)
            else:
                looks.append((key, look))
        self._preview(previews)
        for start in range(0, len(looks), CHUNK):
            portion = dict(reversed(looks[start : start + CHUNK]))
            self._merge(portion, self._last_words(list(portion)))

    def _preview(self, looks: dict[bytes, _FindingContent]) -> None:
        """Write down what assumed bindings found."""
        fresh = {key: look for key, look in looks.items() if key not in self._previewed}
        self._previewed.update(fresh)
        now = self._place.revision
        rows = [(*self._row(key, look, "preview", now, 0), now) for key, look in fresh.items()]
        ended = [(*row[:4], now + 1, *row[5:]) for row in rows]
        insert_rows(self._connection, FINDINGS, (*_COLUMNS, "superseded"), ended)

    def resolve(self, sight: Reach, asked: Asked) -> None:
        """Close what is open, was not seen, and would have been seen; note the rest as unchecked."""
        now = self._place.revision
        # What was merged since this scan began is news: this scan may have looked before it happened.
        news = list(merged_scans(self._connection, self._place.cluster, after=self._place.base, before=now))
        fixed: list[int] = []
        for number, since, missing in self._missing():
            if sight.reaches(missing) and not any(scan.saw(number, since) for scan in news):
                fixed.append(number)
            else:
                self.unchecked.add(number)
        for revision, numbers in last_seen(self._connection, self._place.cluster, fixed, before=now).items():
            hidden = (
                numbers if sight.unread - self._unread(revision) else self._asked_otherwise(revision, numbers, asked)
            )
            for number in hidden:
                self.unchecked.add(number)
            gone = [number for number in numbers if number not in self.unchecked]
            self.changes.resolved += len(gone)
            self._update(gone, until=now, last_seen=revision)

    def _asked_otherwise(self, revision: int, numbers: Sequence[int], asked: Asked) -> Sequence[int]:
        """Those findings of a scan that another question, or another requester, may have made go away."""
        then = (SCANS.c.cluster == self._place.cluster) & (SCANS.c.revision == revision)
        number, scope, requester = self._connection.execute(
            select(SCANS.c.number, SCANS.c.scope, SCANS.c.requester).where(then)
        ).one()
        if codec.from_text(Scope, scope).operation != asked.operation:
            return numbers
        return [] if requester == asked.requester else self._depending(number, numbers)

    def _depending(self, scan: int, numbers: Sequence[int]) -> list[int]:
        """Those findings whose outcome depended on the requester of a scan."""
        asked = select(TALLIES.c.check).where(TALLIES.c.scan == scan, TALLIES.c.requester)
        found: list[int] = []
        for portion in chunks(numbers):
            chosen = among(self._connection, FINDINGS.c.id, portion) & FINDINGS.c.check.in_(asked)
            found.extend(self._connection.execute(select(FINDINGS.c.id).where(chosen)).scalars())
        return found

    def _unread(self, revision: int) -> frozenset[str]:
        """The documents that the scan of a revision could not read either."""
        scan = (SCANS.c.cluster == self._place.cluster) & (SCANS.c.revision == revision)
        wanted = select(GAPS.c.where).join(SCANS).where(scan, GAPS.c.kind == GapKind.DOCUMENT.value)
        return frozenset(self._connection.execute(wanted).scalars())

    def _last_words(self, keys: list[bytes]) -> dict[bytes, _LatestRow]:
        chosen = (FINDINGS.c.cluster == self._place.cluster) & among(self._connection, FINDINGS.c.fingerprint, keys)
        return {bytes(row[1]): _LatestRow(*row) for row in self._connection.execute(_LAST_WORDS.where(chosen))}

    def _merge(self, looks: dict[bytes, _FindingContent], before: dict[bytes, _LatestRow]) -> None:
        rows: list[tuple[Value, ...]] = []
        changed: list[int] = []
        reopened: list[int] = []
        for key, look in looks.items():
            last = before.get(key)
            if last is None:
                rows.append(self._row(key, look, "new", self._place.revision, 0))
            elif last.id in self._seen:
                continue
            elif last.until != OPEN:
                reopened.append(last.id)
                rows.append(self._row(key, look, "reopened", last.first, last.reopened + 1))
            elif last[6:] != look:
                changed.append(last.id)
                rows.append(self._row(key, look, "changed", last.first, last.reopened))
            else:
                self._see(last.id)
        self.changes.new += len(rows) - len(changed)
        self.changes.reopened += len(reopened)
        self._update(changed, until=self._place.revision, superseded=self._place.revision)
        self._update(reopened, superseded=self._place.revision)
        insert_rows(self._connection, FINDINGS, _COLUMNS, rows)

    def _row(self, key: bytes, look: _FindingContent, event: str, first: int, reopened: int) -> tuple[Value, ...]:
        number = self._next
        self._next += 1
        self._see(number)
        return number, self._place.cluster, key, self._place.revision, OPEN, event, first, reopened, *look

    def _see(self, number: int) -> None:
        self._seen.add(number)
        self.changes.findings += 1

    def _missing(self) -> Iterator[tuple[int, int, UnseenFinding]]:
        """The open findings that this scan did not see: number, since, and what they are about."""
        numbers = self._connection.execute(open_findings(self._place.cluster)).scalars()
        described = (
            select(FINDINGS.c.id, FINDINGS.c.since, CHECKS.c.language, CHECKS.c.policy, CHECKS.c.binding)
            .add_columns(KINDS.c.api_version, KINDS.c.kind, FINDINGS.c.namespace, FINDINGS.c.name)
            .join(CHECKS, CHECKS.c.id == FINDINGS.c.check)
            .join(KINDS, KINDS.c.id == FINDINGS.c.kind)
        )
        for portion in chunks([number for number in numbers if number not in self._seen]):
            for number, since, *about in self._connection.execute(
                described.where(among(self._connection, FINDINGS.c.id, portion))
            ):
                yield number, since, UnseenFinding(*about)

    def _update(self, numbers: Sequence[int], **values: int) -> None:
        for portion in chunks(numbers):
            self._connection.execute(
                update(FINDINGS).where(among(self._connection, FINDINGS.c.id, portion)).values(**values)
            )
