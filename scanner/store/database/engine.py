"""Engines and transactions for SQLite and PostgreSQL.

SQLite: with write-ahead logging, reports can be read while a scan writes; a transaction that writes begins with BEGIN IMMEDIATE,
because a transaction that reads first and writes later cannot wait for another writer. PostgreSQL: an advisory lock for each
cluster guards its history, so that both databases have a single writer of one history.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from urllib.parse import quote
from weakref import WeakSet

import orjson
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    Integer,
    QueuePool,
    ScalarSelect,
    String,
    Table,
    any_,
    event,
    func,
    literal,
    select,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from scanner.errors import DatabaseUnusable, StoreError
from scanner.store.database.address import Address
from scanner.store.database.shared_statements import create_sharing_engine
from scanner.store.database.sqlite_file import find_network_file_system
from scanner.store.database.statement_limit import SNAPSHOT, limit_queries, limit_statements
from scanner.store.database.store_errors import UncertainCommit, as_store_error

if TYPE_CHECKING:
    from psycopg import Connection as DriverConnection
    from psycopg import Cursor
    from psycopg.rows import TupleRow
    from sqlalchemy.engine.interfaces import DBAPIConnection

Value: TypeAlias = str | int | bytes | None

AfterInsert: TypeAlias = Callable[[Connection, Table, Sequence[tuple[Value, ...]]], None]
"""Takes the connection of a transaction, a table, and rows that were inserted into it, with all columns."""

_WAIT = 60
"""Seconds that a writer waits for another writer."""

_SHORT_WAIT = 5
"""Seconds that a writer in a hurry waits."""

_TURN = 0.2
"""Seconds that SQLite waits at a time."""

_PAUSE = 0.05
"""Seconds between two attempts to change the mode of a file."""

_CONNECTIONS = 16
"""The idle connections to PostgreSQL that are kept: each new one costs some milliseconds of both sides."""

_CHECKPOINT_WAIT = 1
"""Seconds that the end of a scan waits for readers."""

_SHARED_LOCK = 0x617373617931
_HISTORY_LOCK = 0x61737361
_BODIES_LOCK = 0x61737362
_TEXTS_LOCK = 0x617373617932
_ARRAYS = {int: "bigint[]", str: "text[]", bytes: "bytea[]", bool: "boolean[]"}
"""The types of PostgreSQL for lists of values."""

_PRAGMAS = (
    f"PRAGMA busy_timeout = {_WAIT * 1000}",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -2048",
)


def make_engine(address: Address) -> Engine:
    """An engine, not yet connected. Raises StoreError when the driver is missing."""
    with as_store_error(address):
        if address.path is None:
            engine = _make_postgresql_engine(address)
            event.listen(engine, "begin", _begin_snapshot)
            return engine
        # Without an isolation level the driver begins no transactions: `_begin_transaction` does.
        arguments = {"timeout": _WAIT, "isolation_level": None}
        engine = keep_own_connections(create_sharing_engine(address.url, connect_args=arguments))
    event.listen(engine, "connect", _prepare_connection)
    event.listen(engine, "begin", _begin_transaction)
    return engine


def _make_postgresql_engine(address: Address, **options: object) -> Engine:
    engine = keep_own_connections(create_sharing_engine(address.url, pool_size=_CONNECTIONS, **options))
    event.listen(engine, "connect", _send_lists_in_binary)
    return test_idle_connections(engine)


def make_overwriting_engine(address: Address) -> Engine:
    """An engine that overwrites what it deletes in a SQLite file, so that no byte of a deleted row is left. Raises as `make_engine` does."""
    engine = make_engine(address)
    if address.path is not None:
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA secure_delete = ON"))
    return engine


def make_copying_engine(address: Address) -> Engine:
    """An engine that inserts the rows of a whole database, whose references are right: SQLite does not check them again. Raises as `make_engine` does."""
    engine = make_engine(address)
    if address.path is not None:
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys = OFF"))
    return engine


def make_autocommit_engine(address: Address) -> Engine:
    """An engine whose statements are no part of a transaction, as a vacuum must be. Raises StoreError without its driver."""
    with as_store_error(address):
        arguments = {} if address.path is None else {"timeout": _WAIT}
        return create_sharing_engine(address.url, isolation_level="AUTOCOMMIT", connect_args=arguments)


def make_reading_engine(address: Address, most_seconds: float | None = None) -> Engine:
    """An engine with read-only connections, whose queries take `most_seconds` at most.

    Raises StoreError when the driver is missing.
    """
    path = address.path
    if path is None:
        if most_seconds is None:
            return make_engine(address).execution_options(postgresql_readonly=True)
        with as_store_error(address):
            return limit_queries(_make_postgresql_engine(address, isolation_level="AUTOCOMMIT"), most_seconds)
    engine = keep_own_connections(
        create_sharing_engine(make_url("sqlite://"), creator=lambda: _connect_to_read(path), poolclass=QueuePool)
    )
    event.listen(engine, "begin", _begin_transaction)
    return engine if most_seconds is None else limit_statements(engine, most_seconds)


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a file read-only.

    If the shared memory of the write-ahead log cannot be created, as on a full disk or a read-only file system, the file is opened as
    immutable, which is correct while the log is empty.
    """
    place = quote(str(path.absolute()))
    with suppress(sqlite3.OperationalError):
        return _open_read_only(f"file:{place}?mode=ro")
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"The database {path} cannot be read in its place: {log.name} has changes that must be merged into it first, which "
            "needs write permission and free space. Copy both files to another place, and name the copy with --db."
        )
    return _open_read_only(f"file:{place}?immutable=1")


