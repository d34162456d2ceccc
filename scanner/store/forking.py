"""Engines in forked processes: a child has connections of its own.

Upstream: SQLAlchemy, "Using Connection Pools with Multiprocessing or os.fork()"; SQLite, "How To Corrupt An SQLite Database File", 2.6.
"""

from __future__ import annotations

import os
from weakref import WeakSet

from sqlalchemy import Engine

_ENGINES: WeakSet[Engine] = WeakSet()


def with_own_connections(engine: Engine) -> Engine:
    """The engine; in a process that is forked later, it opens new connections and leaves those of its parent alone."""
    _ENGINES.add(engine)
    return engine


def _forget() -> None:
    for engine in _ENGINES:
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget)
