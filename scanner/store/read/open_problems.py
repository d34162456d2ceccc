"""The open problems of a scan in SQL: their definition, and their numbers by policy, namespace, owner and workload.

Every number of open problems comes from here. `posture.problem_rows.select_open` counts the findings of a stream by the same rule; tests compare
both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, case, func, literal, select

from scanner.model.outcome import CheckKind
from scanner.model.policy import ACTIONS, PolicyKey
from scanner.model.scans.census import OwnerOf
from scanner.model.scans.problem_numbers import (
    GroupedProblems,
    OpenProblems,
    ProblemGroup,
    ProblemsByCheck,
    SeverityRanks,
)
from scanner.posture.grouped_problems import join_groups
from scanner.posture.problem_rows import REFUSE_PODS
from scanner.store.database.engine import select_numbers
from scanner.store.history.problem_clocks import FIRST, OPENED
from scanner.store.read.findings import PROBLEM, is_in_problem_at, is_open_in
from scanner.store.read.kept_labels import KeptLabels, PlacedObjects
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.stored_texts import fill_template, has_marks
from scanner.store.rows.tables import CHECKS, FINDINGS, KINDS, OBJECTS, POPULATION, VERDICTS, WORKLOADS


class ScanPlace(NamedTuple):
    """A scan in the history of a cluster; `unchecked` are the rows that the scan left open without checking them."""

    cluster: int
    revision: int
    unchecked: RowIdSet


MILDEST_FIRST: Final = ACTIONS[::-1]
"""The actions from the mildest to the strictest."""
NO_ROWS: Final[frozenset[int]] = frozenset()
NUMBER: Final = PROBLEM.label("problem")
REFUSED: Final = func.max(case((VERDICTS.c.denies, 1), else_=0)).label("refused")
"""1 if admission would refuse an object of the problem."""
IS_PODS: Final = case((VERDICTS.c.actions == REFUSE_PODS, 1), else_=0)
PODS: Final = func.max(IS_PODS).label("pods")
"""1 if admission would refuse pods of an object of the problem."""
FIRST_SEEN: Final = func.min(FIRST).label("first")
"""The revision that saw the problem first."""
OPENED_AT: Final = func.min(OPENED).label("opened")
"""The revision of the beginning of its latest episode."""


def select_open_problems(
    connection: Connection, place: ScanPlace, waived: frozenset[int] = NO_ROWS, *columns: ColumnElement[Any]
) -> Select[Any]:
    """The open problems of a scan without its waived rows: one row for each, with its number as `problem` and further aggregates."""
    return select_counted_findings(connection, place, waived, NUMBER, *columns).group_by(PROBLEM)


def select_counted_findings(
    connection: Connection, place: ScanPlace, waived: frozenset[int], *columns: ColumnElement[Any]
) -> Select[Any]:
    """The findings that make problems open: previewed, outdated, excepted, unchecked and waived ones do not."""
    return (
        select(*columns)
        .join_from(FINDINGS, VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict)
        .where(is_in_problem_at(place.cluster, place.revision), VERDICTS.c.excepted_by == "")
        .where(*exclude_rows(connection, place.unchecked), *exclude_rows(connection, RowIdSet(waived)))
    )


def is_new(problems: Any, revision: int) -> ColumnElement[bool]:
    """The condition that a problem, a row with `first` and `opened`, began with the scan of a revision."""
    begun: ColumnElement[bool] = (problems.opened == revision) & (problems.first == revision)
    return begun


def refuses_pods(problems: Any) -> ColumnElement[bool]:
    """The condition that admission would admit the objects of a problem, a row with `refused` and `pods`, and refuse pods of them."""
    admits: ColumnElement[bool] = (problems.refused == 0) & (problems.pods == 1)
    return admits


def is_reopened(problems: Any, revision: int) -> ColumnElement[bool]:
    """The condition that a problem was seen before, and is open again since the scan of a revision."""
    begun: ColumnElement[bool] = (problems.opened == revision) & (problems.first < revision)
    return begun


def count_where(condition: ColumnElement[bool]) -> ColumnElement[int]:
    """The number of rows for which a condition holds."""
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def rank_actions(actions: ColumnElement[str]) -> ColumnElement[int]:
    """The place of the strictest action of a verdict in `MILDEST_FIRST`, from 1 on; 0 if there is none."""
    # Views have this condition, so it has no pattern: `%` means something else to some drivers.
    ranks = [(func.replace(actions, action, "") != actions, place) for place, action in enumerate(MILDEST_FIRST, 1)]
    return case(*reversed(ranks), else_=0)


def rank_severity(connection: Connection, check: ColumnElement[int], ranks: SeverityRanks) -> ColumnElement[int]:
    """The rank of the severity of a row's check. Most have the usual one: only the checks of others are named."""
    if ranks.are_usual:
        return literal(ranks.usual)
    named: defaultdict[int, list[int]] = defaultdict(list)
    columns = CHECKS.c.id, CHECKS.c.expression, CHECKS.c.language, CHECKS.c.policy
    for number, expression, language, policy in connection.execute(select(*columns)):
        named[ranks.of((language, policy), expression)].append(number)
    named.pop(ranks.usual, None)
    cases = [(check.in_(select_numbers(connection, checks)), rank) for rank, checks in sorted(named.items())]
    return case(*cases, else_=ranks.usual) if cases else literal(ranks.usual)


