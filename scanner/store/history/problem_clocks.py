"""The clocks of problems, which findings of the same problem share: since when it is known, and since when it has been open.

A problem goes on while any of its findings is open. So a finding that was not open before takes the clocks of
an open one, and only the first of an episode begins a new one. A finding that moves to another problem brings its clocks along,
unless that problem is open.

A finding has one last row in each of its problems: its latest row, one that ended because it moved, or one that was resolved before the
finding came back as one of another problem.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, or_, select, update

from scanner.store.database.engine import insert_rows, is_among, select_numbers
from scanner.store.history.resolution import Resolution
from scanner.store.rows.interning import CHUNK, chunks
from scanner.store.rows.tables import CHECKS, FINDINGS, FIXES, OPEN, SINGLE_SCAN_EVENTS

_OF_FIXES = ("cluster", "revision", "language", "policy", "opened", "problems")
OPENED = func.coalesce(FINDINGS.c.problem_opened, FINDINGS.c.opened, FINDINGS.c.since)
"""The revision that opened the problem of a row; for a row of an older version, the best that is known of it."""
FIRST = func.coalesce(FINDINGS.c.problem_first, FINDINGS.c.first)
"""The revision that saw the problem of a row first; for a row of an older version, that of its finding."""


def is_last_in_problem() -> ColumnElement[bool]:
    """The condition that a row is the last one of its finding in its problem, or that the finding left the problem with it."""
    return or_(FINDINGS.c.superseded.is_(None), FINDINGS.c.moved_to.is_not(None))


def set_clocks(connection: Connection, cluster: int, come: Sequence[int], now: int) -> None:
    """Give the rows that a scan inserted for findings that were not open before, or that moved, the clocks of their problems."""
    if not come:
        return
    rows, first, opened = array("I"), array("I"), array("I")
    for number, begin, opening in _read_clocks(connection, cluster, come, now):
        rows.append(number)
        first.append(begin)
        opened.append(opening)
    of_row = update(FINDINGS).where(FINDINGS.c.id == bindparam("row"))
    set_clock = of_row.values(problem_first=bindparam("begin"), problem_opened=bindparam("opening"))
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        portion = zip(rows[part], first[part], opened[part], strict=True)
        values = [{"row": number, "begin": begin, "opening": opening} for number, begin, opening in portion]
        connection.execute(set_clock, values)


def _read_clocks(connection: Connection, cluster: int, come: Sequence[int], now: int) -> Iterator[Sequence[int]]:
    """The ids of rows to change, each with the revisions that saw their problem first and opened it."""
    inserted = FINDINGS.c.id.in_(select_numbers(connection, come))
    carried = (
        func.min(FIRST).over(partition_by=FINDINGS.c.problem).label("first"),
        func.min(OPENED).over(partition_by=FINDINGS.c.problem).label("opened"),
    )
    own_clocks = FINDINGS.c.problem_first, FINDINGS.c.problem_opened
    fresh = select(FINDINGS.c.id, FINDINGS.c.problem, *own_clocks, *carried).where(inserted).subquery()
    was_open = FINDINGS.c.until >= now  # also rows that this scan has ended
    earlier = (
        select(FINDINGS.c.problem, func.min(FIRST).label("first"), func.min(OPENED).filter(was_open).label("opened"))
        .where(FINDINGS.c.cluster == cluster, FINDINGS.c.since < now, FINDINGS.c.event.not_in(SINGLE_SCAN_EVENTS))
        .where(FINDINGS.c.problem.in_(select(fresh.c.problem)))
        .group_by(FINDINGS.c.problem)
        .subquery()
    )
    known = or_(earlier.c.opened.is_not(None), earlier.c.first < fresh.c.first)
    first = case((known, earlier.c.first), else_=fresh.c.first)
    opened = func.coalesce(earlier.c.opened, fresh.c.opened)
    wanted = (
        select(fresh.c.id, first, opened)
        .join_from(fresh, earlier, earlier.c.problem == fresh.c.problem, isouter=True)
        .where(
            or_(first != func.coalesce(fresh.c.problem_first, 0), opened != func.coalesce(fresh.c.problem_opened, 0))
        )
    )
    yield from connection.execute(wanted.execution_options(yield_per=CHUNK))


def end_moved_rows(connection: Connection, moved: Iterable[tuple[int, int]], last_seen: Mapping[int, int]) -> None:
    """End rows of findings whose objects have another workload now: each pair has a row that ends, and the row after it.

    The row has the reason *moved*, the cause of the next one, and the problem to which that belongs. `last_seen` has the last
    revision that saw the row.
    """
    finding = FINDINGS.c
    ended = update(FINDINGS).where(finding.id == bindparam("row"))
    ended = ended.values(last_seen=bindparam("seen"), moved_to=bindparam("to"), end_cause=bindparam("why"))
    ended = ended.values(resolution=Resolution.MOVED.value)
    for portion in chunks(list(moved)):
        before = {number: row for row, number in portion}
        wanted = select(finding.id, finding.problem, finding.cause).where(
            is_among(connection, finding.id, list(before))
        )
        values = [
            {"row": before[number], "seen": last_seen[before[number]], "to": problem, "why": cause}
            for number, problem, cause in connection.execute(wanted).all()
        ]
        connection.execute(ended, values)


def record_fixes(connection: Connection, cluster: int, revision: int) -> None:
    """Count the problems that a scan saw fixed: it resolved all findings that were open, and every one was fixed."""
    resolved = FINDINGS.c.until == revision, FINDINGS.c.last_seen.is_not(None), FINDINGS.c.problem.is_not(None)
    fixed = (
        select(FINDINGS.c.problem, CHECKS.c.language, CHECKS.c.policy, func.min(OPENED).label("opened"))
        .join(CHECKS, CHECKS.c.id == FINDINGS.c.check)
        .where(FINDINGS.c.cluster == cluster, *resolved)
        .group_by(FINDINGS.c.problem, CHECKS.c.language, CHECKS.c.policy)
        .having(_holds_for_all(FINDINGS.c.resolution == Resolution.FIXED.value))
    )
    candidates = {problem: tuple(about) for problem, *about in connection.execute(fixed)}
    if not candidates:
        return
    still_open = select(FINDINGS.c.problem).where(FINDINGS.c.cluster == cluster, FINDINGS.c.until == OPEN)
    chosen = FINDINGS.c.problem.in_(select_numbers(connection, candidates))
    for problem in connection.execute(still_open.where(chosen)).scalars():
        candidates.pop(problem, None)
    counted = Counter(candidates.values())
    rows = [(cluster, revision, *about, number) for about, number in sorted(counted.items())]
    insert_rows(connection, FIXES, _OF_FIXES, rows)


def _holds_for_all(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return func.count() == func.count().filter(condition)
