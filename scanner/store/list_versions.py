"""The resource versions of the newest lists of a cluster: a list that is older than an earlier one is not believed.

An API server answers from an older state if its store was restored from a backup, or if a replica lags behind. Kinds are compared one
by one, because each may have a store of its own.

Upstream: resource versions of one store are numbers that grow with every write (KEP-5504, "Comparable Resource Version").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from scanner.model.outcome import Gap, GapKind
from scanner.model.scan import ListVersion, ScanEnd
from scanner.store.tables import LIST_VERSIONS, SCANS


class OlderList(NamedTuple):
    """A list that shows an older state than that of an earlier scan, given by its resource version and by the id of the scan."""

    listed: ListVersion
    before: str
    scan: str

    @property
    def gap(self) -> Gap:
        """The gap, with its remedy."""
        why = (
            f"the list is older than that of scan {self.scan}: resource version {self.listed.resource_version}, then {self.before}. "
            "The API server answered from an earlier state, so the list resolves nothing. Scan again; "
            "if the cluster was restored from a backup, add --restored-cluster once"
        )
        return Gap(GapKind.LIST, f"{self.listed.api_version}/{self.listed.kind}", why)


def older_lists(connection: Connection, scan: int, end: ScanEnd) -> tuple[OlderList, ...]:
    """The lists of a scan, by its number, that are older than lists of scans that were merged before this one began."""
    if end.restored:
        return ()
    uid, cluster, base = connection.execute(
        select(SCANS.c.cluster_uid, SCANS.c.cluster, SCANS.c.base).where(SCANS.c.number == scan)
    ).one()
    return tuple(_older(connection, end, uid, cluster, base)) if uid else ()


def _older(connection: Connection, end: ScanEnd, uid: str, cluster: int, base: int) -> Iterator[OlderList]:
    own = LIST_VERSIONS.c
    wanted = (
        select(own.api_group, own.kind, own.resource_version, SCANS.c.id)
        .join(SCANS, (SCANS.c.cluster == own.cluster) & (SCANS.c.revision == own.revision))
        .where(own.cluster == cluster, own.uid == uid, own.revision <= base)
    )
    newest = {(group, kind): (version, scan) for group, kind, version, scan in connection.execute(wanted)}
    for listed in end.lists:
        version, earlier = newest.get(_key(listed), ("", ""))
        if version and int(listed.resource_version) < int(version):
            yield OlderList(listed, version, earlier)


def write_versions(
    connection: Connection, scan: int, revision: int, end: ScanEnd, older: Collection[OlderList]
) -> None:
    """Keep the resource versions of the lists of a merged scan, but for older ones, and those that a later list has surpassed."""
    uid, cluster, base = connection.execute(
        select(SCANS.c.cluster_uid, SCANS.c.cluster, SCANS.c.base).where(SCANS.c.number == scan)
    ).one()
    own = LIST_VERSIONS.c
    meanwhile = select(own.api_group, own.kind, own.resource_version).where(
        own.cluster == cluster, own.uid == uid, own.revision > base
    )
    surpassing = {(group, kind): int(version) for group, kind, version in connection.execute(meanwhile)}
    left = {_key(each.listed) for each in older}
    for listed in {_key(each): each for each in end.lists}.values():
        key = _key(listed)
        if key in left or int(listed.resource_version) < surpassing.get(key, 0):
            continue
        connection.execute(
            delete(LIST_VERSIONS).where(own.cluster == cluster, own.api_group == key[0], own.kind == key[1])
        )
        row = {"cluster": cluster, "api_group": key[0], "kind": key[1], "uid": uid}
        connection.execute(
            insert(LIST_VERSIONS).values(row | {"resource_version": listed.resource_version, "revision": revision})
        )


def _key(listed: ListVersion) -> tuple[str, str]:
    return listed.api_version.rpartition("/")[0], listed.kind
