"""The rows of the list of findings, on disk until their pages are written: their places in the list, and the workloads that rows share.

Memory holds the places alone. Row 8: of 100,000 findings they are 30 MiB.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, NamedTuple

import orjson

from scanner.model.policy import PolicyKey
from scanner.report.lists.problem_facts import FindingOrder, order_by_workload
from scanner.report.text.numbers import plural

_ROWS, _PLACES = "rows", "places"
_NUMBERS: Final = 2


class RowPlace(NamedTuple):
    """The facts of a problem that decide about the place of its row. `workload` is as `workload_order` makes it."""

    order: FindingOrder
    workload: str
    policy: PolicyKey
    problem: str

    @classmethod
    def of(cls, order: Sequence[int], workload: str, policy: Sequence[str], problem: str) -> RowPlace:
        """The place in the lists of a JSON document."""
        phase, refused, severity, action = order
        language, name = policy
        return cls((phase, bool(refused), severity, action), workload, (language, name), problem)

    def share_parts(self, known: dict[Any, Any]) -> RowPlace:
        """The same place with those parts that equal ones of `known`: many rows have them, and memory holds each once."""
        order, workload, policy = (known.setdefault(part, part) for part in self[:3])
        return RowPlace(order, workload, policy, self.problem)

    @property
    def within_workload(self) -> tuple[str, str, str]:
        """What decides between problems of one workload that are as bad."""
        language, name = self.policy
        return name, language, self.problem


class ListedRow(NamedTuple):
    """A row of the list as HTML."""

    place: RowPlace
    html: str


class RowWriter:
    """Writes rows into a folder, which is created anew."""

    def __init__(self, folder: Path) -> None:
        rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._rows = (folder / _ROWS).open("wb")
        self._places = (folder / _PLACES).open("wb")

    def add(self, place: RowPlace, html: str, data: str) -> None:
        """Add a row as HTML, and as data."""
        texts = html.encode(), data.encode()
        self._rows.writelines(texts)
        self._places.write(orjson.dumps((*place, *map(len, texts))) + b"\n")

    def close(self) -> None:
        """Write what memory still holds."""
        self._rows.close()
        self._places.close()


class RowReader:
    """The rows of several writers as one list, in its order."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._files: Final = [os.open(folder / _ROWS, os.O_RDONLY) for folder in folders]
        self._of_file, self._begins, self._lengths = array("b"), array("q"), array("l")
        self._places: Final[list[RowPlace]] = []
        for number, folder in enumerate(folders):
            self._read_places(number, folder / _PLACES)
        others = [(*place.within_workload, number) for number, place in enumerate(self._places)]
        self._order: Final = array(
            "l",
            order_by_workload(
                [place.order for place in self._places], [place.workload for place in self._places], others
            ),
        )

    def _read_places(self, number: int, path: Path) -> None:
        begin = 0
        known: dict[Any, Any] = {}
        with path.open("rb") as lines:
            for line in lines:
                *place, html, data = orjson.loads(line)
                self._places.append(RowPlace.of(*place).share_parts(known))
                self._of_file.append(number)
                self._begins.append(begin)
                self._lengths.extend((html, data))
                begin += html + data

    def html(self) -> Iterator[ListedRow]:
        """The rows as HTML."""
        for row in self._order:
            yield ListedRow(self._places[row], self._read(row, self._begins[row], self._lengths[_NUMBERS * row]))

    def data(self) -> Iterator[str]:
        """The rows as data."""
        for row in self._order:
            html, data = self._lengths[_NUMBERS * row : _NUMBERS * row + _NUMBERS]
            yield self._read(row, self._begins[row] + html, data)

    def _read(self, row: int, begin: int, length: int) -> str:
        return os.pread(self._files[self._of_file[row]], length, begin).decode()

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)


_ROW: Final = '<tr role="row">'
_SAME: Final = '<tr role="row" class="same">'
_PROBLEMS: Final = '<span class="of"></span>'
"""What a row has in place of the number of problems of its workload. Text cannot look like it: templates escape `<`."""


def mark_workloads(rows: Sequence[ListedRow]) -> Iterator[str]:
    """The HTML of rows that stand below each other: the first of a workload has the number of its problems, the others repeat its name quietly."""
    for _, members in groupby(rows, key=lambda row: row.place.workload):
        first, *others = members
        problems = len({(each.place.policy, each.place.problem) for each in (first, *others)})
        number = f'<span class="of quiet">{plural(problems, "problem")} here</span>' if problems > 1 else ""
        yield first.html.replace(_PROBLEMS, number, 1)
        yield from (each.html.replace(_ROW, _SAME, 1).replace(_PROBLEMS, "", 1) for each in others)