def exclude_rows(connection: Connection, rows: RowIdSet) -> Iterator[ColumnElement[bool]]:
    """The condition that a row is none of these."""
    if not rows.count:
        return
    yield FINDINGS.c.id.not_in(select_numbers(connection, rows))


OUTCOMES: Final = ("wouldChange", "errored", "violated")
"""The outcomes of findings, the worst one last."""


def count_problem_groups(
    connection: Connection, place: ScanPlace, ranks: SeverityRanks, waived: frozenset[int]
) -> tuple[ProblemGroup, ...]:
    """The groups of a scan without its waived rows, in ascending order."""
    facts = {
        "check": FINDINGS.c.check,
        "action": rank_actions(VERDICTS.c.actions),
        "outcome": rank_outcome(VERDICTS.c.outcome),
    }
    columns = (func.max(fact).label(name) for name, fact in facts.items())
    problems = select_open_problems(connection, place, waived, REFUSED, FIRST_SEEN, OPENED_AT, *columns).subquery()
    rank = rank_severity(connection, problems.c.check, ranks).label("rank")
    group = CHECKS.c.language, CHECKS.c.policy, rank, problems.c.action, problems.c.outcome
    numbers = func.count(), count_where(problems.c.refused == 1), count_where(is_new(problems.c, place.revision))
    wanted = select(*group, *numbers).join_from(problems, CHECKS, CHECKS.c.id == problems.c.check).group_by(*group)
    rows = connection.execute(wanted).all()
    return tuple(
        sorted(
            ProblemGroup(language, policy, rank, ("", *MILDEST_FIRST)[action], OUTCOMES[outcome], *map(int, sums))
            for language, policy, rank, action, outcome, *sums in rows
        )
    )


def rank_outcome(outcome: ColumnElement[str]) -> ColumnElement[int]:
    """The place of an outcome in `OUTCOMES`."""
    return case(*((outcome == name, rank) for rank, name in enumerate(OUTCOMES)), else_=0)


def count_by_check(connection: Connection, place: ScanPlace, waived: frozenset[int]) -> ProblemsByCheck:
    """The open problems of a scan without its waived rows, by policy and expression of their check."""
    facts = func.max(FINDINGS.c.check).label("check"), PODS
    problems = select_open_problems(connection, place, waived, REFUSED, FIRST_SEEN, OPENED_AT, *facts).subquery()
    group = CHECKS.c.language, CHECKS.c.policy, CHECKS.c.expression
    numbers = (
        func.count(),
        count_where(problems.c.refused == 1),
        count_where(is_new(problems.c, place.revision)),
        count_where(refuses_pods(problems.c)),
    )
    wanted = select(*group, *numbers).join_from(problems, CHECKS, CHECKS.c.id == problems.c.check).group_by(*group)
    return {
        ((language, policy), expression): OpenProblems(*map(int, sums))
        for language, policy, expression, *sums in connection.execute(wanted)
    }


