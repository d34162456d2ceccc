"""Values that are remembered for some seconds, and no longer."""

from __future__ import annotations

import gc
import time
import weakref

from scanner.web.recent import Recent


class Value:
    """A value that can be referred to weakly."""


def test_a_recent_value_is_read_once() -> None:
    """The second question within the time has the first answer."""
    recent: Recent[Value] = Recent(60)

    first = recent.value("key", Value)

    assert recent.value("key", Value) is first


def test_an_older_value_is_read_again() -> None:
    """After the time the value may be another one."""
    recent: Recent[Value] = Recent(0)

    first = recent.value("key", Value)

    assert recent.value("key", Value) is not first


def test_an_older_value_leaves_memory_with_the_next_one() -> None:
    """The value of a key that is not asked for again leaves memory."""
    recent: Recent[Value] = Recent(0.01)
    first = weakref.ref(recent.value("first", Value))
    time.sleep(0.02)

    recent.value("second", Value)

    gc.collect()
    assert first() is None


def test_there_are_never_too_many_values() -> None:
    """A thousand different questions within the time are the most whose answers stay."""
    recent: Recent[Value] = Recent(3600)

    known = [weakref.ref(recent.value(number, Value)) for number in range(1_500)]

    gc.collect()
    alive = [number for number, value in enumerate(known) if value() is not None]
    assert alive == list(range(500, 1_500))
