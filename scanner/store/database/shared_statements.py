"""Compiled statements that all engines of this process share: compiling a statement takes longer than executing it.

SQLAlchemy keeps compiled statements by dialect, and gives every engine a dialect of its own. The dialects of this module are
equal to each other if they compile a statement to the same text. A command makes one engine; this serves the tests of the store, each
of which opens a database of its own: without it they take a quarter longer (ADR 68).
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Engine, create_engine
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import CompiledCacheType
from sqlalchemy.util import LRUCache

_COMPILED: Final[CompiledCacheType] = LRUCache(500)
_DRIVERS: Final = {"sqlite": "sqlite+shared", "postgresql": "postgresql+shared"}

registry.register("sqlite.shared", __name__, "SharedSqlite")
registry.register("postgresql.shared", "scanner.store.database.shared_postgresql", "SharedPostgresql")


class EqualDialect:
    """A dialect that equals those of its class for servers of the same version."""

    server_version_info: tuple[Any, ...] | None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.server_version_info == getattr(other, "server_version_info", None)

    def __hash__(self) -> int:
        # The version is known after the first connection: it must not change the hash.
        return hash(type(self))


class SharedSqlite(EqualDialect, SQLiteDialect_pysqlite):
    """SQLite by Python's own driver."""

    supports_statement_cache = True


def create_sharing_engine(url: URL, **options: object) -> Engine:
    """An engine, not yet connected, with these options of `create_engine`; messages hide the parameters of statements."""
    return create_engine(
        url.set(drivername=_DRIVERS[url.get_backend_name()]),
        hide_parameters=True,
        execution_options={"compiled_cache": _COMPILED},
        **options,
    )
