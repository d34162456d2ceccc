"""An HTTP server on this machine, to which expressions send requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.http_server import serving_on_loopback


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The host and port of a server that answers every request with one function, while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_POST = do_GET  # noqa: N815 - the library wants it so

    with serving_on_loopback(Handler) as port:
        yield f"127.0.0.1:{port}"
