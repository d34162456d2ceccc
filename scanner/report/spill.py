"""Rows put aside on disk until their page is written.

Findings come ordered by policy; the pages of namespaces need them ordered by namespace. What such a page says about a
finding is kept as one line of JSON in a file for each group, so that memory holds a few megabytes however many
findings there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

_FULL = 4_000_000


class Spill:
    """Lists of rows by group, kept in `folder`. A row is a tuple of JSON values; rows of a group come back in the order they went in."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._waiting: defaultdict[str, list[bytes]] = defaultdict(list)
        self._files: dict[str, Path] = {}
        self._size = 0

    def add(self, group: str, row: tuple[Any, ...]) -> None:
        """Put a row aside."""
        line = orjson.dumps(tuple(row), option=orjson.OPT_APPEND_NEWLINE)
        self._waiting[group].append(line)
        self._size += len(line)
        if self._size > _FULL:
            self._flush()

    def rows(self, group: str) -> Iterator[list[Any]]:
        """Read the rows of a group."""
        self._flush()
        if group not in self._files:
            return
        with self._files[group].open("rb") as lines:
            for line in lines:
                yield orjson.loads(line)

    def _flush(self) -> None:
        for group, lines in self._waiting.items():
            path = self._files.setdefault(group, self._folder / str(len(self._files)))
            with path.open("ab") as file:
                file.writelines(lines)
        self._waiting.clear()
        self._size = 0
