"""Work in a thread of its own, on which requests wait for a limited time: a database that does not answer stops no request."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread


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
        future = self._begun()
        try:
            future.result(seconds)
        except TimeoutError:
            if not future.done():
                return False
            raise
        return True

    def _begun(self) -> Future[None]:
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
