"""Connections that were idle are tested before they are used again: a database that restarted, or a firewall, may have ended them.

SQLAlchemy tests every connection that it takes from its pool. Pages take hundreds a second, each of them used a moment ago.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine, event
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection

_IDLE: Final = 1.0
"""Seconds after which a connection is tested."""
_SINCE: Final = "assay_idle_since"


def with_tested_connections(engine: Engine) -> Engine:
    """The engine, whose idle connections are replaced if they do not answer any more."""
    event.listen(engine, "checkin", _given_back)
    event.listen(engine, "checkout", lambda connection, record, _: _test(engine, connection, record))
    return engine


def _given_back(_connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
    record.info[_SINCE] = monotonic()


def _test(engine: Engine, connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
    since = record.info.get(_SINCE)
    if since is None or monotonic() - since < _IDLE:
        return
    try:
        engine.dialect.do_ping(connection)
    except engine.dialect.loaded_dbapi.Error as error:
        raise InvalidatePoolError from error
