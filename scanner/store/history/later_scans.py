"""The scans that began after another one and were merged before it: what they saw of an object is newer.

A revision is given at the end of a scan, so it does not tell which of two overlapping scans saw an object later. The numbers of scans
are given at their beginning, and the resource versions of two lists of a kind tell which of them is newer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from scanner.model.outcome import Gap, GapKind
from scanner.model.population import GroupKind
from scanner.model.resource import api_group_of
from scanner.model.scans.scan import ListVersion, ScanEnd, Scope
from scanner.posture.history.causes import Circumstances
from scanner.store.history.causes import EarlierScan, FindingPlace
from scanner.store.history.sightings import MergedScan, read_merged_scans
from scanner.store.rows import codec
from scanner.store.rows.tables import COVERAGE, LIST_VERSIONS, SCANS


@dataclass(frozen=True, slots=True)
class _LaterScan:
    merged: MergedScan
    versions: dict[GroupKind, str]
    scan: EarlierScan
    same_request: bool


@dataclass(frozen=True, slots=True)
class NewerLists:
    """The lists of one kind that later scans read after this one, by the revisions of these scans; false without such a list."""

    api_version: str
    kind: str
    scans: Mapping[int, EarlierScan]

    def __bool__(self) -> bool:
        """Return whether there is such a list."""
        return bool(self.scans)

    def have(self, object_id: int, since: int) -> bool:
        """Return whether one has an object, or began the object's interval, which begins with a revision."""
        return since in self.scans or any(
            scan.has_examined(self.api_version, self.kind, object_id) for scan in self.scans.values()
        )

    def lack(self, namespace: str, name: str) -> bool:
        """Return whether one shows that an object without an interval in force is gone."""
        return any(scan.lists(self.api_version, self.kind, namespace, name) for scan in self.scans.values())


class LaterScans:
    """The later scans of one that is being merged; false if there is none, as it is for scans that do not overlap."""

    def __init__(
        self, connection: Connection, number: int, lists: Iterable[ListVersion], circumstances: Circumstances
    ) -> None:
        """Read the later scans of a scan, given its number, its lists, and its circumstances."""
        self._versions = {_group_kind(each.api_version, each.kind): each.resource_version for each in lists}
        scan = SCANS.c
        this = connection.execute(
            select(scan.cluster, scan.base, scan.scope, scan.requester).where(scan.number == number)
        ).one()
        later = scan.cluster == this.cluster, scan.revision > this.base, scan.number > number
        merged = {each.revision: each for each in read_merged_scans(connection, this.cluster, after=this.base)}
        request = codec.from_text(Scope, this.scope).operation, this.requester
        self._scans = [
            _LaterScan(
                merged[row.revision],
                _read_versions(connection, row.number),
                EarlierScan(connection, row.number, circumstances),
                (codec.from_text(Scope, row.scope).operation, row.requester) == request,
            )
            for row in connection.execute(
                select(scan.number, scan.revision, scan.scope, scan.requester).where(*later)
            ).all()
        ]

    def __bool__(self) -> bool:
        """Return whether there is a later scan."""
        return bool(self._scans)

    def overtook(self, finding: FindingPlace, ended: int) -> bool:
        """Return whether a later scan shows that a finding is not open, which the scan of the revision `ended` has resolved, or none."""
        return any(
            self._is_newer_about(scan, finding)
            and (scan.merged.revision == ended or (scan.same_request and scan.scan.would_have(finding)))
            for scan in self._scans
        )

    def saw(self, finding: FindingPlace, number: int, since: int) -> bool:
        """Return whether a later scan saw the open row of a finding, given the row's id and first revision."""
        return any(scan.merged.saw(number, since) and self._is_newer_about(scan, finding) for scan in self._scans)

    def find_newer_lists(self, api_version: str, kind: str) -> NewerLists:
        """The lists of a kind that later scans read after this one."""
        newer = (scan for scan in self._scans if self._is_newer(scan, _group_kind(api_version, kind)))
        return NewerLists(api_version, kind, {scan.merged.revision: scan.scan for scan in newer})

    def _is_newer_about(self, later: _LaterScan, finding: FindingPlace) -> bool:
        """Return whether the list of a later scan is newer; without resource versions to compare, its beginning decides."""
        return self._is_newer(later, _group_kind(finding.api_version, finding.kind))

    def _is_newer(self, later: _LaterScan, kind: GroupKind) -> bool:
        versions = self._versions.get(kind, ""), later.versions.get(kind, "")
        if not all(version.isascii() and version.isdecimal() for version in versions):
            return True
        return int(versions[0]) <= int(versions[1])


