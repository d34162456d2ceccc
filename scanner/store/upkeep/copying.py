"""Copies a database into another one, of SQLite or of PostgreSQL.

The source is read in one snapshot, table by table in the order of their references, and each portion is a transaction of the
target. The keys tell how far a copy came, so one that was killed goes on from there. Ids stay as they are. At the end, numbers and
digests of the rows of every table are compared, and only then can the target be opened (ADR 76).
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Engine, Integer, Table, func, select, text

from scanner.errors import StoreError, UsageError
from scanner.store.catalog.runs import list_open_runs
from scanner.store.catalog.scans import find_abandoned_scans
from scanner.store.database.address import Address, address_of
from scanner.store.database.clocks import clock_of
from scanner.store.database.engine import (
    create_file,
    make_copying_engine,
    make_reading_engine,
    merge_log,
    reading_snapshot,
    writing,
)
from scanner.store.database.store_errors import as_store_error
from scanner.store.rows import search_index
from scanner.store.rows.tables import (
    CLUSTERS,
    DELETED_CLUSTERS,
    HEAD,
    LAST_IDS,
    MARK,
    METADATA,
    NOTIFICATIONS,
    RUNS,
    SCANS,
)
from scanner.store.upkeep.planner_statistics import renew_statistics
from scanner.store.upkeep.retention import find_database
from scanner.store.upkeep.schema import begin_copy, check_schema, end_copy
from scanner.store.upkeep.table_streams import (
    RawRow,
    TableSum,
    find_last_key,
    read_batches,
    sum_table,
    write_batches,
)

TABLES: Final = tuple(table for table in METADATA.sorted_tables if table is not MARK)
"""The tables, those first to which others refer; the mark of Assay's databases has no row."""
_CHANGING: Final = (CLUSTERS, SCANS, RUNS, NOTIFICATIONS, DELETED_CLUSTERS, LAST_IDS)
"""The tables of which every command that writes changes a row."""
_MARK_LENGTH: Final = 24


@dataclass(frozen=True, slots=True)
class CopyResult:
    """A verified copy: the numbers of its scans, and of its rows by table.

    `continued` is true for a copy that was begun earlier, and `source_changed` if the source has changed since this one began.
    """

    scans: int
    rows: Mapping[str, int]
    continued: bool
    source_changed: bool


def copy_database(source_url: str, target_url: str, now: datetime | None = None) -> CopyResult:
    """Copy a database into an empty or a new one, or continue a copy of the same source; the source is only read.

    `now`, by default the time of the source's clock, decides which scans still run.

    Raises UsageError if the source is missing or empty, if the target has data or a copy of another source, and while a scan runs
    in the source; StoreError when a database cannot be used, and if the copy differs from its source.
    """
    source, target = find_database(source_url), address_of(target_url)
    reading, copying = make_reading_engine(source), make_copying_engine(target)
    try:
        with as_store_error(source):
            check_schema(reading, source)
            _reject_running(reading, now or clock_of(reading)())
        _reject_same(reading, source, copying, target)
        with as_store_error(source), reading_snapshot(reading) as connection:
            return _Copy(connection, source, copying, target).run()
    finally:
        reading.dispose()
        copying.dispose()


def _reject_running(engine: Engine, now: datetime) -> None:
    """Raise UsageError while a process scans into the source: its result would not be in the copy."""
    with engine.connect() as connection:
        for details in list_open_runs(connection, None, now):
            raise UsageError(
                f"Run {details.run.number} of {details.run.name} has not ended, and the copy would lack its result: run the command "
                "again when the run has ended."
            )
        dead = [scan.number for scan in find_abandoned_scans(connection, now)]
        running = select(SCANS.c.id).where(SCANS.c.state == "running", SCANS.c.number.not_in(dead))
        scan = connection.execute(running.limit(1)).scalar()
    if scan is not None:
        raise UsageError(
            f"Scan {scan} is running, and the copy would lack its result: run the command again when the scan has ended."
        )


def _reject_same(source: Engine, source_address: Address, target: Engine, target_address: Address) -> None:
    """Raise UsageError if source and target are one database, also by different addresses."""
    paths = source_address.path, target_address.path
    if paths[0] is not None and paths[1] is not None:
        same = paths[0].resolve() == paths[1].resolve() or (paths[1].exists() and paths[0].samefile(paths[1]))
    elif paths == (None, None):
        with as_store_error(source_address):
            place = _read_place(source)
        with as_store_error(target_address):
            same = place == _read_place(target)
    else:
        same = False
    if same:
        raise UsageError(f"{source_address.text} and {target_address.text} are the same database. Name another target.")


