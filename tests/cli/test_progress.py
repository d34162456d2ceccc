"""Progress: kind by kind, as plain lines or as one line that lives on a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator

from scanner.cli.progress import Progress
from scanner.model.scan import Coverage, CoverageState


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    """A stream whose reader has gone."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = 0

    def write(self, text: str) -> int:
        self.attempts += 1
        raise BrokenPipeError


def seen(kind: str, objects: int, *, pages: int = 1) -> Coverage:
    """What is known of a kind after some pages."""
    return Coverage("v1", kind, CoverageState.LISTED, objects=objects, evaluated=objects, pages=pages, bytes=10)


def clock() -> Iterator[float]:
    """A clock that a second has passed on at every look."""
    now = 0.0
    while True:
        yield now
        now += 1.0


def test_kinds_are_told_when_they_are_done() -> None:
    """Without a terminal there is a line for each kind, with everything that was listed of it."""
    stream = io.StringIO()

    with Progress(stream=stream) as progress:
        for coverage in (seen("Pod", 500), seen("Pod", 700, pages=2), seen("Service", 3)):
            progress(coverage)

    assert "listed v1 Pod: 700 objects, 700 evaluated\nlisted v1 Service: 3 objects, 3 evaluated\n" == stream.getvalue()


def test_a_terminal_shows_one_line_with_the_rate() -> None:
    """The line is drawn over itself, says how fast it goes, and is wiped away at the end."""
    stream, ticks = Terminal(), clock()

    with Progress(stream=stream, environ={}, clock=lambda: next(ticks)) as progress:
        progress(seen("Pod", 500))
        progress(seen("Pod", 1500, pages=2))

    lines = stream.getvalue().split("\r\x1b[K")
    assert ["", "v1 Pod: 500 objects, 500 evaluated  500 objects/s"] == lines[:2]
    assert ["v1 Pod: 1,500 objects, 1,500 evaluated  750 objects/s", ""] == lines[2:]


def test_a_line_of_its_own_wipes_the_live_one() -> None:
    """What is said during the scan does not mix with what lives."""
    stream = Terminal()

    with Progress(stream=stream, environ={}) as progress:
        progress(seen("Pod", 1))
        progress.say("done")

    assert stream.getvalue().endswith("\r\x1b[Kdone\n\r\x1b[K")


def test_a_dumb_terminal_gets_plain_lines() -> None:
    """Where lines cannot be wiped, nothing is drawn over."""
    stream = Terminal()

    with Progress(stream=stream, environ={"TERM": "dumb"}) as progress:
        progress(seen("Pod", 1))

    assert "listed v1 Pod: 1 object, 1 evaluated\n" == stream.getvalue()


def test_verbose_tells_pages() -> None:
    """Each page is a line, and the kind's own line still follows."""
    stream, ticks = io.StringIO(), clock()

    with Progress(verbose=True, stream=stream, clock=lambda: next(ticks)) as progress:
        progress(seen("Pod", 1))

    first, second = stream.getvalue().splitlines()
    assert "page 1 of v1 Pod: 1 object, 1 evaluated, 10 bytes so far, 1 objects/s" == first
    assert second.startswith("listed v1 Pod")


def test_quiet_is_silent() -> None:
    """Nothing at all, on a terminal or not, whatever else is asked for."""
    stream = Terminal()

    with Progress(quiet=True, verbose=True, stream=stream, environ={}) as progress:
        progress(seen("Pod", 1))
        progress.say("something")

    assert "" == stream.getvalue()


def test_nobody_listens() -> None:
    """A scan goes on when standard error cannot be written."""
    stream = Gone()
    with Progress(stream=stream) as progress:
        progress.say("something")
        progress(seen("Pod", 1))

    assert 1 == stream.attempts
