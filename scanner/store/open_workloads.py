"""Counts the open problems of each workload of a scan, in the database: the same problems as `problem_groups` counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, and_, case, func, select

from scanner.model.policy import PolicyKey
from scanner.store.findings import seen_in
from scanner.store.problem_counts import PROBLEM, without
from scanner.store.problem_totals import Place
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import ALONE, CHECKS, FINDINGS, KINDS, OBJECTS, POPULATION, VERDICTS, WORKLOADS

_PORTION: Final = 5_000


class OpenWorkload(NamedTuple):
    """The open problems of a workload with a policy: admission would refuse `refused` of them, and `new` began with the scan."""

    kind: str
    namespace: str
    name: str
    policy: PolicyKey
    problems: int
    refused: int
    new: int


def open_workloads(connection: Connection, place: Place, waived: frozenset[int]) -> Iterator[OpenWorkload]:
    """The workloads with open problems of a scan, by policy, in no order; waived, excepted and unchecked findings count nowhere."""
    problem = _problems(connection, place, waived).subquery().c
    there = and_(
        POPULATION.c.object == problem.object,
        POPULATION.c.since <= place.revision,
        POPULATION.c.until > place.revision,
    )
    top, own = WORKLOADS.c, OBJECTS.c
    workload = (
        func.coalesce(top.kind, KINDS.c.kind).label("kind"),
        func.coalesce(top.namespace, own.namespace).label("namespace"),
        func.coalesce(top.name, own.name).label("name"),
    )
    group = *workload, CHECKS.c.language, CHECKS.c.policy
    new = and_(problem.opened == place.revision, problem.first == place.revision)
    wanted = (
        select(*group, func.count(), func.sum(problem.refused), func.sum(case((new, 1), else_=0)))
        .join_from(OBJECTS, KINDS, KINDS.c.id == own.kind)
        .join(problem.object.table, problem.object == own.id)
        .join(CHECKS, CHECKS.c.id == problem.check)
        .outerjoin(POPULATION, there)
        .outerjoin(WORKLOADS, top.id == POPULATION.c.workload)
        .group_by(*group)
        .execution_options(yield_per=_PORTION)
    )
    with connection.execute(wanted) as result:
        for portion in result.partitions():
            for kind, namespace, name, language, policy, problems, refused, begun in portion:
                yield OpenWorkload(kind, namespace, name, (language, policy), problems, int(refused), int(begun))


def _problems(connection: Connection, place: Place, waived: frozenset[int]) -> Any:
    """One row for each problem, with one of its objects: all objects of a problem belong to one workload."""
    clocks = FINDINGS.c
    return (
        select(
            PROBLEM.label("problem"),
            func.max(clocks.check).label("check"),
            func.max(clocks.object).label("object"),
            func.max(case((VERDICTS.c.denies, 1), else_=0)).label("refused"),
            func.min(func.coalesce(clocks.problem_first, clocks.first)).label("first"),
            func.min(func.coalesce(clocks.problem_opened, clocks.opened, clocks.first)).label("opened"),
        )
        .join(VERDICTS, VERDICTS.c.id == clocks.verdict)
        .where(seen_in(place.cluster, place.revision), clocks.event.not_in(ALONE), VERDICTS.c.excepted_by == "")
        .where(*without(connection, place.unchecked), *without(connection, RowIdSet(waived)))
        .group_by(PROBLEM)
    )
