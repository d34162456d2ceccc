"""The definition of an open problem in SQL: which findings of a scan count, and one row for each problem.

Every number of open problems comes from here. `posture.open_problems` counts the findings of a stream by the same rule; tests compare
both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, case, func, select

from scanner.store.engine import listed
from scanner.store.findings import PROBLEM, in_problem_at
from scanner.store.problem_clocks import FIRST, OPENED
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import FINDINGS, VERDICTS


class Place(NamedTuple):
    """A scan in the history of a cluster; `unchecked` are the rows that the scan left open without checking them."""

    cluster: int
    revision: int
    unchecked: RowIdSet


ACTIONS: Final = "Audit", "Warn", "Deny"
"""From the mildest to the strictest."""
NO_ROWS: Final[frozenset[int]] = frozenset()
NUMBER: Final = PROBLEM.label("problem")
REFUSED: Final = func.max(case((VERDICTS.c.denies, 1), else_=0)).label("refused")
"""1 if admission would refuse an object of the problem."""
FIRST_SEEN: Final = func.min(FIRST).label("first")
"""The revision that saw the problem first."""
OPENED_AT: Final = func.min(OPENED).label("opened")
"""The revision of the beginning of its latest episode."""


def open_problems(
    connection: Connection, place: Place, waived: frozenset[int] = NO_ROWS, *columns: ColumnElement[Any]
) -> Select[Any]:
    """The open problems of a scan without its waived rows: one row for each, with its number as `problem` and further aggregates."""
    return counted_findings(connection, place, waived, NUMBER, *columns).group_by(PROBLEM)


def counted_findings(
    connection: Connection, place: Place, waived: frozenset[int], *columns: ColumnElement[Any]
) -> Select[Any]:
    """The findings that make problems open: previewed, outdated, excepted, unchecked and waived ones do not."""
    return (
        select(*columns)
        .join_from(FINDINGS, VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict)
        .where(in_problem_at(place.cluster, place.revision), VERDICTS.c.excepted_by == "")
        .where(*without(connection, place.unchecked), *without(connection, RowIdSet(waived)))
    )


def is_new(problems: Any, revision: int) -> ColumnElement[bool]:
    """The condition that a problem, a row with `first` and `opened`, began with the scan of a revision."""
    begun: ColumnElement[bool] = (problems.opened == revision) & (problems.first == revision)
    return begun


def is_reopened(problems: Any, revision: int) -> ColumnElement[bool]:
    """The condition that a problem was seen before, and is open again since the scan of a revision."""
    begun: ColumnElement[bool] = (problems.opened == revision) & (problems.first < revision)
    return begun


def number_of(condition: ColumnElement[bool]) -> ColumnElement[int]:
    """The number of rows for which a condition holds."""
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def strictness(actions: ColumnElement[str]) -> ColumnElement[int]:
    """The place of the strictest action of a verdict in `ACTIONS`, from 1 on; 0 if there is none."""
    # Views have this condition, so it has no pattern: `%` means something else to some drivers.
    ranks = [(func.replace(actions, action, "") != actions, place) for place, action in enumerate(ACTIONS, 1)]
    return case(*reversed(ranks), else_=0)


def without(connection: Connection, rows: RowIdSet) -> Iterator[ColumnElement[bool]]:
    """The condition that a row is none of these."""
    if not rows.count:
        return
    yield FINDINGS.c.id.not_in(listed(connection, rows))
