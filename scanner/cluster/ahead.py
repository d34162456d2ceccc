"""Lists that are on their way before they are read: while one page is judged, the next ones come.

Threads do nothing but wait for the server. What is in flight is bounded: of `concurrency` lists at most, each with one
page that has come and one that is coming. Whoever reads sees the pages in the order in which the lists were expected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import Full, Queue
from threading import Event, Thread
from typing import Final, NamedTuple

from scanner.model.resource import Kind, Page

_GLANCE: Final = 0.2
"""Seconds after which a thread with a page that nobody takes looks whether anybody still will."""


class Wanted(NamedTuple):
    """One list that is going to be read."""

    kind: Kind
    namespace: str = ""
    selector: str = ""


class Ahead:
    """Fetches expected lists ahead, in their order; a list that nobody expected is fetched when it is read."""

    def __init__(self, begin: Callable[[Wanted], Iterator[Page]], concurrency: int) -> None:
        """`begin` makes the list; its pages are taken in a thread. Below 1, nothing is fetched ahead."""
        self._begin = begin
        self._concurrency = concurrency
        self._waiting: deque[Wanted] = deque()
        self._running: dict[Wanted, _Fetch] = {}

    def expect(self, wanted: Iterable[Wanted]) -> None:
        """Say what is going to be read, in which order. What is on its way already stays so, if it is wanted still."""
        lists = dict.fromkeys(wanted)
        for gone in self._running.keys() - lists.keys():
            self._running.pop(gone).stop()
        self._waiting = deque(it for it in lists if it not in self._running)
        self._start()

    def pages(self, wanted: Wanted) -> Iterator[Page]:
        """The pages of a list; raises what the list raises."""
        fetch = self._running.get(wanted)
        if fetch is None:
            return self._begin(wanted)
        return self._taken(wanted, fetch)

    def close(self) -> None:
        """Fetch nothing more."""
        self._waiting.clear()
        for fetch in self._running.values():
            fetch.stop()
        self._running.clear()

    def _taken(self, wanted: Wanted, fetch: _Fetch) -> Iterator[Page]:
        try:
            yield from fetch.pages()
        except KeyboardInterrupt:
            self.close()
            raise
        finally:
            fetch.stop()
            self._running.pop(wanted, None)
            self._start()

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._concurrency:
            wanted = self._waiting.popleft()
            self._running[wanted] = _Fetch(self._begin(wanted))


class _Fetch:
    """One list that comes in a thread of its own, which does not keep the process alive."""

    def __init__(self, pages: Iterator[Page]) -> None:
        self._pages = pages
        self._come: Queue[Page | BaseException | None] = Queue(maxsize=1)
        self._stopped = Event()
        Thread(target=self._run, daemon=True).start()

    def pages(self) -> Iterator[Page]:
        """The pages, in the thread that asks for them; a failure comes after the pages before it."""
        while (item := self._come.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def stop(self) -> None:
        """Nobody will take another page."""
        self._stopped.set()

    def _run(self) -> None:
        try:
            for page in self._pages:
                if not self._put(page):
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever reads the list
            self._put(error)

    def _put(self, item: Page | BaseException | None) -> bool:
        while not self._stopped.is_set():
            with suppress(Full):
                self._come.put(item, timeout=_GLANCE)
                return True
        return False
