"""Counts the open problems of a scan by policy, action and outcome, in the database: see `posture.problem_groups`."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, Connection, case, func, select

from scanner.model.problem_group import ProblemGroup
from scanner.store.open_problems import (
    ACTIONS,
    FIRST_SEEN,
    OPENED_AT,
    REFUSED,
    Place,
    is_new,
    number_of,
    open_problems,
    strictness,
)
from scanner.store.tables import CHECKS, FINDINGS, VERDICTS

_OUTCOMES: Final = ("wouldChange", "errored", "violated")


def problem_groups(connection: Connection, place: Place, waived: frozenset[int]) -> tuple[ProblemGroup, ...]:
    """The groups of a scan without its waived rows, in ascending order."""
    facts = {"check": FINDINGS.c.check, "action": strictness(VERDICTS.c.actions), "outcome": _rank(VERDICTS.c.outcome)}
    columns = (func.max(fact).label(name) for name, fact in facts.items())
    own = open_problems(connection, place, waived, REFUSED, FIRST_SEEN, OPENED_AT, *columns).subquery()
    group = CHECKS.c.language, CHECKS.c.policy, own.c.action, own.c.outcome
    numbers = func.count(), number_of(own.c.refused == 1), number_of(is_new(own.c, place.revision))
    wanted = select(*group, *numbers).join_from(own, CHECKS, CHECKS.c.id == own.c.check).group_by(*group)
    rows = connection.execute(wanted).all()
    return tuple(
        sorted(
            ProblemGroup(language, policy, ("", *ACTIONS)[action], _OUTCOMES[outcome], *map(int, sums))
            for language, policy, action, outcome, *sums in rows
        )
    )


def _rank(outcome: ColumnElement[str]) -> ColumnElement[int]:
    return case(*((outcome == name, rank) for rank, name in enumerate(_OUTCOMES)), else_=0)
