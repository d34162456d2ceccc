"""Reads the tallies of a scan: there are thousands, of few checks and kinds, each of which is read once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Table, select

from scanner.model.scan import OutcomeName, TallyKey
from scanner.store.columns import CheckColumns, KindColumns, columns_of
from scanner.store.engine import listed
from scanner.store.tables import CHECKS, KINDS, TALLIES

_RowT = TypeVar("_RowT", CheckColumns, KindColumns)


class _TallyColumns(NamedTuple):
    check: int
    kind: int
    namespace: str
    outcome: str
    requester: bool
    count: int  # type: ignore[assignment] # the column hides tuple.count


def read_tallies(connection: Connection, number: int) -> dict[TallyKey, int]:
    """The tallies of a scan by its number, in the order of checks and kinds."""
    wanted = select(*columns_of(TALLIES, _TallyColumns)).where(TALLIES.c.scan == number)
    rows = list(map(_TallyColumns._make, connection.execute(wanted)))
    checks = checks_of(connection, {row.check for row in rows})
    kinds = _by_id(connection, KINDS, KindColumns, {row.kind for row in rows})
    check_ranks, kind_ranks = _ranks(checks, _order_of_check), _ranks(kinds, _order_of_kind)
    rows.sort(key=lambda row: (check_ranks[row.check], kind_ranks[row.kind], row.namespace, row.outcome))
    outcomes = {name.value: name for name in OutcomeName}
    parts = {number: (*_invocation(check), check.check()) for number, check in checks.items()}
    return {
        TallyKey(
            *parts[row.check],
            kinds[row.kind].api_version,
            kinds[row.kind].kind,
            row.namespace,
            outcomes[row.outcome],
            bool(row.requester),
            checks[row.check].language,
        ): row.count
        for row in rows
    }


def checks_of(connection: Connection, ids: Collection[int]) -> Mapping[int, CheckColumns]:
    """Checks by id."""
    return _by_id(connection, CHECKS, CheckColumns, ids)


def _by_id(connection: Connection, table: Table, columns: type[_RowT], ids: Collection[int]) -> Mapping[int, _RowT]:
    """Rows of a table by id."""
    if not ids:
        return {}
    wanted = select(table.c.id, *columns_of(table, columns)).where(table.c.id.in_(listed(connection, sorted(ids))))
    return {number: columns(*own) for number, *own in connection.execute(wanted)}


def _invocation(check: CheckColumns) -> tuple[str, str, str, str]:
    return check.policy, check.binding, check.param_namespace, check.param_name


def _order_of_check(check: CheckColumns) -> tuple[str | int, ...]:
    """The order of checks in a report, as `findings.CHECK_ORDER` has it."""
    place = check.binding, check.param_namespace, check.param_name
    return check.policy, check.language, *place, check.kind, check.index, check.expression


def _order_of_kind(kind: KindColumns) -> tuple[str, str]:
    return kind.kind, kind.api_version


def _ranks(rows: Mapping[int, _RowT], order: Callable[[_RowT], Any]) -> dict[int, int]:
    """The place of each row in an order, by id."""
    return {number: rank for rank, number in enumerate(sorted(rows, key=lambda each: order(rows[each])))}
