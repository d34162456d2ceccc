"""Deletes shared rows, such as messages, policies and objects, to which no other row refers.

A scan that begins or ends may refer to any of them, so they are deleted only while no scan does either: see
`engine.try_lock_texts`.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import orjson
from sqlalchemy import Column, Connection, Engine, Table, delete, select

from scanner.store.database.engine import is_among, try_lock_texts, writing
from scanner.store.rows.interning import chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.search_index import forget_rows
from scanner.store.rows.tables import (
    BINDINGS,
    CAUSES,
    CHECKS,
    COVERAGE,
    DAILY,
    DAILY_KEYS,
    EVIDENCE,
    EXCERPTS,
    FINDINGS,
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
    SET_LISTS,
    TALLIES,
    VERDICT_USES,
    VERDICTS,
    WAIVER_SETS,
    WAIVERS,
    WORKLOADS,
)

PORTION: Final = 50_000
"""The number of rows of one table that one transaction deletes."""
_WAIT: Final = 60.0
"""Seconds for which a prune tries to find a moment in which no scan begins or ends."""
_PAUSE: Final = 0.2

REFERENCES: Final[Mapping[Table, Sequence[Column[int]]]] = {
    SET_LISTS: (COVERAGE.c.sets,),
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
    CHECKS: (FINDINGS.c.check, TALLIES.c.check, VERDICT_USES.c.check),
    KINDS: (FINDINGS.c.kind, OBJECTS.c.kind, POPULATION.c.kind, TALLIES.c.kind),
    DAILY_KEYS: (DAILY.c.key,),
    PLACES: (SCAN_PLACES.c.places,),
    WAIVER_SETS: (SCAN_WAIVERS.c.waivers,),
    WAIVERS: (),
}
"""The columns that refer to each table of shared rows, in an order in which rows are deleted before those that they refer to.

The content of `set_lists` also refers to sets and checks, that of `waiver_sets` to waivers.
"""


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
    for set_ids, checks in _read_contents(connection) if table in {OBJECT_SETS, CHECKS} else ():
        for number in set_ids if table is OBJECT_SETS else checks:
            used.add(number)
    for content in connection.execute(select(WAIVER_SETS.c.content)).scalars() if table is WAIVERS else ():
        for number in decode_waiver_ids(content):
            used.add(number)
    return [number for number in connection.execute(select(table.c.id)).scalars() if number not in used]


def _read_contents(connection: Connection) -> Iterator[tuple[set[int], set[int]]]:
    """The ids of the sets and of the checks to which each list of sets refers."""
    for content in connection.execute(select(SET_LISTS.c.content).execution_options(yield_per=100)).scalars():
        yield decode_references(bytes(content))


def decode_waiver_ids(content: str) -> Sequence[int]:
    """The ids of the waivers in the content of a set."""
    ids: list[int] = orjson.loads(content)["waivers"]
    return ids


def decode_references(content: bytes) -> tuple[set[int], set[int]]:
    """The ids of the sets and of the checks in the content of a list of sets."""
    everything, sets = orjson.loads(zlib.decompress(content))
    checks = {check for _, several in sets for group in several for check, _ in group}
    return {everything, *(number for number, _ in sets)}, checks
