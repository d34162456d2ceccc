"""Reads the numbers of problems over time: see `model.scans.problem_history`.

A row of findings is an interval of revisions, so the problems of every day are counted from the rows once, without reading a scan.
Waivers are no part of the history: a problem that is waived today was open on the days before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, func, select

from scanner.model.scans.problem_history import FixedProblems, HistoryDay, ProblemAge, ProblemCell, ProblemHistory
from scanner.model.scans.problem_numbers import SeverityRanks
from scanner.model.scans.register import RECENT
from scanner.posture.severity import Severity
from scanner.store.history.daily import read_fixes
from scanner.store.history.problem_clocks import FIRST, OPENED
from scanner.store.read.findings import PROBLEM
from scanner.store.read.open_problems import (
    NUMBER,
    OPENED_AT,
    ScanPlace,
    rank_severity,
    select_counted_findings,
    select_open_problems,
)
from scanner.store.read.trends import read_days
from scanner.store.rows.tables import CHECKS, DAYS, FINDINGS, OBJECTS, SCANS, SINGLE_SCAN_EVENTS, VERDICTS

_PORTION: Final = 5_000
_Counts: TypeAlias = tuple[int, ...]


class _DayScan(NamedTuple):
    """The last complete scan of a day; `revision` is its place in history, None if it was pruned."""

    day: date
    revision: int | None
    rules_changed: tuple[str, ...]


def read_problem_history(
    connection: Connection, place: ScanPlace, ranks: SeverityRanks, waived: frozenset[int], until: date
) -> ProblemHistory:
    """The history of a cluster in the `RECENT` days up to one; ages and cells are of a scan without its waived rows."""
    since = until - timedelta(days=RECENT - 1)
    scans = _read_day_scans(connection, place.cluster, since, until)
    fixes = list(read_fixes(connection, place.cluster, since, until))
    fixed = tuple(FixedProblems((language, policy), took, problems) for language, policy, took, _, problems in fixes)
    return ProblemHistory(
        days=tuple(_list_days(connection, place, ranks, scans, (since, until), fixes)),
        ages=tuple(_read_ages(connection, place, ranks, waived)),
        cells=tuple(_read_cells(connection, place, waived)),
        fixed=fixed,
    )


def _read_day_scans(connection: Connection, cluster: int, since: date, until: date) -> list[_DayScan]:
    wanted = select(DAYS.c.day, SCANS.c.revision, SCANS.c.pruned_at).join(SCANS, SCANS.c.number == DAYS.c.scan)
    of_period = DAYS.c.day >= since.isoformat(), DAYS.c.day <= until.isoformat()
    rows = connection.execute(wanted.where(DAYS.c.cluster == cluster, *of_period)).all()
    revisions = {date.fromisoformat(day): None if pruned else revision for day, revision, pruned in rows}
    return [
        _DayScan(each.day, revisions[each.day], tuple(part.value for part in each.rules_changed or ()))
        for each in read_days(connection, cluster, since, until)
    ]


def _list_days(
    connection: Connection,
    place: ScanPlace,
    ranks: SeverityRanks,
    scans: Sequence[_DayScan],
    period: tuple[date, date],
    fixes: Iterable[tuple[str, str, timedelta, str, int]],
) -> Iterator[HistoryDay]:
    by_day = {each.day: each for each in scans}
    counts = _count_open(connection, place, ranks, sorted(each.revision for each in scans if each.revision is not None))
    new, reopened = _count_begun(connection, place, period)
    fixed = Counter[date]()
    for *_, day_of_fix, problems in fixes:
        fixed[date.fromisoformat(day_of_fix)] += problems
    for day in sorted({*by_day, *new, *reopened, *fixed, *_list_scan_days(connection, place, period)}):
        scan = by_day.get(day)
        number = scan.revision if scan else None
        yield HistoryDay(
            day,
            None if number is None else counts[number],
            new[day],
            reopened[day],
            fixed[day],
            scan.rules_changed if scan else (),
            pruned=scan is not None and number is None,
        )


def _list_scan_days(connection: Connection, place: ScanPlace, period: tuple[date, date]) -> Iterator[date]:
    """The days of merged scans up to one, complete or not."""
    return (day for day, _ in _read_revision_days(connection, place, period))


def _read_revision_days(
    connection: Connection, place: ScanPlace, period: tuple[date, date]
) -> Iterator[tuple[date, int]]:
    """The days of merged scans and their revisions."""
    wanted = select(SCANS.c.finished_at, SCANS.c.revision).where(
        SCANS.c.cluster == place.cluster, SCANS.c.revision <= place.revision
    )
    for finished, revision in connection.execute(wanted):
        day = finished.astimezone(UTC).date()
        if period[0] <= day <= period[1]:
            yield day, revision


def _count_open(
    connection: Connection, place: ScanPlace, ranks: SeverityRanks, revisions: Sequence[int]
) -> Mapping[int, _Counts]:
    """The open problems at each revision, by the rank of their severity."""
    if not revisions:
        return {}
    changes = [Counter[int]() for _ in range(len(revisions) + 1)]
    for rank, since, until in _read_episodes(connection, place, ranks, revisions):
        begin, end = bisect_left(revisions, since), bisect_left(revisions, until)
        if begin < end:
            changes[begin][rank] += 1
            changes[end][rank] -= 1
    now, counts = Counter[int](), {}
    for revision, change in zip(revisions, changes, strict=False):
        now.update(change)
        counts[revision] = tuple(now[severity.rank] for severity in Severity)
    return counts


def _read_episodes(
    connection: Connection, place: ScanPlace, ranks: SeverityRanks, revisions: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """The rank of the severity of each problem, and the revisions from which and before which it was open without a break."""
    finding = FINDINGS.c
    check = func.min(finding.check).label("check")
    intervals = (
        select(NUMBER, finding.since, finding.until, check)
        .join_from(FINDINGS, VERDICTS, VERDICTS.c.id == finding.verdict)
        .where(finding.cluster == place.cluster, finding.event.not_in(SINGLE_SCAN_EVENTS), VERDICTS.c.excepted_by == "")
        .where(finding.until > revisions[0], finding.since <= revisions[-1])
        .group_by(PROBLEM, finding.since, finding.until)
    ).subquery()
    rank = rank_severity(connection, intervals.c.check, ranks)
    wanted = select(intervals.c.problem, intervals.c.since, intervals.c.until, rank)
    wanted = wanted.order_by(intervals.c.problem, intervals.c.since).execution_options(yield_per=_PORTION)
    for _, rows in groupby(connection.execute(wanted), itemgetter(0)):
        yield from _join_intervals(rows)


def _join_intervals(rows: Iterable[Any]) -> Iterator[tuple[int, int, int]]:
    """The intervals of one problem, in the order of their beginnings, without those that touch or overlap."""
    worst, begin, end = len(Severity), -1, -1
    for _, since, until, rank in rows:
        if begin >= 0 and since > end:
            yield worst, begin, end
            begin = -1
        begin = since if begin < 0 else begin
        end, worst = max(end, until), min(worst, rank)
    yield worst, begin, end


def _count_begun(
    connection: Connection, place: ScanPlace, period: tuple[date, date]
) -> tuple[Counter[date], Counter[date]]:
    """The numbers of problems that scans of a day found new, and reopened. What the very first scan found was there before."""
    days = {revision: day for day, revision in _read_revision_days(connection, place, period)}
    new, reopened = Counter[date](), Counter[date]()
    if not days:
        return new, reopened
    finding = FINDINGS.c
    episodes = (
        select(OPENED.label("opened"), func.min(FIRST).label("first"))
        .join_from(FINDINGS, VERDICTS, VERDICTS.c.id == finding.verdict)
        .where(finding.cluster == place.cluster, finding.event.not_in(SINGLE_SCAN_EVENTS), VERDICTS.c.excepted_by == "")
        # A finding that moved to another problem brings the beginning of its episode along.
        .where(finding.since == OPENED, OPENED >= min(days), OPENED <= place.revision)
        .group_by(PROBLEM, OPENED)
    ).subquery()
    is_new = (episodes.c.first == episodes.c.opened).label("is_new")
    numbers = select(episodes.c.opened, is_new, func.count()).group_by(episodes.c.opened, is_new)
    begin = _find_first_revision(connection, place.cluster)
    for opened, is_first, number in connection.execute(numbers):
        if opened in days and opened != begin:
            (new if is_first else reopened)[days[opened]] += number
    return new, reopened


def _find_first_revision(connection: Connection, cluster: int) -> int:
    return connection.execute(select(func.min(SCANS.c.revision)).where(SCANS.c.cluster == cluster)).scalar() or 0


def _read_ages(
    connection: Connection, place: ScanPlace, ranks: SeverityRanks, waived: frozenset[int]
) -> Iterator[ProblemAge]:
    check = func.min(FINDINGS.c.check).label("check")
    problems = select_open_problems(connection, place, waived, OPENED_AT, check).subquery()
    rank = rank_severity(connection, problems.c.check, ranks).label("rank")
    numbers = select(problems.c.opened, rank, func.count()).group_by(problems.c.opened, rank)
    counted: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for opened, of_rank, number in connection.execute(numbers):
        counted[opened].append((of_rank, number))
    scans = select(SCANS.c.revision, SCANS.c.finished_at).where(
        SCANS.c.cluster == place.cluster, SCANS.c.revision.is_not(None)
    )
    ends: dict[int, datetime] = {row.revision: row.finished_at for row in connection.execute(scans)}
    for opened, numbers_of in sorted(counted.items()):
        for of_rank, number in sorted(numbers_of):
            yield ProblemAge(of_rank, ends[opened], number)


def _read_cells(connection: Connection, place: ScanPlace, waived: frozenset[int]) -> Iterator[ProblemCell]:
    columns = NUMBER, OBJECTS.c.namespace, CHECKS.c.language, CHECKS.c.policy
    places = select_counted_findings(connection, place, waived, *columns)
    places = places.join(OBJECTS, OBJECTS.c.id == FINDINGS.c.object).join(CHECKS, CHECKS.c.id == FINDINGS.c.check)
    cells = places.distinct().subquery().c
    group = cells.namespace, cells.language, cells.policy
    for namespace, language, policy, number in connection.execute(select(*group, func.count()).group_by(*group)):
        yield ProblemCell(namespace, (language, policy), number)
