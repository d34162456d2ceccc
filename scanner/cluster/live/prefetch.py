"""Fetches lists before they are read: while one page is evaluated, the next pages arrive.

Threads only wait for the server. At most `concurrency` lists are fetched at a time, each one page ahead, and the list that is
read one page more. The pages are read in the order in which the lists were expected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread
from typing import Final, NamedTuple

from scanner.model.resource import Kind, Page

_IN_FLIGHT: Final = 1
_IN_FLIGHT_WHILE_READ: Final = 2
_SECONDS: Final = 1.0
"""The time between two beats of a reader that waits."""


class WantedList(NamedTuple):
    """A list that will be read."""

    kind: Kind
    namespace: str = ""
    selector: str = ""


class Prefetcher:
    """Prefetches expected lists in their order; another list is fetched when it is read."""

    def __init__(self, begin: Callable[[WantedList], Iterator[Page]], concurrency: int) -> None:
        """`begin` starts a list; a thread reads its pages. With a `concurrency` below 1, nothing is prefetched."""
        self._begin = begin
        self._concurrency = concurrency
        self._waiting: deque[WantedList] = deque()
        self._running: dict[WantedList, _Fetch] = {}
        self._stopped: list[_Fetch] = []
        self._beat: Callable[[], None] = lambda: None

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """Call `beat` about once a second while the reader waits: for a page, or for requests to end before a pause."""
        self._beat = beat

    def expect(self, wanted: Iterable[WantedList]) -> None:
        """Set the lists that will be read, in order. Running fetches of lists that are still expected continue."""
        lists = dict.fromkeys(wanted)
        for gone in self._running.keys() - lists.keys():
            self._stop(gone)
        self._waiting = deque(wanted_list for wanted_list in lists if wanted_list not in self._running)
        self._start()

    def pages(self, wanted: WantedList) -> Iterator[Page]:
        """The pages of a list. Raises the errors of the list."""
        fetch = self._running.get(wanted)
        if fetch is None:
            return self._begin(wanted)
        return self._yield_pages(wanted, fetch)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """A block in which no thread runs. It starts when the current requests have ended."""
        fetches = (*self._running.values(), *self._stopped)
        try:
            for fetch in fetches:
                fetch.pause()
            for fetch in fetches:
                fetch.join(self._beat)
            self._stopped.clear()
            yield
        finally:
            for fetch in self._running.values():
                fetch.go_on()

    def close(self) -> None:
        """Stop fetching."""
        self._waiting.clear()
        for wanted in tuple(self._running):
            self._stop(wanted)

    def _yield_pages(self, wanted: WantedList, fetch: _Fetch) -> Iterator[Page]:
        try:
            yield from fetch.pages(self._beat)
        except KeyboardInterrupt:
            self.close()
            raise
        finally:
            self._stop(wanted)
            self._start()

    def _stop(self, wanted: WantedList) -> None:
        fetch = self._running.pop(wanted, None)
        if fetch is None:
            return
        fetch.stop()
        self._stopped = [*(stopped for stopped in self._stopped if stopped.is_alive()), fetch]

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._concurrency:
            wanted = self._waiting.popleft()
            self._running[wanted] = _Fetch(self._begin(wanted))


class _Fetch:
    """Fetches one list in a daemon thread."""

    def __init__(self, pages: Iterator[Page]) -> None:
        self._pages = pages
        self._items: deque[Page | BaseException | None] = deque()
        self._change = Condition()
        self._stopped = False
        self._paused = False
        self._ended = False
        self._is_leaving = False
        self._most = _IN_FLIGHT
        self._thread = self._start_thread()

    def pages(self, beat: Callable[[], None]) -> Iterator[Page]:
        """The pages, in the caller's thread; a failure is raised after the pages before it. Calls `beat` while it waits."""
        self._most = _IN_FLIGHT_WHILE_READ
        while (item := self._next(beat)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def stop(self) -> None:
        """Stop: no further page will be read."""
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def pause(self) -> None:
        """Request no further page for now. The thread ends after the current request."""
        with self._change:
            self._paused = True
            self._change.notify_all()

    def join(self, beat: Callable[[], None]) -> None:
        """Wait for the end of the thread. Calls `beat` while it waits."""
        self._thread.join(_SECONDS)
        while self._thread.is_alive():
            beat()
            self._thread.join(_SECONDS)

    def go_on(self) -> None:
        """Continue, in a new thread if the former has ended."""
        with self._change:
            self._paused = False
            if self._is_leaving and not self._ended:
                self._thread = self._start_thread()

    def is_alive(self) -> bool:
        """Return whether the thread runs."""
        return self._thread.is_alive()

    def _start_thread(self) -> Thread:
        self._is_leaving = False
        thread = Thread(target=self._run, daemon=True)
        thread.start()
        return thread

    def _next(self, beat: Callable[[], None]) -> Page | BaseException | None:
        while not self._wait_for_page():
            beat()
        with self._change:
            item = self._items.popleft()
            self._change.notify_all()
            return item

    def _wait_for_page(self) -> bool:
        """Wait for a page, but not for long; return whether there is one."""
        with self._change:
            return bool(self._change.wait_for(lambda: self._items, _SECONDS))

    def _run(self) -> None:
        while self._wait_for_room():
            item = self._fetch()
            with self._change:
                self._items.append(item)
                self._ended = not isinstance(item, Page)
                self._change.notify_all()

    def _wait_for_room(self) -> bool:
        """Wait until another page may be fetched; False if fetching has stopped or pauses."""
        with self._change:
            self._change.wait_for(lambda: len(self._items) < self._most or self._stopped or self._paused)
            self._is_leaving = self._ended or self._stopped or self._paused
            return not self._is_leaving

    def _fetch(self) -> Page | BaseException | None:
        try:
            return next(self._pages, None)
        except BaseException as error:  # noqa: BLE001 - any error is raised again where the list is read
            return error