def count_by_namespace(connection: Connection, place: ScanPlace, waived: frozenset[int]) -> GroupedProblems:
    """The open problems of a scan without its waived rows, by the namespace of their objects."""
    return join_groups(_count_groups(connection, place, waived, OBJECTS.c.namespace))


def count_by_owner(
    connection: Connection, place: ScanPlace, owner_of: OwnerOf, waived: frozenset[int]
) -> GroupedProblems:
    """The same by the owner of their objects."""
    labels = KeptLabels(connection, place.cluster, place.revision, owner_of.names)
    seen = select(FINDINGS.c.object).where(is_open_in(place.cluster, place.revision))
    owners = PlacedObjects(labels, owner_of, seen).owners
    rows = _count_groups(connection, place, waived, owners.number_column(FINDINGS.c.object))
    return join_groups((owners.decode(owner), size, numbers) for owner, size, numbers in rows)


def _count_groups(
    connection: Connection, place: ScanPlace, waived: frozenset[int], group: ColumnElement[Any]
) -> Iterator[tuple[Any, int, OpenProblems]]:
    """The groups; the problems of each in as many parts as there are numbers of groups that a problem is in."""
    problem_parts = _select_parts(connection, place, waived, group).subquery()
    of_problem = {"partition_by": problem_parts.c.problem}
    parts = select(
        problem_parts.c.part,
        func.count().over(**of_problem).label("size"),
        func.max(problem_parts.c.refused).over(**of_problem).label("refused"),
        func.max(problem_parts.c.pods).over(**of_problem).label("pods"),
        func.min(problem_parts.c.first).over(**of_problem).label("first"),
        func.min(problem_parts.c.opened).over(**of_problem).label("opened"),
    ).subquery()
    numbers = (
        func.count(),
        count_where(parts.c.refused == 1),
        count_where(is_new(parts.c, place.revision)),
        count_where(refuses_pods(parts.c)),
    )
    wanted = select(parts.c.part, parts.c.size, *numbers).group_by(parts.c.part, parts.c.size)
    for name, size, *sums in connection.execute(wanted):
        yield name, size, OpenProblems(*map(int, sums))


def _select_parts(connection: Connection, place: ScanPlace, waived: frozenset[int], group: ColumnElement[Any]) -> Any:
    """One row for each problem and group: the facts of its findings there."""
    columns = (
        NUMBER,
        group.label("part"),
        VERDICTS.c.denies,
        IS_PODS.label("pods"),
        FIRST.label("first"),
        OPENED.label("opened"),
    )
    objects = OBJECTS.c.id == FINDINGS.c.object
    findings = select_counted_findings(connection, place, waived, *columns).join(OBJECTS, objects).subquery()
    facts = findings.c
    return select(
        facts.problem,
        facts.part,
        func.max(case((facts.denies, 1), else_=0)).label("refused"),
        func.max(facts.pods).label("pods"),
        func.min(facts.first).label("first"),
        func.min(facts.opened).label("opened"),
    ).group_by(facts.problem, facts.part)


_PORTION: Final = 5_000


class OpenWorkload(NamedTuple):
    """The open problems of a workload with a policy, of checks of one severity. `rank` is that of the severity, 0 for the worst.

    Admission would refuse `refused` of them and the pods of `pods_refused` more, and `new` began with the scan.
    """

    kind: str
    namespace: str
    name: str
    policy: PolicyKey
    rank: int
    problems: int
    refused: int
    new: int
    pods_refused: int


