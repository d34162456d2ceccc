"""Counts the open problems of a scan by policy, action and outcome, in the database: see `posture.problem_groups`."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, case, func, select

from scanner.model.problem_group import ProblemGroup
from scanner.store.findings import seen_in
from scanner.store.problem_counts import PROBLEM, without
from scanner.store.problem_totals import Place
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import ALONE, CHECKS, FINDINGS, VERDICTS

_ACTIONS: Final = ("", "Audit", "Warn", "Deny")
_OUTCOMES: Final = ("wouldChange", "errored", "violated")


def problem_groups(connection: Connection, place: Place, waived: frozenset[int]) -> tuple[ProblemGroup, ...]:
    """The groups of a scan without its waived rows, in ascending order."""
    own = _problems(connection, place, waived).subquery()
    group = CHECKS.c.language, CHECKS.c.policy, own.c.action, own.c.outcome
    new = (own.c.opened == place.revision) & (own.c.first == place.revision)
    numbers = func.count(), func.sum(own.c.refused), func.sum(case((new, 1), else_=0))
    wanted = select(*group, *numbers).join_from(own, CHECKS, CHECKS.c.id == own.c.check).group_by(*group)
    rows = connection.execute(wanted).all()
    return tuple(
        sorted(
            ProblemGroup(language, policy, _ACTIONS[action], _OUTCOMES[outcome], *map(int, sums))
            for language, policy, action, outcome, *sums in rows
        )
    )


def _problems(connection: Connection, place: Place, waived: frozenset[int]) -> Any:
    """One row for each problem, with ranks for its action and its outcome."""
    verdict, clocks = VERDICTS.c, FINDINGS.c
    actions = [
        (verdict.actions.contains(action), rank) for rank, action in reversed(list(enumerate(_ACTIONS))) if action
    ]
    return (
        select(
            PROBLEM.label("problem"),
            func.max(clocks.check).label("check"),
            func.max(case(*actions, else_=0)).label("action"),
            func.max(_rank(verdict.outcome)).label("outcome"),
            func.max(case((verdict.denies, 1), else_=0)).label("refused"),
            func.min(func.coalesce(clocks.problem_first, clocks.first)).label("first"),
            func.min(func.coalesce(clocks.problem_opened, clocks.opened, clocks.first)).label("opened"),
        )
        .join(VERDICTS, verdict.id == clocks.verdict)
        .where(seen_in(place.cluster, place.revision), clocks.event.not_in(ALONE), verdict.excepted_by == "")
        .where(*without(connection, place.unchecked), *without(connection, RowIdSet(waived)))
        .group_by(PROBLEM)
    )


def _rank(outcome: ColumnElement[str]) -> ColumnElement[int]:
    return case(*((outcome == name, rank) for rank, name in enumerate(_OUTCOMES)), else_=0)
