"""The tallies of days as lists that days share, as scans share those of `tally_lists`. The views read them, so they are JSON.

A list has the tallies of a namespace: the counts by the ids of `daily_keys`. A day has a set of lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import orjson
from sqlalchemy import Connection, select

from scanner.store.database.engine import is_among
from scanner.store.rows.interning import Interner, chunks
from scanner.store.rows.tables import DAILY_LISTS, DAILY_SETS

Counts = Mapping[int, int]
"""Counts by the ids of their keys."""


def write_daily_lists(connection: Connection, lists: Iterable[Counts]) -> int:
    """Store the tallies of a day unless equal ones are stored; returns the id of the set."""
    contents = [(_encode_counts(counts),) for counts in lists]
    numbers = Interner(connection, DAILY_LISTS).intern(contents)
    [number] = Interner(connection, DAILY_SETS).intern([(orjson.dumps(sorted(numbers)).decode(),)])
    return number


def read_daily_sets(connection: Connection, numbers: Iterable[int]) -> dict[int, frozenset[int]]:
    """The ids of the lists of sets, by the ids of the sets."""
    sets: dict[int, frozenset[int]] = {}
    for portion in chunks(sorted(numbers)):
        wanted = select(DAILY_SETS.c.id, DAILY_SETS.c.lists).where(is_among(connection, DAILY_SETS.c.id, portion))
        sets |= {number: frozenset(orjson.loads(lists)) for number, lists in connection.execute(wanted)}
    return sets


def read_daily_lists(connection: Connection, numbers: Iterable[int]) -> Iterator[tuple[int, Counts]]:
    """The ids of lists, and their counts."""
    for portion in chunks(sorted(numbers)):
        wanted = select(DAILY_LISTS.c.id, DAILY_LISTS.c.content).where(is_among(connection, DAILY_LISTS.c.id, portion))
        for number, content in connection.execute(wanted):
            yield number, decode_counts(content)


def read_counts_of_set(connection: Connection, number: int) -> list[tuple[int, int]]:
    """The keys of a day and their counts, by the id of its set."""
    lists = read_daily_sets(connection, [number]).get(number, frozenset())
    return [pair for _, counts in read_daily_lists(connection, lists) for pair in counts.items()]


def decode_counts(content: str) -> Counts:
    """The counts of a list."""
    return {int(key): count for key, count in orjson.loads(content).items()}


def _encode_counts(counts: Counts) -> str:
    return orjson.dumps(dict(sorted(counts.items())), option=orjson.OPT_NON_STR_KEYS).decode()
