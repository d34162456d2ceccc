"""Lines of a scan, numbered in their order; a scan that has those of an earlier one refers to them.

Most scans use the policies of the one before, and find the same wrong with them: that is written when it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, case, select

from scanner.store.tables import SCANS

Line = Mapping[str, str | int | bool | float]


class Lines(NamedTuple):
    """Whose lines a scan has: numbers of scans, by what the lines are about."""

    policies: int
    bindings: int
    health: int
    outside: int


NOBODYS = Lines(0, 0, 0, 0)
_WHOSE = tuple(SCANS.c[f"{name}_of"] for name in Lines._fields)


def lines_of(connection: Connection, scan: int) -> Lines:
    """Whose lines a scan has."""
    row = connection.execute(select(*_WHOSE).where(SCANS.c.number == scan)).one_or_none()
    return Lines(*(number or scan for number in row or (0,) * len(_WHOSE)))


def policies_of() -> ColumnElement[int]:
    """The scan whose policies those of a row of `scans` are."""
    return case((SCANS.c.policies_of == 0, SCANS.c.number), else_=SCANS.c.policies_of)


def insert_lines(connection: Connection, table: Table, scan: int, lines: Iterable[Line]) -> None:
    """Write lines of a scan."""
    rows = [{"scan": scan, "position": position, **line} for position, line in enumerate(lines)]
    if rows:
        connection.execute(table.insert(), rows)


def share_lines(connection: Connection, table: Table, scan: int, lines: Iterable[Line], earlier: int) -> int:
    """Write lines unless an earlier scan has the same; its number then, and 0 otherwise."""
    wanted = list(lines)
    columns = [column.name for column in _content(table)]
    if earlier and [tuple(line[name] for name in columns) for line in wanted] == list(
        read_lines(connection, table, earlier)
    ):
        return earlier
    insert_lines(connection, table, scan, wanted)
    return 0


def read_lines(connection: Connection, table: Table, scan: int) -> Iterator[tuple[Any, ...]]:
    """What the lines of a scan say, in their order."""
    for row in connection.execute(select(*_content(table)).where(table.c.scan == scan).order_by(table.c.position)):
        yield tuple(row)


def _content(table: Table) -> list[ColumnElement[Any]]:
    return [column for column in table.columns if column.name not in {"scan", "position"}]
