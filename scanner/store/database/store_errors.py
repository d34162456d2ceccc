"""Database errors as one sentence: the problem, its place and the remedy.

The sentence never contains the text of SQLAlchemy's errors, which quotes statements and their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from scanner.errors import CredentialsRefused, DatabaseUnreachable, DatabaseUnusable, QueryTooLong, StoreError
from scanner.store.database.address import Address
from scanner.store.database.statement_limit import is_too_long

_REMEDIES = (
    (
        "no such module: fts5",
        "needs the search of SQLite, which this SQLite library lacks",
        "Use a Python whose SQLite library has the module FTS5, or PostgreSQL",
    ),
    ("unable to open database file", "cannot be opened", "Check that the path exists and that you may write there"),
    ("file is not a database", "is not a database", "Name another file with --db"),
    ("could not decode", "is damaged", "Restore it from a backup; `assay db check` names the places"),
    ("no such column", "is damaged", "Restore it from a backup; `assay db check` names the places"),
    ("no such table", "is damaged", "Restore it from a backup; `assay db check` names the places"),
    ("malformed", "is damaged", "Restore it from a backup, or name another file with --db"),
    ("disk is full", "cannot grow: the disk is full", "Free some space, or name another place with --db"),
    ("disk i/o error", "cannot be read or written", "Check the disk and its free space, or use another --db"),
    ("readonly database", "cannot be written", "Check the permissions of the file and its folder"),
    ("read-only transaction", "cannot be written", "Name a server that is no replica, and a user that may write"),
    ("database is locked", "is busy with another scan", "Wait for the other process to end, then try again"),
    ("connection refused", "does not answer", "Check that the server runs and that host and port are right"),
    ("could not translate host name", "cannot be found", "Check the host name in --db"),
    ("failed to resolve host", "cannot be found", "Check the host name in --db"),
    ("timeout expired", "does not answer", "Check host, port and network"),
    ("authentication failed", "rejects the user or the password", "Check the credentials in --db"),
    ("no password supplied", "requires a password", "Set PGPASSWORD or use a password file"),
    (
        "no pg_hba.conf entry",
        "denies access to the user",
        "Add the user, the database and this host to pg_hba.conf of the server, or correct --db",
    ),
    (
        "permission denied for table",
        "denies access to the user",
        "A user that only reads needs `assay db upgrade --grant-select USER`, and a user that scans the rights of the tables' owner",
    ),
    ("permission denied", "denies access to the user", "Grant the user CREATE on the schema, or use another user"),
    ("does not exist", "does not exist as named", "Create the database and the user, or correct --db"),
    ("no space left on device", "cannot grow: the disk is full", "Free some space on the server"),
)

_DRIVERS = frozenset({"sqlite3", "psycopg"})
"""The modules of the drivers."""


_UNREACHABLE = (
    *("connection refused", "connection reset", "connection timed out", "connection is lost", "timeout expired"),
    *("could not translate host name", "failed to resolve host", "no route to host", "network is unreachable"),
    *(
        "server closed the connection",
        "could not receive data from server",
        "terminating connection",
        "ssl syscall error",
    ),
    "the connection is closed",
    *("is starting up", "is shutting down", "not yet accepting connections", "in recovery mode"),
    *("too many clients", "too many connections", "remaining connection slots", "no such file or directory"),
)
"""The signs of a PostgreSQL that may answer later. No try later mends a wrong password, database, right or certificate."""
_REFUSED = ("authentication failed", "no password supplied")
_UNUSABLE = (
    *(
        "no such module: fts5",
        "file is not a database",
        "could not decode",
        "no such column",
        "no such table",
        "malformed",
    ),
    *("no pg_hba.conf entry", "permission denied", "does not exist"),
)
"""The signs of a database that needs a user (ADR 79). A full disk, a lock or a replica may be over at the next try."""


class UncertainCommit(Exception):
    """An error at the end of a transaction, whose changes may be stored or not."""


@contextmanager
def as_store_error(address: Address) -> Iterator[None]:
    """Raise errors of a database driver as StoreError."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise _missing_driver_error(address) from None
    except ImportError as error:
        if "psycopg" not in str(error) and "libpq" not in str(error):
            raise
        raise _missing_driver_error(address) from None
    except NoSuchModuleError:
        raise _missing_driver_error(address) from None
    except UnicodeDecodeError as error:
        # The names in a damaged schema, which SQLite quotes, and damaged texts.
        raise DatabaseUnusable(_describe(address, "malformed text")) from error
    except UncertainCommit as error:
        cause = error.__cause__
        why = _first_line(cause.orig) if isinstance(cause, DBAPIError) else type(cause).__name__
        raise StoreError(_describe(address, why)) from error
    except DBAPIError as error:
        if is_too_long(error):
            raise QueryTooLong("The query takes too long. Ask for less, for example with a filter.") from error
        why = _first_line(error.orig)
        raise _find_class(address, error.orig)(_describe(address, why)) from error
    except SQLAlchemyError as error:
        raise StoreError(_describe(address, type(error).__name__)) from error
    except Exception as error:
        # Rows are copied by the driver itself, without SQLAlchemy.
        if type(error).__module__.partition(".")[0] not in _DRIVERS:
            raise
        raise _find_class(address, error)(_describe(address, _first_line(error))) from error


def _find_class(address: Address, error: object) -> type[StoreError]:
    """The class of an error of the driver, whose text may have the answers of several hosts."""
    text = str(error).lower()
    if address.path is None and any(sign in text for sign in _REFUSED):
        return CredentialsRefused
    if address.path is None and any(sign in text for sign in _UNREACHABLE):
        return DatabaseUnreachable
    return DatabaseUnusable if any(sign in text for sign in _UNUSABLE) else StoreError


def _missing_driver_error(address: Address) -> DatabaseUnusable:
    return DatabaseUnusable(
        f"The database {address.text} needs the PostgreSQL driver, which is not installed. "
        'Install Assay with its extra postgres, such as, in the repository: pip install ".[postgres]".'
    )


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    first = lines[0].strip() if lines else type(error).__name__
    # SQLite quotes a text that is no UTF-8.
    return first.partition(" with text ")[0]


def _describe(address: Address, why: str) -> str:
    lower, shown = why.lower(), address.mask(why).rstrip(".")
    for sign, state, remedy in _REMEDIES:
        if sign in lower:
            return f"The database {address.text} {state} ({shown}). {remedy}."
    return f"The database {address.text} failed: {shown}. Try again, or name another database with --db."
