"""A conversion webhook on loopback: version v1 of a kind calls `heading` what v2 calls `title`."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.certificates import self_signed

_NAMES = {"v1": ("title", "heading"), "v2": ("heading", "title")}


@contextmanager
def converting(folder: Path) -> Iterator[JsonObject]:
    """Run the webhook while the block runs. The value is the `conversion` of a definition that names it."""
    path = self_signed(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    authority = path.read_bytes().partition(b"-----BEGIN CERTIFICATE-----")
    try:
        yield {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": f"https://127.0.0.1:{server.server_port}/convert",
                    "caBundle": base64.b64encode(authority[1] + authority[2]).decode(),
                },
            },
        }
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def converted(document: JsonObject, api_version: str) -> JsonObject:
    """The object in another version, with the field under the name that this version gives it."""
    before, after = _NAMES[api_version.rpartition("/")[2]]
    spec = as_object(document.get("spec"))
    renamed: dict[str, Json] = {after if name == before else name: value for name, value in spec.items()}
    return {**document, "apiVersion": api_version, "spec": renamed}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = as_object(review["request"])
        wanted = as_text(request["desiredAPIVersion"])
        response: JsonObject = {
            "uid": dig(request, "uid"),
            "result": {"status": "Success"},
            "convertedObjects": [converted(as_object(each), wanted) for each in as_list(request["objects"])],
        }
        data = orjson.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass
