"""The index of a search: the table `words`, which finds rows of other tables by the beginnings of their words.

It has a row for each row of the tables in `search_entries`, with its entries. A migration creates it, and `index_rows` fills it.
SQLite: a contentless table of FTS5. A scan indexes its new rows at the end of its transaction, in the order of their ids, because FTS5
is slow in any other order; `last_ids` has the last id of each table. PostgreSQL: entries as a `tsvector`, written in the transaction
that inserts the row, because scans of several clusters insert rows at the same time. There the names of objects are found by an index
of an expression: a copy of them would need more space than the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Engine,
    MetaData,
    Select,
    Table,
    delete,
    insert,
    select,
    text,
    update,
)

from scanner.store.database.engine import insert_rows, writing
from scanner.store.rows.columns import FindingColumns
from scanner.store.rows.search_entries import KIND, SOURCES, IndexedTable
from scanner.store.rows.tables import FINDINGS, LAST_IDS, OBJECTS, VERDICT_USES

if TYPE_CHECKING:
    import sqlite3

NAME: Final = "words"
"""The name of the table. SQLite adds tables whose names begin with it."""
ENTRIES: Final = "entries"
"""The name of its column."""
PORTION: Final = 10_000
"""The number of rows that are indexed at a time."""
_MERGED_PAGES: Final = 500
"""The pages of the index of SQLite that one transaction rewrites, about 2 MB."""
_LEAST_CHANGES: Final = 2
"""The changes of a step that has joined something: the statement itself is one."""

OBJECT_ENTRIES: Final = (
    "(array_to_tsvector(array_remove(regexp_split_to_array(lower((namespace || ' ') || name), '[^a-z0-9]+'), '')"
    f" || ('{KIND}' || kind::text)))"
)
"""The parts of the names of an object, and its kind: the expression of the index in PostgreSQL."""
PLAIN_OBJECT: Final = (
    "(octet_length(namespace || name) <= 300 AND char_length(namespace || name) = octet_length(namespace || name))"
)
"""The condition of that index: names in ASCII of a usual length. Objects with other names are in `words`."""
_PLAIN_LENGTH: Final = 300

OPTIMIZE: Final = f"INSERT INTO {NAME} ({NAME}) VALUES ('optimize')"  # noqa: S608 - constants
"""The statement that joins the parts of the index of SQLite, and frees the space of deleted entries."""

_SQLITE: Final = (
    f"CREATE VIRTUAL TABLE {NAME} USING fts5({ENTRIES}, content='', columnsize=0, detail=none,"
    " tokenize=\"ascii tokenchars '-'\")"
)
WORDS: Final = Table(NAME, MetaData(), Column("rowid", BigInteger), Column(ENTRIES))
"""The index as a table; the type of its entries differs between the databases."""

Document: TypeAlias = tuple[int, Sequence[str]]
"""The id of a row, and its entries."""


def list_definitions() -> Iterator[str]:
    """The statements that create the index in a new SQLite database."""
    yield _SQLITE


def index_after_upgrade(connection: Connection) -> None:
    """Index all rows if a migration has created the index. SQLite knows which rows are indexed."""
    on_sqlite = connection.dialect.name == "sqlite"
    if on_sqlite or connection.execute(select(WORDS.c.rowid).limit(1)).first() is None:
        index_all(connection)


def index_all(connection: Connection) -> None:
    """Index all rows of a database whose index is empty, in portions."""
    if connection.dialect.name == "sqlite":
        index_new_rows(connection)
        return
    for table, source in SOURCES.items():
        for portion in read_documents(connection, table):
            _write_documents(connection, source, portion)


def index_new_rows(connection: Connection) -> None:
    """Index the rows that were inserted since the last call, on SQLite; the connection is in a transaction that writes."""
    if connection.dialect.name != "sqlite":
        return
    for table, source in SOURCES.items():
        last = 0
        for portion in read_documents(connection, table, read_last_indexed(connection, table)):
            _write_documents(connection, source, portion)
            last = portion[-1][0]
        if last:
            _set_last_indexed(connection, table, last)


def index_inserted(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Index rows with all columns of a table, on PostgreSQL, in the transaction that inserted them; other tables are ignored."""
    source = SOURCES.get(table)
    if source is None or connection.dialect.name == "sqlite":
        return
    names = [column.name for column in table.columns]
    places = [names.index(name) for name in source.columns]
    _write_documents(connection, source, [(row[0], source.entries(*(row[place] for place in places))) for row in rows])


