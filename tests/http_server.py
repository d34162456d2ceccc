"""A small HTTP server on loopback, as several tests need one."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serving_on_loopback(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server, which prints nothing about requests, while the block runs; over TLS with a context."""
    quiet = type("Quiet", (handler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), quiet) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