def _read_versions(connection: Connection, number: int) -> dict[GroupKind, str]:
    coverage = COVERAGE.c
    rows = connection.execute(
        select(coverage.api_version, coverage.kind, coverage.resource_version).where(coverage.scan == number)
    )
    return {_group_kind(api_version, kind): version for api_version, kind, version in rows}


def _group_kind(api_version: str, kind: str) -> GroupKind:
    return api_group_of(api_version), kind


# The resource versions of the newest lists of a cluster: a list that is older than an earlier one is not believed.
#
# An API server answers from an older state if its store was restored from a backup, or if a replica lags behind.
# Kinds are compared one by one, because each may have a store of its own.
#
# Upstream: resource versions of one store are numbers that grow with every write (KEP-5504, "Comparable Resource
# Version").


class OlderList(NamedTuple):
    """A list that shows an older state than that of an earlier scan, given by its resource version and by the id of the scan."""

    list_version: ListVersion
    before: str
    scan: str

    @property
    def gap(self) -> Gap:
        """The gap, with its remedy."""
        why = (
            f"the list is older than that of scan {self.scan}: resource version {self.list_version.resource_version}, then {self.before}. "
            "The API server answered from an earlier state, so the list resolves nothing. Scan again; "
            "if the cluster was restored from a backup, add --restored-cluster once"
        )
        return Gap(GapKind.LIST, f"{self.list_version.api_version}/{self.list_version.kind}", why)


def find_older_lists(connection: Connection, scan: int, end: ScanEnd) -> tuple[OlderList, ...]:
    """The lists of a scan, by its number, that are older than lists of scans that were merged before this one began."""
    if end.restored:
        return ()
    uid, cluster, base = connection.execute(
        select(SCANS.c.cluster_uid, SCANS.c.cluster, SCANS.c.base).where(SCANS.c.number == scan)
    ).one()
    return tuple(_compare_lists(connection, end, uid, cluster, base)) if uid else ()


def _compare_lists(connection: Connection, end: ScanEnd, uid: str, cluster: int, base: int) -> Iterator[OlderList]:
    columns = LIST_VERSIONS.c
    wanted = (
        select(columns.api_group, columns.kind, columns.resource_version, SCANS.c.id)
        .join(SCANS, (SCANS.c.cluster == columns.cluster) & (SCANS.c.revision == columns.revision))
        .where(columns.cluster == cluster, columns.uid == uid, columns.revision <= base)
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
    columns = LIST_VERSIONS.c
    meanwhile = select(columns.api_group, columns.kind, columns.resource_version).where(
        columns.cluster == cluster, columns.uid == uid, columns.revision > base
    )
    surpassing = {(group, kind): int(version) for group, kind, version in connection.execute(meanwhile)}
    left = {_key(each.list_version) for each in older}
    for listed in {_key(each): each for each in end.lists}.values():
        key = _key(listed)
        if key in left or int(listed.resource_version) < surpassing.get(key, 0):
            continue
        connection.execute(
            delete(LIST_VERSIONS).where(columns.cluster == cluster, columns.api_group == key[0], columns.kind == key[1])
        )
        row = {"cluster": cluster, "api_group": key[0], "kind": key[1], "uid": uid}
        connection.execute(
            insert(LIST_VERSIONS).values(row | {"resource_version": listed.resource_version, "revision": revision})
        )


def _key(listed: ListVersion) -> GroupKind:
    return _group_kind(listed.api_version, listed.kind)
