"""A receiver of webhooks on loopback that records what it gets, and answers as it is told."""

from __future__ import annotations

import hmac
import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.http_server import serving_on_loopback

TORN = 0
"""Instead of a status: the connection ends before the answer does."""
SLOW = 1
"""Instead of a status: no answer as long as the receiver runs."""


@dataclass(frozen=True)
class Received:
    """A request as received."""

    path: str
    headers: dict[str, str]
    content: bytes

    @property
    def id(self) -> str:
        """The id of the notification."""
        return self.headers["webhook-id"]

    @property
    def data(self) -> Any:
        """The data of the notification."""
        return json.loads(self.content)["data"]

    def is_signed_with(self, secret: str) -> bool:
        """Return whether the signature is right, as the specification describes it and without code of Assay."""
        key = b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.content
        expected = b64encode(hmac.new(key, signed, "sha256").digest()).decode()
        return self.headers["webhook-signature"] == f"v1,{expected}"


@dataclass
class Receiver:
    """The requests that a server got. It answers with the `answers` in their order, then with `status`."""

    url: str
    status: int = 200
    answers: list[int] = field(default_factory=list)
    location: str = ""
    received: list[Received] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A running server."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            running.received.append(Received(self.path, headers, content))
            status = running.answers.pop(0) if running.answers else running.status
            if status == SLOW:
                running.released.wait(30)
            elif status == TORN:
                self.wfile.write(b"HTTP/1.1 20")
            else:
                self.send_response(status)
                if running.location:
                    self.send_header("Location", running.location)
                self.send_header("Content-Length", "0")
                self.end_headers()
            self.close_connection = True

    with serving_on_loopback(Handler) as port:
        running = Receiver(f"http://127.0.0.1:{port}")
        try:
            yield running
        finally:
            running.released.set()
