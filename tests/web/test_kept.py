"""Values that are kept: for some seconds, or while there is room."""

from __future__ import annotations

import gc
import time
import weakref
from functools import partial

import pytest
from cachetools import LRUCache

from scanner.web.views.kept import KeptValues, keep_recent


class Value:
    """A value that can be referred to weakly."""


def test_a_recent_value_is_read_once() -> None:
    """The second question within the time has the first answer."""
    kept: KeptValues[Value] = keep_recent(60)

    first = kept.value("key", Value)

    assert kept.value("key", Value) is first


def test_an_older_value_is_read_again() -> None:
    """After the time the value may be another one."""
    kept: KeptValues[Value] = keep_recent(0)

    first = kept.value("key", Value)

    assert kept.value("key", Value) is not first


def test_an_older_value_leaves_memory_with_the_next_one() -> None:
    """The value of a key that is not asked for again leaves memory."""
    kept: KeptValues[Value] = keep_recent(0.01)
    first = weakref.ref(kept.value("first", Value))
    time.sleep(0.02)

    kept.value("second", Value)

    gc.collect()
    assert first() is None


def test_there_are_never_too_many_values() -> None:
    """A thousand different questions within the time are the most whose answers stay."""
    kept: KeptValues[Value] = keep_recent(3600)

    known = [weakref.ref(kept.value(number, Value)) for number in range(1_500)]

    gc.collect()
    alive = [number for number, value in enumerate(known) if value() is not None]
    assert alive == list(range(500, 1_500))


def test_a_value_that_is_larger_than_the_map_is_made_again() -> None:
    """It is answered all the same, and drops no other value."""
    kept: KeptValues[str] = KeptValues(LRUCache(3, getsizeof=len))
    made: list[str] = []

    def make(text: str) -> str:
        made.append(text)
        return text

    texts = [kept.value(text, partial(make, text)) for text in ("abc", "long", "abc", "long")]

    assert ["abc", "long", "abc", "long"] == texts
    assert ["abc", "long", "long"] == made


def test_an_error_is_not_kept() -> None:
    """A database that was away may be back."""
    kept: KeptValues[int] = keep_recent(60)

    def fail() -> int:
        raise OSError("away")

    with pytest.raises(OSError, match="away"):
        kept.value("key", fail)
    assert 1 == kept.value("key", lambda: 1)
