"""Prefetching of lists: the order stays, the number of pages in memory is limited, and errors reach the reader."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from itertools import islice

import pytest

from scanner.cluster.live.prefetch import Prefetcher, WantedList
from scanner.errors import ListFailed
from scanner.model.resource import Kind, Page

KINDS = [Kind("", "v1", f"Kind{number}", f"kind{number}s", namespaced=True) for number in range(6)]
WANTED = [WantedList(kind) for kind in KINDS]


class Source:
    """Lists of three pages each, with a record of the requested lists and pages."""

    def __init__(self, broken: Kind | None = None) -> None:
        self.begun: list[WantedList] = []
        self.made: list[tuple[str, int]] = []
        self.threads: set[threading.Thread] = set()
        self._broken = broken

    def begin(self, wanted: WantedList) -> Iterator[Page]:
        self.begun.append(wanted)
        return self._pages(wanted.kind)

    def _pages(self, kind: Kind) -> Iterator[Page]:
        for number in (1, 2, 3):
            self.threads.add(threading.current_thread())
            if kind == self._broken and number == 2:
                raise ListFailed("failed", "it broke off")
            self.made.append((kind.kind, number))
            yield Page(kind, number, b"")


class Slow:
    """A list of one page, which arrives when `answer` is set, unless the list fails then."""

    def __init__(self, trouble: ListFailed | None = None) -> None:
        self.asked, self.answer = threading.Event(), threading.Event()
        self.threads: set[threading.Thread] = set()
        self._trouble = trouble

    def begin(self, wanted: WantedList) -> Iterator[Page]:
        self.threads.add(threading.current_thread())
        self.asked.set()
        self.answer.wait(10)
        if self._trouble:
            raise self._trouble
        yield Page(wanted.kind, 1, b"")


def eventually(condition: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true within some seconds."""
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def read(pages: Iterator[Page]) -> list[tuple[str, int]]:
    """Kind and number of each page."""
    return [(page.kind.kind, page.number) for page in pages]


@pytest.mark.parametrize("concurrency", [0, 1, 2, 6, 99])
def test_pages_come_in_the_order_of_the_lists(concurrency: int) -> None:
    """With any number of running lists, the reader gets the same pages as without prefetching."""
    source = Source()
    ahead = Prefetcher(source.begin, concurrency)
    ahead.expect(WANTED)
    assert [(kind.kind, number) for kind in KINDS for number in (1, 2, 3)] == [
        page for wanted in WANTED for page in read(ahead.pages(wanted))
    ]
    assert WANTED == source.begun


def test_what_is_in_flight_is_bounded() -> None:
    """Of two lists one page each is fetched ahead, and of the list that is read two pages."""
    source = Source()
    ahead = Prefetcher(source.begin, 2)
    ahead.expect(WANTED)
    assert eventually(lambda: len(source.made) == 2)
    time.sleep(0.1)
    assert [("Kind0", 1), ("Kind1", 1)] == sorted(source.made)
    pages = ahead.pages(WANTED[0])
    assert 1 == next(pages).number
    assert eventually(lambda: len(source.made) == 4)
    time.sleep(0.1)
    assert [("Kind0", 1), ("Kind0", 2), ("Kind0", 3), ("Kind1", 1)] == sorted(source.made)
    ahead.close()


def test_the_next_list_begins_when_one_was_read() -> None:
    """The next list starts when the last page of a list was taken."""
    source = Source()
    ahead = Prefetcher(source.begin, 2)
    ahead.expect(WANTED)
    read(ahead.pages(WANTED[0]))
    assert WANTED[:3] == source.begun
    ahead.close()


def test_a_list_that_breaks_off_fails_where_it_is_read() -> None:
    """The pages before the failure come first, and the other lists continue."""
    source = Source(broken=KINDS[0])
    ahead = Prefetcher(source.begin, 3)
    ahead.expect(WANTED)
    pages = ahead.pages(WANTED[0])
    assert 1 == next(pages).number
    with pytest.raises(ListFailed, match="it broke off"):
        next(pages)
    assert [("Kind1", 1), ("Kind1", 2), ("Kind1", 3)] == read(ahead.pages(WANTED[1]))
    ahead.close()


def test_an_unexpected_list_is_fetched_when_it_is_read() -> None:
    """Namespaces and params are read without an announcement."""
    source = Source()
    ahead = Prefetcher(source.begin, 2)
    assert [("Kind5", 1), ("Kind5", 2), ("Kind5", 3)] == read(ahead.pages(WANTED[5]))
    assert {threading.current_thread()} == source.threads


