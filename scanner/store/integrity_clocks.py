"""Checks what rows of findings record besides their intervals: problems and their clocks, episodes, reasons, and fixes.

Rows of older versions, which recorded few of these, have null there: a comparison with null is no problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from scanner.posture.problems import check_id
from scanner.store.resolutions import Resolution
from scanner.store.tables import ALONE, CHECK_NAMES, CONTINUED, FINDINGS, FIXES, OPEN, SCANS

SHOWN: Final = 5
"""The number of rows that one problem names."""
_OWN: Final = FINDINGS.c
_ID_LENGTH: Final = len(check_id("", "", "", "", 0))
_OF_ROWS: Final[dict[str, ColumnElement[bool]]] = {
    "findings have no problem": and_(_OWN.problem_opened.is_not(None), _OWN.problem.is_(None)),
    "findings opened before their first scan, or not when their row began": or_(
        _OWN.opened < _OWN.first,
        _OWN.opened > _OWN.since,
        and_(_OWN.event.in_(("new", "reopened")), _OWN.opened != _OWN.since),
    ),
    "clocks of problems contradict each other": or_(
        _OWN.problem_first > _OWN.problem_opened,
        _OWN.problem_opened > _OWN.since,
        _OWN.problem_first.is_(None) != _OWN.problem_opened.is_(None),
    ),
    "findings were resolved without a reason, or have a reason and were not resolved": or_(
        and_(_OWN.last_seen.is_not(None), _OWN.problem.is_not(None), _OWN.resolution.is_(None)),
        and_(_OWN.last_seen.is_(None), _OWN.resolution.is_not(None)),
        _OWN.resolution.not_in([reason.value for reason in Resolution]),
    ),
    "findings continue others without naming them, or name others without continuing them": (
        (_OWN.event == CONTINUED) != _OWN.continues.is_not(None)
    ),
}
"""What is wrong with a row of a finding if a condition holds."""


def clock_problems(connection: Connection) -> Iterator[tuple[str, str]]:
    """The problems, with some of the rows of each: `findings 3, 12`."""
    for what, wrong in _OF_ROWS.items():
        of_row = select(_OWN.id).where(_OWN.event.not_in(ALONE), wrong).order_by(_OWN.id)
        yield from _found(connection, what, "findings", of_row)
    problem, opened = _OWN.problem, _OWN.problem_opened
    # A problem with open rows of an older version has clocks that are not known of all of them.
    differing = func.min(opened) != func.max(opened), func.count() == func.count(opened)
    several = select(func.min(_OWN.id)).where(_OWN.until == OPEN, problem.is_not(None)).group_by(_OWN.cluster, problem)
    what = "open findings of one problem have several begins of its episode"
    yield from _found(connection, what, "findings", several.having(and_(*differing)))
    name = CHECK_NAMES.c.name
    ill_formed = or_(func.length(name) != _ID_LENGTH, func.substr(name, 1, 2) != "c-")
    yield from _found(connection, "ids of checks have another form", "check_names", select(name).where(ill_formed))
    for revision in (FIXES.c.revision, FIXES.c.opened):
        there = select(SCANS.c.number).where(SCANS.c.cluster == FIXES.c.cluster, SCANS.c.revision == revision)
        missing = select(revision).where(~there.exists())
        yield from _found(connection, "fixes refer to revisions that do not exist", f"fixes.{revision.name}", missing)


def _found(connection: Connection, what: str, table: str, rows: Select[tuple[object]]) -> Iterator[tuple[str, str]]:
    if found := connection.execute(rows.limit(SHOWN)).scalars().all():
        yield what, f"{table} {', '.join(map(str, found))}"
