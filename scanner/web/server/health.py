"""`/healthz`: the process answers. `/readyz`: so does the database, and this version can read every table that pages read.

Both need no authentication, so that a kubelet can ask: the answer has a reason without the address of the database, and the log of
the server has the whole message. The probes query the database once a second at most, and never twice at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from time import monotonic
from typing import Final, Protocol

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from scanner.errors import AssayError, CredentialsRefused
from scanner.web.requests.refusals import reason_of

# Work in a thread of its own, on which requests wait for a limited time: a database that does not answer stops no
# request.


class Background:
    """Runs a function in a thread, one at a time. The process does not wait for the thread when it ends."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        """Start nothing yet. The `name` is that of the thread."""
        self._work = work
        self._name = name
        self._lock = Lock()
        self._running: Future[None] | None = None

    def run(self, seconds: float) -> bool:
        """Begin the work, unless it runs, and wait at most so long for its end; return whether it has ended.

        Raises the error of the work to every request that waits for it.
        """
        future = self._begin()
        try:
            future.result(seconds)
        except TimeoutError:
            if not future.done():
                return False
            raise  # the error of the work itself
        return True

    def _begin(self) -> Future[None]:
        with self._lock:
            if self._running is None:
                self._running = Future()
                Thread(target=self._run, args=(self._running,), name=self._name, daemon=True).start()
            return self._running

    def _run(self, future: Future[None]) -> None:
        error: BaseException | None = None
        try:
            self._work()
        except BaseException as raised:  # noqa: BLE001 - raised again where requests wait
            error = raised
        with self._lock:
            self._running = None
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


SILENT: Final = "the database does not answer"
_PATIENCE: Final = 2.0
"""Seconds that a request waits for the database; a probe of a kubelet usually waits less."""
_FRESH: Final = 1.0
"""Seconds for which an answer counts."""
_PROBES: Final = 4
"""The probes that wait for the database at the same time."""
_HEADERS: Final = {"Cache-Control": "no-store"}

Log = Callable[[str], None]


class Readable(Protocol):
    """An open database."""

    def check_tables(self) -> None:
        """Raise AssayError unless the database answers, has the schema of this version, and lets its tables be read."""


def write_to_stderr(line: str) -> None:
    """Write a line of the log."""
    sys.stderr.write(f"assay: {line}\n")


class Readiness:
    """Answers whether the database can be read."""

    def __init__(
        self,
        database: Callable[[], Readable],
        *,
        log: Log = write_to_stderr,
        refused: Callable[[CredentialsRefused], None] = lambda _: None,
        clock: Callable[[], float] = monotonic,
        patience: float = _PATIENCE,
    ) -> None:
        """`database` returns the open database, or raises AssayError; an error is logged once.

        `refused` is called whenever the database rejects the user.
        """
        self._database = database
        self._log = log
        self._refused = refused
        self._clock = clock
        self._patience = patience
        self._check = Background(self._ask, "assay-readiness")
        self._lock = Lock()
        self._reason: str | None = None
        self._asked = 0.0
        self._logged = ""

    def trouble(self) -> str:
        """The reason why the database cannot be read, or an empty text."""
        with self._lock:
            if self._reason is not None and 0 <= self._clock() - self._asked < _FRESH:
                return self._reason
        if not self._check.run(self._patience):
            return SILENT
        with self._lock:
            return self._reason or ""

    def _ask(self) -> None:
        message = reason = ""
        try:
            self._database().check_tables()
        except AssayError as error:
            message, reason = str(error), reason_of(error)
            if isinstance(error, CredentialsRefused):
                self._refused(error)
        with self._lock:
            self._reason, self._asked = reason, self._clock()
            changed, self._logged = message != self._logged, message
        if changed:
            self._log(f"not ready: {message}" if message else "ready: the database can be read")


def health_routes(readiness: Readiness) -> list[Route]:
    """`/healthz` and `/readyz`, which need no authentication."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n", headers=_HEADERS)

    # Pages that take long can use all threads of the others.
    probes = CapacityLimiter(_PROBES)

    async def readyz(_: Request) -> Response:
        trouble = await run_sync(readiness.trouble, limiter=probes)
        if trouble:
            return PlainTextResponse(f"not ready: {trouble}\n", 503, headers=_HEADERS)
        return PlainTextResponse("ok\n", headers=_HEADERS)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
