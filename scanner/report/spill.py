"""Rows that wait on disk until their page is written.

The store yields findings by policy; the pages of namespaces need them by namespace. Each group of rows is a file with a row
on each line, so that memory holds a few megabytes for any number of findings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_FULL = 4_000_000


class Spill:
    """Lists of rows by group in `folder`, which is created. A group keeps the order of its rows."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._unwritten: defaultdict[str, list[str]] = defaultdict(list)
        self._files: dict[str, Path] = {}
        self._size = 0

    def add(self, group: str, row: str) -> None:
        """Add a row without line ends to a group."""
        self._unwritten[group].append(row)
        self._size += len(row)
        if self._size > _FULL:
            self._flush()

    def rows(self, group: str) -> Iterator[str]:
        """The rows of a group, in the order in which they were added; none for an unknown group."""
        self._flush()
        if group not in self._files:
            return
        with self._files[group].open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                yield line.removesuffix("\n")

    def _flush(self) -> None:
        for group, rows in self._unwritten.items():
            path = self._files.setdefault(group, self._folder / str(len(self._files)))
            with path.open("a", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{row}\n" for row in rows)
        self._unwritten.clear()
        self._size = 0