def _open_read_only(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA cache_size = -2048")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def close_connections(engine: Engine) -> None:
    """Close all connections: those that other threads still use, or make later, when they give them back."""
    event.listen(engine.pool, "checkin", _close_record)
    engine.dispose()
    event.listen(engine.pool, "checkin", _close_record)  # another pool since then


def _close_record(_connection: object, record: ConnectionPoolEntry) -> None:
    record.close()


def create_file(path: Path) -> None:
    """Create the file of a SQLite database and its folder, accessible to the owner alone. Raises StoreError.

    A file on a network file system is refused: two machines that write it damage it.
    """
    if kind := find_network_file_system(path):
        raise DatabaseUnusable(
            f"The database {path} is on a network file system ({kind}), where SQLite can be damaged. Put it on a local volume, or "
            "use PostgreSQL: --db postgresql://…"
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        why = "its folder is a file" if isinstance(error, FileExistsError) else error.strerror
        raise StoreError(
            f"The database {path} cannot be created or written ({why}). "
            "Check the permissions of its folder, or name another file with --db."
        ) from error


def merge_log(engine: Engine) -> None:
    """Merge the write-ahead log of a SQLite file into the file, unless a reader needs the log; else do nothing.

    Without a log the file alone is the database: it can be copied, or read from a place that cannot be written. A log that
    cannot be merged, as on a full disk, stays beside the file: nothing is lost.
    """
    if engine.dialect.name != "sqlite":
        return
    with engine.connect() as connection, suppress(sqlite3.OperationalError):
        driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        driver.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT * 1000}")
        try:
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            driver.execute(f"PRAGMA busy_timeout = {_WAIT * 1000}")


@contextmanager
def reading_snapshot(engine: Engine) -> Iterator[Connection]:
    """A connection whose queries all answer as of the first of them, as every transaction of SQLite does."""
    with engine.connect().execution_options(**{SNAPSHOT: True}) as connection:
        yield connection


@contextmanager
def writing(engine: Engine, *, hurry: bool = False) -> Iterator[Connection]:
    """A transaction that writes. Raises UncertainCommit if its end fails.

    In a `hurry`, it waits for another writer of a SQLite file for some seconds alone.
    """
    with engine.connect().execution_options(assay_writes=True, assay_hurries=hurry) as connection:
        transaction = connection.begin()
        try:
            yield connection
        except BaseException:
            try:
                transaction.rollback()
            except SQLAlchemyError:
                # A lost connection cannot be rolled back, nor one whose COPY a signal ended before the server answered: it is
                # closed, and does not hide the error.
                connection.invalidate()
            raise
        try:
            transaction.commit()
        except DBAPIError as error:
            raise UncertainCommit from error


@contextmanager
def writing_shared(engine: Engine) -> Iterator[Connection]:
    """A short transaction that writes what all clusters share, such as the schema; only one runs at a time."""
    with writing(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_SHARED_LOCK)))
        yield connection


