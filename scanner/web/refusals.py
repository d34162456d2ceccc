"""What can be wrong with a request, as exceptions: each becomes a page or a JSON answer with its status."""

from __future__ import annotations


class WebError(Exception):
    """A request that cannot be answered. The message states what, where and what to do; it has no secrets."""

    status = 500


class BadRequest(WebError):
    """A parameter has an invalid value."""

    status = 400


class NotThere(WebError):
    """The address names nothing that the database has."""

    status = 404


class Busy(WebError):
    """Too many costly answers are being made."""

    status = 503


class Unavailable(WebError):
    """The database cannot be read now, or not by this version."""

    status = 503


class TooLong(WebError):
    """The address is too long."""

    status = 414
