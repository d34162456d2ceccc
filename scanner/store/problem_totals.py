"""Counts the problems of a scan and finds the worst of them, in the database: see `posture.worst_problems`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, literal, select, union_all

from scanner.model.policy import PolicyKey
from scanner.model.problem_totals import ProblemTotals
from scanner.model.scan import ProblemFinding
from scanner.posture.severity import DEFAULT_SEVERITY
from scanner.store.engine import listed
from scanner.store.findings import by_problem, ended_in, seen_in
from scanner.store.problem_counts import PROBLEM, without
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import ALONE, CHECKS, FINDINGS, SCANS, VERDICTS

_TOTALS: Final = 0
_WORST: Final = 1


class Place(NamedTuple):
    """A scan in the history of a cluster; `unchecked` are the rows that the scan left open without checking them."""

    cluster: int
    revision: int
    unchecked: RowIdSet


def problem_totals(
    connection: Connection, place: Place, ranks: Mapping[PolicyKey, int], waived: frozenset[int], most: int
) -> tuple[ProblemTotals, tuple[ProblemFinding, ...]]:
    """The numbers of the problems of a scan without its waived rows, and the findings of its worst problems.

    `ranks` has the rank of each policy's severity, 0 for the worst. The findings of a problem follow each other.
    """
    totals, worst = ProblemTotals(), []
    # One statement, so that the rows are grouped once.
    for kind, number, *rest in connection.execute(_statement(connection, place, ranks, waived, most)):
        if kind == _TOTALS:
            totals = ProblemTotals(number, *rest)
        else:
            worst.append(number)
    resolved, fixed = _resolved(connection, place)
    found = tuple(_findings(connection, place, worst))
    return ProblemTotals(totals.open, totals.refused, totals.new, totals.reopened, resolved, fixed), found


def _statement(
    connection: Connection, place: Place, ranks: Mapping[PolicyKey, int], waived: frozenset[int], most: int
) -> Any:
    own = _open(connection, place, ranks, waived).cte("own")
    begun = own.c.opened == place.revision
    first = own.c.first == place.revision
    totals = select(
        literal(_TOTALS),
        func.count(),
        _sum(own.c.refused == 1),
        _sum(and_(begun, first)),
        _sum(and_(begun, own.c.first < place.revision)),
    ).select_from(own)
    # A clock may have been set back between two scans: the older problem is that with the earlier date.
    opening = and_(SCANS.c.cluster == place.cluster, SCANS.c.revision == own.c.opened)
    order = own.c.refused.desc(), own.c.rank, SCANS.c.finished_at, own.c.problem
    worst = select(own.c.problem).join(SCANS, opening).order_by(*order).limit(most).subquery()
    nothing = (literal(0) for _ in range(3))
    return union_all(totals, select(literal(_WORST), worst.c.problem, *nothing))


def _sum(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _open(connection: Connection, place: Place, ranks: Mapping[PolicyKey, int], waived: frozenset[int]) -> Select[Any]:
    """The problems that the scan saw: one row for each. The clocks of a row of an older version are its own."""
    clocks = FINDINGS.c
    return (
        select(
            PROBLEM.label("problem"),
            func.max(case((VERDICTS.c.denies, 1), else_=0)).label("refused"),
            func.min(func.coalesce(clocks.problem_first, clocks.first)).label("first"),
            func.min(func.coalesce(clocks.problem_opened, clocks.opened, clocks.first)).label("opened"),
            func.min(_rank(connection, ranks)).label("rank"),
        )
        .join(VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict)
        .where(seen_in(place.cluster, place.revision), FINDINGS.c.event.not_in(ALONE), VERDICTS.c.excepted_by == "")
        .where(*without(connection, place.unchecked), *without(connection, RowIdSet(waived)))
        .group_by(PROBLEM)
    )


def _rank(connection: Connection, ranks: Mapping[PolicyKey, int]) -> ColumnElement[int]:
    """The rank of a row's policy. Most policies have that of the default severity: only the checks of others are named."""
    usual = DEFAULT_SEVERITY.rank
    if all(rank == usual for rank in ranks.values()):
        return literal(usual)
    named: defaultdict[int, list[int]] = defaultdict(list)
    for number, *policy in connection.execute(select(CHECKS.c.id, CHECKS.c.language, CHECKS.c.policy)):
        named[ranks.get(tuple(policy), usual)].append(number)
    named.pop(usual, None)
    cases = [(FINDINGS.c.check.in_(listed(connection, checks)), rank) for rank, checks in sorted(named.items())]
    return case(*cases, else_=usual) if cases else literal(usual)


def _resolved(connection: Connection, place: Place) -> tuple[int, int]:
    """The numbers of problems whose last finding the scan resolved, and of those that were fixed."""
    ended = (
        select(PROBLEM.label("problem"), func.min(case((FINDINGS.c.resolution == "fixed", 1), else_=0)).label("fixed"))
        .join(VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict)
        .where(ended_in(place.cluster, place.revision), VERDICTS.c.excepted_by == "")
        .group_by(PROBLEM)
    ).subquery()
    still_open = select(PROBLEM).where(seen_in(place.cluster, place.revision), FINDINGS.c.event.not_in(ALONE))
    wanted = select(func.count(), _sum(ended.c.fixed == 1)).where(ended.c.problem.not_in(still_open))
    resolved, fixed = connection.execute(wanted).one()
    return resolved, fixed


def _findings(connection: Connection, place: Place, problems: list[int]) -> Iterator[ProblemFinding]:
    if not problems:
        return
    chosen = PROBLEM.in_(listed(connection, problems))
    yield from by_problem(connection, place.cluster, place.revision, place.unchecked, chosen)
