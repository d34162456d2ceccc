"""Deletes shared rows, such as messages, policies and objects, to which no other row refers.

A scan that begins or ends may refer to any of them, so they are deleted only while no scan does either: see
`engine.try_lock_texts`.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from sqlalchemy import Column, Connection, Engine, Table, delete, select

from scanner.store.database.engine import is_among, try_lock_texts, writing
from scanner.store.rows.daily_lists import decode_counts
from scanner.store.rows.interning import chunks
from scanner.store.rows.row_ids import RowIdSet, unpack_row_ids
from scanner.store.rows.search_index import forget_rows
from scanner.store.rows.tables import (
    BINDINGS,
    CAUSES,
    CHECKS,
    COVERAGE,
    DAILY_KEYS,
    DAILY_LISTS,
    DAILY_SETS,
    DAYS,
    EVIDENCE,
    EXCERPTS,
    FINDINGS,
    GAP_LISTS,
    KEPT,
    KINDS,
    OBJECT_SETS,
    OBJECTS,
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
    TALLY_LISTS,
    TALLY_SETS,
    VERDICT_USES,
    VERDICTS,
    WAIVER_SETS,
    WAIVERS,
    WORKLOADS,
)
from scanner.store.rows.tally_lists import decode_tallies

PORTION: Final = 50_000
"""The number of rows of one table that one transaction deletes."""
_WAIT: Final = 60.0
"""Seconds for which a prune tries to find a moment in which no scan begins or ends."""
_PAUSE: Final = 0.2

REFERENCES: Final[Mapping[Table, Sequence[Column[int]]]] = {
    SET_LISTS: (COVERAGE.c.sets,),
    TALLY_SETS: (SCANS.c.tallies,),
    TALLY_LISTS: (),
    GAP_LISTS: (SCANS.c.gaps,),
    DAILY_SETS: (DAYS.c.tallies,),
    DAILY_LISTS: (),
    OBJECT_SETS: (),
    OBJECTS: (FINDINGS.c.object, POPULATION.c.object),
    WORKLOADS: (POPULATION.c.workload,),
    KEPT: (POPULATION.c.kept,),
    VERDICTS: (FINDINGS.c.verdict, VERDICT_USES.c.verdict),
    EVIDENCE: (FINDINGS.c.evidence,),
    EXCERPTS: (FINDINGS.c.excerpt,),
    CAUSES: (FINDINGS.c.cause, FINDINGS.c.end_cause),
    POLICIES: (SCAN_POLICIES.c.policy,),
    BINDINGS: (SCAN_BINDINGS.c.binding,),
    RULES: (SCAN_RULES.c.rule,),
    CHECKS: (FINDINGS.c.check, VERDICT_USES.c.check),
    KINDS: (FINDINGS.c.kind, OBJECTS.c.kind, POPULATION.c.kind),
    DAILY_KEYS: (),
    PLACES: (SCAN_PLACES.c.places,),
    WAIVER_SETS: (SCAN_WAIVERS.c.waivers,),
    WAIVERS: (),
}
"""The columns that refer to each table of shared rows, in an order in which rows are deleted before those that they refer to."""

Ids: TypeAlias = Iterable[int]


class ContentReference(NamedTuple):
    """A column with contents that refer to rows of another table, and the function from a content to the ids of the rows."""

    column: Column[Any]
    find_ids: Callable[[Any], Ids]


def _find_sets(content: bytes) -> Ids:
    everything, sets = orjson.loads(zlib.decompress(content))
    return everything, *(number for number, _ in sets)


def _find_checks_of_sets(content: bytes) -> Ids:
    _, sets = orjson.loads(zlib.decompress(content))
    return {check for _, several in sets for group in several for check, _ in group}


def _find_checks_of_tallies(content: bytes) -> Ids:
    return {row.check for row in decode_tallies(content)}


def _find_kinds_of_tallies(content: bytes) -> Ids:
    return {row.kind for row in decode_tallies(content)}


def decode_waiver_ids(content: str) -> Sequence[int]:
    """The ids of the waivers in the content of a set."""
    ids: list[int] = orjson.loads(content)["waivers"]
    return ids


REFERENCES_OF_CONTENTS: Final[Mapping[Table, Sequence[ContentReference]]] = {
    OBJECT_SETS: (ContentReference(SET_LISTS.c.content, _find_sets),),
    TALLY_LISTS: (ContentReference(TALLY_SETS.c.lists, unpack_row_ids),),
    DAILY_LISTS: (ContentReference(DAILY_SETS.c.lists, orjson.loads),),
    CHECKS: (
        ContentReference(SET_LISTS.c.content, _find_checks_of_sets),
        ContentReference(TALLY_LISTS.c.content, _find_checks_of_tallies),
    ),
    KINDS: (ContentReference(TALLY_LISTS.c.content, _find_kinds_of_tallies),),
    DAILY_KEYS: (ContentReference(DAILY_LISTS.c.content, decode_counts),),
    WAIVERS: (ContentReference(WAIVER_SETS.c.content, decode_waiver_ids),),
}
"""The contents that refer to rows of a table."""


def delete_unreferenced(engine: Engine, clock: Callable[[], float] = time.monotonic) -> tuple[int, bool]:
    """Delete the shared rows without a reference, in portions; return their number, and whether all were deleted.

    Scans that begin or end all the time leave no moment to delete them; the next prune does.
    """
    deleted = 0
    for table in REFERENCES:
        with engine.connect() as connection:
            if not _find_unreferenced(connection, table):
                continue
        while True:
            portion = _delete_portion(engine, table, clock)
            if portion is None:
                return deleted, False
            deleted += portion
            if portion < PORTION:
                break
    return deleted, True


def _delete_portion(engine: Engine, table: Table, clock: Callable[[], float]) -> int | None:
    """Delete some rows without a reference; return their number, or None if scans left no moment for it."""
    end = clock() + _WAIT
    while True:
        with writing(engine) as connection:
            if try_lock_texts(connection):
                numbers = _find_unreferenced(connection, table)[:PORTION]
                for portion in chunks(numbers):
                    forget_rows(connection, table, portion)
                    connection.execute(delete(table).where(is_among(connection, table.c.id, portion)))
                return len(numbers)
        if clock() > end:
            return None
        time.sleep(_PAUSE)


def _find_unreferenced(connection: Connection, table: Table) -> list[int]:
    used = RowIdSet()
    for column in REFERENCES[table]:
        for number in connection.execute(select(column).distinct().where(column.is_not(None))).scalars():
            used.add(number)
    for reference in REFERENCES_OF_CONTENTS.get(table, ()):
        for _, ids in read_content_references(connection, reference):
            for number in ids:
                used.add(number)
    return [number for number in connection.execute(select(table.c.id)).scalars() if number not in used]


def read_content_references(connection: Connection, reference: ContentReference) -> Iterator[tuple[int, Ids]]:
    """The ids of the rows with contents, and the ids to which each content refers."""
    wanted = select(reference.column.table.c.id, reference.column).execution_options(yield_per=100)
    for number, content in connection.execute(wanted):
        yield number, reference.find_ids(content)
