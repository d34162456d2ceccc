"""The scans that began after another one and were merged before it: what they saw of an object is newer.

A revision is given at the end of a scan, so it does not tell which of two overlapping scans saw an object later. The numbers of scans
are given at their beginning, and the resource versions of two lists of a kind tell which of them is newer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from scanner.model.population import GroupKind
from scanner.model.scan import ListVersion, Scope
from scanner.posture.causes import Circumstances
from scanner.store import codec
from scanner.store.causes import EarlierScan, FindingPlace
from scanner.store.sightings import MergedScan, merged_scans
from scanner.store.tables import COVERAGE, SCANS


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
        """Whether there is such a list."""
        return bool(self.scans)

    def have(self, object_id: int, since: int) -> bool:
        """Return whether one has an object, or began the object's interval, which begins with a revision."""
        return since in self.scans or any(
            scan.examined(self.api_version, self.kind, object_id) for scan in self.scans.values()
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
        own = SCANS.c
        this = connection.execute(
            select(own.cluster, own.base, own.scope, own.requester).where(own.number == number)
        ).one()
        later = own.cluster == this.cluster, own.revision > this.base, own.number > number
        merged = {each.revision: each for each in merged_scans(connection, this.cluster, after=this.base)}
        request = codec.from_text(Scope, this.scope).operation, this.requester
        self._scans = [
            _LaterScan(
                merged[row.revision],
                _versions(connection, row.number),
                EarlierScan(connection, row.number, circumstances),
                (codec.from_text(Scope, row.scope).operation, row.requester) == request,
            )
            for row in connection.execute(
                select(own.number, own.revision, own.scope, own.requester).where(*later)
            ).all()
        ]

    def __bool__(self) -> bool:
        """Whether there is a later scan."""
        return bool(self._scans)

    def overtook(self, finding: FindingPlace, ended: int) -> bool:
        """Return whether a later scan shows that a finding is not open, which the scan of the revision `ended` has resolved, or none."""
        return any(
            self._newer(scan, finding)
            and (scan.merged.revision == ended or (scan.same_request and scan.scan.would_have(finding)))
            for scan in self._scans
        )

    def saw(self, finding: FindingPlace, number: int, since: int) -> bool:
        """Return whether a later scan saw the open row of a finding, given the row's id and first revision."""
        return any(scan.merged.saw(number, since) and self._newer(scan, finding) for scan in self._scans)

    def newer_lists(self, api_version: str, kind: str) -> NewerLists:
        """The lists of a kind that later scans read after this one."""
        newer = (scan for scan in self._scans if self._is_newer(scan, _group_kind(api_version, kind)))
        return NewerLists(api_version, kind, {scan.merged.revision: scan.scan for scan in newer})

    def _newer(self, later: _LaterScan, finding: FindingPlace) -> bool:
        """Return whether the list of a later scan is newer; without resource versions to compare, its beginning decides."""
        return self._is_newer(later, _group_kind(finding.api_version, finding.kind))

    def _is_newer(self, later: _LaterScan, kind: GroupKind) -> bool:
        versions = self._versions.get(kind, ""), later.versions.get(kind, "")
        if not all(version.isascii() and version.isdecimal() for version in versions):
            return True
        return int(versions[0]) <= int(versions[1])


def _versions(connection: Connection, number: int) -> dict[GroupKind, str]:
    own = COVERAGE.c
    rows = connection.execute(select(own.api_version, own.kind, own.resource_version).where(own.scan == number))
    return {_group_kind(api_version, kind): version for api_version, kind, version in rows}


def _group_kind(api_version: str, kind: str) -> GroupKind:
    return api_version.rpartition("/")[0], kind
