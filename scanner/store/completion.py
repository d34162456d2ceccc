"""Names and ids in a database for shell completion, read without the modules of the store: a shell waits for them.

An address that is no usable database has none. Nothing is created, and a server has a second to answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Final

_SECONDS: Final = 1
_DIGITS: Final = 12
_SQLITE: Final = ("sqlite+pysqlite:///", "sqlite:///", "sqlite:")
_POSTGRESQL: Final = ("postgresql+psycopg://", "postgresql://", "postgres://")


class NameQuery(Enum):
    """The names to complete: the query of the names, or of numbers between two bounds, for the newest scan's policies and all ids."""

    SCANS = "SELECT id FROM scans ORDER BY number DESC LIMIT 100"
    CLUSTERS = "SELECT DISTINCT name FROM clusters ORDER BY 1 LIMIT 100"
    POLICIES = "SELECT DISTINCT name FROM policies ORDER BY 1 LIMIT 1000"


_PROBLEMS: Final = "SELECT DISTINCT problem FROM findings WHERE problem BETWEEN {} AND {} ORDER BY 1 LIMIT 100"
_FINDINGS: Final = (
    "SELECT DISTINCT fingerprint FROM findings WHERE superseded IS NULL AND fingerprint BETWEEN {} AND {} LIMIT 100"
)
_OF_KIND: Final = (
    "SELECT DISTINCT objects.name FROM objects JOIN kinds ON kinds.id = objects.kind "
    "WHERE kinds.kind = {0} AND objects.name >= {0} AND objects.name < {0} ORDER BY 1 LIMIT 100"
)
_IN_NAMESPACE: Final = (
    "SELECT DISTINCT name FROM objects WHERE namespace = {0} AND name >= {0} AND name < {0} ORDER BY 1 LIMIT 100"
)
_AFTER: Final = "\U0010ffff"
"""Sorts after every character of a name."""


def list_names(address: str, wanted: NameQuery) -> list[str]:
    """The names in a database."""
    return [value for value in _read_values(address, wanted.value) if isinstance(value, str)]


def list_ids(address: str, begin: str) -> list[str]:
    """The ids that begin with some text: of problems after `p-`, else of findings."""
    digits = begin.removeprefix("p-").lower()
    if not set(digits) <= set("0123456789abcdef"):
        return []
    low, high = digits.ljust(_DIGITS, "0")[:_DIGITS], digits.ljust(_DIGITS, "f")[:_DIGITS]
    if begin.startswith("p-"):
        numbers = _read_values(address, _PROBLEMS, int(low, 16), int(high, 16))
        return [f"p-{number:012x}" for number in numbers if isinstance(number, int)]
    bounds = bytes.fromhex(low.ljust(64, "0")), bytes.fromhex(high.ljust(64, "f"))
    fingerprints = _read_values(address, _FINDINGS, *bounds)
    return [fingerprint.hex()[:_DIGITS] for fingerprint in fingerprints if isinstance(fingerprint, bytes)]


def list_objects(address: str, begin: str) -> list[str]:
    """The objects whose KIND/NAME or NAMESPACE/NAME begins with some text; none before the slash."""
    first, slash, name = begin.partition("/")
    if not slash:
        return []
    bounds = first, name, name + _AFTER
    matching = _read_values(address, _OF_KIND, *bounds) or _read_values(address, _IN_NAMESPACE, *bounds)
    return [f"{first}/{each}" for each in matching if isinstance(each, str)]


def _read_values(address: str, query: str, *bounds: int | bytes | str) -> list[int | bytes | str]:
    """The first column of the rows of a query."""
    if address.startswith(_POSTGRESQL):
        return _read_server_values(address, query, bounds)
    for prefix in _SQLITE:
        address = address.removeprefix(prefix)
    path = Path(address).expanduser()
    if not path.is_file():
        return []
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_SECONDS)) as connection:
        return [row[0] for row in connection.execute(query.format("?", "?"), bounds)]


def _read_server_values(address: str, query: str, bounds: Sequence[int | bytes | str]) -> list[int | bytes | str]:
    import psycopg

    _, _, rest = address.partition("://")
    with psycopg.connect(f"postgresql://{rest}", connect_timeout=_SECONDS) as connection:
        connection.execute(f"SET statement_timeout = '{_SECONDS}s'".encode())
        return [row[0] for row in connection.execute(query.format("%s", "%s").encode(), bounds)]
