"""A server on loopback that takes pushes and records them, or responds with an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from prometheus_client.metrics_core import GaugeMetricFamily

from scanner.report.formats.metric_families import Families
from tests.http_server import serving_on_loopback


@dataclass(frozen=True)
class Pushed:
    """One push as received."""

    method: str
    path: str
    authorization: str | None
    text: str


@dataclass
class Gateway:
    """The pushes that a server received. It responds with `status`, after `released` is set."""

    url: str
    status: int = 200
    location: str = ""
    pushes: list[Pushed] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


def gauge(name: str, *values: float) -> Families:
    """A metric without labels, with a sample of each value."""
    family = GaugeMetricFamily(name, "A metric.", labels=())
    for value in values or (1,):
        family.add_metric((), value)
    return Families((family,))


@contextmanager
def gateway() -> Iterator[Gateway]:
    """A running server."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            running.pushes.append(Pushed(self.command, self.path, self.headers["Authorization"], text))
            running.released.wait(5)
            self.send_response(running.status)
            if running.location:
                self.send_header("Location", running.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_PUT  # noqa: N815 - the name that the base class asks for

    with serving_on_loopback(Handler) as port:
        running = Gateway(f"http://127.0.0.1:{port}")
        running.released.set()
        try:
            yield running
        finally:
            running.released.set()
