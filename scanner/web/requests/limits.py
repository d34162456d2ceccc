"""Limits of what clients can ask: the size of requests and their number at one time.

The times that a client may take are limited in `protocol`, those of queries in `store.database.statement_limit`, exports in `exports`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from scanner.web.requests.notice import ShortAnswer, respond
from scanner.web.requests.prefix import path_below

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""The paths that probes of the kubelet ask: they need no authentication, and are answered also when all other requests wait."""
METRICS: Final = "/metrics"
"""The path that Prometheus asks."""

_DIGITS: Final = 9


QUERY_SECONDS: Final = 30.0
"""The seconds that a query takes at most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server.

    `target` is the longest path with its query, `head` the longest head of a request, `body` the longest body, all in bytes.
    `requests` are answered at once, of `connections` at most. A query takes at most `query_seconds`. A client has `head_seconds` to
    send a head, `body_seconds` to send a body, `send_seconds` to receive each part of an answer.
    """

    target: int = 4_096
    head: int = 32_768
    body: int = 8_192
    requests: int = 64
    connections: int = 512
    query_seconds: float = QUERY_SECONDS
    head_seconds: float = 10
    body_seconds: float = 10
    send_seconds: float = 30
    shutdown_seconds: int = 10


class RequestLimiter:
    """An application whose requests are limited."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http" or path_below(scope) in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await respond(scope, receive, send, refusal)
            return
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1

    def _refusal(self, scope: Scope) -> ShortAnswer | None:
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > self._limits.target:
            return ShortAnswer(414, "The address is too long", (f"Use at most {self._limits.target:,} characters.",))
        if _has_too_much(scope, self._limits.body):
            return ShortAnswer(
                413, "The request is too large", ("This server only answers questions.",), {"Connection": "close"}
            )
        if self._running >= self._limits.requests:
            return BUSY
        return None


BUSY: Final = ShortAnswer(
    503,
    "The server is busy",
    ("Too many requests are waiting for an answer. Try again in a moment.",),
    {"Retry-After": "2"},
)


def _has_too_much(scope: Scope, most: int) -> bool:
    """Return whether a request has a body that nothing here needs: of unknown length, too long, or of a method that has none."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return True
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > _DIGITS:
        return True
    return int(length) > (most if scope["method"] == "POST" else 0)
