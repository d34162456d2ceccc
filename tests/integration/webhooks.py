"""A webhook on loopback, with a certificate of its own."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import orjson

from scanner.model.json import JsonObject, as_object, dig
from tests.certificates import self_signed
from tests.http_server import serving_on_loopback


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

    path = self_signed(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    authority = path.read_bytes().partition(b"-----BEGIN CERTIFICATE-----")
    with serving_on_loopback(Handler, context) as port:
        yield {
            "url": f"https://127.0.0.1:{port}/",
            "caBundle": base64.b64encode(authority[1] + authority[2]).decode(),
        }
