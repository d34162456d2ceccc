"""A webhook on loopback, with a certificate of its own."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson

from scanner.model.json import JsonObject, as_object, dig
from tests.certificates import self_signed


@contextmanager
def answering(folder: Path, answer: Callable[[JsonObject], JsonObject]) -> Iterator[JsonObject]:
    """Run a webhook while the block runs; `answer` makes the response to a request. The value is the clientConfig that names it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = as_object(review["request"])
            response = {"uid": dig(request, "uid"), **answer(request)}
            data = orjson.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            pass

    path = self_signed(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    authority = path.read_bytes().partition(b"-----BEGIN CERTIFICATE-----")
    try:
        yield {
            "url": f"https://127.0.0.1:{server.server_port}/",
            "caBundle": base64.b64encode(authority[1] + authority[2]).decode(),
        }
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
