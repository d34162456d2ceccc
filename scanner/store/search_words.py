"""The rows that match each word of a search in one cluster: a list of findings, which has the ids of these rows, is filtered by them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection, Table, select, text

from scanner.store.engine import listed
from scanner.store.search_index import NAME
from scanner.store.search_query import Query, by_index, condition, kinds_named, plain_objects
from scanner.store.search_sources import SOURCES, place_of
from scanner.store.search_text import Word, words_of
from scanner.store.shared_rows import owners_of
from scanner.store.tables import CHECKS, KEPT, OBJECTS, POLICIES, SCAN_POLICIES, SCANS, VERDICTS, WORKLOADS


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


def search_words(connection: Connection, cluster: int, asked: str, scan_id: str = "") -> tuple[WordMatches, ...]:
    """The rows that match each word, for a cluster by its id. Titles of policies are those of a scan: by default, of the newest.

    Words beyond the limits of `search_text` are left out, and a word without a letter and without a digit matches nothing.
    """
    words = words_of(asked)
    policies = _policies(connection, cluster, scan_id) if words else frozenset()
    return tuple(_matches(connection, cluster, word, policies) for word in words)


def _matches(connection: Connection, cluster: int, word: Word, policies: frozenset[int]) -> WordMatches:
    query = Query((word,), workload_kinds=True)
    rows = _rows(connection, cluster, query) if query.beginnings else {}
    titled = policies.intersection(rows.get(POLICIES, ()))
    return WordMatches(
        word.text,
        checks=frozenset((*rows.get(CHECKS, ()), *_checks_of(connection, titled))),
        kinds=_kinds(connection, word),
        **{table.name: frozenset(rows.get(table, ())) for table in (VERDICTS, OBJECTS, WORKLOADS, KEPT)},
    )


def _rows(connection: Connection, cluster: int, query: Query) -> dict[Table, list[int]]:
    """The ids of all rows that match, by table; of objects, those of a cluster."""
    own = condition(connection, query)
    of_cluster = f"(SELECT cluster FROM objects WHERE id = {NAME}.rowid >> 3) = :cluster"  # noqa: S608 - a constant
    found = f"SELECT rowid FROM {NAME} WHERE {own.sql} AND (rowid & 7 <> {SOURCES[OBJECTS].number} OR {of_cluster})"  # noqa: S608 - constants
    tables = {source.number: table for table, source in SOURCES.items()}
    rows: defaultdict[Table, list[int]] = defaultdict(list)
    for place in connection.execute(text(found), {**own.values, "cluster": cluster}).scalars():
        number, row = place_of(place)
        rows[tables[number]].append(row)
    plain = plain_objects(connection, query)
    if plain is not None:
        of_names = text(f"SELECT id FROM objects WHERE cluster = :cluster AND {plain.sql}")  # noqa: S608 - constants
        with by_index(connection):
            rows[OBJECTS] += connection.execute(of_names, {**plain.values, "cluster": cluster}).scalars()
    return rows


def _kinds(connection: Connection, word: Word) -> frozenset[int]:
    """The kinds that each beginning of a word names."""
    named = kinds_named(connection, (word,))
    sets = [frozenset(named.get(begin, ())) for begin in word.beginnings]
    return frozenset.intersection(*sets) if sets else frozenset()


def _policies(connection: Connection, cluster: int, scan_id: str) -> frozenset[int]:
    """The ids of the policies of a scan, or of the newest merged scan of a cluster."""
    scan = SCANS.c.id == scan_id if scan_id else SCANS.c.revision.is_not(None)
    newest = select(SCANS.c.number).where(SCANS.c.cluster == cluster, scan).order_by(SCANS.c.revision.desc()).limit(1)
    number = connection.execute(newest).scalar()
    if number is None:
        return frozenset()
    own = SCAN_POLICIES.c.scan == owners_of(connection, number).policies
    return frozenset(connection.execute(select(SCAN_POLICIES.c.policy).where(own)).scalars())


def _checks_of(connection: Connection, policies: Iterable[int]) -> frozenset[int]:
    """The ids of the checks of policies."""
    numbers = list(policies)
    if not numbers:
        return frozenset()
    same = (CHECKS.c.language == POLICIES.c.language) & (CHECKS.c.policy == POLICIES.c.name)
    wanted = select(CHECKS.c.id).join(POLICIES, same).where(POLICIES.c.id.in_(listed(connection, numbers)))
    return frozenset(connection.execute(wanted).scalars())
