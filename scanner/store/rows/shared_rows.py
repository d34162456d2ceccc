"""Ordered rows of a scan, such as its policies; a scan with the same rows as an earlier scan refers to these.

Most scans have the policies and the policy health of an earlier scan: they are written only when they change. Equal rows are found
by their closing sum, so scans of several scopes can follow each other in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, Table, case, select

from scanner.store.rows.closing_sums import Sum, add_up_rows, sum_listed, sum_rows
from scanner.store.rows.logical_rows import PARTS_BY_TABLE, Encoder, LogicalPart
from scanner.store.rows.tables import CLOSING_SUMS, SCANS

Row = Mapping[str, str | int | bool | float | bytes | None]


class RowOwners(NamedTuple):
    """The scans that own the shared rows of a scan, by number."""

    policies: int
    bindings: int
    health: int
    outside: int
    rules: int
    uncovered: int


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
    numbered = _number_rows(scan, rows)
    if numbered:
        connection.execute(table.insert(), numbered)
        sum_rows(connection, PARTS_BY_TABLE[table.name], scan, _list_raw_rows(table, numbered))


def share_rows(connection: Connection, table: Table, scan: int, rows: Iterable[Row]) -> int:
    """Insert rows unless a merged scan of the cluster has the same; returns its number then, and 0 otherwise."""
    numbered = _number_rows(scan, rows)
    if not numbered:
        return 0
    raw = _list_raw_rows(table, numbered)
    [part] = PARTS_BY_TABLE[table.name]
    same = add_up_rows(Encoder(connection), part, raw)
    owner: int | None = connection.execute(_select_owner(part, scan, same)).scalar()
    if owner is not None and [row[1:] for row in raw] == list(_read_raw_rows(connection, table, owner)):
        return owner
    connection.execute(table.insert(), numbered)
    sum_listed(connection, part, scan, same)
    return 0


def _number_rows(scan: int, rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [{"scan": scan, "position": position, **row} for position, row in enumerate(rows)]


def _list_raw_rows(table: Table, numbered: Iterable[Row]) -> list[tuple[Any, ...]]:
    names = table.c.keys()
    return [tuple(row[name] for name in names) for row in numbered]


def _select_owner(part: LogicalPart, scan: int, same: Sum) -> Select[*tuple[Any, ...]]:
    """The newest merged scan of the cluster of a scan that has rows with a sum. A pruned scan may lose its rows."""
    this = SCANS.alias("this")
    wanted = select(SCANS.c.number).join(this, this.c.cluster == SCANS.c.cluster)
    wanted = wanted.join(CLOSING_SUMS, CLOSING_SUMS.c.scan == SCANS.c.number)
    of_part = CLOSING_SUMS.c.part == part.name, CLOSING_SUMS.c.sum == same.digest, CLOSING_SUMS.c.rows == same.rows
    wanted = wanted.where(this.c.number == scan, SCANS.c.revision.is_not(None), SCANS.c.pruned_at.is_(None), *of_part)
    return wanted.order_by(SCANS.c.revision.desc()).limit(1)


def read_rows(connection: Connection, table: Table, scan: int) -> Iterator[tuple[Any, ...]]:
    """The rows of a scan in their order, without the columns for scan and position."""
    columns = (column for column in table.columns if column.name not in {"scan", "position"})
    for row in connection.execute(select(*columns).where(table.c.scan == scan).order_by(table.c.position)):
        yield tuple(row)


def _read_raw_rows(connection: Connection, table: Table, scan: int) -> Iterator[tuple[Any, ...]]:
    """The rows of a scan in their order, without the scan: it is the first column of all these tables."""
    for row in connection.execute(select(*list(table.c)[1:]).where(table.c.scan == scan).order_by(table.c.position)):
        yield tuple(row)
