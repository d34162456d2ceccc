"""Counts the problems of a scan and finds the worst of them, in the database: see `posture.worst_problems`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, case, func, literal, select, union_all

from scanner.model.policy import PolicyKey
from scanner.model.problem_totals import ProblemTotals
from scanner.model.scan import ProblemFinding
from scanner.posture.severity import DEFAULT_SEVERITY
from scanner.store.engine import listed
from scanner.store.findings import PROBLEM, by_problem, ended_in, in_problem_at
from scanner.store.open_problems import (
    FIRST_SEEN,
    NUMBER,
    OPENED_AT,
    REFUSED,
    Place,
    is_new,
    is_reopened,
    number_of,
    open_problems,
)
from scanner.store.tables import CHECKS, FINDINGS, SCANS, VERDICTS

_TOTALS: Final = 0
_WORST: Final = 1


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
    rank = func.min(_rank(connection, ranks)).label("rank")
    own = open_problems(connection, place, waived, REFUSED, FIRST_SEEN, OPENED_AT, rank).cte("own")
    totals = select(
        literal(_TOTALS),
        func.count(),
        number_of(own.c.refused == 1),
        number_of(is_new(own.c, place.revision)),
        number_of(is_reopened(own.c, place.revision)),
    ).select_from(own)
    # A clock may have been set back between two scans: the older problem is that with the earlier date.
    opening = and_(SCANS.c.cluster == place.cluster, SCANS.c.revision == own.c.opened)
    order = own.c.refused.desc(), own.c.rank, SCANS.c.finished_at, own.c.problem
    worst = select(own.c.problem).join(SCANS, opening).order_by(*order).limit(most).subquery()
    nothing = (literal(0) for _ in range(3))
    return union_all(totals, select(literal(_WORST), worst.c.problem, *nothing))


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
        select(NUMBER, func.min(case((FINDINGS.c.resolution == "fixed", 1), else_=0)).label("fixed"))
        .join(VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict)
        .where(ended_in(place.cluster, place.revision), VERDICTS.c.excepted_by == "")
        .group_by(PROBLEM)
    ).subquery()
    still_open = select(PROBLEM).where(in_problem_at(place.cluster, place.revision))
    wanted = select(func.count(), number_of(ended.c.fixed == 1)).where(ended.c.problem.not_in(still_open))
    resolved, fixed = connection.execute(wanted).one()
    return resolved, fixed


def _findings(connection: Connection, place: Place, problems: list[int]) -> Iterator[ProblemFinding]:
    if not problems:
        return
    chosen = PROBLEM.in_(listed(connection, problems))
    yield from by_problem(connection, place.cluster, place.revision, place.unchecked, chosen)