def test_a_reader_who_leaves_stops_the_thread() -> None:
    """No thread waits for a reader that has ended."""
    source = Source()
    ahead = Prefetcher(source.begin, 1)
    ahead.expect(WANTED[:1])
    pages = ahead.pages(WANTED[0])
    next(pages)
    del pages
    assert eventually(lambda: not any(thread.is_alive() for thread in source.threads))


def test_after_an_interrupt_nothing_more_is_requested() -> None:
    """An interrupted scan starts no further list."""
    source = Source()
    ahead = Prefetcher(source.begin, 1)
    ahead.expect(WANTED)
    pages = ahead.pages(WANTED[0])
    next(pages)
    assert isinstance(pages, Generator)
    with pytest.raises(KeyboardInterrupt):
        pages.throw(KeyboardInterrupt)
    assert WANTED[:1] == source.begun


def test_running_lists_are_not_requested_again() -> None:
    """A new announcement ends the lists that it does not contain, and continues the others."""
    source = Source()
    ahead = Prefetcher(source.begin, 3)
    ahead.expect(WANTED[:3])
    ahead.expect(WANTED[1:])
    pages = [page for wanted in WANTED[1:] for page in read(ahead.pages(wanted))]
    assert [(kind.kind, number) for kind in KINDS[1:] for number in (1, 2, 3)] == pages
    assert WANTED == source.begun


def test_what_is_expected_anew_replaces_what_was() -> None:
    """The threads of lists that will not be read end."""
    source = Source()
    ahead = Prefetcher(source.begin, 6)
    ahead.expect(WANTED)
    assert eventually(lambda: len(source.threads) == 6)
    ahead.expect(())
    assert eventually(lambda: not any(thread.is_alive() for thread in source.threads))


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_while_it_is_paused_no_thread_runs(taken: int) -> None:
    """The process may be forked during the pause; afterwards every page comes once and in order."""
    source = Source()
    ahead = Prefetcher(source.begin, 3)
    ahead.expect(WANTED)
    first = ahead.pages(WANTED[0])
    pages = [(page.kind.kind, page.number) for page in islice(first, taken)]
    with ahead.pause():
        made = len(source.made)
        assert not any(thread.is_alive() for thread in source.threads)
    assert len(source.made) >= made
    pages += read(first)
    pages += [page for wanted in WANTED[1:] for page in read(ahead.pages(wanted))]
    assert [(kind.kind, number) for kind in KINDS for number in (1, 2, 3)] == pages


def test_a_pause_waits_for_stopped_lists() -> None:
    """A stopped thread may still wait for its last page."""
    slow = Slow()
    ahead = Prefetcher(slow.begin, 1)
    ahead.expect(WANTED[:1])
    assert slow.asked.wait(10)
    ahead.expect(())
    threading.Timer(0.05, slow.answer.set).start()
    with ahead.pause():
        assert slow.answer.is_set()
        assert not any(thread.is_alive() for thread in slow.threads)


def test_a_failure_that_came_while_paused_reaches_the_reader() -> None:
    """The pages that were requested before the pause are kept, and are not requested again."""
    slow = Slow(ListFailed("failed", "it broke off"))
    ahead = Prefetcher(slow.begin, 1)
    ahead.expect(WANTED[:1])
    assert slow.asked.wait(10)
    threading.Timer(0.05, slow.answer.set).start()
    with ahead.pause():
        pass
    with pytest.raises(ListFailed, match="it broke off"):
        next(ahead.pages(WANTED[0]))
    assert 1 == len(slow.threads)


def test_a_reader_that_waits_beats() -> None:
    """A list whose page takes long keeps the scan alive: the reader's own thread beats about once a second."""
    slow = Slow()
    beats: list[threading.Thread] = []

    def beat() -> None:
        beats.append(threading.current_thread())
        if len(beats) == 2:
            slow.answer.set()

    ahead = Prefetcher(slow.begin, 1)
    ahead.while_waiting(beat)
    ahead.expect(WANTED[:1])

    assert [("Kind0", 1)] == read(ahead.pages(WANTED[0]))
    assert [threading.current_thread()] * 2 == beats


def test_a_pause_that_waits_for_a_request_beats() -> None:
    """Before workers are forked, a long request has to end."""
    slow = Slow()
    ahead = Prefetcher(slow.begin, 1)
    ahead.while_waiting(slow.answer.set)
    ahead.expect(WANTED[:1])
    slow.asked.wait(10)
    with ahead.pause():
        assert slow.answer.is_set()
