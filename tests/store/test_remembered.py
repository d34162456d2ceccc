"""Rows that never change are read once while a reader is open."""

from __future__ import annotations

from collections.abc import Sequence

from scanner.model.population import Kept
from scanner.store.remembered import Remembered


class Reads:
    """Squares of numbers, and which of them were read."""

    def __init__(self) -> None:
        self.keys: list[int] = []

    def __call__(self, keys: Sequence[int]) -> dict[int, int]:
        """Read some squares; there are none of negative numbers."""
        self.keys += keys
        return {key: key * key for key in keys if key >= 0}


def test_a_value_is_read_once() -> None:
    """By kind and key."""
    memory, read = Remembered(), Reads()
    assert {1: 1, 2: 4} == memory.values("square", [1, 2], read)
    assert {2: 4, 3: 9} == memory.values("square", [2, 3], read)
    assert {3: 9} == memory.values("another", [3], read)
    assert [1, 2, 3, 3] == read.keys


def test_what_is_not_there_is_not_remembered() -> None:
    """A later scan may add it."""
    memory, read = Remembered(), Reads()
    for _ in range(2):
        assert {} == memory.values("square", [-1], read)
    assert [-1, -1] == read.keys


def test_memory_is_bounded() -> None:
    """Beyond the bound it begins anew; every answer is whole."""
    memory, read = Remembered(most=2_000), Reads()
    for start in range(0, 100, 10):
        wanted = list(range(start, start + 10))
        assert {key: key * key for key in wanted} == memory.values("square", wanted, read)
    assert {0: 0} == memory.values("square", [0], read)
    assert 0 == read.keys[-1]
    assert 101 == len(read.keys)


def test_texts_and_labels_count() -> None:
    """A few large values fill the memory as many small ones do."""
    large: dict[int, object] = {1: ("violated", "x" * 2_000), 2: Kept(annotations=(("note", "x" * 2_000),))}
    for key, value in large.items():
        memory, asked = Remembered(most=1_000), list[int]()

        def read(keys: Sequence[int], value: object = value, asked: list[int] = asked) -> dict[int, object]:
            asked.extend(keys)
            return dict.fromkeys(keys, value)

        for number in (key, key + 10, key):
            memory.values("large", [number], read)
        assert [key, key + 10, key] == asked
