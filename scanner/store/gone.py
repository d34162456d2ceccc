"""The objects that are gone: a scan ends the interval of an object only if it would have listed the object.

A scan that was merged after this one began may have seen objects that did not exist yet when this scan listed their kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sqlalchemy import Connection, select

from scanner.model.scan import Scope
from scanner.store.evaluated_sets import sets_of
from scanner.store.interning import Interned
from scanner.store.population_plan import InForce
from scanner.store.resolution import Reach
from scanner.store.row_ids import RowIdSet
from scanner.store.staged import StagedList
from scanner.store.tables import KINDS, OPEN, POPULATION, SCANS


class GoneObjects:
    """Decides which objects of a cluster are gone."""

    def __init__(self, connection: Connection, reach: Reach, cluster: int, base: int) -> None:
        """Take the reach of a scan, and the newest revision of its cluster when the scan began."""
        self._connection = connection
        self._cluster = cluster
        self._reach = reach
        self._base = base
        merged = select(SCANS.c.number).where(SCANS.c.cluster == cluster, SCANS.c.revision > base)
        self._meanwhile = [
            (api_version.rpartition("/")[0], kind, sets.examined)
            for scan in connection.execute(merged).scalars().all()
            for api_version, kind, sets in sets_of(connection, scan)
        ]

    def of(self, listed: StagedList) -> Callable[[InForce], bool]:
        """Return a function that returns whether an object which a list does not have is gone."""
        seen: list[RowIdSet] = [ids for *group_kind, ids in self._meanwhile if tuple(group_kind) == listed.group_kind]

        def gone(row: InForce) -> bool:
            if row.since > self._base or any(row.object_id in ids for ids in seen):
                return False
            return self._reach.lists(listed.api_version, listed.kind, row.identity.namespace, row.identity.name)

        return gone

    def unserved(self) -> Iterator[tuple[int, Sequence[int], Callable[[InForce], bool]]]:
        """The kinds with recorded objects that the cluster does not serve any more.

        Each has the id of the kind, as a single id and as a list, and a function that returns whether an object is gone.
        """
        kinds = {
            row.id: row
            for row in self._connection.execute(select(KINDS.c.id, KINDS.c.api_version, KINDS.c.kind))
            if self._reach.unserved(row.api_version, row.kind)
        }
        own = POPULATION.c
        in_force = own.cluster == self._cluster, own.until == OPEN, own.kind.in_(kinds)
        for number in self._connection.execute(select(own.kind).where(*in_force).distinct()).scalars().all():
            yield number, [number], partial(self._is_gone, kinds[number].api_version, kinds[number].kind)

    def _is_gone(self, api_version: str, kind: str, row: InForce) -> bool:
        if row.since > self._base:
            return False
        return self._reach.lists(api_version, kind, row.identity.namespace, row.identity.name)

    def of_labels(self, scope: Scope) -> Callable[[InForce], bool]:
        """Return a function that returns whether a namespace is gone that is absent from a list read for labels alone."""
        everything = not (scope.namespaces or scope.exclude_namespaces)
        return lambda row: everything and row.since <= self._base


def kinds_of(connection: Connection, kinds: Interned, listed: StagedList) -> tuple[int, Sequence[int]]:
    """The id of the kind of a list, and the ids of the kind in all versions of its group."""
    [own] = kinds.ids([(listed.api_version, listed.kind)])
    group, kind = listed.group_kind
    rows = connection.execute(select(KINDS.c.id, KINDS.c.api_version).where(KINDS.c.kind == kind)).all()
    return own, [row.id for row in rows if row.api_version.rpartition("/")[0] == group]
