"""Rows that wait on disk until their page is written, from several processes.

The store yields findings by policy; pages and formats need them by the id of the finding, the rank of the problem or the namespace.
Each group of rows is a file with a row on each line, so that memory holds a few megabytes for any number of findings. Rows
8 and `formats` of the benchmarks: with rows in memory, the HTML report of 100,000 findings has a peak of 712 MiB instead of 172.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from shutil import rmtree

_FULL = 3_000_000


class GroupWriter:
    """Lists of rows by group, written into `folder`, which is created anew. A group keeps the order of its rows.

    The name of a group is the name of its file: `file_name` makes one of any text.
    """

    def __init__(self, folder: Path) -> None:
        rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._folder = folder
        self._unwritten: defaultdict[str, list[str]] = defaultdict(list)
        self._size = 0

    def add(self, group: str, row: str) -> None:
        """Add a row without line ends to a group."""
        self._unwritten[group].append(row)
        self._size += len(row)
        if self._size > _FULL:
            self.flush()

    def flush(self) -> None:
        """Write the rows that memory still holds."""
        for group, rows in self._unwritten.items():
            with (self._folder / group).open("a", encoding="utf-8", newline="\n") as file:
                file.write("\n".join(rows) + "\n")
        self._unwritten.clear()
        self._size = 0


class GroupReader:
    """The rows of several writers as one: the rows of a group are those of the first folder, then those of the next."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def groups(self, beginning: str) -> list[str]:
        """The names of groups that begin with a text, in order."""
        names = {path.name for folder in self._folders for path in folder.iterdir()}
        return sorted(name for name in names if name.startswith(beginning))

    def rows(self, group: str) -> Iterator[str]:
        """The rows of a group, in the order in which they were added; none for an unknown group."""
        for folder in self._folders:
            path = folder / group
            if path.exists():
                with path.open(encoding="utf-8", newline="\n") as lines:
                    for line in lines:
                        yield line.removesuffix("\n")


def file_name(text: str) -> str:
    """The name of a group for a text that may have any characters and any length."""
    return sha256(text.encode()).hexdigest()[:32]
