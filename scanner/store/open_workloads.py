"""Counts the open problems of each workload of a scan, in the database: the same problems as `problem_groups` counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from sqlalchemy import Connection, and_, func, select

from scanner.model.policy import PolicyKey
from scanner.store.open_problems import FIRST_SEEN, OPENED_AT, REFUSED, Place, is_new, number_of, open_problems
from scanner.store.tables import CHECKS, FINDINGS, KINDS, OBJECTS, POPULATION, WORKLOADS

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
    own = FINDINGS.c
    # All objects of a problem belong to one workload.
    columns = func.max(own.check).label("check"), func.max(own.object).label("object")
    problem = open_problems(connection, place, waived, REFUSED, FIRST_SEEN, OPENED_AT, *columns).subquery().c
    there = and_(
        POPULATION.c.object == problem.object,
        POPULATION.c.since <= place.revision,
        POPULATION.c.until > place.revision,
    )
    top, identity = WORKLOADS.c, OBJECTS.c
    workload = (
        func.coalesce(top.kind, KINDS.c.kind).label("kind"),
        func.coalesce(top.namespace, identity.namespace).label("namespace"),
        func.coalesce(top.name, identity.name).label("name"),
    )
    group = *workload, CHECKS.c.language, CHECKS.c.policy
    numbers = func.count(), number_of(problem.refused == 1), number_of(is_new(problem, place.revision))
    wanted = (
        select(*group, *numbers)
        .join_from(OBJECTS, KINDS, KINDS.c.id == identity.kind)
        .join(problem.object.table, problem.object == identity.id)
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
