"""Checks the index of a search: each row has its entries in the index, and the index has no other rows.

On PostgreSQL the index of objects follows from the objects, so only the table `words` is compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from sqlalchemy import Connection, Table, func, select, text

from scanner.store.rows.search_entries import SOURCES, decode_place
from scanner.store.rows.search_index import NAME, Document, read_documents, read_last_indexed, to_tsvector

_SHOWN: Final = 5
_DIFFER: Final = "rows have other words in the index of the search"
_BLOCK: Final = 1024
"""The number of ids whose entries are compared together on SQLite."""
_MASK: Final = (1 << 64) - 1


class IndexDifference(NamedTuple):
    """A fault of the index, and its rows."""

    what: str
    where: str


def find_index_differences(connection: Connection, sample: int | None) -> Iterator[IndexDifference]:
    """The differences between the index and the rows; of the newest `sample` rows of each table, or of all rows."""
    if connection.dialect.name == "sqlite":
        yield from _find_unindexed(connection)
        yield from _compare_on_sqlite(connection) if sample is None else _check_sample(connection, sample)
        return
    for table in SOURCES:
        wrong = [str(number) for number in _compare_on_postgresql(connection, table, sample)]
        if wrong:
            yield IndexDifference(_DIFFER, _describe_rows(table, wrong))
    yield from _find_orphans(connection)


def _find_unindexed(connection: Connection) -> Iterator[IndexDifference]:
    for table in SOURCES:
        highest = connection.execute(select(func.max(table.c.id))).scalar() or 0
        last = read_last_indexed(connection, table)
        if highest > last:
            yield IndexDifference("rows are not in the index of the search", f"{table.name} {last + 1} to {highest}")


def _check_sample(connection: Connection, sample: int) -> Iterator[IndexDifference]:
    """Look for the newest rows by their own entries."""
    lookup = text(f"SELECT count(*) FROM {NAME} WHERE {NAME} MATCH :match AND rowid = :place")  # noqa: S608 - constants
    for table, source in SOURCES.items():
        wrong: list[str] = []
        for number, entries in chain.from_iterable(_read_newest(connection, table, sample)):
            match = " AND ".join(f'"{entry}"' for entry in entries[:_SHOWN])
            values = {"match": match, "place": source.encode_place(number)}
            if entries and not connection.execute(lookup, values).scalar():
                wrong.append(str(number))
        if wrong:
            yield IndexDifference(_DIFFER, _describe_rows(table, wrong))


def _read_newest(connection: Connection, table: Table, sample: int | None) -> Iterator[list[Document]]:
    """The newest rows of a table, or all of them, in portions."""
    before = select(table.c.id).order_by(table.c.id.desc()).offset(sample or 0).limit(1)
    after = 0 if sample is None else connection.execute(before).scalar() or 0
    return read_documents(connection, table, after)


def _compare_on_sqlite(connection: Connection) -> Iterator[IndexDifference]:
    """Compare sums over blocks of ids: one number for each block stays in memory."""
    sums: defaultdict[tuple[int, int], int] = defaultdict(int)
    for table, source in SOURCES.items():
        for number, entries in chain.from_iterable(_read_newest(connection, table, None)):
            place = source.encode_place(number)
            sums[source.number, number // _BLOCK] += sum(hash((entry, place)) & _MASK for entry in set(entries))
    for entry, place in _read_stored_entries(connection):
        number, row = decode_place(place)
        sums[number, row // _BLOCK] -= hash((entry, place)) & _MASK
    tables = {source.number: table for table, source in SOURCES.items()}
    for (number, block), difference in sorted(sums.items()):
        if difference:
            where = f"{tables[number].name} {block * _BLOCK} to {(block + 1) * _BLOCK - 1}"
            yield IndexDifference(_DIFFER, where)


def _read_stored_entries(connection: Connection) -> Iterator[tuple[str, int]]:
    """All entries in the index of SQLite. A temporary table of FTS5 reads them; the file of a reader stays read-only."""
    for statement in (
        "PRAGMA query_only = OFF",
        f"CREATE VIRTUAL TABLE temp.stored_words USING fts5vocab(main, {NAME}, instance)",
    ):
        connection.exec_driver_sql(statement)
    wanted = text("SELECT term, doc FROM temp.stored_words").execution_options(yield_per=10_000)
    yield from ((str(entry), int(place)) for entry, place in connection.execute(wanted))
    connection.exec_driver_sql("DROP TABLE temp.stored_words")
    connection.exec_driver_sql("PRAGMA query_only = ON")


def _compare_on_postgresql(connection: Connection, table: Table, sample: int | None) -> Iterator[int]:
    """The ids of rows whose entries are others in the table, or are not there."""
    source = SOURCES[table]
    expected = "unnest(CAST(:places AS bigint[]), CAST(:texts AS text[])) AS given (place, entries)"
    compared = text(
        f"SELECT place FROM {expected} LEFT JOIN {NAME} ON rowid = place"  # noqa: S608 - constants
        f" WHERE {NAME}.entries IS DISTINCT FROM CAST(given.entries AS tsvector) ORDER BY place"
    )
    for portion in _read_newest(connection, table, sample):
        rows = {source.encode_place(number): to_tsvector(entries) for number, entries in portion if entries}
        values = {"places": list(rows), "texts": list(rows.values())}
        yield from (decode_place(place)[1] for place in connection.execute(compared, values).scalars())


def _find_orphans(connection: Connection) -> Iterator[IndexDifference]:
    """Rows of the table on PostgreSQL without the row that they are about."""
    for table, source in SOURCES.items():
        there = f"EXISTS (SELECT 1 FROM {table.name} WHERE id = rowid >> 3)"  # noqa: S608 - constants
        wanted = f"SELECT rowid >> 3 FROM {NAME} WHERE rowid & 7 = {source.number} AND NOT {there}"  # noqa: S608 - constants
        rows = connection.execute(text(f"{wanted} ORDER BY 1 LIMIT {_SHOWN}")).scalars()
        if gone := [str(row) for row in rows]:
            yield IndexDifference("the index of the search has rows that do not exist", _describe_rows(table, gone))


def _describe_rows(table: Table, rows: list[str]) -> str:
    return f"{table.name} {', '.join(rows[:_SHOWN])}"
