"""The latest results of filters of one scan in memory: the pages of a list follow each other, and each needs the whole result."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, NamedTuple

from scanner.web.problem_list import ListedProblems


class Chosen(NamedTuple):
    """The problems that a filter chooses, and the number of their findings that it chooses."""

    problems: ListedProblems
    findings: int


class KeptChoices:
    """The latest results by filter. The result of a finished scan never changes."""

    def __init__(self, most: int) -> None:
        """Keep results of so many problems together: the place of each is in memory."""
        self._most: Final = most
        self._kept: Final[OrderedDict[Hashable, Chosen]] = OrderedDict()
        self._size = 0
        self._lock: Final = Lock()

    def get(self, key: Hashable, choose: Callable[[], Chosen]) -> Chosen:
        """The result with a key, chosen if it is not kept."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        chosen = choose()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = chosen
                self._size += len(chosen.problems) + 1
            while self._size > self._most:
                _, oldest = self._kept.popitem(last=False)
                self._size -= len(oldest.problems) + 1
        return chosen