def lock_history(connection: Connection, cluster: int) -> None:
    """Wait until no other transaction writes the history of a cluster. SQLite has a single writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_HISTORY_LOCK, cluster)))


def share_bodies(connection: Connection, cluster: int) -> None:
    """Let no scan of a cluster be pruned until the end of the transaction, which refers to rows of earlier scans.

    SQLite has a single writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock_shared(_BODIES_LOCK, cluster)))


def lock_bodies(connection: Connection, cluster: int) -> None:
    """Wait until no transaction refers to earlier scans of a cluster, and no other one writes its history."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_BODIES_LOCK, cluster)))
    lock_history(connection, cluster)


def share_texts(connection: Connection) -> None:
    """Let no shared row be deleted until the end of the transaction, which refers to rows that it found or committed."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock_shared(_TEXTS_LOCK)))


def try_lock_texts(connection: Connection) -> bool:
    """Return whether no other transaction refers to shared rows; then none does until the end of this one.

    The lock is only tried: while a transaction waits for it, no scan could begin or end.
    """
    if connection.dialect.name != "postgresql":
        return True
    return bool(connection.execute(select(func.pg_try_advisory_xact_lock(_TEXTS_LOCK))).scalar())


@contextmanager
def committing_immediately(connection: Connection) -> Iterator[Connection]:
    """A connection whose changes other scans see at once, even if the transaction of `connection` is rolled back.

    On SQLite it is `connection` itself: there is a single writer, and no other scan can wait for its transaction.
    """
    if connection.dialect.name != "postgresql":
        yield connection
        return
    with writing(connection.engine) as separate:
        yield separate


def insert_rows(connection: Connection, table: Table, names: Sequence[str], rows: Sequence[tuple[Value, ...]]) -> None:
    """Insert many rows, given the names of the columns, in the fastest way of each database."""
    quote = connection.dialect.identifier_preparer.quote
    into = f"{quote(table.name)} ({', '.join(map(quote, names))})"
    if connection.dialect.name != "postgresql":
        if rows:
            connection.exec_driver_sql(f"INSERT INTO {into} VALUES ({', '.join('?' * len(names))})", list(rows))  # noqa: S608
        return
    cursor = cast("Cursor[TupleRow]", connection.connection.cursor())
    with cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def insert_missing(
    connection: Connection, table: Table, names: Sequence[str], rows: Sequence[tuple[Value, ...]], then: AfterInsert
) -> int:
    """Insert the rows whose digest no row has yet, in a short transaction; return the number of inserted rows.

    On PostgreSQL, `then` is called in the same transaction with the inserted rows. The first value of a row is its id, the second
    its digest. Rows are inserted in the order of their digests: transactions that insert the
    same rows wait for each other in one order, and never in a circle.
    """
    if connection.dialect.name != "postgresql":
        insert_rows(connection, table, names, rows)
        return len(rows)
    quote = connection.dialect.identifier_preparer.quote
    types = [_ARRAYS[table.c[name].type.python_type] for name in names]
    columns = list(zip(*sorted(rows, key=itemgetter(1)), strict=True))
    statement = (
        f"INSERT INTO {quote(table.name)} ({', '.join(map(quote, names))}) "  # noqa: S608 - names of our own tables
        f"SELECT * FROM unnest({', '.join(f'%s::{array}' for array in types)}) ON CONFLICT (digest) DO NOTHING RETURNING id"
    )
    with committing_immediately(connection) as separate:
        inserted = frozenset(separate.exec_driver_sql(statement, tuple(map(list, columns))).scalars())
        then(separate, table, [row for row in rows if row[0] in inserted])
        return len(inserted)


def is_among(connection: Connection, column: ColumnElement[Value], values: Sequence[Value]) -> ColumnElement[bool]:
    """The condition that a column is one of many values; PostgreSQL is faster with one array parameter."""
    if connection.dialect.name == "postgresql":
        return column == any_(literal(values, ARRAY(column.type)))
    return column.in_(values)


