"""Counts stored findings in one aggregate query, without reading them.

The owners of the objects with findings are read first, because one object may have many findings. The query has them as numbers, so
that it has few groups, however many different labels the objects have.
"""

from __future__ import annotations

from collections import Counter

from sqlalchemy import ColumnElement, Connection, func, literal, select

from scanner.model.census import Bucket, Census, OwnerOf
from scanner.store.engine import among
from scanner.store.findings import resolved_in, seen_in, status_of
from scanner.store.interning import chunks
from scanner.store.kept_labels import KeptLabels
from scanner.store.object_owners import ObjectOwners
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import CHECKS, FINDINGS, OBJECTS, POPULATION, VERDICTS


def census_of_seen(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, owner_of: OwnerOf | None = None
) -> Census:
    """The numbers of the findings of the scan of a revision, without those that it left unchecked.

    Without `owner_of` no finding has an owner.
    """
    seen = seen_in(cluster, revision)
    owners = None
    if owner_of and _has_labels(connection, cluster):
        of_findings = select(FINDINGS.c.object).where(seen)
        owners = ObjectOwners(KeptLabels(connection, cluster, revision), owner_of, of_findings)
    census = _counted(connection, seen, revision, owners)
    for portion in chunks(list(unchecked)):
        chosen = seen & among(connection, FINDINGS.c.id, portion)
        census.subtract(_counted(connection, chosen, revision, owners))
    return +census


def number_of_resolved(connection: Connection, cluster: int, revision: int) -> int:
    """The number of findings that the scan of a revision resolved."""
    counted = select(func.count()).select_from(FINDINGS).where(resolved_in(cluster, revision))
    return connection.execute(counted).scalar_one()


def resolutions_of(connection: Connection, cluster: int, revision: int) -> dict[str, int]:
    """The numbers of the findings that the scan of a revision resolved, by reason."""
    own = FINDINGS.c.resolution
    counted = select(own, func.count()).where(resolved_in(cluster, revision)).group_by(own)
    return {reason or "": number for reason, number in connection.execute(counted)}


def _has_labels(connection: Connection, cluster: int) -> bool:
    """Return whether a label of any object of a cluster was kept: otherwise no object has an owner."""
    kept = select(POPULATION.c.object).where(POPULATION.c.cluster == cluster, POPULATION.c.kept != 0)
    return connection.execute(kept.limit(1)).scalar() is not None


def _counted(
    connection: Connection, chosen: ColumnElement[bool], revision: int, owners: ObjectOwners | None
) -> Counter[Bucket]:
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
            (owners.column(FINDINGS.c.object) if owners else literal(b"")).label("owner"),
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
    for _, namespace, event, begins, denies, drifts, of_owner, number, language, policy in connection.execute(named):
        name = owners.names[owners.number(bytes(of_owner))] if owners else ""
        status = status_of(event, begins=bool(begins))
        buckets[Bucket((language, policy), namespace, status, bool(denies), bool(drifts), name)] += number
    return buckets
