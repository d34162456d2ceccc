"""The store as one object: what the line writes to and what reports read from.

Every method is its own short transaction, and speaks of its troubles as a StoreError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Self

from sqlalchemy import Connection, Engine

from scanner.model.scan import PageResult, Scan, ScanEnd, ScanRecord, ScanStart
from scanner.store import lookup, reader, writer
from scanner.store.address import Address, address_of
from scanner.store.engine import create_file, engine_for, reading_engine_for, writing_history
from scanner.store.packing import clean
from scanner.store.scans import abandoned, as_it_is, give_up
from scanner.store.schema import check, migrate, prepare
from scanner.store.store_errors import told

Clock = Callable[[], datetime]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SqlReader:
    """Reads what scans recorded, and writes nothing.

    The clock, in any zone, only tells which of the scans that say they run have died.
    """

    def __init__(self, engine: Engine, address: Address, clock: Clock = _utc_now) -> None:
        """Use a database of the current version."""
        self._engine = engine
        self._address = address
        self._clock = clock

    @property
    def shown(self) -> str:
        """Where the database is, without any password."""
        return self._address.shown

    def latest(self, cluster: str | None = None) -> Scan | None:
        """The newest complete or partial scan, of one cluster (by name or UID) or of any."""
        with self._reading() as connection:
            return lookup.latest(connection, cluster if cluster is None else clean(cluster))

    def scans(self, limit: int = 50) -> tuple[Scan, ...]:
        """The newest scans in any state, the newest first."""
        with self._reading() as connection:
            dead = abandoned(connection, self._clock())
            return tuple(as_it_is(scan, dead) for scan in lookup.scans(connection, limit))

    def find_scan(self, text: str, cluster: str | None = None) -> Scan:
        """The scan that an id, the beginning of one, `last` or `last~N` means. Raises UsageError."""
        with self._reading() as connection:
            found = lookup.find_scan(connection, clean(text), cluster if cluster is None else clean(cluster))
            return as_it_is(found, abandoned(connection, self._clock()))

    def record(self, scan_id: str) -> ScanRecord:
        """A finished scan as it was, by its full id. Raises UsageError when there is none of that id."""
        with told(self._address):
            return reader.record(self._engine, self._address, clean(scan_id), self._clock())

    def finding(self, text: str) -> lookup.ExplainedFinding:
        """The finding whose fingerprint begins with `text`, as it stands now. Raises UsageError."""
        with self._reading() as connection:
            return lookup.find_finding(connection, text)

    def close(self) -> None:
        """Let go of the connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        """Use the store, and close it at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with told(self._address), self._engine.connect() as connection:
            yield connection


class SqlStore(SqlReader):
    """Satisfies the Protocol `Store` of `scanner.scan.run`, and reads back what was stored."""

    def begin(self, start: ScanStart) -> None:
        """Record that a scan runs, with the policies and bindings it uses; mark the scans failed that have died.

        Raises StoreError.
        """
        with told(self._address):
            self._give_up_the_dead()
            writer.begin(self._engine, start, self._clock())

    def page(self, scan_id: str, result: PageResult) -> None:
        """Commit one page's outcomes and its completion together. Raises StoreError, also if the scan does not run."""
        with told(self._address):
            writer.stage(self._engine, scan_id, result, self._clock())

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        """Merge the pages into history and make the scan visible, in one transaction.

        The scan's `new` counts findings that were not open before, those that came back included.

        Raises StoreError, also if the scan does not run.
        """
        with told(self._address):
            return writer.finish(self._engine, scan_id, end)

    def _give_up_the_dead(self) -> None:
        with self._engine.connect() as connection:
            dead = abandoned(connection, self._clock())
        if dead:
            with writing_history(self._engine) as connection:
                give_up(connection, dead)


def open_store(url: str, clock: Clock = _utc_now) -> SqlStore:
    """Open a database, making it first if need be: `sqlite:///PATH`, a bare path, or `postgresql://…`.

    Raises UsageError for a URL that names no database Assay can use, StoreError when the database cannot be used.
    """
    address = address_of(url)
    engine = _connected(address)
    try:
        with told(address):
            prepare(engine, address)
    except BaseException:
        engine.dispose()
        raise
    return SqlStore(engine, address, clock)


def open_reader(url: str, clock: Clock = _utc_now) -> SqlReader:
    """Open a database that exists, only to read it: rights to read suffice, and no free space is needed.

    Raises UsageError for a URL that names no database, StoreError when the database cannot be read by this version.
    """
    address = address_of(url)
    engine = reading_engine_for(address)
    try:
        with told(address):
            check(engine, address)
    except BaseException:
        engine.dispose()
        raise
    return SqlReader(engine, address, clock)


def upgrade(url: str) -> bool:
    """Bring a database to the version of this code; False when it was there already. Raises as `open_store` does."""
    address = address_of(url)
    engine = _connected(address)
    try:
        with told(address):
            return migrate(engine, address)
    finally:
        engine.dispose()


def _connected(address: Address) -> Engine:
    if address.path is not None:
        create_file(address.path)
    return engine_for(address)
