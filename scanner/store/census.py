"""Counts stored findings in one aggregate query, without reading them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, literal, select

from scanner.model.census import Bucket, Census, OwnerOf
from scanner.store.engine import among
from scanner.store.findings import resolved_in, seen_in, status_of
from scanner.store.interning import CHUNK, chunks
from scanner.store.kept_labels import KeptLabels, PlaceOfObject
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import CHECKS, FINDINGS, OBJECTS, POPULATION, VERDICTS


def census_of_seen(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, owner_of: OwnerOf | None = None
) -> Census:
    """The numbers of the findings of the scan of a revision, without those that it left unchecked.

    Without `owner_of` no finding has an owner.
    """
    seen = seen_in(cluster, revision)
    owners = owner_of if owner_of and _has_labels(connection, cluster) else None
    labels = KeptLabels(connection, cluster, revision)
    census = _counted(connection, seen, labels, owners)
    for portion in chunks(list(unchecked)):
        census.subtract(_counted(connection, seen & among(connection, FINDINGS.c.id, portion), labels, owners))
    return +census


def number_of_resolved(connection: Connection, cluster: int, revision: int) -> int:
    """The number of findings that the scan of a revision resolved."""
    counted = select(func.count()).select_from(FINDINGS).where(resolved_in(cluster, revision))
    return connection.execute(counted).scalar_one()


def _has_labels(connection: Connection, cluster: int) -> bool:
    """Return whether a label of any object of a cluster was kept: otherwise no object has an owner."""
    kept = select(POPULATION.c.object).where(POPULATION.c.cluster == cluster, POPULATION.c.kept != 0)
    return connection.execute(kept.limit(1)).scalar() is not None


def _counted(
    connection: Connection, chosen: ColumnElement[bool], labels: KeptLabels, owner_of: OwnerOf | None
) -> Counter[Bucket]:
    """The number of findings in each bucket. Checks of one policy are added up, and so are objects of one owner."""
    drift = VERDICTS.c.outcome == "wouldChange"
    columns: list[ColumnElement[Any]] = [
        FINDINGS.c.check.label("check"),
        OBJECTS.c.namespace.label("namespace"),
        FINDINGS.c.event.label("event"),
        (FINDINGS.c.since == literal(labels.revision)).label("begins"),
        VERDICTS.c.denies.label("denies"),
        drift.label("drift"),
    ]
    joined = FINDINGS.join(VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict).join(
        OBJECTS, OBJECTS.c.id == FINDINGS.c.object
    )
    if owner_of:
        columns += (
            FINDINGS.c.kind.label("kind"),
            POPULATION.c.workload.label("workload"),
            POPULATION.c.kept.label("kept"),
        )
        joined = joined.outerjoin(POPULATION, _interval_at(labels.revision))
    rows = select(*columns).select_from(joined).where(chosen).subquery()
    groups = select(*rows.c, func.count().label("number")).group_by(*rows.c).subquery()
    named = select(groups, CHECKS.c.language, CHECKS.c.policy).join(CHECKS, CHECKS.c.id == groups.c.check)
    buckets: Counter[Bucket] = Counter()
    with connection.execute(named.execution_options(yield_per=CHUNK)) as result:
        for portion in result.partitions():
            for row, owner in zip(portion, _owners(portion, labels, owner_of), strict=True):
                status = status_of(row.event, begins=bool(row.begins))
                policy = row.language, row.policy
                buckets[Bucket(policy, row.namespace, status, bool(row.denies), bool(row.drift), owner)] += row.number
    return buckets


def _interval_at(revision: int) -> ColumnElement[bool]:
    own = POPULATION.c
    return and_(own.object == FINDINGS.c.object, own.since <= revision, own.until > revision)


def _owners(rows: Sequence[Row[Any]], labels: KeptLabels, owner_of: OwnerOf | None) -> Iterator[str]:
    """The owner of the objects of each group. An object without an interval is of an older version's scan."""
    if not owner_of:
        yield from ("" for _ in rows)
        return
    known = [row for row in rows if row.kept is not None]
    kept = iter(labels.of([PlaceOfObject(row.kind, row.namespace, row.workload, row.kept) for row in known]))
    yield from (owner_of(None if row.kept is None else next(kept)) for row in rows)
