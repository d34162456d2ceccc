"""The store: every scan, and the history of every finding, in SQLite or PostgreSQL."""

from scanner.store.lookup import ExplainedFinding
from scanner.store.retention import prune, would_prune
from scanner.store.store import SqlReader, SqlStore, open_reader, open_store, upgrade

__all__ = ["ExplainedFinding", "SqlReader", "SqlStore", "open_reader", "open_store", "prune", "upgrade", "would_prune"]
