"""The access log: a JSON object in a line for each request, without tokens, cookies and the secrets of a query.

The members are `time` (of the beginning, RFC 3339, UTC), `level` (debug for a probe or a scrape that succeeds, error for an internal
error, else info), `id`, `client`, `method`, `path`, `query`, `status`, `ms`, `bytes`, and, as far
as they are known, `user`, `subject`, `by` (session, token or assertion) and `refused` (the reason for a refusal).
"""

from __future__ import annotations

import logging
import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from secrets import token_hex
from time import perf_counter
from typing import Final, Protocol, Self, TextIO
from urllib.parse import parse_qsl, urlencode

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scanner.audit.sensitive_fields import MASK, mask_named_secrets, names_secret
from scanner.model.json import Json
from scanner.web.access.tokens import PREFIX
from scanner.web.requests.limits import METRICS, OPEN_PATHS
from scanner.web.requests.notice import ShortAnswer, respond
from scanner.web.requests.prefix import path_below

LOGGER: Final = "assay.web"
"""The name of the logger of pages."""
_PREFIX: Final = "".join(f"(?:{letter}|%(?:25)*(?:{ord(letter):x}|{ord(letter.upper()):x}))" for letter in PREFIX)
_TOKEN: Final = re.compile(
    rf"{_PREFIX}(?:[A-Za-z0-9_-]|%(?:25)*(?:2d|3[0-9]|[46][1-9a-f]|[57][0-9af])){{16,}}", re.IGNORECASE
)
"""A bearer token of this server (see `access.tokens`), or the beginning of one; any of its characters may be escaped as in URLs."""
_LOGGERS: Final = (LOGGER, "asyncio")
_SECRETS: Final = frozenset({"code", "state", "session_state", "nonce", "assertion"})
"""Parameters of sign-in whose values are secrets; those whose names end like the names of passwords and tokens are secrets, too."""
_WITHOUT_QUERY: Final = "/callback"
_MOST_PARAMETERS: Final = 100
_OF_USER: Final = ("user", "subject", "by", "refused")
_DEBUG: Final = "ASSAY_DEBUG"
_INTERNAL: Final = 500
_FAILED: Final = 400
_DEBUG_LEVEL: Final = "debug"
_REGULAR: Final = OPEN_PATHS | {METRICS}
"""The paths that programs ask again and again."""


class Events(Protocol):
    """Reports an event that is no request: its level (info, warning or error), a sentence, and members for machines."""

    def __call__(self, level: str, message: str, fields: Mapping[str, str | int]) -> None:
        """Report an event."""
        ...


class _Events(logging.Handler):
    """Reports the records of a logger as events, without the messages and the tracebacks of their exceptions."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Report a record."""
        error = record.exc_info[1] if record.exc_info else None
        why = f": {_describe(error)}" if isinstance(error, Exception) else ""
        self._events(record.levelname.lower(), f"{record.getMessage()}{why}", {})


def mask_tokens(text: str) -> str:
    """A text without tokens of this server, which users put into addresses and names by mistake."""
    return _TOKEN.sub(MASK, text)


def mask_events(events: Events) -> Events:
    """Events without tokens in their sentences and members: the traceback of an internal error may quote a request."""

    def report(level: str, message: str, fields: Mapping[str, str | int]) -> None:
        shown = {name: mask_tokens(value) if isinstance(value, str) else value for name, value in fields.items()}
        events(level, mask_tokens(message), shown)

    return report


@contextmanager
def report_logs(events: Events) -> Iterator[None]:
    """A block in which what the application and its event loop log is reported as events."""
    loggers, handler = list(map(logging.getLogger, _LOGGERS)), _Events(events)
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
            logger.propagate = True