def _read_place(engine: Engine) -> tuple[object, ...]:
    """What two connections to one schema of a PostgreSQL server have in common."""
    own = "SELECT oid FROM pg_database WHERE datname = current_database()"
    schema = "SELECT oid FROM pg_namespace WHERE nspname = current_schema()"
    with engine.connect() as connection:
        wanted = text(f"SELECT pg_postmaster_start_time(), ({own}), ({schema})")
        return tuple(connection.execute(wanted).one())


class _Copy:
    """One copy: a connection that reads a snapshot of the source, and an engine of the target."""

    def __init__(self, connection: Connection, source: Address, engine: Engine, target: Address) -> None:
        self._connection = connection
        self._source = source
        self._engine = engine
        self._target = target

    def run(self) -> CopyResult:
        mark = _compute_mark(self._connection)
        with as_store_error(self._target):
            if self._target.path is not None:
                create_file(self._target.path)
            continued = begin_copy(self._engine, self._target, mark)
            for table in TABLES:
                self._copy_table(table)
            with writing(self._engine) as connection:
                _continue_sequences(connection)
                search_index.rebuild(connection)
            renew_statistics(self._engine)
        rows = {table.name: self._verify(table) for table in TABLES}
        with as_store_error(self._target):
            end_copy(self._engine)
            merge_log(self._engine)
        return CopyResult(rows[SCANS.name], rows, continued, _compute_present_mark(self._connection.engine) != mark)

    def _copy_table(self, table: Table) -> None:
        """Copy the rows whose keys are higher than those in the target, in short transactions."""
        with self._engine.connect() as connection:
            last = find_last_key(connection, table)
        # Closed at once if the target fails: the connection of the source is gone when the memory is freed.
        with closing(self._read(table, last)) as batches:
            copied = 1
            while copied:
                with writing(self._engine) as connection:
                    copied = write_batches(connection, table, batches)

    def _read(self, table: Table, last: RawRow | None) -> Generator[Sequence[RawRow], None, None]:
        """The rows of the source. Errors are those of its database, and not of the target that takes the rows."""
        with as_store_error(self._source):
            yield from read_batches(self._connection, table, last)

    def _verify(self, table: Table) -> int:
        """The number of rows of a table. Raises StoreError unless source and target have the same rows."""
        with as_store_error(self._source):
            wanted = sum_table(self._connection, table)
        with as_store_error(self._target), self._engine.connect() as connection:
            copied = sum_table(connection, table)
        if copied != wanted:
            raise StoreError(_describe_difference(table, wanted, copied, self._source, self._target))
        return copied.rows


def _describe_difference(table: Table, wanted: TableSum, copied: TableSum, source: Address, target: Address) -> str:
    numbers = f"{wanted.rows:,} rows there and {copied.rows:,} here" if wanted.rows != copied.rows else "other rows"
    return (
        f"The copy {target.text} differs from {source.text}: the table {table.name} has {numbers}. Run `assay db check` on the "
        "source, empty the target, and copy again."
    )


def _compute_mark(connection: Connection) -> str:
    """The mark of a source in its present state, which every command that writes changes."""
    sums = [sum_table(connection, table).digest for table in _CHANGING]
    return hashlib.sha256(" ".join([HEAD, *sums]).encode()).hexdigest()[:_MARK_LENGTH]


def _compute_present_mark(engine: Engine) -> str:
    """The mark of the source now; empty if it cannot be read any more."""
    with suppress(Exception), reading_snapshot(engine) as connection:
        return _compute_mark(connection)
    return ""


def _continue_sequences(connection: Connection) -> None:
    """Let the sequences of PostgreSQL go on after the highest ids."""
    if connection.dialect.name != "postgresql":
        return
    for table in TABLES:
        for column in table.primary_key.columns:
            if isinstance(column.type, Integer):
                _continue_sequence(connection, table, column)


def _continue_sequence(connection: Connection, table: Table, column: Any) -> None:
    wanted = select(func.pg_get_serial_sequence(table.name, column.name))
    sequence = connection.execute(wanted).scalar()
    if sequence is None:
        return
    highest = connection.execute(select(func.max(column))).scalar() or 0
    given = connection.execute(select(LAST_IDS.c.id).where(LAST_IDS.c.name == table.name)).scalar() or 0
    last = max(highest, given)
    connection.execute(select(func.setval(sequence, max(last, 1), last > 0)))
