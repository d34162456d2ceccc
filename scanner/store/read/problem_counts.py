"""Counts the problems of a scan in the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, literal, or_, select, union_all

from scanner.errors import UsageError
from scanner.model.scans.problem_numbers import IsBelow, NewProblems, ProblemCounts, ProblemTotals, SeverityRanks
from scanner.model.scans.scan import Scan
from scanner.model.scans.stored_finding import ProblemFinding
from scanner.posture.problem_ids import problem_id
from scanner.posture.problem_rows import REFUSE_PODS
from scanner.store.catalog.scans import find_newest_comparable, find_pruned_scans, scan_of, select_scans
from scanner.store.database.engine import select_numbers
from scanner.store.history.problem_clocks import OPENED
from scanner.store.history.sightings import read_unchecked
from scanner.store.read.findings import MOVED, PROBLEM, has_ended_in, is_in_problem_at, is_open_in, read_by_problem
from scanner.store.read.open_problems import (
    FIRST_SEEN,
    NUMBER,
    OPENED_AT,
    PODS,
    REFUSED,
    ScanPlace,
    count_where,
    exclude_rows,
    is_new,
    is_reopened,
    rank_severity,
    refuses_pods,
    select_open_problems,
)
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import CHECKS, FINDINGS, SCANS, VERDICTS

_PORTION: Final = 5000
NO_WAIVED: Final[Mapping[str, frozenset[int]]] = {}


def count_problems(
    connection: Connection,
    scan_id: str,
    baseline: str = "",
    ids: Container[str] | None = None,
    *,
    waived: Mapping[str, frozenset[int]] = NO_WAIVED,
    below: IsBelow | None = None,
) -> ProblemCounts:
    """The numbers of a finished scan's problems.

    New are those that were not open in the scan with the id `baseline`, or not among `ids`; by default, in the newest earlier
    scan that is comparable. `waived` has the rows of waived findings by the ids of scans: a problem of which all findings are
    waived does not count. Neither do problems of the checks that are `below` a severity. Raises UsageError for a baseline of another cluster.
    """
    number, cluster, revision = _locate_scan(connection, scan_id)
    if revision is None:
        return ProblemCounts()
    of_scan = _select_problems(connection, number, cluster, revision, waived.get(scan_id, frozenset()))
    counted = of_scan.where(*_exclude_checks(connection, below))
    problems = counted.subquery()
    sums = (func.coalesce(func.sum(problems.c[name]), 0) for name in _FACTS)
    counted_pods = count_where(refuses_pods(problems.c))
    total, *facts, pods_refused = connection.execute(select(func.count(), *sums, counted_pods)).one()
    counts = replace(ProblemCounts(total, *facts), pods_refused=pods_refused)
    before = _find_baseline(connection, scan_id, baseline) if ids is None else None
    if ids is None and before is None:
        return replace(counts, new=total)
    new = _find_new(connection, counted, (cluster, revision), before, ids or (), waived)
    return replace(counts, new=len(new), baseline=before)


def find_new_problems(
    connection: Connection,
    scan_id: str,
    baseline: str = "",
    ids: Collection[str] | None = None,
    *,
    waived: Mapping[str, frozenset[int]] = NO_WAIVED,
    waived_ids: Collection[str] = (),
) -> NewProblems:
    """The problems of a finished scan that `count_problems` counts as new, by their ids.

    A problem that does not count, because all of its findings are waived, excepted or unchecked, is new if the baseline has it
    neither open nor among `waived_ids`.
    """
    number, cluster, revision = _locate_scan(connection, scan_id)
    if revision is None:
        return NewProblems()
    before = _find_baseline(connection, scan_id, baseline) if ids is None else None
    counted = _select_problems(connection, number, cluster, revision, waived.get(scan_id, frozenset()))
    every = _select_open_at(cluster, revision)
    open_now = frozenset(_read_numbers(connection, every))
    began = frozenset(_read_numbers(connection, every.having(func.min(OPENED) == revision)))
    if ids is None and before is None:
        new = open_now
    else:
        at, known = (cluster, revision), ids or ()
        counts = frozenset(_read_numbers(connection, counted))
        of_counted = _find_new(connection, counted, at, before, known, waived)
        others = _find_new(connection, every, at, before, frozenset((*known, *waived_ids)), NO_WAIVED)
        new = frozenset((*of_counted, *(each for each in others if each not in counts)))
    named = frozenset(problem_id(each) for each in new if each >= 0)
    if ids is None:
        gone = _count_gone(connection, cluster, before, open_now) if before else 0
    else:
        gone = len(frozenset(ids) - frozenset(problem_id(each) for each in open_now if each >= 0))
    return NewProblems(named, before, as_recorded=new == began, gone=gone)


def _select_open_at(cluster: int, revision: int) -> Select[Any]:
    """The problems with an open finding at a revision, also those with waivers and exceptions."""
    return select(NUMBER).where(is_in_problem_at(cluster, revision)).group_by(PROBLEM)


def _count_gone(connection: Connection, cluster: int, before: Scan, open_now: frozenset[int]) -> int:
    """The number of problems open in an earlier scan that are not open any more."""
    _, _, revision = _locate_scan(connection, before.id)
    return len(frozenset(_read_numbers(connection, _select_open_at(cluster, revision or 0))) - open_now)


def _find_baseline(connection: Connection, scan_id: str, baseline: str) -> Scan | None:
    """The scan with which a scan is compared."""
    return _read_baseline(connection, baseline) if baseline else find_comparable_scan(connection, scan_id)


def _find_new(
    connection: Connection,
    counted: Select[Any],
    at: tuple[int, int],
    before: Scan | None,
    ids: Container[str],
    waived: Mapping[str, frozenset[int]],
) -> list[int]:
    """The problems of the scan `at` a revision of a cluster that are new since an earlier scan, or else not among `ids`."""
    if before is not None:
        return _find_new_since(connection, counted, at, before, waived.get(before.id, frozenset()))
    absent = [each for each in map(partial(max, 0), _read_numbers(connection, counted)) if problem_id(each) not in ids]
    moved = _find_moves(connection, *at) if absent else {}
    return [each for each in absent if not any(problem_id(earlier) in ids for earlier in moved.get(each, ()))]


def _read_baseline(connection: Connection, scan_id: str) -> Scan:
    """The scan that the user names as baseline."""
    if find_pruned_scans(connection, [scan_id]):
        raise UsageError(
            f"Scan {scan_id} is no baseline any more: it was pruned. `assay scans` shows which scans remain."
        )
    return _read_scan(connection, scan_id)


def find_comparable_scan(connection: Connection, scan_id: str) -> Scan | None:
    """The newest earlier scan of the same cluster, source, scope, operation, requester and mode; None if there is none."""
    number, cluster, revision = _locate_scan(connection, scan_id)
    earlier = find_newest_comparable(connection, number, revision or 0)
    if earlier is None:
        return None
    at = SCANS.c.cluster == cluster, SCANS.c.revision == earlier
    return scan_of(connection.execute(select_scans().where(*at)).one())


_FACTS: Final = ("denied", "violated", "errored", "drifting")


def _select_problems(
    connection: Connection, number: int, cluster: int, revision: int, waived: frozenset[int]
) -> Select[Any]:
    """The problems that a scan saw: one row for each, with 1 or 0 for each of its facts."""
    verdict = VERDICTS.c
    facts = {
        "denied": or_(verdict.denies, verdict.actions == REFUSE_PODS),
        "violated": verdict.outcome == "violated",
        "errored": verdict.outcome == "errored",
        "drifting": verdict.outcome == "wouldChange",
    }
    columns = (func.max(case((fact, 1), else_=0)).label(name) for name, fact in facts.items())
    place = ScanPlace(cluster, revision, read_unchecked(connection, number))
    return select_open_problems(connection, place, waived, REFUSED, PODS, *columns)


def _exclude_checks(connection: Connection, below: IsBelow | None) -> Iterator[ColumnElement[bool]]:
    """The condition that a row is of none of the checks below a severity."""
    if below is None:
        return
    every = connection.execute(select(CHECKS.c.id, CHECKS.c.language, CHECKS.c.policy, CHECKS.c.expression))
    chosen = [number for number, language, policy, expression in every if below((language, policy), expression)]
    if chosen:
        yield FINDINGS.c.check.not_in(select_numbers(connection, chosen))


def _find_new_since(
    connection: Connection, counted: Select[Any], at: tuple[int, int], before: Scan, waived: frozenset[int]
) -> list[int]:
    """The problems of the scan `at` a revision of a cluster without an open finding in an earlier scan.

    A finding that it left unchecked was open, and so was one that moved from another problem; one that was waived then is new when
    no waiver applies any more.
    """
    cluster, now = at
    _, other, revision = _locate_scan(connection, before.id)
    if other != cluster or revision is None:
        raise UsageError(f"Scan {before.id} is no baseline: it is a scan of another cluster, or it failed.")
    problems = counted.subquery()
    then = select(PROBLEM).where(is_in_problem_at(cluster, revision))
    then = then.where(*exclude_rows(connection, RowIdSet(waived)))
    new = connection.execute(select(problems.c.problem).where(problems.c.problem.not_in(then))).scalars().all()
    moved = _find_moves(connection, cluster, now) if new else {}
    earlier = {problem for several in moved.values() for problem in several}
    was_open = frozenset(connection.execute(then.where(PROBLEM.in_(select_numbers(connection, earlier)))).scalars())
    return [problem for problem in new if was_open.isdisjoint(moved.get(problem, ()))]


def _find_moves(connection: Connection, cluster: int, revision: int) -> Mapping[int, frozenset[int]]:
    """The problems open at a revision to which findings moved while they were open, each with the problems that they left.

    A finding that goes on as another one, or moves again, keeps the beginning of its episode.
    """
    finding = FINDINGS.c
    ended = finding.cluster == cluster, finding.resolution == MOVED, finding.until <= revision
    left: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for problem, opened, earlier in connection.execute(
        select(finding.moved_to, finding.opened, finding.problem).where(*ended).distinct()
    ):
        left[problem, opened].add(earlier)
    reached = select(finding.moved_to).where(*ended)
    still_open = (
        select(finding.problem, finding.opened)
        .where(is_open_in(cluster, revision), finding.problem.in_(reached))
        .distinct()
    )
    before: defaultdict[int, set[int]] = defaultdict(set)
    for problem, opened in connection.execute(still_open):
        pending, known = [problem], before[problem]
        while pending:
            unknown = left[pending.pop(), opened] - known
            known |= unknown
            pending += unknown
    return {problem: frozenset(several) for problem, several in before.items()}


def _read_numbers(connection: Connection, counted: Select[Any]) -> Iterator[int]:
    problems = counted.subquery()
    with connection.execute(select(problems.c.problem).execution_options(yield_per=_PORTION)) as rows:
        yield from rows.scalars()


def _locate_scan(connection: Connection, scan_id: str) -> tuple[int, int, int | None]:
    """The number, the cluster and the revision of a scan."""
    wanted = select(SCANS.c.number, SCANS.c.cluster, SCANS.c.revision).where(SCANS.c.id == scan_id)
    number, cluster, revision = connection.execute(wanted).one()
    return number, cluster, revision


def _read_scan(connection: Connection, scan_id: str) -> Scan:
    return scan_of(connection.execute(select_scans().where(SCANS.c.id == scan_id)).one())


# Counts the problems of a scan and finds the worst of them, in the database: see `posture.worst_problems`.

_TOTALS: Final = 0
_WORST: Final = 1


def count_totals(
    connection: Connection, place: ScanPlace, ranks: SeverityRanks, waived: frozenset[int], most: int
) -> tuple[ProblemTotals, tuple[ProblemFinding, ...]]:
    """The numbers of the problems of a scan without its waived rows, and the findings of its worst problems.

    The findings of a problem follow each other.
    """
    totals, worst = ProblemTotals(), []
    # One statement, so that the rows are grouped once.
    for kind, number, *rest in connection.execute(_select_totals(connection, place, ranks, waived, most)):
        if kind == _TOTALS:
            open_now, refused, new, reopened, pods = number, *rest
            totals = ProblemTotals(open_now, refused, new, reopened, pods_refused=pods)
        else:
            worst.append(number)
    resolved, fixed = count_resolved(connection, place)
    findings = tuple(read_open_findings(connection, place, worst))
    return replace(totals, resolved=resolved, fixed=fixed), findings


def _select_totals(
    connection: Connection, place: ScanPlace, ranks: SeverityRanks, waived: frozenset[int], most: int
) -> Any:
    rank = func.min(rank_severity(connection, FINDINGS.c.check, ranks)).label("rank")
    problems = select_open_problems(connection, place, waived, REFUSED, PODS, FIRST_SEEN, OPENED_AT, rank).cte("own")
    totals = select(
        literal(_TOTALS),
        func.count(),
        count_where(problems.c.refused == 1),
        count_where(is_new(problems.c, place.revision)),
        count_where(is_reopened(problems.c, place.revision)),
        count_where(refuses_pods(problems.c)),
    ).select_from(problems)
    # A clock may have been set back between two scans: the older problem is that with the earlier date.
    opening = and_(SCANS.c.cluster == place.cluster, SCANS.c.revision == problems.c.opened)
    order = problems.c.refused.desc(), problems.c.pods.desc(), problems.c.rank, SCANS.c.finished_at, problems.c.problem
    worst = select(problems.c.problem).join(SCANS, opening).order_by(*order).limit(most).subquery()
    nothing = (literal(0) for _ in range(4))
    return union_all(totals, select(literal(_WORST), worst.c.problem, *nothing))


def count_resolved(connection: Connection, place: ScanPlace) -> tuple[int, int]:
    """The numbers of problems whose last finding the scan resolved, and of those that were fixed."""
    ended = (
        select(NUMBER, func.min(case((FINDINGS.c.resolution == "fixed", 1), else_=0)).label("fixed"))
        .join(VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict)
        .where(has_ended_in(place.cluster, place.revision), VERDICTS.c.excepted_by == "")
        .group_by(PROBLEM)
    ).subquery()
    still_open = select(PROBLEM).where(is_in_problem_at(place.cluster, place.revision))
    wanted = select(func.count(), count_where(ended.c.fixed == 1)).where(ended.c.problem.not_in(still_open))
    resolved, fixed = connection.execute(wanted).one()
    return resolved, fixed


def read_open_findings(connection: Connection, place: ScanPlace, problems: list[int]) -> Iterator[ProblemFinding]:
    """The findings of some problems in a scan, those of a problem together."""
    if not problems:
        return
    chosen = PROBLEM.in_(select_numbers(connection, problems))
    yield from read_by_problem(connection, place.cluster, place.revision, place.unchecked, chosen)
