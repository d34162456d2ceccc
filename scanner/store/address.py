"""The address of the database: the URL that the user gives, and the URL without password for messages.

A bare path and `sqlite:PATH` mean a SQLite file; `postgres://` and `postgresql://` mean the psycopg driver.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from scanner.errors import UsageError

_SQLITE = {"sqlite", "sqlite+pysqlite"}
_POSTGRESQL = {"postgres", "postgresql", "postgresql+psycopg"}
_SQLITE_PREFIX = "sqlite:"
_SECRET_OPTION = re.compile(r"password|passwd|passfile|pwd|secret|token|sslkey", re.IGNORECASE)
_KEYWORD = re.compile(
    r"(?:host|hostaddr|port|dbname|database|user|service|sslmode|application_name|options|\w*(?:password|key))\s*=",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(?:sqlite|postgres|postgresql|mysql|mariadb|oracle|mssql)(?:\+\w+)?:", re.IGNORECASE)
_FORMS = "Use a path, sqlite:PATH or postgresql://USER@HOST/DATABASE."


@dataclass(frozen=True, slots=True)
class Address:
    """A database. `shown` is the address for messages; `path` is the file of a SQLite database, else None."""

    url: URL
    shown: str
    path: Path | None

    def masked(self, text: str) -> str:
        """The text with the address's secrets masked."""
        for secret in _secrets(self.url):
            text = text.replace(secret, "***")
        return text


def address_of(text: str) -> Address:
    """Parse the value of `--db`. Raises UsageError for an address that Assay cannot use."""
    if not text.strip():
        raise UsageError(f"The database address is empty. {_FORMS}")
    if "://" not in text:
        if _is_short(text):
            return _file(text.removeprefix(_SQLITE_PREFIX))
        _reject_mistyped(text)
        return _file(text)
    url = _parsed(text)
    if url.drivername in _SQLITE:
        return _file(url.database or "")
    if url.drivername in _POSTGRESQL:
        return Address(url.set(drivername="postgresql+psycopg"), _shown(url), None)
    raise UsageError(f"Assay does not support databases of type {url.drivername}. {_FORMS}")


def _is_short(text: str) -> bool:
    """Return whether an address is `sqlite:` and a path."""
    return text.startswith(_SQLITE_PREFIX) and text != _SQLITE_PREFIX


def _reject_mistyped(text: str) -> None:
    """Raise UsageError for a mistyped server address: as a path, it would be shown with its password, and created."""
    if _KEYWORD.match(text.strip()):
        raise UsageError(f"The database address has the form of keywords and values, not of a URL. {_FORMS}")
    if _SCHEME.match(text.strip()):
        raise UsageError(f"The database URL lacks the two slashes after its scheme. {_FORMS}")


def _parsed(text: str) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        raise UsageError(f"The database URL is invalid. {_FORMS}") from None


def _file(name: str) -> Address:
    if name in {"", ":memory:"} or name.startswith("file:"):
        raise UsageError(f"A database in memory cannot keep a scan. {_FORMS}")
    path = Path(name).expanduser()
    return Address(URL.create("sqlite", database=str(path)), str(path), path)


def _shown(url: URL) -> str:
    plain = url.difference_update_query([name for name in url.query if _SECRET_OPTION.search(name)])
    return plain.set(drivername="postgresql").render_as_string(hide_password=True)


def _secrets(url: URL) -> tuple[str, ...]:
    """The password and the secret options, plain and as encoded in the URL, longest first."""
    options = (value for name, value in url.query.items() if _SECRET_OPTION.search(name))
    given = [url.password, *(text for value in options for text in (value if isinstance(value, tuple) else (value,)))]
    plain = [str(item) for item in given if item]
    return tuple(sorted({*plain, *map(quote, plain), *map(quote_plus, plain)}, key=len, reverse=True))
