"""Finds rows in the index of a search: the words of a user as a query of FTS5, or as a `tsquery` of PostgreSQL.

A query consists of entries, which have letters, digits and `-` alone. What else a user writes never reaches the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, Table, select, text

from scanner.store.search_index import NAME, OBJECT_ENTRIES, PLAIN_OBJECT
from scanner.store.search_sources import KIND, SOURCES, WORKLOAD_KIND, place_of
from scanner.store.search_text import Word, entries
from scanner.store.tables import KINDS, OBJECTS

_FOLLOWS: Final = "lower((namespace || ' ') || name) ~ :{0}"
"""The test of PostgreSQL for several parts that follow each other in a plain name."""
_ENDS: Final = "right(name, length(:{0})) = :{0} OR right(namespace, length(:{0})) = :{0}"
"""The test of PostgreSQL for a plain name that ends as a word does. It is faster than an expression; an order alone depends on it."""
_JOINTS: Final = "[-._:]+"


@dataclass(frozen=True, slots=True)
class Query:
    """The rows that match every word; with `exact`, those with names that end as the words do.

    `kinds` has the ids of kinds by the beginning that names them: an object of such a kind matches that beginning. With
    `workload_kinds`, a workload matches the beginnings of its kind.
    """

    words: Sequence[Word]
    exact: bool = False
    kinds: Mapping[str, Sequence[int]] = field(default_factory=dict)
    workload_kinds: bool = False

    @property
    def beginnings(self) -> list[str]:
        """The beginnings of all words; empty if a word has none, so that nothing matches."""
        if not all(word.beginnings for word in self.words):
            return []
        return list(dict.fromkeys(begin for word in self.words for begin in word.beginnings))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in SQL and its parameters."""

    sql: str
    values: Mapping[str, Any]


def kinds_named(connection: Connection, words: Iterable[Word]) -> dict[str, list[int]]:
    """The ids of the kinds that beginnings name. A beginning that names none is left out."""
    known = [(number, entries(kind)) for number, kind in connection.execute(select(KINDS.c.id, KINDS.c.kind))]
    beginnings = {begin for word in words for begin in word.beginnings}
    named = {
        begin: [number for number, own in known if any(entry.startswith(begin) for entry in own)]
        for begin in beginnings
    }
    return {begin: numbers for begin, numbers in named.items() if numbers}


def newest_rows(connection: Connection, table: Table, query: Query, most: int) -> list[int]:
    """The ids of the newest rows of a table that match, at most `most`, the newest first."""
    if not query.beginnings:
        return []
    own = condition(connection, query)
    rows = f"SELECT rowid AS place FROM {NAME} WHERE {own.sql} AND rowid & 7 = {SOURCES[table].number}"  # noqa: S608 - constants
    values = {**own.values, "most": most}
    plain = plain_objects(connection, query) if table is OBJECTS else None
    if plain is not None:
        rows += f" UNION ALL SELECT id::bigint << 3 FROM objects WHERE {plain.sql}"  # noqa: S608 - constants
        values |= plain.values
    if connection.dialect.name == "postgresql":
        # Otherwise the planner may walk through all rows in the order of their ids, and test each.
        rows = f"WITH found AS MATERIALIZED ({rows}) SELECT place AS rowid FROM found"  # noqa: S608 - constants
    newest = text(f"{rows} ORDER BY rowid DESC LIMIT :most")
    with by_index(connection):
        return [place_of(place)[1] for place in connection.execute(newest, values).scalars()]


@contextmanager
def by_index(connection: Connection) -> Iterator[None]:
    """Let PostgreSQL use indexes in the block.

    A scan of all objects would compute the entries of each, whose cost the planner does not know.
    """
    if connection.dialect.name != "postgresql":
        yield
        return
    connection.execute(text("SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)"))
    yield
    connection.execute(text("SELECT set_config('enable_seqscan', 'on', true), set_config('jit', 'on', true)"))


def condition(connection: Connection, query: Query) -> Condition:
    """The condition that a row of the index matches."""
    if connection.dialect.name == "sqlite":
        return Condition(f"{NAME} MATCH :match", {"match": " AND ".join(_of_fts5(query))})
    return Condition("entries @@ CAST(:match AS tsquery)", {"match": " & ".join(_of_tsquery(query))})


def plain_objects(connection: Connection, query: Query) -> Condition | None:
    """The condition that an object of `objects_by_word` matches; None if no object can, and on SQLite, which has them in `words`."""
    beginnings = query.beginnings
    if connection.dialect.name == "sqlite" or not all(begin.isascii() for begin in beginnings):
        return None
    tested = [begin for begin in beginnings if begin not in query.kinds and (query.exact or "-" in begin)]
    names = {f"name{place}": begin if query.exact else _pattern(begin) for place, begin in enumerate(tested)}
    test = _ENDS if query.exact else _FOLLOWS
    parts = {"parts": " & ".join(_parts_of(begin, query) for begin in beginnings)}
    wanted = PLAIN_OBJECT, f"{OBJECT_ENTRIES} @@ CAST(:parts AS tsquery)", *(f"({test.format(name)})" for name in names)
    return Condition(" AND ".join(wanted), parts | names)


def _of_fts5(query: Query) -> Iterator[str]:
    for begin in query.beginnings:
        end = "" if query.exact else " *"
        terms = [f'"{begin}"{end}', *(f'"{KIND}{number}"' for number in query.kinds.get(begin, ()))]
        if query.workload_kinds:
            terms.append(f'"{WORKLOAD_KIND}{begin}"{end}')
        yield f"({' OR '.join(terms)})"


def _of_tsquery(query: Query) -> Iterator[str]:
    for begin in query.beginnings:
        end = "" if query.exact else ":*"
        terms = [f"'{begin}'{end}", *_kinds_of(begin, query)]
        if query.workload_kinds:
            terms.append(f"'{WORKLOAD_KIND}{begin}'{end}")
        yield f"({' | '.join(terms)})"


def _parts_of(begin: str, query: Query) -> str:
    """The condition of a beginning for the parts of plain names; the order of several parts is tested apart."""
    *whole, last = filter(None, begin.split("-"))
    terms = [*(f"'{part}'" for part in whole), f"'{last}'{'' if query.exact else ':*'}"]
    return f"({' | '.join([' & '.join(terms), *_kinds_of(begin, query)])})"


def _kinds_of(begin: str, query: Query) -> Iterator[str]:
    return (f"'{KIND}{number}'" for number in query.kinds.get(begin, ()))


def _pattern(begin: str) -> str:
    """A regular expression of PostgreSQL for the parts of a beginning, one after the other."""
    end = "[a-z0-9]" if begin.endswith("-") else ""
    return f"(^|[^a-z0-9]){begin.replace('-', _JOINTS)}{end}"


def rows_in(connection: Connection, table: Table, query: Query) -> Condition:
    """The condition that a row of a table, but not of `objects`, matches."""
    own = condition(connection, query)
    places = f"SELECT rowid >> 3 FROM {NAME} WHERE {own.sql} AND rowid & 7 = {SOURCES[table].number}"  # noqa: S608 - constants
    return Condition(f"{table.name}.id IN ({places})", own.values)
