"""The rows of the worst problems of each policy, namespace and owner, for the pages about these."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter
from typing import Final, Literal, TypeAlias

from scanner.report.group_files import GroupReader, GroupWriter, file_name

MOST: Final = 10
"""The number of rows that a page shows before it leads to the list of findings."""
_UP: Final = ('href="', 'href="../')
Subject: TypeAlias = Literal["policy", "namespace", "owner"]


class WorstRows:
    """Keeps the rows of the worst problems of each subject; memory grows with the number of subjects alone."""

    def __init__(self) -> None:
        self._kept: defaultdict[str, list[tuple[tuple[int, ...], str]]] = defaultdict(list)

    def add(self, subject: Subject, name: str, order: tuple[int, ...], row: str) -> None:
        """Keep a row, if fewer than `MOST` rows of the subject have a lower order."""
        rows = self._kept[_group(subject, name)]
        if len(rows) < MOST or order < rows[-1][0]:
            insort(rows, (order, row), key=lambda kept: kept[0])
            del rows[MOST:]

    def write(self, spill: GroupWriter) -> None:
        """Write what was kept."""
        for group, rows in self._kept.items():
            for order, row in rows:
                spill.add(group, f"{' '.join(map(str, order))}\t{row}")


def worst_rows(spilled: GroupReader, subject: Subject, *names: str) -> str:
    """The rows of the worst problems of some policies, namespaces or owners together, as HTML for a page in a folder."""
    lines = (line.partition("\t") for name in sorted(names) for line in spilled.rows(_group(subject, name)))
    rows = sorted(((_order(order), row) for order, _, row in lines), key=itemgetter(0))
    return in_folder(row for _, row in rows[:MOST])


def in_folder(rows: Iterable[str]) -> str:
    """Rows of the list as HTML for a page in a folder."""
    return "\n".join(row.replace(*_UP) for row in rows)


def _order(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _group(subject: Subject, name: str) -> str:
    return f"worst {subject} {file_name(name)}"
