"""The address of the database: the URL that the user gives, and the URL without password for messages.

A bare path and `sqlite:PATH` mean a SQLite file; `postgres://` and `postgresql://` mean the psycopg driver.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from scanner.audit.own_secrets import NO_SECRETS, OwnSecrets
from scanner.errors import UsageError
from scanner.files import SECRET, read_text

_SQLITE = {"sqlite", "sqlite+pysqlite"}
_POSTGRESQL = {"postgres", "postgresql", "postgresql+psycopg"}
_SQLITE_PREFIX = "sqlite:"
_SHOWN_OPTIONS = frozenset(
    {
        *("host", "hostaddr", "port", "dbname", "user", "service", "connect_timeout", "application_name"),
        *("sslmode", "sslrootcert", "sslcert", "sslcrl", "sslnegotiation", "channel_binding", "gssencmode"),
        *("target_session_attrs", "load_balance_hosts", "client_encoding", "tcp_user_timeout"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    }
)
"""The parameters of libpq whose values are no secrets; any other, such as `options`, may have one."""
_PASSWORD_VARIABLE = "PGPASSWORD"  # noqa: S105 - a name
_FILE_VARIABLE = "PGPASSFILE"
_DEFAULT_FILE = "~/.pgpass"
_SETTING = re.compile(r"=(\S+)")
_FIELDS = re.compile(r"((?:[^\\:]|\\.)*):" * 4 + "(.+)")
_KEYWORD = re.compile(
    r"(?:host|hostaddr|port|dbname|database|user|service|sslmode|application_name|options|\w*(?:password|key))\s*=",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(?:sqlite|postgres|postgresql|mysql|mariadb|oracle|mssql)(?:\+\w+)?:", re.IGNORECASE)
_FORMS = "Use a path, sqlite:PATH or postgresql://USER@HOST/DATABASE."


@dataclass(frozen=True, slots=True)
class Address:
    """A database. `text` is the address for messages; `path` is the file of a SQLite database, else None.

    `secrets` are the password and the values of options that `text` leaves out.
    """

    url: URL
    text: str
    path: Path | None
    secrets: OwnSecrets = NO_SECRETS

    @property
    def is_shown_whole(self) -> bool:
        """Return whether the URL has nothing that messages leave out."""
        return not any(_list_secrets(self.url))

    def mask(self, text: str) -> str:
        """A text of the server, which may repeat a password, without secrets of the address."""
        return self.secrets.mask(text)


def address_of(text: str) -> Address:
    """Parse the value of `--db`. Raises UsageError for an address that Assay cannot use."""
    if not text.strip():
        raise UsageError(f"The database address is empty. {_FORMS}")
    if "://" not in text:
        if _is_short(text):
            return _make_file_address(text.removeprefix(_SQLITE_PREFIX))
        _reject_mistyped(text)
        return _make_file_address(text)
    url = _parse_url(text)
    if url.drivername in _SQLITE:
        return _make_file_address(url.database or "")
    if url.drivername in _POSTGRESQL:
        _reject_ambiguous(url)
        secrets = OwnSecrets(*_list_secrets(url), os.environ.get(_PASSWORD_VARIABLE, ""), *_read_passwords(url))
        return Address(url.set(drivername="postgresql+psycopg"), _hide_secrets(url), None, secrets)
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


def _reject_ambiguous(url: URL) -> None:
    """Raise UsageError for a URL whose password has an @ or a slash: what follows would be shown as host and database."""
    if "@" in (url.database or "") or "@" in (url.host or ""):
        raise UsageError(
            "The database URL has a second @: write an @ of the password as %40, a slash as %2F, and an @ of the name of the "
            "database as %40."
        )


def _parse_url(text: str) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        raise UsageError(f"The database URL is invalid. {_FORMS}") from None


def _make_file_address(name: str) -> Address:
    if name in {"", ":memory:"} or name.startswith("file:"):
        raise UsageError(f"A database in memory cannot keep a scan. {_FORMS}")
    path = Path(name).expanduser()
    return Address(URL.create("sqlite", database=str(path)), str(path), path)


def _hide_secrets(url: URL) -> str:
    plain = url.difference_update_query([name for name in url.query if name not in _SHOWN_OPTIONS])
    return plain.set(drivername="postgresql").render_as_string(hide_password=True)


def _list_secrets(url: URL) -> Iterator[str]:
    """The password, and the values of options that are not shown, plain and as the URL has them."""
    if url.password:
        yield str(url.password)
    for name, value in url.query.items():
        if name not in _SHOWN_OPTIONS:
            for text in (value,) if isinstance(value, str) else value:
                yield from (text, *_SETTING.findall(text))


def _read_passwords(url: URL) -> Iterator[str]:
    """The passwords in the password file of libpq, of which one may be sent ("The Password File" in PostgreSQL's manual)."""
    named = url.query.get("passfile") or os.environ.get(_FILE_VARIABLE) or _DEFAULT_FILE
    with suppress(OSError, ValueError):
        for line in read_text(Path(str(named)).expanduser(), SECRET).splitlines():
            if not line.startswith("#") and (fields := _FIELDS.fullmatch(line)):
                yield re.sub(r"\\(.)", r"\1", fields[5])
