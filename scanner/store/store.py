"""The store as scans write to it. It reads, too: see `reader`.

Every method is one short transaction, and raises StoreError for errors of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from sqlalchemy import Engine

from scanner.errors import CredentialsChanged, CredentialsRefused, StoreError, UsageError
from scanner.model.population import GroupKind
from scanner.model.resource import Kind
from scanner.model.scans.notification import Notification, NotificationState
from scanner.model.scans.place import PlacedObject
from scanner.model.scans.scan import ClusterIdentity, PageResult, Scan, ScanEnd, ScanStart
from scanner.store.catalog import clusters, notifications, places, runs
from scanner.store.catalog.scans import fail_scan_of_run, mark_dead_scans_failed
from scanner.store.database.address import Address, address_of
from scanner.store.database.clocks import Clock, clock_of
from scanner.store.database.engine import (
    create_file,
    make_engine,
    merge_log,
    share_texts,
    writing,
    writing_shared,
)
from scanner.store.database.store_errors import as_store_error
from scanner.store.database.waiting import DatabaseWait
from scanner.store.reader import SqlReader
from scanner.store.upkeep.schema import UpgradeResult, migrate, prepare_schema

_Arguments = ParamSpec("_Arguments")
_AnswerT = TypeVar("_AnswerT")


def _waits(
    method: Callable[Concatenate[SqlStore, _Arguments], _AnswerT],
) -> Callable[Concatenate[SqlStore, _Arguments], _AnswerT]:
    """A method that waits for a database that does not answer. The store was opened with its credentials, so refused ones have changed."""

    @wraps(method)
    def call(self: SqlStore, /, *arguments: _Arguments.args, **options: _Arguments.kwargs) -> _AnswerT:
        try:
            return self.wait.until_answered(lambda: method(self, *arguments, **options))
        except CredentialsRefused as error:
            raise CredentialsChanged(str(error)) from error

    return call


class SqlStore(SqlReader):
    """Satisfies the Protocol `Store` of `scanner.scan.edges`, and reads stored scans."""

    def __init__(self, engine: Engine, address: Address, clock: Clock, wait: DatabaseWait | None = None) -> None:
        """Use a database with the current schema. `wait` is the time to wait for it in each method that a scan calls, by default none."""
        super().__init__(engine, address, clock)
        self.wait: Final = wait or DatabaseWait()
        self._beat = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime | None:
        """The time of the database's clock; None for a file, which has none."""
        return self._clock() if self._address.path is None else None

    @_waits
    def register(self, cluster: ClusterIdentity, *, restored: bool = False) -> str:
        """Find or begin the history of a cluster; return what the user should know when a history begins, else an empty text.

        With `restored`, a given name goes on for a cluster that was restored or built anew.

        Raises StoreError, and UsageError if the name is that of another cluster.
        """
        with as_store_error(self._address), writing_shared(self._engine) as connection:
            return clusters.register(connection, cluster, restored=restored).note

    @_waits
    def begin_run(self, name: str, command_line: Iterable[str] = ()) -> int:
        """Record that a run begins, at the time before the database was waited for; return its number. Close the runs and scans whose processes are gone. Raises StoreError."""
        with as_store_error(self._address):
            mark_dead_scans_failed(self._engine, self._clock())
            with writing(self._engine) as connection:
                runs.close_killed_runs(connection, self._clock())
                return runs.begin_run(connection, name, self._clock() - self.wait.waited, command_line)

    @_waits
    def name_run(self, number: int, name: str) -> None:
        """Record the name of a run. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            runs.name_run(connection, number, name)

    @_waits
    def begin_scan_of_run(self, number: int, scan_id: str) -> None:
        """Record the id of the scan that a run begins. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            runs.begin_scan(connection, number, scan_id)

    @_waits
    def end_run(self, number: int, *, exit_code: int, reason: str = "", scan_id: str = "", hurry: bool = False) -> None:
        """Record the end of a run, and its scan if one began; a scan that has not ended has failed. Raises StoreError.

        In a `hurry`, another writer of a SQLite file is not waited for long.
        """
        now = self._clock()
        with as_store_error(self._address), writing(self._engine, hurry=hurry) as connection:
            fail_scan_of_run(connection, scan_id, now)
            runs.end_run(connection, number, exit_code=exit_code, reason=reason, scan_id=scan_id, now=now)

    @_waits
    def begin(self, start: ScanStart) -> None:
        """Record that a scan runs, with its policies and bindings; mark dead scans as failed.

        Raises StoreError, also if what the scan builds on is damaged, and UsageError if the name of the cluster is that of another one.
        """
        from scanner.store.history import writer

        with as_store_error(self._address):
            mark_dead_scans_failed(self._engine, self._clock())
            writer.begin(self._engine, self._address, start, self._clock())

    def pack(self, result: PageResult) -> PageResult:
        """The result with `content` in place of its findings. Does not use the database."""
        from scanner.store.history import writer

        return writer.pack_result(result)

    def beat(self, scan_id: str) -> None:
        """Record that a scan still runs while it waits; may be called at any time, and writes every ten seconds at most.

        A database that is busy or does not answer gets no heartbeat: the next page reports the error.
        """
        from scanner.store.history import writer

        now = self._clock()
        if timedelta() <= now - self._beat < writer.BEAT:
            return
        self._beat = now
        with suppress(StoreError), as_store_error(self._address):
            writer.beat(self._engine, scan_id, now)

    @_waits
    def write_page(self, scan_id: str, result: PageResult) -> None:
        """Commit the results of a page together with its completion.

        Raises StoreError, also if the scan does not run.
        """
        from scanner.store.history import writer

        with as_store_error(self._address):
            writer.stage(self._engine, scan_id, result, self._clock())

    @_waits
    def write_controllers(self, scan_id: str, kind: Kind, objects: bytes) -> None:
        """Keep objects that were read for the workloads of others alone, packed by `audit.population`.

        Raises StoreError, also if the scan does not run.
        """
        from scanner.store.history import writer

        with as_store_error(self._address):
            writer.stage_controllers(self._engine, scan_id, kind, objects, self._clock())

    @_waits
    def workload_kinds(self, scan_id: str) -> frozenset[GroupKind]:
        """The kinds of the workloads of the findings that were open when a scan began, by its id. Raises StoreError."""
        from scanner.store.history import workload_states

        with self._reading() as connection:
            return workload_states.read_workload_kinds(connection, scan_id)

    @_waits
    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        """Merge the pages into history and make the scan visible, in one transaction.

        The scan's `new` counts findings that were not open before, including reopened ones.

        Raises StoreError, also if the scan does not run.
        """
        from scanner.store.history import writer

        with as_store_error(self._address):
            self.beat(scan_id)
            scan = writer.finish(self._engine, scan_id, end)
            merge_log(self._engine)
            return scan

    @_waits
    def plan_notifications(self, scan_id: str, routes: Collection[str]) -> None:
        """Record that the routes are to be notified about a finished scan, each once. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            notifications.plan_notifications(connection, scan_id, routes, self._clock())

    @_waits
    def end_notification(self, notification: Notification, state: NotificationState) -> None:
        """Record what became of a notification. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            notifications.end_notification(connection, notification, state)

    @_waits
    def write_places(self, scan_id: str, objects: Iterable[PlacedObject]) -> None:
        """Store the files and lines of the objects of a scan, by its full id. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            share_texts(connection)
            places.write_places(connection, scan_id, objects)


def open_store(url: str, clock: Clock | None = None, wait: DatabaseWait | None = None) -> SqlStore:
    """Open a database, and create it if it does not exist: `sqlite:PATH`, a path, or `postgresql://…`.

    The clock is by default that of the database's server, and of this machine for a file. `wait` is by default no time.

    Raises UsageError for an invalid URL, StoreError when the database cannot be used.
    """
    address, patience = address_of(url), wait or DatabaseWait()
    return patience.until_answered(lambda: _open_store(address, clock, patience))


def _open_store(address: Address, clock: Clock | None, wait: DatabaseWait) -> SqlStore:
    engine = _open_engine(address)
    try:
        with as_store_error(address):
            prepare_schema(engine, address)
            return SqlStore(engine, address, clock or clock_of(engine), wait)
    except BaseException:
        engine.dispose()
        raise


def upgrade(
    url: str, *, backup: bool = True, readers: Sequence[str] = (), wait: DatabaseWait | None = None
) -> UpgradeResult:
    """Upgrade a database to the current schema. Raises as `open_store` does, and StoreError if it cannot be backed up.

    With `backup`, a SQLite file that has data is copied beside itself first. `readers` are roles of PostgreSQL that may read all
    tables afterwards; raises UsageError for an unknown one, and for any with a SQLite file.
    """
    address = address_of(url)
    if readers and address.path is not None:
        raise UsageError(
            f"--grant-select is about roles of PostgreSQL, and the database {address.text} is a SQLite file: leave out the flag. The "
            "permissions of the file and its folder decide who reads it."
        )
    return (wait or DatabaseWait()).until_answered(lambda: _upgrade(address, backup=backup, readers=readers))


def _upgrade(address: Address, *, backup: bool, readers: Sequence[str]) -> UpgradeResult:
    engine = _open_engine(address)
    try:
        with as_store_error(address):
            return migrate(engine, address, backup=backup, readers=readers)
    finally:
        engine.dispose()


def _open_engine(address: Address) -> Engine:
    if address.path is not None:
        create_file(address.path)
    return make_engine(address)
