"""Counts stored findings in aggregate queries, without reading them.

The owners of the objects with findings are read first, because one object may have many findings. The query has them as numbers, so
that it has few groups, however many different labels the objects have, and those of one owner together: memory holds one owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, func, select

from scanner.model.scans.census import Bucket, Census, OwnedCensus, OwnerOf
from scanner.store.read.findings import is_open_in, status_of, was_resolved_in
from scanner.store.read.kept_labels import KeptLabels, ObjectNames, PlacedObjects
from scanner.store.read.open_problems import exclude_rows
from scanner.store.rows.interning import CHUNK
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import CHECKS, FINDINGS, OBJECTS, VERDICTS


def count_seen(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Census:
    """The numbers of the findings of the scan of a revision, without those that it left unchecked."""
    namespace = OBJECTS.c.namespace
    return count_buckets(
        (group, group.first) for group in read_finding_groups(connection, cluster, revision, unchecked, namespace)
    )


def count_seen_by_owner(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, owner_of: OwnerOf
) -> Iterator[OwnedCensus]:
    """The same numbers by owner, in no order."""
    seen = is_open_in(cluster, revision)
    labels = KeptLabels(connection, cluster, revision, owner_of.names)
    owners = PlacedObjects(labels, owner_of, select(FINDINGS.c.object).where(seen)).owners
    owner = owners.number_column(FINDINGS.c.object)
    return count_owners(owners, read_finding_groups(connection, cluster, revision, unchecked, owner))


def count_owners(owners: ObjectNames, groups: Iterable[GroupOfFindings]) -> Iterator[OwnedCensus]:
    """The numbers of each owner, given findings in groups by the number of their owner, those of an owner together."""
    for name, of_owner in groupby(groups, lambda group: owners.decode(group.first)):
        yield OwnedCensus(name, count_buckets((group, "") for group in of_owner))


def count_resolutions(connection: Connection, cluster: int, revision: int) -> dict[str, int]:
    """The numbers of the findings that the scan of a revision resolved, by reason."""
    reason_column = FINDINGS.c.resolution
    counted = select(reason_column, func.count()).where(was_resolved_in(cluster, revision)).group_by(reason_column)
    return {reason or "": number for reason, number in connection.execute(counted)}


class GroupOfFindings(NamedTuple):
    """Findings that are alike, and their `number`: `first` is the value of a column that the caller chooses, `check` and `kind` are ids.

    `begins` tells whether the rows begin with the revision.
    """

    first: Any
    check: int
    kind: int
    event: str
    begins: bool
    outcome: str
    denies: bool
    would_deny: bool
    excepted: bool
    language: str
    policy: str
    expression: str
    number: int


_FACTS: Final = tuple(
    name for name in GroupOfFindings._fields if name not in ("language", "policy", "expression", "number")
)


def read_finding_groups(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, first: ColumnElement[Any]
) -> Iterator[GroupOfFindings]:
    """The findings of the scan of a revision, without those that it left unchecked, by `first`, which also orders them."""
    finding, verdict, check = FINDINGS.c, VERDICTS.c, CHECKS.c
    columns = finding.check, finding.kind, finding.event, finding.verdict
    begins = (finding.since == revision).label("begins")
    keys = first.label("first"), *columns, begins
    tables = FINDINGS.join(OBJECTS, OBJECTS.c.id == finding.object) if first is OBJECTS.c.namespace else FINDINGS
    seen = select(*keys, func.count().label("number")).select_from(tables).where(is_open_in(cluster, revision))
    # Grouped by ids before the verdicts are joined: PostgreSQL needs a quarter of the time.
    alike = seen.where(*exclude_rows(connection, unchecked)).group_by(*keys).subquery()
    facts = (
        select(
            *(alike.c[name] for name in ("first", "check", "kind", "event", "begins")),
            *(verdict.outcome, verdict.denies, verdict.would_deny),
            (verdict.excepted_by != "").label("excepted"),
            alike.c.number,
        )
        .join_from(alike, VERDICTS, verdict.id == alike.c.verdict)
        .subquery()
    )
    same = [facts.c[name] for name in _FACTS]
    groups = select(*same, func.sum(facts.c.number).label("number")).group_by(*same).subquery()
    named = (
        select(*(groups.c[name] for name in _FACTS), check.language, check.policy, check.expression, groups.c.number)
        .join_from(groups, CHECKS, check.id == groups.c.check)
        .order_by(groups.c.first)
        .execution_options(yield_per=CHUNK)
    )
    with connection.execute(named) as rows:
        for portion in rows.partitions():
            yield from map(GroupOfFindings._make, portion)


def count_buckets(groups: Iterable[tuple[GroupOfFindings, str]]) -> Counter[Bucket]:
    """The number of findings in each bucket, given groups with the namespaces of their buckets."""
    buckets: Counter[Bucket] = Counter()
    for group, namespace in groups:
        status = status_of(group.event, begins=bool(group.begins))
        policy = group.language, group.policy
        drift = group.outcome == "wouldChange"
        buckets[Bucket(policy, group.expression, namespace, status, bool(group.denies), drift)] += int(group.number)
    return buckets
