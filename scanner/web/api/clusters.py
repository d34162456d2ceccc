"""`/clusters` and `/clusters/{cluster}/scans`: which clusters the database has, and the scans of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta

from scanner.model.scans.scan import Scan
from scanner.posture.run_register import ClusterState
from scanner.report.runs.json import scan_json
from scanner.store.catalog.clusters import StoredCluster
from scanner.store.catalog.scans import ListedScan
from scanner.web.api.api_request import NOT_HERE, ApiRequest, Cursor
from scanner.web.api.endpoints import ApiAnswer, Endpoint, ListPage
from scanner.web.api.queries import ListQuery, Query
from scanner.web.api.schemas import ListedScanJson, NewestScanJson
from scanner.web.requests.refusals import BadRequest
from scanner.web.views.fleet_rows import states_of
from scanner.web.views.library import ScanLibrary

_HIGHEST: Final = 2**31 - 1


class Cluster(ApiAnswer, frozen=True, kw_only=True):
    """A cluster with a complete or incomplete scan."""

    key: Annotated[str, Meta(description="The part of a path that names the cluster, for ever.")]
    name: Annotated[str, Meta(description="The name of the cluster.")]
    newest_scan: Annotated[NewestScanJson | None, Meta(description="The newest complete or incomplete scan.")]
    states: Annotated[
        list[ClusterState],
        Meta(
            description="silent: the last run is older than the schedule allows. neverComplete: no scan has been complete. "
            "left: the file of the fleet does not name the cluster. Else empty."
        ),
    ]


class Clusters(ListPage, frozen=True, kw_only=True):
    """The clusters, the oldest first."""

    clusters: list[Cluster]


class Scans(ListPage, frozen=True, kw_only=True):
    """The scans of a cluster in any state, the newest first."""

    cluster: Annotated[str, Meta(description="The name of the cluster.")]
    scans: list[ListedScanJson]


def clusters(request: ApiRequest[ListQuery]) -> Clusters:
    """A page of the clusters."""
    every = request.library.clusters()
    after = _number(request)
    later = [cluster for cluster in every if cluster.id > after]
    shown, more = later[: request.query.limit], len(later) > request.query.limit
    with request.library.use_reader() as reader:
        newest = reader.find_newest_scan_of_clusters()
    states = _states(request.library)
    return Clusters(
        total=len(every),
        next=Cursor("", (shown[-1].id,)).text() if more else None,
        clusters=[_cluster(request, cluster, newest.get(cluster.id), states) for cluster in shown],
    )


def cluster(request: ApiRequest[Query]) -> Cluster:
    """One cluster."""
    with request.library.use_reader() as reader:
        newest = reader.find_newest_scan(request.cluster.id)
    return _cluster(request, request.cluster, newest, _states(request.library))


def scans(request: ApiRequest[ListQuery]) -> Scans:
    """A page of the scans of a cluster."""
    before = _number(request) if request.cursor else None
    with request.library.use_reader() as reader:
        page = reader.read_scan_page(request.cluster.id, before=before, limit=request.query.limit + 1)
    shown = page.scans[: request.query.limit]
    return Scans(
        cluster=request.cluster.name,
        total=page.total,
        next=Cursor("", (shown[-1].number,)).text() if len(page.scans) > len(shown) else None,
        scans=[_scan(each) for each in shown],
    )


def _number(request: ApiRequest[ListQuery]) -> int:
    """The number after which a page begins; 0 for the first page."""
    if request.cursor is None:
        return 0
    [number] = request.cursor.numbers(1)
    if request.cursor.scan or not 0 <= number <= _HIGHEST:
        raise BadRequest(NOT_HERE)
    return number


def _states(library: ScanLibrary) -> Mapping[int, list[ClusterState]]:
    """The states of all clusters, by their ids."""
    now, expectations = library.clock(), library.expectations
    return {each.cluster.id: list(states_of(each, now, expectations)) for each in library.fleet().clusters}


def _cluster(
    request: ApiRequest[ListQuery] | ApiRequest[Query],
    stored: StoredCluster,
    newest: Scan | None,
    states: Mapping[int, list[ClusterState]],
) -> Cluster:
    return Cluster(
        key=request.library.key(stored),
        name=stored.name,
        newest_scan=None if newest is None else scan_json(newest),
        states=states.get(stored.id, []),
    )


def _scan(listed: ListedScan) -> dict[str, object]:
    scan = listed.scan
    return {**scan_json(scan), "new": scan.new, "resolved": scan.resolved, "pruned": listed.pruned}


ENDPOINTS: Final = (
    Endpoint("listClusters", "/clusters", "List the clusters.", ListQuery, Clusters, clusters),
    Endpoint("getCluster", "/clusters/{cluster}", "Get one cluster.", Query, Cluster, cluster),
    Endpoint(
        "listScans", "/clusters/{cluster}/scans", "List the scans of a cluster in any state.", ListQuery, Scans, scans
    ),
)