def index_objects(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Index inserted rows of `objects`, on PostgreSQL: those that the index of an expression does not have."""
    if connection.dialect.name == "sqlite":
        return
    namespace, name = (list(OBJECTS.c.keys()).index(column) for column in ("namespace", "name"))
    index_inserted(connection, OBJECTS, [row for row in rows if not _is_plain(row[namespace] + row[name])])


def forget_rows(connection: Connection, table: Table, numbers: Sequence[int]) -> None:
    """Delete rows of a table, at most a portion of `interning.chunks`, from the index before they are deleted themselves."""
    source = SOURCES.get(table)
    if source is None:
        return
    if connection.dialect.name == "sqlite":
        _forget_documents(connection, table, numbers)
    else:
        places = [source.encode_place(number) for number in numbers]
        connection.execute(text(f"DELETE FROM {NAME} WHERE rowid = ANY(:places)"), {"places": places})  # noqa: S608


def rebuild(connection: Connection) -> None:
    """Make the index anew; the connection is in a transaction that writes."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"INSERT INTO {NAME} ({NAME}) VALUES ('delete-all')")  # noqa: S608 - constants
        for table in SOURCES:
            _set_last_indexed(connection, table, 0)
    else:
        connection.exec_driver_sql(f"DELETE FROM {NAME}")  # noqa: S608 - a constant
    index_all(connection)


def drop_deleted_entries(engine: Engine) -> None:
    """Rewrite the index of SQLite without the entries of deleted rows, which FTS5 keeps until then, in short transactions.

    Upstream: "The 'merge' Command" of FTS5: a negative number begins to join all parts of the index, and the work is done when a
    step changes nothing.
    """
    if engine.dialect.name != "sqlite":
        return
    pages = -_MERGED_PAGES
    while True:
        with writing(engine) as connection:
            driver = cast("sqlite3.Connection", connection.connection.driver_connection)
            before = driver.total_changes
            connection.exec_driver_sql(f"INSERT INTO {NAME} ({NAME}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608 - constants
            if driver.total_changes - before < _LEAST_CHANGES:
                return
        pages = _MERGED_PAGES


def read_last_indexed(connection: Connection, table: Table) -> int:
    """The highest id of a table whose row is in the index of SQLite."""
    return connection.execute(select(LAST_IDS.c.id).where(LAST_IDS.c.name == _mark_of(table))).scalar() or 0


def read_documents(connection: Connection, table: Table, after: int = 0) -> Iterator[list[Document]]:
    """The rows that `words` must have, of a table with ids above `after`: in the order of their ids, in portions."""
    source = SOURCES[table]
    elsewhere = table is OBJECTS and connection.dialect.name == "postgresql"
    condition = f"NOT {PLAIN_OBJECT}" if elsewhere else "TRUE"
    query = text(
        f"SELECT id, {', '.join(source.columns)} FROM {table.name} WHERE id > :after AND {condition}"  # noqa: S608 - constants
        " ORDER BY id LIMIT :portion"
    )
    while True:
        rows = connection.execute(query, {"after": after, "portion": PORTION}).all()
        if rows:
            yield [(number, source.entries(*texts)) for number, *texts in rows]
        if len(rows) < PORTION:
            return
        after = rows[-1][0]


def _write_documents(connection: Connection, source: IndexedTable, rows: Iterable[Document]) -> None:
    form = " ".join if connection.dialect.name == "sqlite" else to_tsvector
    insert_rows(
        connection,
        WORDS,
        ("rowid", ENTRIES),
        [(source.encode_place(number), form(entries)) for number, entries in rows if entries],
    )


def to_tsvector(entries: Iterable[str]) -> str:
    """Entries as PostgreSQL reads a `tsvector`: they have no quotes and no backslashes."""
    return " ".join(f"'{entry}'" for entry in entries)


def _forget_documents(connection: Connection, table: Table, numbers: Sequence[int]) -> None:
    """Delete the entries of rows, which FTS5 must be given as they were."""
    last, source = read_last_indexed(connection, table), SOURCES[table]
    chosen = select(*(table.c[name] for name in ("id", *source.columns))).where(table.c.id.in_(numbers))
    rows = [(number, source.entries(*texts)) for number, *texts in connection.execute(chosen) if number <= last]
    gone = [("delete", source.encode_place(number), " ".join(entries)) for number, entries in rows if entries]
    if gone:
        connection.exec_driver_sql(f"INSERT INTO {NAME} ({NAME}, rowid, {ENTRIES}) VALUES (?, ?, ?)", gone)  # noqa: S608 - constants


def _is_plain(names: str) -> bool:
    return names.isascii() and len(names) <= _PLAIN_LENGTH


def is_mark(name: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that a name in `last_ids` is that of the highest id in the index of SQLite."""
    return name.in_([_mark_of(table) for table in SOURCES])


def _mark_of(table: Table) -> str:
    return f"{NAME} of {table.name}"


def _set_last_indexed(connection: Connection, table: Table, last: int) -> None:
    own = LAST_IDS.c.name == _mark_of(table)
    if not connection.execute(update(LAST_IDS).where(own).values(id=last)).rowcount:
        connection.execute(insert(LAST_IDS).values(name=_mark_of(table), id=last))


# The clusters and checks that have findings with a verdict, so that a search names them with a message.
#
# Findings have no index by verdict, which would need ten bytes for each of them.

_MOST_KNOWN: Final = 20_000
_INSERT: Final = text(
    'INSERT INTO verdict_uses (verdict, cluster, "check") VALUES (:verdict, :cluster, :check) ON CONFLICT DO NOTHING'
)


class VerdictUses:
    """Writes the uses of one cluster while a scan is merged into its history."""

    def __init__(self, connection: Connection, cluster: int) -> None:
        """The connection is in a transaction that writes history."""
        self._connection = connection
        self._cluster = cluster
        self._known: set[tuple[int, int]] = set()

    def add(self, findings: Iterable[FindingColumns]) -> None:
        """Add the uses of inserted rows."""
        new = {(each.verdict, each.check) for each in findings} - self._known
        if not new:
            return
        rows = [{"verdict": verdict, "cluster": self._cluster, "check": check} for verdict, check in sorted(new)]
        self._connection.execute(_INSERT, rows)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known |= new


def forget_unused(connection: Connection, cluster: int) -> int:
    """Delete the uses without a finding of a cluster; return their number. The connection holds the lock of the cluster's history."""
    use = VERDICT_USES.c
    stale = connection.execute(select_uses(VERDICT_USES, cluster).except_(select_uses(FINDINGS, cluster))).all()
    for row in stale:
        gone = use.cluster == cluster, use.verdict == row.verdict, use.check == row.check
        connection.execute(delete(VERDICT_USES).where(*gone))
    return len(stale)


def rebuild_uses(connection: Connection) -> None:
    """Make the uses of all clusters anew from the findings."""
    connection.execute(delete(VERDICT_USES))
    use = VERDICT_USES.c
    used = select(FINDINGS.c.verdict, FINDINGS.c.cluster, FINDINGS.c.check).distinct()
    connection.execute(insert(VERDICT_USES).from_select([use.verdict, use.cluster, use.check], used))


def select_uses(table: Table, cluster: int) -> Select[tuple[int, int]]:
    """The verdicts and checks of a cluster in `findings` or in `verdict_uses`."""
    return select(table.c.verdict, table.c.check).where(table.c.cluster == cluster).distinct()
