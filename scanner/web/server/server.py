"""Runs the web application: one process, which never forks (ADR 12), on one address and perhaps a second one for metrics."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scanner.errors import AssayError, CredentialsRefused, UsageError
from scanner.web.access import AccessSettings, guard_app
from scanner.web.requests.limits import METRICS, OPEN_PATHS, Limits, RequestLimiter
from scanner.web.requests.listen import ListenAddress, address_bound, bind
from scanner.web.requests.notice import ShortAnswer, respond
from scanner.web.requests.prefix import PathPrefix
from scanner.web.server.log import AccessLog, Events, mask_events, report_logs
from scanner.web.server.protocol import protocol_with

if TYPE_CHECKING:
    from scanner.model.access_token import AccessToken
    from scanner.posture.settings import Settings
    from scanner.report.runs.document import RunExpectations
    from scanner.web.views.library import ScanLibrary

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_BACKLOG: Final = 512
_KEEP_ALIVE: Final = 60
"""Seconds without a request after which a connection ends: a busy server must not take a request that waits for a pause."""


# Headers of every answer, which tell browsers what they must not do with it.
#
# An answer may load and run nothing. A page may have styles and forms; its own Content-Security-Policy, in its text
# as in the report, allows one style sheet by its hash, and both policies count.

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

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _complete(MutableHeaders(scope=message), message["status"])
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _complete(headers: MutableHeaders, status: int) -> None:
    headers.update(_ALWAYS)
    headers.setdefault("Cache-Control", "no-store")
    if status == HTTPStatus.NOT_MODIFIED:
        return  # These headers replace those that the browser keeps (RFC 9111, 3.2): another policy would refuse the styles of its page.
    is_page = headers.get("content-type", "").startswith("text/html")
    policy = headers.setdefault(_POLICY, _PAGE if is_page else _NOTHING)
    if "frame-ancestors" not in policy:
        headers.append(_POLICY, _NO_FRAMES)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The addresses at which a server listens, and its limits.

    `certificate` may be a file that has the private key, too; both are read again after `certificate_seconds` if they changed.
    """

    listen: ListenAddress
    access: AccessSettings
    metrics_listen: ListenAddress | None = None
    certificate: Path | None = None
    private_key: Path | None = None
    certificate_seconds: float = 60
    limits: Limits = field(default_factory=Limits)

    @property
    def scheme(self) -> str:
        """The scheme of the addresses of this server."""
        return "https" if self.certificate else "http"


@dataclass(frozen=True, slots=True)
class ServerOutput:
    """The output of a server: the access log, events, and the addresses at which it answers once it does (the second for metrics).

    With `verbose`, the access log has probes and scrapes that succeed, too.
    """

    log: TextIO
    events: Events
    started: Callable[[str, str], None]
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class ServerContent:
    """The content of a server: the database at a URL, with settings of posture, and the times at which scans are expected.

    `read_url` reads the URL again from its file, if it has one.
    """

    url: str
    posture: Settings
    expectations: RunExpectations | None = None
    read_url: Callable[[], str] | None = None


def serve(content: ServerContent, settings: ServerSettings, output: ServerOutput) -> None:
    """Serve a database until SIGINT or SIGTERM.

    Raises AssayError if the server cannot start, and when the database rejects the credentials: a process that starts again reads
    them anew. Raises UsageError for a wrong schedule.
    """
    from scanner.web.views.library import ScanLibrary

    refusal = _Refusal()
    library = ScanLibrary(
        content.url,
        content.posture,
        expectations=content.expectations,
        most_seconds=settings.limits.query_seconds,
        read_url=content.read_url,
        refused=lambda error: refusal.end(error, library),
    )
    events = mask_events(output.events)
    with closing(library), report_logs(events):
        run(_application(library, events, settings.access.tokens, refusal), settings, output)
    if refusal.error is not None:
        raise refusal.error


class _Refusal:
    """Ends the process when the database rejects the credentials, unless a file has others now."""

    def __init__(self) -> None:
        self.error: CredentialsRefused | None = None

    def end(self, error: CredentialsRefused, library: ScanLibrary) -> None:
        """End the process once; in a thread of the server."""
        with suppress(UsageError):  # a file that is replaced now
            if library.renew_address():
                return
        if self.error is None:
            self.error = error
            os.kill(os.getpid(), signal.SIGTERM)


def _application(library: ScanLibrary, events: Events, tokens: Sequence[AccessToken], refusal: _Refusal) -> ASGIApp:
    """The pages and the API, with metrics and the answers to probes."""
    from scanner.web.server.application import application
    from scanner.web.server.health import Readiness, health_routes
    from scanner.web.server.metrics import ClusterMetrics, metrics_routes

    def log(line: str) -> None:
        events("warning", line, {})

    expectations = library.expectations
    metrics = ClusterMetrics(
        library.database,
        library.settings,
        expectations.schedule_of,
        includes=expectations.includes,
        members=expectations.members,
        tokens=tokens,
        clock=library.clock,
    )
    return application(
        library,
        [
            *metrics_routes(metrics, log=log),
            *health_routes(Readiness(library.database, log=log, refused=lambda error: refusal.end(error, library))),
        ],
    )


