"""Ordered rows of a scan, such as its policies; a scan with the same rows as an earlier scan refers to these.

Most scans have the policies and the policy health of the previous scan: they are written only when they change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, case, select

from scanner.store.rows.closing_sums import sum_rows
from scanner.store.rows.logical_rows import PARTS_BY_TABLE
from scanner.store.rows.tables import SCANS

Row = Mapping[str, str | int | bool | float | bytes | None]


class RowOwners(NamedTuple):
    """The scans that own the shared rows of a scan, by number."""

    policies: int
    bindings: int
    health: int
    outside: int
    rules: int
    uncovered: int


NO_OWNERS = RowOwners(0, 0, 0, 0, 0, 0)
_OWNERS = tuple(SCANS.c[f"{name}_of"] for name in RowOwners._fields)


def read_owners(connection: Connection, scan: int) -> RowOwners:
    """The owners of the rows of a scan."""
    row = connection.execute(select(*_OWNERS).where(SCANS.c.number == scan)).one_or_none()
    return RowOwners(*(number or scan for number in row or (0,) * len(_OWNERS)))


def select_policy_owner() -> ColumnElement[int]:
    """The owner of the policies of a row of `scans`."""
    return case((SCANS.c.policies_of == 0, SCANS.c.number), else_=SCANS.c.policies_of)


def insert_rows_of_scan(connection: Connection, table: Table, scan: int, rows: Iterable[Row]) -> None:
    """Insert rows of a scan, and their sum."""
    numbered = [{"scan": scan, "position": position, **row} for position, row in enumerate(rows)]
    if numbered:
        connection.execute(table.insert(), numbered)
        names = table.c.keys()
        sum_rows(connection, PARTS_BY_TABLE[table.name], scan, [[row[name] for name in names] for row in numbered])


def share_rows(connection: Connection, table: Table, scan: int, rows: Iterable[Row], earlier: int) -> int:
    """Insert rows unless the scan `earlier` has the same; returns its number then, and 0 otherwise."""
    wanted = list(rows)
    columns = [column.name for column in _list_content_columns(table)]
    if earlier and [tuple(row[name] for name in columns) for row in wanted] == list(
        read_rows(connection, table, earlier)
    ):
        return earlier
    insert_rows_of_scan(connection, table, scan, wanted)
    return 0


def read_rows(connection: Connection, table: Table, scan: int) -> Iterator[tuple[Any, ...]]:
    """The rows of a scan in their order, without the columns for scan and position."""
    for row in connection.execute(
        select(*_list_content_columns(table)).where(table.c.scan == scan).order_by(table.c.position)
    ):
        yield tuple(row)


def _list_content_columns(table: Table) -> list[ColumnElement[Any]]:
    return [column for column in table.columns if column.name not in {"scan", "position"}]
