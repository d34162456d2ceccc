"""Counts the open problems of a scan by namespace and by owner, in the database: see `posture.grouped_problems`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, select

from scanner.model.census import OwnerOf
from scanner.model.open_problems import GroupedProblems, OpenProblems
from scanner.posture.grouped_problems import grouped
from scanner.store.findings import seen_in
from scanner.store.kept_labels import KeptLabels
from scanner.store.object_owners import ObjectOwners
from scanner.store.open_problems import NUMBER, Place, counted_findings, is_new, number_of
from scanner.store.problem_clocks import FIRST, OPENED
from scanner.store.tables import FINDINGS, OBJECTS, VERDICTS


def problems_by_namespace(connection: Connection, place: Place, waived: frozenset[int]) -> GroupedProblems:
    """The open problems of a scan without its waived rows, by the namespace of their objects."""
    return grouped(_counted(connection, place, waived, OBJECTS.c.namespace))


def problems_by_owner(
    connection: Connection, place: Place, owner_of: OwnerOf, waived: frozenset[int]
) -> GroupedProblems:
    """The same by the owner of their objects."""
    labels = KeptLabels(connection, place.cluster, place.revision, owner_of.names)
    seen = select(FINDINGS.c.object).where(seen_in(place.cluster, place.revision))
    owners = ObjectOwners(labels, owner_of, seen)
    rows = _counted(connection, place, waived, owners.column(FINDINGS.c.object))
    return grouped((owners.names[owners.number(bytes(owner))], size, numbers) for owner, size, numbers in rows)


def _counted(
    connection: Connection, place: Place, waived: frozenset[int], group: ColumnElement[Any]
) -> Iterator[tuple[Any, int, OpenProblems]]:
    """The groups; the problems of each in as many parts as there are numbers of groups that a problem is in."""
    own = _parts(connection, place, waived, group).subquery()
    of_problem = {"partition_by": own.c.problem}
    parts = select(
        own.c.part,
        func.count().over(**of_problem).label("size"),
        func.max(own.c.refused).over(**of_problem).label("refused"),
        func.min(own.c.first).over(**of_problem).label("first"),
        func.min(own.c.opened).over(**of_problem).label("opened"),
    ).subquery()
    numbers = func.count(), number_of(parts.c.refused == 1), number_of(is_new(parts.c, place.revision))
    wanted = select(parts.c.part, parts.c.size, *numbers).group_by(parts.c.part, parts.c.size)
    for name, size, *sums in connection.execute(wanted):
        yield name, size, OpenProblems(*map(int, sums))


def _parts(connection: Connection, place: Place, waived: frozenset[int], group: ColumnElement[Any]) -> Any:
    """One row for each problem and group: the facts of its findings there."""
    columns = NUMBER, group.label("part"), VERDICTS.c.denies, FIRST.label("first"), OPENED.label("opened")
    objects = OBJECTS.c.id == FINDINGS.c.object
    findings = counted_findings(connection, place, waived, *columns).join(OBJECTS, objects).subquery()
    facts = findings.c
    return select(
        facts.problem,
        facts.part,
        func.max(case((facts.denies, 1), else_=0)).label("refused"),
        func.min(facts.first).label("first"),
        func.min(facts.opened).label("opened"),
    ).group_by(facts.problem, facts.part)
