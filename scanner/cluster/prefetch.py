"""Lists that are on their way before they are read: while one page is judged, the next ones come.

Threads do nothing but wait for the server. What is in flight is bounded: of `concurrency` lists at most, each with one
page that has come or is coming, and of the list that is read one more. Whoever reads sees the pages in the order in which the lists were expected.
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


class Wanted(NamedTuple):
    """One list that is going to be read."""

    kind: Kind
    namespace: str = ""
    selector: str = ""


class Prefetcher:
    """Fetches expected lists ahead, in their order; a list that nobody expected is fetched when it is read."""

    def __init__(self, begin: Callable[[Wanted], Iterator[Page]], concurrency: int) -> None:
        """`begin` makes the list; its pages are taken in a thread. Below 1, nothing is fetched ahead."""
        self._begin = begin
        self._concurrency = concurrency
        self._waiting: deque[Wanted] = deque()
        self._running: dict[Wanted, _Fetch] = {}
        self._stopped: list[_Fetch] = []

    def expect(self, wanted: Iterable[Wanted]) -> None:
        """Say what is going to be read, in which order. What is on its way already stays so, if it is wanted still."""
        lists = dict.fromkeys(wanted)
        for gone in self._running.keys() - lists.keys():
            self._stop(gone)
        self._waiting = deque(it for it in lists if it not in self._running)
        self._start()

    def pages(self, wanted: Wanted) -> Iterator[Page]:
        """The pages of a list; raises what the list raises."""
        fetch = self._running.get(wanted)
        if fetch is None:
            return self._begin(wanted)
        return self._taken(wanted, fetch)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A block in which no thread runs here. It is entered when the pages that are coming have come."""
        fetches = (*self._running.values(), *self._stopped)
        try:
            for fetch in fetches:
                fetch.pause()
            for fetch in fetches:
                fetch.join()
            self._stopped.clear()
            yield
        finally:
            for fetch in self._running.values():
                fetch.go_on()

    def close(self) -> None:
        """Fetch nothing more."""
        self._waiting.clear()
        for wanted in tuple(self._running):
            self._stop(wanted)

    def _taken(self, wanted: Wanted, fetch: _Fetch) -> Iterator[Page]:
        try:
            yield from fetch.pages()
        except KeyboardInterrupt:
            self.close()
            raise
        finally:
            self._stop(wanted)
            self._start()

    def _stop(self, wanted: Wanted) -> None:
        fetch = self._running.pop(wanted, None)
        if fetch is None:
            return
        fetch.stop()
        self._stopped = [*(it for it in self._stopped if it.is_alive()), fetch]

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._concurrency:
            wanted = self._waiting.popleft()
            self._running[wanted] = _Fetch(self._begin(wanted))


class _Fetch:
    """One list that comes in a thread of its own, which does not keep the process alive."""

    def __init__(self, pages: Iterator[Page]) -> None:
        self._pages = pages
        self._come: deque[Page | BaseException | None] = deque()
        self._change = Condition()
        self._stopped = False
        self._paused = False
        self._ended = False
        self._left = False
        self._most = _IN_FLIGHT
        self._thread = self._begun()

    def pages(self) -> Iterator[Page]:
        """The pages, in the thread that asks for them; a failure comes after the pages before it."""
        self._most = _IN_FLIGHT_WHILE_READ
        while (item := self._next()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def stop(self) -> None:
        """Nobody will take another page."""
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def pause(self) -> None:
        """Ask for no other page for now. The thread ends when the page has come that it waits for."""
        with self._change:
            self._paused = True
            self._change.notify_all()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join()

    def go_on(self) -> None:
        """Fetch again, in another thread where the one that was has ended."""
        with self._change:
            self._paused = False
            if self._left and not self._ended:
                self._thread = self._begun()

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _begun(self) -> Thread:
        self._left = False
        thread = Thread(target=self._run, daemon=True)
        thread.start()
        return thread

    def _next(self) -> Page | BaseException | None:
        with self._change:
            self._change.wait_for(lambda: self._come)
            item = self._come.popleft()
            self._change.notify_all()
            return item

    def _run(self) -> None:
        while self._has_room():
            item = self._fetched()
            with self._change:
                self._come.append(item)
                self._ended = not isinstance(item, Page)
                self._change.notify_all()

    def _has_room(self) -> bool:
        """Wait until another page may be fetched; False when there is nothing to be fetched, or not now."""
        with self._change:
            self._change.wait_for(lambda: len(self._come) < self._most or self._stopped or self._paused)
            self._left = self._ended or self._stopped or self._paused
            return not self._left

    def _fetched(self) -> Page | BaseException | None:
        try:
            return next(self._pages, None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever reads the list
            return error
