"""A server on loopback in a thread of the tests: what `assay serve` runs, with a small application in place of the pages."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import httpx2
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from scanner.model.json import JsonObject
from scanner.web.access.settings import AccessSettings
from scanner.web.requests.limits import Limits
from scanner.web.requests.listen import ListenAddress
from scanner.web.server.server import ServerOutput, ServerSettings, run

KEY = b"k" * 32
SECONDS = 10
CANARY = "hunter2-canary"
ANYWHERE = ListenAddress("127.0.0.1", 0)


async def _who(request: Request) -> Response:
    return JSONResponse({"user": request.state.user, "session": request.state.session, "path": request.url.path})


async def _fail(_: Request) -> Response:
    raise RuntimeError(f"object {CANARY}")


async def _missing(_: Request) -> Response:
    raise HTTPException(404)


async def _fail_midway(_: Request) -> Response:
    async def parts() -> object:
        yield b"first part"
        raise RuntimeError(CANARY)

    return StreamingResponse(parts())  # type: ignore[arg-type]


async def _large(_: Request) -> Response:
    async def parts() -> object:
        for _ in range(1_000):
            yield b"x" * 65_536

    return StreamingResponse(parts())  # type: ignore[arg-type]


async def _metrics(_: Request) -> Response:
    return PlainTextResponse("assay_up 1\n")


def pages() -> Starlette:
    """The application: each page tells who reads it."""
    probes = [Route(path, _metrics) for path in ("/healthz", "/readyz", "/metrics")]
    own = [Route("/fail", _fail), Route("/midway", _fail_midway), Route("/large", _large), Route("/missing", _missing)]
    return Starlette(routes=[*probes, *own, Route("/{path:path}", _who)])


@dataclass(slots=True)
class Running:
    """A server that runs. `events` are the messages of its stderr."""

    url: str = ""
    metrics: str = ""
    stream: io.StringIO = field(default_factory=io.StringIO)
    events: list[tuple[str, str]] = field(default_factory=list)

    @property
    def log(self) -> list[JsonObject]:
        """The lines of the access log."""
        return [orjson.loads(line) for line in self.stream.getvalue().splitlines()]

    @property
    def place(self) -> tuple[str, int]:
        """Its host and port."""
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        """Ask for a path with headers, of whose names `_` stands for `-`."""
        return self.ask("GET", path, {name.replace("_", "-"): value for name, value in headers.items()})

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, content: bytes = b""
    ) -> httpx2.Response:
        """Send a request without a client's own headers and cookies."""
        with httpx2.Client(base_url=self.url, timeout=SECONDS, trust_env=False) as client:
            return client.request(method, path, headers=dict(headers or {}), content=content)

    def send(self, data: bytes) -> bytes:
        """Send bytes as they are, and receive until the server ends the connection."""
        with socket.create_connection(self.place, timeout=SECONDS) as connection:
            connection.sendall(data)
            received = b""
            while part := connection.recv(65_536):
                received += part
        return received


def access(**settings: object) -> AccessSettings:
    """Settings of access on loopback, without authentication by default."""
    return AccessSettings(**{"public_url": "", "session_key": KEY, "hosts": frozenset(), **settings})  # type: ignore[arg-type]


@contextmanager
def running(
    settings: AccessSettings,
    *,
    app: ASGIApp | None = None,
    limits: Limits | None = None,
    listen: ListenAddress = ANYWHERE,
    metrics: bool = False,
    verbose: bool = False,
    certificate: Path | None = None,
    certificate_seconds: float = 60,
) -> Iterator[Running]:
    """A block in which a server runs."""
    server, begun, stop = Running(), Event(), Future[None]()
    failures: list[BaseException] = []

    def started(url: str, metrics_url: str) -> None:
        server.url, server.metrics = url, metrics_url
        begun.set()

    def work() -> None:
        try:
            output = ServerOutput(
                server.stream, lambda level, message, _: server.events.append((level, message)), started, verbose
            )
            place = ListenAddress("127.0.0.1", 0) if metrics else None
            chosen = ServerSettings(
                listen,
                settings,
                place,
                certificate,
                certificate_seconds=certificate_seconds,
                limits=limits or Limits(),
            )
            run(app or pages(), chosen, output, stop)
        except BaseException as error:  # noqa: BLE001 - raised in the thread of the test
            failures.append(error)
        finally:
            begun.set()

    thread = Thread(target=work)
    thread.start()
    try:
        assert begun.wait(SECONDS)
        if failures:
            raise failures[0]
        yield server
    finally:
        stop.set_result(None)
        thread.join(SECONDS)
        assert not thread.is_alive()
