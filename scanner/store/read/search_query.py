"""Finds rows in the index of a search: the words of a user as a query of FTS5, or as a `tsquery` of PostgreSQL.

A query consists of entries, which have letters, digits and `-` alone. What else a user writes never reaches the database.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, select, text

from scanner.store.database.engine import select_numbers
from scanner.store.rows.search_entries import (
    KIND,
    SOURCES,
    WORKLOAD_KIND,
    SearchWord,
    decode_place,
    list_entries,
    split_words,
)
from scanner.store.rows.search_index import NAME, OBJECT_ENTRIES, PLAIN_OBJECT
from scanner.store.rows.shared_rows import read_owners
from scanner.store.rows.tables import CHECKS, KEPT, KINDS, OBJECTS, POLICIES, SCAN_POLICIES, SCANS, VERDICTS, WORKLOADS

_FOLLOWS: Final = "lower((namespace || ' ') || name) ~ :{0}"
"""The test of PostgreSQL for several parts that follow each other in a plain name."""
_ENDS: Final = "right(name, length(:{0})) = :{0} OR right(namespace, length(:{0})) = :{0}"
"""The test of PostgreSQL for a plain name that ends as a word does. It is faster than an expression; an order alone depends on it."""
_JOINTS: Final = "[-._:]+"


@dataclass(frozen=True, slots=True)
class WordQuery:
    """The rows that match every word; with `exact`, those with names that end as the words do.

    `kinds` has the ids of kinds by the beginning that names them: an object of such a kind matches that beginning. With
    `workload_kinds`, a workload matches the beginnings of its kind.
    """

    words: Sequence[SearchWord]
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
class SqlCondition:
    """A condition in SQL and its parameters."""

    sql: str
    values: Mapping[str, Any]


def find_kinds(connection: Connection, words: Iterable[SearchWord]) -> dict[str, list[int]]:
    """The ids of the kinds that beginnings name. A beginning that names none is left out."""
    known = [(number, list_entries(kind)) for number, kind in connection.execute(select(KINDS.c.id, KINDS.c.kind))]
    beginnings = {begin for word in words for begin in word.beginnings}
    named = {
        begin: [number for number, own in known if any(entry.startswith(begin) for entry in own)]
        for begin in beginnings
    }
    return {begin: numbers for begin, numbers in named.items() if numbers}


def find_newest_rows(connection: Connection, table: Table, query: WordQuery, most: int) -> list[int]:
    """The ids of the newest rows of a table that match, at most `most`, the newest first."""
    if not query.beginnings:
        return []
    condition = build_condition(connection, query)
    # The lowest three bits of a number in the index name the table: see `search_entries.IndexedTable`.
    rows = f"SELECT rowid AS place FROM {NAME} WHERE {condition.sql} AND rowid & 7 = {SOURCES[table].number}"  # noqa: S608 - constants
    values = {**condition.values, "most": most}
    plain = build_object_condition(connection, query) if table is OBJECTS else None
    if plain is not None:
        rows += f" UNION ALL SELECT id::bigint << 3 FROM objects WHERE {plain.sql}"  # noqa: S608 - constants
        values |= plain.values
    if connection.dialect.name == "postgresql":
        # Otherwise the planner may walk through all rows in the order of their ids, and test each.
        rows = f"WITH found AS MATERIALIZED ({rows}) SELECT place AS rowid FROM found"  # noqa: S608 - constants
    newest = text(f"{rows} ORDER BY rowid DESC LIMIT :most")
    with using_indexes(connection):
        return [decode_place(place)[1] for place in connection.execute(newest, values).scalars()]


@contextmanager
def using_indexes(connection: Connection) -> Iterator[None]:
    """Let PostgreSQL use indexes in the block.

    A scan of all objects would compute the entries of each, whose cost the planner does not know.
    """
    if connection.dialect.name != "postgresql":
        yield
        return
    connection.execute(text("SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)"))
    yield
    connection.execute(text("SELECT set_config('enable_seqscan', 'on', true), set_config('jit', 'on', true)"))


def build_condition(connection: Connection, query: WordQuery) -> SqlCondition:
    """The condition that a row of the index matches."""
    if connection.dialect.name == "sqlite":
        return SqlCondition(f"{NAME} MATCH :match", {"match": " AND ".join(_to_fts5(query))})
    return SqlCondition("entries @@ CAST(:match AS tsquery)", {"match": " & ".join(_to_tsquery(query))})


def build_object_condition(connection: Connection, query: WordQuery) -> SqlCondition | None:
    """The condition that an object of `objects_by_word` matches; None if no object can, and on SQLite, which has them in `words`."""
    beginnings = query.beginnings
    if connection.dialect.name == "sqlite" or not all(begin.isascii() for begin in beginnings):
        return None
    tested = [begin for begin in beginnings if begin not in query.kinds and (query.exact or "-" in begin)]
    names = {f"name{place}": begin if query.exact else _to_pattern(begin) for place, begin in enumerate(tested)}
    test = _ENDS if query.exact else _FOLLOWS
    parts = {"parts": " & ".join(_to_parts_condition(begin, query) for begin in beginnings)}
    wanted = PLAIN_OBJECT, f"{OBJECT_ENTRIES} @@ CAST(:parts AS tsquery)", *(f"({test.format(name)})" for name in names)
    return SqlCondition(" AND ".join(wanted), parts | names)


def _to_fts5(query: WordQuery) -> Iterator[str]:
    for begin in query.beginnings:
        end = "" if query.exact else " *"
        terms = [f'"{begin}"{end}', *(f'"{KIND}{number}"' for number in query.kinds.get(begin, ()))]
        if query.workload_kinds:
            terms.append(f'"{WORKLOAD_KIND}{begin}"{end}')
        yield f"({' OR '.join(terms)})"


def _to_tsquery(query: WordQuery) -> Iterator[str]:
    for begin in query.beginnings:
        end = "" if query.exact else ":*"
        terms = [f"'{begin}'{end}", *_list_kind_terms(begin, query)]
        if query.workload_kinds:
            terms.append(f"'{WORKLOAD_KIND}{begin}'{end}")
        yield f"({' | '.join(terms)})"


def _to_parts_condition(begin: str, query: WordQuery) -> str:
    """The condition of a beginning for the parts of plain names; the order of several parts is tested apart."""
    *whole, last = filter(None, begin.split("-"))
    terms = [*(f"'{part}'" for part in whole), f"'{last}'{'' if query.exact else ':*'}"]
    return f"({' | '.join([' & '.join(terms), *_list_kind_terms(begin, query)])})"


def _list_kind_terms(begin: str, query: WordQuery) -> Iterator[str]:
    return (f"'{KIND}{number}'" for number in query.kinds.get(begin, ()))


def _to_pattern(begin: str) -> str:
    """A regular expression of PostgreSQL for the parts of a beginning, one after the other."""
    end = "[a-z0-9]" if begin.endswith("-") else ""
    return f"(^|[^a-z0-9]){begin.replace('-', _JOINTS)}{end}"


def build_row_condition(connection: Connection, table: Table, query: WordQuery) -> SqlCondition:
    """The condition that a row of a table, but not of `objects`, matches."""
    condition = build_condition(connection, query)
    places = f"SELECT rowid >> 3 FROM {NAME} WHERE {condition.sql} AND rowid & 7 = {SOURCES[table].number}"  # noqa: S608 - constants
    return SqlCondition(f"{table.name}.id IN ({places})", condition.values)


# The rows that match each word of a search in one cluster: a list of findings, which has the ids of these rows, is
# filtered by them.


class WordMatches(NamedTuple):
    """A word of a search, and the ids of the rows that match the word: of `checks`, `kinds`, and so on.

    A finding matches the word if one of the rows that it refers to does. `checks` has those of policies with such a title, too;
    `objects` are those of the cluster, by name and namespace alone: their kinds are in `kinds`. `kept` has labels and annotations.
    """

    word: str
    checks: frozenset[int]
    kinds: frozenset[int]
    verdicts: frozenset[int]
    objects: frozenset[int]
    workloads: frozenset[int]
    kept: frozenset[int]


def search_words(connection: Connection, cluster: int, query: str, scan_id: str = "") -> tuple[WordMatches, ...]:
    """The rows that match each word, for a cluster by its id. Titles of policies are those of a scan: by default, of the newest.

    Words beyond the limits of `search_entries` are left out, and a word without a letter and without a digit matches nothing.
    """
    words = split_words(query)
    policies = _read_policies(connection, cluster, scan_id) if words else frozenset()
    return tuple(_match_word(connection, cluster, word, policies) for word in words)


def _match_word(connection: Connection, cluster: int, word: SearchWord, policies: frozenset[int]) -> WordMatches:
    query = WordQuery((word,), workload_kinds=True)
    rows = _find_rows(connection, cluster, query) if query.beginnings else {}
    titled = policies.intersection(rows.get(POLICIES, ()))
    return WordMatches(
        word.text,
        checks=frozenset((*rows.get(CHECKS, ()), *_find_checks(connection, titled))),
        kinds=_find_kinds_of_word(connection, word),
        **{table.name: frozenset(rows.get(table, ())) for table in (VERDICTS, OBJECTS, WORKLOADS, KEPT)},
    )


def _find_rows(connection: Connection, cluster: int, query: WordQuery) -> dict[Table, list[int]]:
    """The ids of all rows that match, by table; of objects, those of a cluster."""
    condition = build_condition(connection, query)
    of_cluster = f"(SELECT cluster FROM objects WHERE id = {NAME}.rowid >> 3) = :cluster"  # noqa: S608 - a constant
    statement = (
        f"SELECT rowid FROM {NAME} WHERE {condition.sql} AND (rowid & 7 <> {SOURCES[OBJECTS].number} OR {of_cluster})"  # noqa: S608 - constants
    )
    tables = {source.number: table for table, source in SOURCES.items()}
    rows: defaultdict[Table, list[int]] = defaultdict(list)
    for place in connection.execute(text(statement), {**condition.values, "cluster": cluster}).scalars():
        number, row = decode_place(place)
        rows[tables[number]].append(row)
    plain = build_object_condition(connection, query)
    if plain is not None:
        of_names = text(f"SELECT id FROM objects WHERE cluster = :cluster AND {plain.sql}")  # noqa: S608 - constants
        with using_indexes(connection):
            rows[OBJECTS] += connection.execute(of_names, {**plain.values, "cluster": cluster}).scalars()
    return rows


def _find_kinds_of_word(connection: Connection, word: SearchWord) -> frozenset[int]:
    """The kinds that each beginning of a word names."""
    named = find_kinds(connection, (word,))
    sets = [frozenset(named.get(begin, ())) for begin in word.beginnings]
    return frozenset.intersection(*sets) if sets else frozenset()


def _read_policies(connection: Connection, cluster: int, scan_id: str) -> frozenset[int]:
    """The ids of the policies of a scan, or of the newest merged scan of a cluster."""
    scan = SCANS.c.id == scan_id if scan_id else SCANS.c.revision.is_not(None)
    newest = select(SCANS.c.number).where(SCANS.c.cluster == cluster, scan).order_by(SCANS.c.revision.desc()).limit(1)
    number = connection.execute(newest).scalar()
    if number is None:
        return frozenset()
    of_scan = SCAN_POLICIES.c.scan == read_owners(connection, number).policies
    return frozenset(connection.execute(select(SCAN_POLICIES.c.policy).where(of_scan)).scalars())


def _find_checks(connection: Connection, policies: Iterable[int]) -> frozenset[int]:
    """The ids of the checks of policies."""
    numbers = list(policies)
    if not numbers:
        return frozenset()
    same = (CHECKS.c.language == POLICIES.c.language) & (CHECKS.c.policy == POLICIES.c.name)
    wanted = select(CHECKS.c.id).join(POLICIES, same).where(POLICIES.c.id.in_(select_numbers(connection, numbers)))
    return frozenset(connection.execute(wanted).scalars())
