"""The logical rows of the tables: what a row records, without ids that only this database gives. Each has one digest.

A logical row is a JSON array: the name of its part, then the columns of the part in their order. In place of the id of another
row stands the digest of that row; in place of the id of an object its kind, namespace, name and UID. `docs/database.md` has the
encoding. SQLite and PostgreSQL have equal logical rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import orjson
from sqlalchemy import Boolean, Column, Connection, Float, Integer, MetaData, String, Table, select

from scanner.store.database.engine import is_among
from scanner.store.rows.interning import chunks
from scanner.store.rows.tables import (
    BINDINGS,
    CAUSES,
    CHECK_NAMES,
    CHECKS,
    COVERAGE,
    DAILY_KEYS,
    DAYS,
    EVIDENCE,
    EXCERPTS,
    FINDINGS,
    FIXES,
    HEALTH,
    KEPT,
    KINDS,
    OBJECTS,
    OPEN,
    OUTSIDE,
    PLACES,
    POLICIES,
    POPULATION,
    RULES,
    SCAN_BINDINGS,
    SCAN_PLACES,
    SCAN_POLICIES,
    SCAN_RULES,
    SCAN_WAIVERS,
    SCANS,
    SET_LISTS,
    SINGLE_SCAN_EVENTS,
    UNCOVERED,
    VERDICTS,
    WAIVED_CHECKS,
    WAIVER_SETS,
    WAIVERS,
    WORKLOADS,
)

RawRow: TypeAlias = Sequence[Any]
"""A row with the columns of its table in their order."""

# Rows that lists hold, as tables that no database has: a scan's gaps and tallies, and the tallies of a day.
_LISTED: Final = MetaData()
_GAPS: Final = Table(
    "gaps", _LISTED, Column("position", Integer), *(Column(name, String) for name in ("kind", "where", "why"))
)
_TALLIES: Final = Table(
    "tallies",
    _LISTED,
    *(Column(name, Integer) for name in ("check", "kind")),
    *(Column(name, String) for name in ("namespace", "outcome")),
    Column("count", Integer),
    Column("requester", Boolean),
)
_DAILY: Final = Table("daily", _LISTED, *(Column(name, Integer) for name in ("day", "key", "count")))

_MOST_KEPT: Final = 20_000
_PLAIN: Final = frozenset({str, int, type(None)})
_REFERENCES: Final[Mapping[str, Table]] = {
    "check": CHECKS,
    "kind": KINDS,
    "verdict": VERDICTS,
    "evidence": EVIDENCE,
    "excerpt": EXCERPTS,
    "cause": CAUSES,
    "end_cause": CAUSES,
    "workload": WORKLOADS,
    "kept": KEPT,
    "object": OBJECTS,
    "policy": POLICIES,
    "binding": BINDINGS,
    "rule": RULES,
    "key": DAILY_KEYS,
    "sets": SET_LISTS,
    "places": PLACES,
    "waivers": WAIVER_SETS,
    "day": DAYS,
}
"""The tables to which columns of ids refer, by the names of the columns."""
SHARED_TABLES: Final[Mapping[str, Table]] = {
    "policies": SCAN_POLICIES,
    "bindings": SCAN_BINDINGS,
    "health": HEALTH,
    "outside": OUTSIDE,
    "rules": SCAN_RULES,
    "uncovered": UNCOVERED,
}
"""The tables of rows that scans share, by the field of `Owners`."""


@dataclass(frozen=True, slots=True)
class LogicalPart:
    """A part of what scans write: columns of a table.

    The rows belong to the scan with the number in `scan`, or with the revision in `revision` of the cluster of the row; those of
    a list to the scans that have the list. `block` is the column of the ids that are divided into blocks.
    """

    name: str
    table: Table
    columns: tuple[str, ...]
    scan: str = ""
    revision: str = ""
    block: str = ""

    def place_of(self, column: str) -> int:
        """The place of a column in a raw row."""
        return list(self.table.c.keys()).index(column)

    def select_rows(self, rows: Sequence[RawRow]) -> Sequence[RawRow]:
        """The rows that are rows of this part: an ended row has ended, and belongs to the history.

        An interval of an object for one revision alone is none: a scan that a later one overtook has written its end beforehand.
        """
        if self.revision != "until":
            return rows
        until = self.place_of("until")
        ended = [row for row in rows if row[until] != OPEN]
        if self.table is not FINDINGS:
            since = self.place_of("since")
            return [row for row in ended if row[until] > row[since] + 1]
        event = self.place_of("event")
        return [row for row in ended if row[event] not in SINGLE_SCAN_EVENTS]


FINDINGS_BEGUN: Final = LogicalPart(
    "findings",
    FINDINGS,
    (
        *("fingerprint", "since", "first", "event", "reopened", "opened", "cause", "continues"),
        *("problem_first", "problem_opened", "check", "kind", "object", "resource_version"),
        *("verdict", "evidence", "excerpt", "problem"),
    ),
    revision="since",
    block="id",
)
FINDINGS_ENDED: Final = LogicalPart(
    "findings ended",
    FINDINGS,
    ("fingerprint", "since", "until", "last_seen", "resolution", "end_cause"),
    revision="until",
    block="id",
)
POPULATION_BEGUN: Final = LogicalPart(
    "population", POPULATION, ("object", "since", "kind", "workload", "kept"), revision="since", block="object"
)
POPULATION_ENDED: Final = LogicalPart(
    "population ended", POPULATION, ("object", "since", "until"), revision="until", block="object"
)
SCANS_BEGUN: Final = LogicalPart(
    "scans",
    SCANS,
    (
        *(
            "id",
            "cluster_name",
            "cluster_uid",
            "server_version",
            "source",
            "started_at",
            "scope",
            "tool_version",
            "base",
        ),
        *("requester", "policy_set_digest", "description_digest", "method", "silence", "preview"),
    ),
    scan="number",
)
SCANS_ENDED: Final = LogicalPart(
    "scans ended",
    SCANS,
    (
        *("id", "state", "finished_at", "revision", "findings", "new", "reopened", "resolved", "unchecked"),
        *("notes", "object_counts", "changed_rules", "emptiness"),
    ),
    scan="number",
)
REPORTS: Final = LogicalPart("reports", SCANS, ("id", "matched", "opinion"), scan="number")
"""What the row of a scan loses when the scan is pruned. The sums of shared rows follow the columns: see `closing_sums`."""
SETS_OF_SCANS: Final = LogicalPart("coverage sets", COVERAGE, ("position", "sets"), scan="scan")
"""Not logical: the digest of a list of sets covers ids of this database."""
GAPS: Final = LogicalPart("gaps", _GAPS, ("position", "kind", "where", "why"))
TALLIES: Final = LogicalPart("tallies", _TALLIES, ("check", "kind", "namespace", "outcome", "count", "requester"))
DAILY_TALLIES: Final = LogicalPart("daily", _DAILY, ("day", "key", "count"))
LIST_PARTS: Final = (GAPS, TALLIES, DAILY_TALLIES)
"""The parts whose rows are in lists: the columns of a raw row are those of the part."""

BLOCK_PARTS: Final = (FINDINGS_BEGUN, FINDINGS_ENDED, POPULATION_BEGUN, POPULATION_ENDED)
"""The parts that are divided into blocks."""
REVISION_PARTS: Final = (
    LogicalPart("fixes", FIXES, ("revision", "language", "policy", "opened", "problems"), revision="revision"),
    LogicalPart("check_names", CHECK_NAMES, ("digest", "since", "name"), revision="since"),
    LogicalPart("waived_checks", WAIVED_CHECKS, ("waiver", "form", "question", "since"), revision="since"),
)
SCAN_PARTS: Final = (
    SCANS_BEGUN,
    SCANS_ENDED,
    SETS_OF_SCANS,
    LogicalPart(
        "coverage",
        COVERAGE,
        (
            "position",
            "api_version",
            "kind",
            "state",
            "objects",
            "evaluated",
            "pages",
            "bytes",
            "resource_version",
            "note",
            "seconds",
            "page_digests",
        ),
        scan="scan",
    ),
    LogicalPart("scan_policies", SCAN_POLICIES, ("position", "policy", "reading"), scan="scan"),
    LogicalPart("scan_bindings", SCAN_BINDINGS, ("position", "binding"), scan="scan"),
    LogicalPart("scan_rules", SCAN_RULES, ("position", "rule"), scan="scan"),
    LogicalPart("health", HEALTH, ("position", "kind", "policy", "binding", "detail", "language"), scan="scan"),
    LogicalPart("outside", OUTSIDE, ("position", "kind", "name", "why"), scan="scan"),
    LogicalPart("uncovered", UNCOVERED, ("position", "api_version", "kind"), scan="scan"),
    LogicalPart("scan_waivers", SCAN_WAIVERS, ("waivers",), scan="scan"),
    LogicalPart("scan_places", SCAN_PLACES, ("places",), scan="scan"),
)
"""The columns are named one by one: a column that a migration adds belongs to a new part, so that sums of older scans stay true."""
PARTS_BY_TABLE: Final[Mapping[str, tuple[LogicalPart, ...]]] = {
    table.name: tuple(part for part in SCAN_PARTS if part.table is table)
    for table in {part.table for part in SCAN_PARTS}
}
"""The parts of the tables whose rows belong to a scan by its number."""
PARTS: Final[Mapping[str, LogicalPart]] = {
    part.name: part for part in (*BLOCK_PARTS, *REVISION_PARTS, *SCAN_PARTS, *LIST_PARTS, REPORTS)
}


def digest_of(values: Sequence[object]) -> int:
    """The digest of a logical row: BLAKE2b with 32 bytes of its JSON, as a number."""
    return int.from_bytes(hashlib.blake2b(orjson.dumps(values), digest_size=32).digest())


class Encoder:
    """Computes the digests of logical rows over one connection. What rows refer to is read once, and kept as long as it is little."""

    def __init__(self, connection: Connection) -> None:
        """Begin with nothing in memory."""
        self._connection = connection
        self._known: dict[str, dict[int | None, object]] = {}

    def compute_digests(self, part: LogicalPart, rows: Sequence[RawRow]) -> Iterator[int]:
        """The digests of rows, in their order."""
        places = [(part.table.c[name], part.place_of(name)) for name in part.columns]
        blake, dumps, number = hashlib.blake2b, orjson.dumps, int.from_bytes
        for portion in _split_portions(rows):
            every = list(zip(*portion, strict=True))
            columns = [self._encode_column(column, every[place]) for column, place in places]
            for values in zip([part.name] * len(portion), *columns, strict=True):
                yield number(blake(dumps(values), digest_size=32).digest())

    def know_objects(self, objects: Sequence[RawRow]) -> None:
        """Keep the identities of objects in memory, given their rows: the caller writes them, and then rows that refer to them."""
        self._find_cache(OBJECTS).update(self._encode_identities([(number, *rest) for number, _, *rest in objects]))

    def _encode_column(self, column: Column[Any], values: Sequence[Any]) -> Sequence[Any]:
        table = _REFERENCES.get(column.name)
        if table is not None and isinstance(column.type, Integer):
            return self._encode_references(table, values)
        # Most values are texts and numbers. A damaged row can have bytes in the place of a text.
        if isinstance(column.type, (Integer, String)) and {*map(type, values)} <= _PLAIN:
            return values
        return list(map(_choose_encoding(column), values))

    def _encode_references(self, table: Table, numbers: Sequence[int | None]) -> list[object]:
        known = self._find_cache(table)
        # Nearly all ids are known.
        try:
            return list(map(known.__getitem__, numbers))
        except KeyError:
            pass
        missing = {number for number in numbers if number is not None and number not in known}
        for portion in chunks(list(missing)):
            known.update(self._read_digests(table, portion))
        # An id that no row has is encoded as an empty text, as is 0, which stands for none.
        return [known.get(number, "") for number in numbers]

    def _find_cache(self, table: Table) -> dict[int | None, object]:
        known = self._known.setdefault(table.name, {None: None})
        if len(known) > _MOST_KEPT:
            known.clear()
            known[None] = None
        return known

    def _encode_identities(self, objects: Sequence[RawRow]) -> Iterator[tuple[int, object]]:
        """The identities of objects, given their ids, the ids of their kinds, and their namespaces, names and UIDs."""
        kinds = self._encode_references(KINDS, [row[1] for row in objects])
        for (number, _, *identity), kind in zip(objects, kinds, strict=True):
            yield number, [kind, *identity]

    def _read_digests(self, table: Table, numbers: list[int]) -> Iterator[tuple[int, object]]:
        if table is DAYS:
            wanted = select(DAYS.c.number, DAYS.c.day).where(is_among(self._connection, DAYS.c.number, numbers))
            yield from ((number, day) for number, day in self._connection.execute(wanted))
            return
        chosen = is_among(self._connection, table.c.id, numbers)
        if table is OBJECTS:
            identity = OBJECTS.c
            wanted = select(identity.id, identity.kind, identity.namespace, identity.name, identity.uid).where(chosen)
            yield from self._encode_identities(self._connection.execute(wanted).all())
            return
        if table is WAIVER_SETS:
            for number, content in self._connection.execute(select(table.c.id, table.c.content).where(chosen)).all():
                values = json.loads(content)
                yield number, [self._encode_references(WAIVERS, values["waivers"]), values["faults"], values["notes"]]
            return
        for number, own_digest in self._connection.execute(select(table.c.id, table.c.digest).where(chosen)):
            yield number, bytes(own_digest).hex()


def _split_portions(rows: Sequence[RawRow]) -> Iterator[Sequence[RawRow]]:
    size = 1000
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _choose_encoding(column: Column[Any]) -> Callable[[Any], object]:
    if isinstance(column.type, Boolean):
        return _encode_flag
    if isinstance(column.type, Float):
        return _encode_real
    return _encode_value


def _encode_flag(value: Any) -> object:
    return bool(value)


def _encode_real(value: Any) -> object:
    return float(value)


def _encode_value(value: Any) -> object:
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return value
