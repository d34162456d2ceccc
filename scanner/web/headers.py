"""Headers of every answer, which tell browsers what they must not do with it.

An answer may load and run nothing. A page may have styles and forms; its own Content-Security-Policy, in its text as in the report,
allows one style sheet by its hash, and both policies count.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY: Final = "Content-Security-Policy"
_NOTHING: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_PAGE: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_NO_FRAMES: Final = "base-uri 'none'; frame-ancestors 'none'"
_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecureHeaders:
    """An application whose answers have these headers. An answer without `Cache-Control` is not stored."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _complete(MutableHeaders(scope=message))
            await send(message)

        await self._app(scope, receive, with_headers)


def _complete(headers: MutableHeaders) -> None:
    headers.update(_ALWAYS)
    headers.setdefault("Cache-Control", "no-store")
    is_page = headers.get("content-type", "").startswith("text/html")
    policy = headers.setdefault(_POLICY, _PAGE if is_page else _NOTHING)
    if "frame-ancestors" not in policy:
        headers.append(_POLICY, _NO_FRAMES)
