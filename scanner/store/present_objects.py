"""Finds in which clusters an object exists, as far as scans have seen, by its kind, namespace and name."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, func, select

from scanner.store.engine import among
from scanner.store.tables import KINDS, OBJECTS, OPEN, POPULATION


def clusters_with(
    connection: Connection, clusters: Collection[int], kind: str, namespace: str, name: str
) -> frozenset[int]:
    """Those of some clusters, by id, in which the newest scan that could see the object saw it; case does not count in `kind`."""
    kinds = connection.execute(select(KINDS.c.id).where(func.lower(KINDS.c.kind) == kind.lower())).scalars().all()
    if not kinds or not clusters:
        return frozenset()
    own = OBJECTS.c
    wanted = (
        select(own.cluster)
        .join(POPULATION, (POPULATION.c.object == own.id) & (POPULATION.c.until == OPEN))
        .where(among(connection, own.cluster, sorted(clusters)), among(connection, own.kind, kinds))
        .where(own.namespace == namespace, own.name == name)
    )
    return frozenset(connection.execute(wanted).scalars())
