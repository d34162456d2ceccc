"""Where the database is: the URL people type, without ever showing the password in it.

A bare path means a SQLite file; `postgres://` and `postgresql://` mean the psycopg driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from scanner.errors import UsageError

_SQLITE = {"sqlite", "sqlite+pysqlite"}
_POSTGRESQL = {"postgres", "postgresql", "postgresql+psycopg"}
_SECRET_OPTIONS = ("password", "sslpassword", "passfile")
_FORMS = "Use a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE."


@dataclass(frozen=True, slots=True)
class Address:
    """A database. `shown` is what messages may say; `path` is the file of a SQLite database, else None."""

    url: URL
    shown: str
    path: Path | None

    def masked(self, text: str) -> str:
        """The text without the address's secrets, whoever wrote them into it."""
        for secret in _secrets(self.url):
            text = text.replace(secret, "***")
        return text


def address_of(text: str) -> Address:
    """Read what `--db` was given. Raises UsageError when it names no database that Assay can use."""
    if not text.strip():
        raise UsageError(f"The database is empty text. {_FORMS}")
    if "://" not in text:
        return _file(text)
    url = _parsed(text)
    if url.drivername in _SQLITE:
        return _file(url.database or "")
    if url.drivername in _POSTGRESQL:
        return Address(url.set(drivername="postgresql+psycopg"), _shown(url), None)
    raise UsageError(f"Assay cannot store into a database of type {url.drivername}. {_FORMS}")


def _parsed(text: str) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        raise UsageError(f"The database URL cannot be read. {_FORMS}") from None


def _file(name: str) -> Address:
    if name in {"", ":memory:"} or name.startswith("file:"):
        raise UsageError(f"A database in memory would forget the scan. {_FORMS}")
    path = Path(name).expanduser()
    return Address(URL.create("sqlite", database=str(path)), str(path), path)


def _shown(url: URL) -> str:
    plain = url.difference_update_query(_SECRET_OPTIONS) if url.query else url
    return plain.set(drivername="postgresql").render_as_string(hide_password=True)


def _secrets(url: URL) -> tuple[str, ...]:
    options = (url.query.get(name) for name in _SECRET_OPTIONS)
    return tuple(item for item in (url.password, *options) if isinstance(item, str) and item)
