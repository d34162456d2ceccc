"""A few pages are made at a time; one that waits lets others be made."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from threading import Barrier, BrokenBarrierError, Event
from typing import BinaryIO

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from scanner.web.pages.exports import send_download
from scanner.web.views.turns import TURNS, give_up, take_turns
from tests.web.access.apart import run_apart

REQUEST = Request(
    {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b"", "server": ("localhost", 80)}
)
SHORT = 0.3
LONG = 20.0


def together(number: int, before: Callable[[], None], seconds: float) -> int:
    """How many of some pages wait for each other in vain: all must be made at the same time."""
    barrier = Barrier(number)

    def page(_: Request) -> Response:
        before()
        barrier.wait(seconds)
        return Response()

    with ThreadPoolExecutor(number) as pool:
        asked = [pool.submit(take_turns(page), REQUEST) for _ in range(number)]
    return sum(isinstance(each.exception(), BrokenBarrierError) for each in asked)


def test_a_few_pages_are_made_at_a_time() -> None:
    """One more waits for the end of another one."""
    assert 0 == together(TURNS, lambda: None, LONG)
    assert together(TURNS + 1, lambda: None, SHORT)


def test_a_page_that_waits_gives_its_turn_up() -> None:
    """Once: a second time gives no other turn away."""

    def wait() -> None:
        give_up()
        give_up()

    assert 0 == together(3 * TURNS, wait, LONG)
    assert together(TURNS + 1, lambda: None, SHORT)


def test_an_export_gives_its_turn_up() -> None:
    """It can take long, and would stop all pages with another one."""
    barrier = Barrier(TURNS + 1)

    def page(request: Request) -> Response:
        def write(_: BinaryIO) -> None:
            barrier.wait(LONG)

        if request.url.path != "/export":
            write(BytesIO())
            return Response()
        return send_download(write, "text/plain", "export.txt", head=False)

    export = Request({**REQUEST.scope, "path": "/export"})
    with ThreadPoolExecutor(TURNS + 1) as pool:
        made = [pool.submit(take_turns(page), each) for each in (export, *[REQUEST] * TURNS)]
    first, *others = (each.result() for each in made)
    assert [200] * TURNS == [each.status_code for each in others]
    assert isinstance(first, StreamingResponse)
    run_apart(_received(first))


async def _received(answer: StreamingResponse) -> None:
    """Receive the whole answer, after which its file is closed."""
    async for _ in answer.body_iterator:
        pass


def test_pages_that_take_long_do_not_stop_others() -> None:
    """Such as those whose queries the database does not answer."""
    done = Event()

    def long(_: Request) -> Response:
        done.wait(LONG)
        return Response()

    with ThreadPoolExecutor(TURNS + 1) as pool:
        for _ in range(TURNS):
            pool.submit(take_turns(long), REQUEST)
        try:
            other = pool.submit(take_turns(lambda _: Response()), REQUEST)
            assert 200 == other.result(LONG / 2).status_code
        finally:
            done.set()
    assert together(TURNS + 1, lambda: None, SHORT)


def test_an_error_gives_the_turn_back() -> None:
    """Pages that fail do not stop the server."""

    def fails(_: Request) -> Response:
        raise ValueError("broken")

    for _ in range(2 * TURNS):
        with pytest.raises(ValueError, match="broken"):
            take_turns(fails)(REQUEST)
    assert 0 == together(TURNS, lambda: None, LONG)


def test_a_thread_without_a_turn_has_none_to_give() -> None:
    """Such as one that counts in the background."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(give_up).result()
    assert together(TURNS + 1, lambda: None, SHORT)