class AccessLog:
    """An application whose requests are logged, and whose internal errors become pages with an id of the log."""

    def __init__(
        self,
        app: ASGIApp,
        stream: TextIO,
        events: Events,
        *,
        verbose: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Write the lines into `stream`, those of level debug if `verbose`, and internal errors to `events`."""
        self._app = app
        self._stream: TextIO | None = stream
        self._events = events
        self._verbose = verbose
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        number = scope.setdefault("state", {})["request_id"] = token_hex(8)
        begun, begin = self._clock(), perf_counter()
        answer = _Answer(send, lambda: self._write(scope, begun, perf_counter() - begin, answer))
        try:
            await self._app(scope, receive, answer)
            await answer.release()
        except Exception as error:
            self._events("error", _describe(error), {"id": number})
            if answer.status is not None:
                raise  # The server then ends the connection, so that the client knows that the answer is not complete.
            await respond(scope, receive, answer.anew(), INTERNAL_ERROR)
        finally:
            answer.log()

    def _write(self, scope: Scope, begun: datetime, seconds: float, answer: _Answer) -> None:
        """Write the line of an answer. After an error of the stream, nothing is written any more."""
        level = _find_level(scope, answer)
        if self._stream is None or (level == _DEBUG_LEVEL and not self._verbose):
            return
        try:
            line = orjson.dumps(_line(scope, begun, seconds, answer, level)).decode()
            self._stream.write(f"{mask_tokens(line)}\n")
            self._stream.flush()
        except (OSError, ValueError) as error:
            # Requests are still answered; the log ends with a message instead of in silence.
            self._stream = None
            self._events("error", f"the access log ends: it cannot be written ({error})", {})


class _Answer:
    """Sends an answer, and notes its status (None before it begins) and its size.

    It is logged before its last part is sent: no client has a complete answer that the log does not have. An answer of status 500
    waits for its exception, which comes after it (Starlette answers by itself, without an id), and is then replaced.
    """

    def __init__(self, send: Send, write: Callable[[], None]) -> None:
        self._send = send
        self._write: Callable[[], None] | None = write
        self._waiting: list[Message] = []
        self._replaces = False
        self.status: int | None = None
        self.size = 0

    def anew(self) -> Self:
        """Begin the answer again, in place of one that waits."""
        self._waiting, self._replaces = [], True
        return self

    async def release(self) -> None:
        """Send an answer that waits."""
        waiting = self._waiting
        self.anew()
        for message in waiting:
            await self(message)

    async def __call__(self, message: Message) -> None:
        if not self._replaces and (self._waiting or message.get("status") == _INTERNAL):
            self._waiting.append(message)
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
        self.size += len(message.get("body", b""))
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.log()
        await self._send(message)

    def log(self) -> None:
        """Write the line of the answer, once."""
        if self._write is not None:
            self._write()
            self._write = None


INTERNAL_ERROR: Final = ShortAnswer(
    500,
    "An internal error has occurred",
    (
        "The log of this server has the details under the id below.",
        "Please report the error to those who run this server.",
    ),
)


def _find_level(scope: Scope, answer: _Answer) -> str:
    """The level of a request. Probes and scrapes come every few seconds, and are logged only if they fail."""
    status = answer.status or _INTERNAL
    if status < _FAILED and path_below(scope) in _REGULAR:
        return _DEBUG_LEVEL
    return "error" if status == _INTERNAL else "info"


def _line(scope: Scope, begun: datetime, seconds: float, answer: _Answer, level: str) -> dict[str, Json]:
    state = scope["state"]
    return {
        "time": begun.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": level,
        "id": state["request_id"],
        "client": scope["client"][0] if scope.get("client") else None,
        "method": scope["method"],
        "path": mask_named_secrets(_text(scope["path"].encode(errors="replace"))),
        "query": "" if path_below(scope) == _WITHOUT_QUERY else mask_query(_text(scope["query_string"])),
        "status": answer.status,
        "ms": round(seconds * 1000, 1),
        "bytes": answer.size,
        **{name: state[name] for name in _OF_USER if state.get(name)},
    }


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def mask_query(query: str) -> str:
    """A query with its secrets masked; a query of too many parameters is left out."""
    if not query:
        return ""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        return MASK
    return urlencode([(mask_named_secrets(name), _mask(name, value)) for name, value in pairs], safe="[]:/,")


def _mask(name: str, value: str) -> str:
    secret = name.lower() in _SECRETS or names_secret(name)
    return MASK if secret else mask_named_secrets(value)


def _describe(error: Exception) -> str:
    """The description of an internal error. Its message may quote objects, so it is printed on request only, as by the command line."""
    if os.environ.get(_DEBUG):
        return "".join(traceback.format_exception(error)).rstrip()
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-6:]))
    return f"internal error: {type(error).__name__} in {where}"