def run(app: ASGIApp, settings: ServerSettings, output: ServerOutput, stop: Future[None] | None = None) -> None:
    """Serve an application until SIGINT or SIGTERM, or in another thread than the first until `stop`.

    Raises AssayError if the server cannot start.
    """
    with _listen(settings) as listeners:
        places = [address_bound(listener, named) for listener, named in zip(listeners, _places(settings), strict=True)]
        settings = replace(settings, access=_name_access(settings, places[0]))
        servers = _servers(app, settings, output)
        addresses = [f"{settings.scheme}://{place}" for place in places]
        try:
            asyncio.run(
                _run_until_stopped(
                    servers,
                    listeners,
                    lambda: output.started(addresses[0], *(addresses[1:] or [""])),
                    stop,
                    partial(_follow_certificate, servers, settings, mask_events(output.events)),
                )
            )
        except SystemExit as error:
            raise AssayError("the server could not start: its application failed") from error


def protect(app: ASGIApp, settings: ServerSettings, output: ServerOutput) -> ASGIApp:
    """An application behind its prefix, its headers, its log, its limits and its guard, in this order."""
    wrapped = _wrap(guard_app(app, settings.access), settings, output)
    return PathPrefix(wrapped, settings.access.prefix)


def _wrap(app: ASGIApp, settings: ServerSettings, output: ServerOutput) -> ASGIApp:
    limited = RequestLimiter(app, settings.limits)
    return SecureHeaders(AccessLog(limited, output.log, mask_events(output.events), verbose=output.verbose))


class MetricsAlone:
    """The part of an application that the address for metrics serves, without authentication."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer `/metrics` and the paths of probes."""
        if scope["path"] == METRICS or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
        else:
            await respond(
                scope, receive, send, ShortAnswer(404, "This address has metrics alone", (f"Use {METRICS}.",))
            )


class _Server(uvicorn.Server):
    """A server whose process handles signals itself, and waits for its start."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()


def _places(settings: ServerSettings) -> list[ListenAddress]:
    return [settings.listen, *([settings.metrics_listen] if settings.metrics_listen else [])]


@contextmanager
def _listen(settings: ServerSettings) -> Iterator[list[socket.socket]]:
    listeners: list[socket.socket] = []
    try:
        for place, flag in zip(_places(settings), ("--listen", "--metrics-listen"), strict=False):
            listeners.append(bind(place, flag))
        yield listeners
    finally:
        for listener in listeners:
            listener.close()


def _name_access(settings: ServerSettings, place: ListenAddress) -> AccessSettings:
    """The access of a server at its address, which is its public one if only this machine can reach it."""
    access = settings.access
    if access.public_url or not place.is_loopback:
        return access
    return replace(access, public_url=f"{settings.scheme}://{place}")


def _servers(app: ASGIApp, settings: ServerSettings, output: ServerOutput) -> list[_Server]:
    servers = [_server(protect(app, settings, output), settings, lifespan=True)]
    if settings.metrics_listen:
        servers.append(_server(_wrap(MetricsAlone(app), settings, output), settings, lifespan=False))
    return servers


def _server(app: ASGIApp, settings: ServerSettings, *, lifespan: bool) -> _Server:
    limits = settings.limits
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=protocol_with(limits),
        ws="none",
        lifespan="on" if lifespan else "off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=limits.shutdown_seconds,
        h11_max_incomplete_event_size=limits.head,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.private_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise AssayError(
            f"the certificate {settings.certificate} cannot be used ({error}): check --tls-cert and --tls-key"
        ) from error
    return _Server(config)


async def _run_until_stopped(
    servers: Sequence[_Server],
    listeners: Sequence[socket.socket],
    started: Callable[[], None],
    stop: Future[None] | None,
    beside: Callable[[], Coroutine[None, None, None]],
) -> None:
    """Run servers, and something `beside` them until they end."""

    def end() -> None:
        for server in servers:
            server.force_exit = server.should_exit
            server.should_exit = True

    with _handle_signals(end) if stop is None else nullcontext():
        async with asyncio.TaskGroup() as group:
            following = group.create_task(beside())
            for server, listener in zip(servers, listeners, strict=True):
                serving = group.create_task(server.serve(sockets=[listener]))
                serving.add_done_callback(lambda _: following.cancel())
            for server in servers:
                await server.up.wait()
            started()
            if stop is not None:
                await asyncio.wrap_future(stop)
                end()


async def _follow_certificate(servers: Sequence[_Server], settings: ServerSettings, events: Events) -> None:
    """Read the certificate and its key again when their files have changed, as those of a Secret do: new connections get the new one."""
    files = [path for path in (settings.certificate, settings.private_key) if path]
    known = _read_times(files)
    while files:
        await asyncio.sleep(settings.certificate_seconds)
        times = _read_times(files)
        if times == known:
            continue
        try:
            for server in servers:
                if server.config.ssl and settings.certificate:
                    server.config.ssl.load_cert_chain(settings.certificate, settings.private_key)
        except (OSError, ssl.SSLError) as error:
            events("warning", f"the new certificate {settings.certificate} cannot be used ({error})", {})
        else:
            events("info", f"the certificate {settings.certificate} was read again", {})
        known = times


def _read_times(files: Sequence[Path]) -> list[int]:
    """The times of the last changes of files, 0 for one that is missing for a moment."""
    return [path.stat().st_mtime_ns if path.exists() else 0 for path in files]


@contextmanager
def _handle_signals(end: Callable[[], None]) -> Iterator[None]:
    """A block in which a signal calls `end`; the handlers of before return afterwards."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
