"""Faults of a request as exceptions: each becomes a page or a JSON answer with its status."""

from __future__ import annotations

from typing import Final

from scanner.errors import AssayError, MissingTableRight, QueryTooLong, SchemaMismatch, UsageError

_REASONS: Final = {
    "older": "the database has the schema of an older version of Assay: run assay db upgrade",
    "newer": "the database has the schema of a newer version of Assay: run assay serve of that version",
    "foreign": "the database has the tables of another program",
}


class WebError(Exception):
    """A request that cannot be answered. The message states what, where and what to do; it has no secrets."""

    status = 500


class BadRequest(WebError):
    """A parameter has an invalid value."""

    status = 400


class NotThere(WebError):
    """The address names nothing that the database has."""

    status = 404


class ScanIsLater(NotThere):
    """A moment before the first scan of a cluster, which has an address of its own by its id."""

    def __init__(self, message: str, scan: str) -> None:
        super().__init__(message)
        self.scan = scan


class NamedOtherwise(NotThere):
    """A cluster by its name alone: `key` is the part of a path that names it for ever."""

    def __init__(self, message: str, named: str, key: str) -> None:
        super().__init__(message)
        self.named = named
        self.key = key


class Busy(WebError):
    """Too many costly answers are being made."""

    status = 503


class DatabaseUnavailable(WebError):
    """The database cannot be read now, or not by this version."""

    status = 503


class TooLong(WebError):
    """The address is too long."""

    status = 414


def reason_of(error: AssayError) -> str:
    """The reason of an error of the database, without its address, its users and the words of its driver."""
    match error:
        case SchemaMismatch():
            return _REASONS[error.state]
        case QueryTooLong() | MissingTableRight():
            return str(error)
        case UsageError():
            return "the database has no scans: run assay scan"
        case _:
            return "the database cannot be read: the log of the server has the reason"
