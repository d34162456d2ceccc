"""Work in the background: once at a time, waited for with a limit, and its errors reach those who wait."""

from __future__ import annotations

from threading import Event, Thread

import pytest

from scanner.web.server.health import Background


def test_a_request_waits_for_the_end() -> None:
    """And each further one begins the work anew."""
    done: list[int] = []
    background = Background(lambda: done.append(1), "test")

    assert [True, True] == [background.run(5), background.run(5)]
    assert [1, 1] == done


def test_a_request_waits_for_a_limited_time() -> None:
    """The work goes on, and is not begun a second time."""
    go, begun = Event(), []

    def work() -> None:
        begun.append(1)
        go.wait(5)

    background = Background(work, "test")
    impatient = [background.run(0.01), background.run(0.01)]
    go.set()

    assert [False, False] == impatient
    assert background.run(5)
    assert 1 == len(begun)


def test_an_error_reaches_every_request_that_waits() -> None:
    """Also one that came later; the next request begins anew."""
    go, raised, waiting = Event(), [], []

    def work() -> None:
        waiting.append(1)
        go.wait(5)
        if len(waiting) == 1:
            raise TimeoutError("no answer")

    background = Background(work, "test")

    def wait() -> None:
        with pytest.raises(TimeoutError, match="no answer"):
            background.run(5)
        raised.append(1)

    threads = [Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert not background.run(0.05)
    go.set()
    for thread in threads:
        thread.join(5)

    assert [1, 1] == raised
    assert background.run(5)