def read_open_workloads(
    connection: Connection, place: ScanPlace, ranks: SeverityRanks, waived: frozenset[int]
) -> Iterator[OpenWorkload]:
    """The workloads with open problems of a scan, by policy and severity, in no order; waived, excepted and unchecked findings count nowhere."""
    facts = REFUSED, PODS, FIRST_SEEN, OPENED_AT
    problem, workload, tables = _select_workloads(connection, place, waived, *facts)
    group = *workload, CHECKS.c.language, CHECKS.c.policy, rank_severity(connection, problem.check, ranks).label("rank")
    numbers = (
        func.count(),
        count_where(problem.refused == 1),
        count_where(is_new(problem, place.revision)),
        count_where(refuses_pods(problem)),
    )
    wanted = select(*group, *numbers).select_from(tables).group_by(*group).execution_options(yield_per=_PORTION)
    with connection.execute(wanted) as result:
        for portion in result.partitions():
            for kind, namespace, name, language, policy, *numbers_of_group in portion:
                yield OpenWorkload(kind, namespace, name, (language, policy), *map(int, numbers_of_group))


class OpenProblem(NamedTuple):
    """An open problem by its content, which is the same in every cluster: a check of a policy, and a workload. `number` is its id there.

    `message` is that of its findings, empty if they have several or would be changes.
    """

    policy: PolicyKey
    check: CheckKind
    expression: str
    kind: str
    namespace: str
    name: str
    number: int
    message: str


_MESSAGE: Final = case(
    (
        and_(
            func.min(VERDICTS.c.message) == func.max(VERDICTS.c.message),
            func.min(VERDICTS.c.outcome) == func.max(VERDICTS.c.outcome),
            func.max(VERDICTS.c.outcome) != "wouldChange",
        ),
        func.max(VERDICTS.c.message),
    ),
    else_="",
).label("message")


def read_open_problems(connection: Connection, place: ScanPlace, waived: frozenset[int]) -> Iterator[OpenProblem]:
    """The open problems of a scan, in no order; waived, excepted and unchecked findings make none."""
    problem, workload, tables = _select_workloads(connection, place, waived, _MESSAGE)
    check, identity = CHECKS.c, OBJECTS.c
    names = problem.message, identity.name, identity.namespace
    columns = check.language, check.policy, check.kind, check.expression, *workload, problem.problem, *names
    wanted = select(*columns).select_from(tables).execution_options(yield_per=_PORTION)
    with connection.execute(wanted) as result:
        for portion in result.partitions():
            for language, policy, kind, *content, message, name, namespace in portion:
                filled = fill_template(message, name, namespace) if has_marks(message) else message
                yield OpenProblem._make(((language, policy), CheckKind(kind), *content, filled))


def _select_workloads(
    connection: Connection, place: ScanPlace, waived: frozenset[int], *facts: ColumnElement[Any]
) -> tuple[Any, tuple[ColumnElement[str], ...], FromClause]:
    """The columns of the open problems of a scan, those of kind, namespace and name of their workloads, and the joined tables."""
    # All objects of a problem belong to one workload.
    columns = func.max(FINDINGS.c.check).label("check"), func.max(FINDINGS.c.object).label("object")
    problems = select_open_problems(connection, place, waived, *facts, *columns).subquery()
    problem, top, identity = problems.c, WORKLOADS.c, OBJECTS.c
    there = and_(
        POPULATION.c.object == problem.object,
        POPULATION.c.since <= place.revision,
        POPULATION.c.until > place.revision,
    )
    workload = (
        func.coalesce(top.kind, KINDS.c.kind).label("kind"),
        func.coalesce(top.namespace, identity.namespace).label("namespace"),
        func.coalesce(top.name, identity.name).label("name"),
    )
    tables = (
        OBJECTS.join(KINDS, KINDS.c.id == identity.kind)
        .join(problems, problem.object == identity.id)
        .join(CHECKS, CHECKS.c.id == problem.check)
        .outerjoin(POPULATION, there)
        .outerjoin(WORKLOADS, top.id == POPULATION.c.workload)
    )
    return problem, workload, tables
