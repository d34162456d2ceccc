"""A limit for the time of each query, for readers that many people share.

PostgreSQL: `statement_timeout`, which a transaction sets for itself, also behind a pool of connections. SQLite has none: its progress
handler, which runs after a number of steps of its machine, adds up the time between its runs. A pause in which the reader of a long
result does something else counts little, as in PostgreSQL, where it does not count.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from time import monotonic
from typing import Final

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

_STEPS: Final = 4_000
"""Steps between two runs of the handler: a fraction of a millisecond."""
_PAUSE: Final = 0.05
"""Seconds that count at most between two runs."""
_LIMIT: Final = "assay_statement_limit"
SNAPSHOT: Final = "assay_at_once"
"""The option of a connection whose queries all answer as of the first of them."""
_SIGNS: Final = ("interrupted", "statement timeout")


def limit_statements(engine: Engine, seconds: float) -> Engine:
    """The engine of SQLite, whose queries end after some seconds with an error that `as_store_error` turns into QueryTooLong."""
    event.listen(engine, "connect", lambda connection, record: _set_limit(connection, record, seconds))
    event.listen(engine, "before_cursor_execute", _restart_stopwatch)
    return engine


def limit_queries(engine: Engine, seconds: float) -> Engine:
    """The same for an engine of PostgreSQL whose connections commit by themselves: it begins read-only transactions.

    A transaction begins, with its settings, in one message; the driver would send two.
    """
    milliseconds = max(1, round(seconds * 1000))
    # The queries of pages are short: PostgreSQL would compile some of them for longer than they run.
    settings = f"SET LOCAL statement_timeout = {milliseconds}; SET LOCAL jit = off"
    event.listen(engine, "begin", lambda connection: _begin_transaction(connection, settings))
    return engine


def is_too_long(error: DBAPIError) -> bool:
    """Return whether a query was ended by its limit."""
    text = str(error.orig).lower()
    return any(sign in text for sign in _SIGNS)


class _Stopwatch:
    """The time that the queries of a connection of SQLite take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.restart()

    def restart(self) -> None:
        self._spent = 0.0
        self._last = monotonic()

    def __call__(self) -> int:
        """Add the time since the last run; 1 ends the query."""
        now = monotonic()
        self._spent += min(now - self._last, _PAUSE)
        self._last = now
        return int(self._spent > self._seconds)


def _set_limit(connection: sqlite3.Connection, record: ConnectionPoolEntry, seconds: float) -> None:
    watch = record.info[_LIMIT] = _Stopwatch(seconds)
    connection.set_progress_handler(watch, _STEPS)


def _restart_stopwatch(connection: Connection, *_: object) -> None:
    connection.info[_LIMIT].restart()


def _begin_transaction(connection: Connection, settings: str) -> None:
    level = "REPEATABLE READ" if connection.get_execution_options().get(SNAPSHOT) else "READ COMMITTED"
    # By the driver: on a connection that streams, SQLAlchemy would declare a cursor for the statement.
    with closing(connection.connection.cursor()) as cursor:
        cursor.execute(f"BEGIN ISOLATION LEVEL {level} READ ONLY; {settings}")
