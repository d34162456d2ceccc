"""Progress kind by kind, as plain lines or as one live line on a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from rich.cells import cell_len

from scanner.cli.terminal.progress import Progress
from scanner.model.scans.scan import Coverage, CoverageState


class Terminal(io.StringIO):
    """A stream that reports that it is a terminal."""

    def isatty(self) -> bool:
        return True


class ClosedStream(io.StringIO):
    """A stream whose reader has closed it."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = 0

    def write(self, text: str) -> int:
        self.attempts += 1
        raise BrokenPipeError


def coverage_of(kind: str, objects: int, *, pages: int = 1) -> Coverage:
    """The coverage of a kind after some pages."""
    return Coverage("v1", kind, CoverageState.LISTED, objects=objects, evaluated=objects, pages=pages, bytes=10)


def clock() -> Iterator[float]:
    """A clock that advances by a second at every call."""
    now = 0.0
    while True:
        yield now
        now += 1.0


def test_each_kind_has_a_line_when_it_is_done() -> None:
    """Without a terminal, the line has the counts of the whole list."""
    stream = io.StringIO()

    with Progress(stream=stream) as progress:
        for coverage in (coverage_of("Pod", 500), coverage_of("Pod", 700, pages=2), coverage_of("Service", 3)):
            progress(coverage)

    assert "listed v1 Pod: 700 objects, 700 evaluated\nlisted v1 Service: 3 objects, 3 evaluated\n" == stream.getvalue()


def test_a_terminal_shows_one_line_with_the_rate() -> None:
    """The line is drawn over itself, has the rate, and is erased at the end."""
    stream, ticks = Terminal(), clock()

    with Progress(stream=stream, environ={}, clock=lambda: next(ticks)) as progress:
        progress(coverage_of("Pod", 500))
        progress(coverage_of("Pod", 1500, pages=2))

    lines = stream.getvalue().split("\r\x1b[K")
    assert [
        "v1 Pod: 500 objects, 500 evaluated  500 objects/s",
        "v1 Pod: 1,500 objects, 1,500 evaluated  750 objects/s",
        "",
    ] == lines


def test_a_plain_line_erases_the_live_line() -> None:
    """Messages during the scan do not mix with the live line."""
    stream = Terminal()

    with Progress(stream=stream, environ={}) as progress:
        progress(coverage_of("Pod", 1))
        progress.print_line("done")

    assert "v1 Pod: 1 object, 1 evaluated" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[Kdone\n")


def test_the_live_line_is_erased_at_the_end_of_the_lists() -> None:
    """A report that is printed next begins on an empty line."""
    stream = Terminal()
    progress = Progress(stream=stream, environ={})
    progress(coverage_of("Pod", 1))

    progress.finish()

    assert stream.getvalue().endswith("\r\x1b[K")


def test_the_live_line_has_the_time_that_is_left() -> None:
    """The server's counts say how many objects are to come."""
    stream, ticks = Terminal(), iter([0.0, 10.0, 10.0, 10.0])
    progress = Progress(stream=stream, environ={}, clock=lambda: next(ticks))
    progress.expect(3000)

    progress(coverage_of("Pod", 1000))

    assert stream.getvalue().endswith("100 objects/s  about 20 s left")


def test_wide_characters_have_two_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """The live line never wraps."""
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()

    Progress(stream=stream, environ={})(coverage_of("容器" * 20, 1))

    assert cell_len(stream.getvalue().removeprefix("\r\x1b[K")) <= 29


def test_a_dumb_terminal_gets_plain_lines() -> None:
    """No line is drawn over where lines cannot be erased."""
    stream = Terminal()

    with Progress(stream=stream, environ={"TERM": "dumb"}) as progress:
        progress(coverage_of("Pod", 1))

    assert "listed v1 Pod: 1 object, 1 evaluated\n" == stream.getvalue()


def test_verbose_prints_pages() -> None:
    """Each page is a line, and the line of the kind follows."""
    stream, ticks = io.StringIO(), clock()

    with Progress(verbose=True, stream=stream, clock=lambda: next(ticks)) as progress:
        progress(coverage_of("Pod", 1))

    first, second = stream.getvalue().splitlines()
    assert "page 1 of v1 Pod: 1 object, 1 evaluated, 10 bytes so far, 1 objects/s" == first
    assert second.startswith("listed v1 Pod")


def test_quiet_is_silent() -> None:
    """Nothing is printed on any stream and with any other flag."""
    stream = Terminal()

    with Progress(quiet=True, verbose=True, stream=stream, environ={}) as progress:
        progress(coverage_of("Pod", 1))
        progress.print_line("something")

    assert "" == stream.getvalue()


def test_a_scan_continues_if_progress_cannot_be_written() -> None:
    """A closed standard error raises no exception."""
    stream = ClosedStream()
    with Progress(stream=stream) as progress:
        progress.print_line("something")
        progress(coverage_of("Pod", 1))

    assert 1 == stream.attempts