def select_numbers(connection: Connection, numbers: Iterable[int]) -> ScalarSelect[int]:
    """A subquery of numbers, of which there can be any number: the list is one parameter."""
    if connection.dialect.name == "postgresql":
        return select(func.unnest(literal(list(numbers), ARRAY(BigInteger)))).scalar_subquery()
    each = func.json_each(orjson.dumps(list(numbers)).decode()).table_valued("value")
    return select(func.cast(each.c.value, Integer)).scalar_subquery()


def select_texts(connection: Connection, texts: Iterable[str]) -> ScalarSelect[str]:
    """A subquery of texts, of which there can be any number: the list is one parameter."""
    if connection.dialect.name == "postgresql":
        return select(func.unnest(literal(list(texts), ARRAY(String)))).scalar_subquery()
    each = func.json_each(orjson.dumps(list(texts)).decode()).table_valued("value")
    return select(each.c.value).scalar_subquery()


def _prepare_connection(connection: sqlite3.Connection, _record: object) -> None:
    for pragma in _PRAGMAS:
        connection.execute(pragma)
    _keep_write_ahead_log(connection)


def _keep_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch a new file to write-ahead logging, which it keeps.

    SQLite does not wait here for another process that writes: its busy timeout leaves out locks that could wait for each other.
    """
    until = time.monotonic() + _WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _begin_snapshot(connection: Connection) -> None:
    if connection.get_execution_options().get(SNAPSHOT):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def _send_lists_in_binary(connection: DriverConnection[TupleRow], _record: object) -> None:
    """Send lists in PostgreSQL's binary format: as text, every byte of the digests in a list would be escaped."""
    from psycopg.types.array import ListBinaryDumper

    connection.adapters.register_dumper(list, ListBinaryDumper)


def _begin_transaction(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get("assay_writes", False):
        connection.exec_driver_sql("BEGIN")
        return
    driver = cast("sqlite3.Connection", connection.connection.driver_connection)
    driver.execute(f"PRAGMA busy_timeout = {int(_TURN * 1000)}")
    try:
        if not _begin_writing(driver, _SHORT_WAIT if options.get("assay_hurries", False) else _WAIT):
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # raises the error as SQLAlchemy's
    finally:
        driver.execute(f"PRAGMA busy_timeout = {_WAIT * 1000}")


def _begin_writing(connection: sqlite3.Connection, seconds: float) -> bool:
    """Begin a transaction that writes; return whether it began.

    Python handles no signal while SQLite waits for another writer, so it waits in turns.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                return False
        else:
            return True


# Engines in forked processes: a child has connections of its own.
#
# Upstream: SQLAlchemy, "Using Connection Pools with Multiprocessing or os.fork()"; SQLite, "How To Corrupt An SQLite
# Database File", 2.6.

_ENGINES: WeakSet[Engine] = WeakSet()


def keep_own_connections(engine: Engine) -> Engine:
    """The engine; in a process that is forked later, it opens new connections and leaves those of its parent alone."""
    _ENGINES.add(engine)
    return engine


def _forget_connections() -> None:
    for engine in _ENGINES:
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget_connections)


# Connections that were idle are tested before they are used again: a database that restarted, or a firewall, may have
# ended them.
#
# SQLAlchemy tests every connection that it takes from its pool. Pages take hundreds a second, each of them used a
# moment ago.

_IDLE: Final = 1.0
"""Seconds after which a connection is tested."""
_SINCE: Final = "assay_idle_since"


def test_idle_connections(engine: Engine) -> Engine:
    """The engine, whose idle connections are replaced if they do not answer any more."""
    event.listen(engine, "checkin", _note_idle_since)
    event.listen(engine, "checkout", lambda connection, record, _: _test_connection(engine, connection, record))
    return engine


def _note_idle_since(_connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
    record.info[_SINCE] = monotonic()


def _test_connection(engine: Engine, connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
    since = record.info.get(_SINCE)
    if since is None or monotonic() - since < _IDLE:
        return
    try:
        engine.dialect.do_ping(connection)
    except engine.dialect.loaded_dbapi.Error as error:
        raise InvalidatePoolError from error
