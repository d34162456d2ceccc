"""The store: every scan, and the history of every finding, in SQLite or PostgreSQL.

The names are imported when they are used: shell completion reads a database without the modules that write one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scanner.store.read.lookup import ExplainedFinding
    from scanner.store.reader import SqlReader, open_reader
    from scanner.store.store import SqlStore, open_store, upgrade
    from scanner.store.upkeep.retention import plan_prune, prune

__all__ = ["ExplainedFinding", "SqlReader", "SqlStore", "open_reader", "open_store", "plan_prune", "prune", "upgrade"]

_HOMES: Final = {
    "ExplainedFinding": "scanner.store.read.lookup",
    "prune": "scanner.store.upkeep.retention",
    "plan_prune": "scanner.store.upkeep.retention",
    "SqlReader": "scanner.store.reader",
    "SqlStore": "scanner.store.store",
    "open_reader": "scanner.store.reader",
    "open_store": "scanner.store.store",
    "upgrade": "scanner.store.store",
}


def __getattr__(name: str) -> object:
    """A name of the store, from the module that has it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
