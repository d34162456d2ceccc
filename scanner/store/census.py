"""Counts stored findings in one aggregate query, without reading them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, func, select

from scanner.model.census import Bucket, Census
from scanner.store.engine import among
from scanner.store.findings import resolved_in, seen_in, status_of
from scanner.store.interning import chunks
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import CHECKS, FINDINGS, OBJECTS, VERDICTS


def census_of_seen(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Census:
    """The numbers of the findings of the scan of a revision, without those that it left unchecked."""
    seen = seen_in(cluster, revision)
    census = Counter(dict(_counted(connection, seen, revision)))
    for portion in chunks(list(unchecked)):
        census.subtract(dict(_counted(connection, seen & among(connection, FINDINGS.c.id, portion), revision)))
    return +census


def number_of_resolved(connection: Connection, cluster: int, revision: int) -> int:
    """The number of findings that the scan of a revision resolved."""
    counted = select(func.count()).select_from(FINDINGS).where(resolved_in(cluster, revision))
    return connection.execute(counted).scalar_one()


def _counted(connection: Connection, chosen: ColumnElement[bool], revision: int) -> Iterator[tuple[Bucket, int]]:
    """The number of findings in each bucket. Checks of one policy are added up."""
    drift = VERDICTS.c.outcome == "wouldChange"
    rows = (
        select(
            FINDINGS.c.check.label("check"),
            OBJECTS.c.namespace.label("namespace"),
            FINDINGS.c.event.label("event"),
            (FINDINGS.c.since == revision).label("begins"),
            VERDICTS.c.denies.label("denies"),
            drift.label("drift"),
        )
        .select_from(FINDINGS)
        .join(VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict)
        .join(OBJECTS, OBJECTS.c.id == FINDINGS.c.object)
        .where(chosen)
        .subquery()
    )
    groups = select(*rows.c, func.count().label("number")).group_by(*rows.c).subquery()
    named = select(groups, CHECKS.c.language, CHECKS.c.policy).join(CHECKS, CHECKS.c.id == groups.c.check)
    buckets: Counter[Bucket] = Counter()
    for row in connection.execute(named):
        status = status_of(row.event, begins=bool(row.begins))
        policy = row.language, row.policy
        buckets[Bucket(policy, row.namespace, status, bool(row.denies), bool(row.drift))] += row.number
    yield from buckets.items()
