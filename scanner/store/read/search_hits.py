"""The results of a search over all clusters: hits of each kind, with their clusters."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from scanner.store.catalog.clusters import StoredCluster

_Hit = TypeVar("_Hit")


class Hits(NamedTuple, Generic[_Hit]):
    """Hits in the order of a page, at most as many as were asked for. `more` says that there are others."""

    first: tuple[_Hit, ...] = ()
    more: bool = False


class PolicyHit(NamedTuple):
    """A policy with the clusters whose newest scan has the policy; with none, only older scans do."""

    language: str
    name: str
    title: str
    clusters: tuple[StoredCluster, ...]


class WorkloadHit(NamedTuple):
    """A workload of other objects, with the clusters in which scans saw it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    clusters: tuple[StoredCluster, ...]


class ObjectHit(NamedTuple):
    """An object of a cluster. `present` is False if the newest scan that could see the object did not."""

    cluster: StoredCluster
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    present: bool


class OwnerHit(NamedTuple):
    """An owner, with the clusters that have objects, workloads or namespaces of the owner."""

    owner: str
    clusters: tuple[StoredCluster, ...]


class MessageHit(NamedTuple):
    """A message of a policy, with clusters that have findings with it. The object's name and namespace are `NAME` and `NAMESPACE`."""

    message: str
    language: str
    policy: str
    clusters: tuple[StoredCluster, ...]


class FindingHit(NamedTuple):
    """A finding by the beginning of its id."""

    id: str
    cluster: StoredCluster
    language: str
    policy: str
    api_version: str
    kind: str
    namespace: str
    name: str
    open: bool


class ProblemHit(NamedTuple):
    """A problem by the beginning of its id."""

    id: str
    cluster: StoredCluster
    language: str
    policy: str
    open: bool


class CheckHit(NamedTuple):
    """A check by the beginning of its id; the policy is empty if no finding and no tally of the check is stored."""

    id: str
    cluster: StoredCluster
    language: str
    policy: str


class ScanHit(NamedTuple):
    """A scan by the beginning of its id; `state` is the stored one."""

    id: str
    cluster: StoredCluster
    started_at: datetime
    state: str


class SearchHits(NamedTuple):
    """The hits of a search."""

    policies: Hits[PolicyHit] = Hits()
    workloads: Hits[WorkloadHit] = Hits()
    objects: Hits[ObjectHit] = Hits()
    owners: Hits[OwnerHit] = Hits()
    messages: Hits[MessageHit] = Hits()
    findings: Hits[FindingHit] = Hits()
    problems: Hits[ProblemHit] = Hits()
    checks: Hits[CheckHit] = Hits()
    scans: Hits[ScanHit] = Hits()


def cut_hits(hits: list[_Hit], limit: int, *, more: bool = False) -> Hits[_Hit]:
    """The first hits."""
    return Hits(tuple(hits[:limit]), more or len(hits) > limit)
