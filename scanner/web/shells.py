"""The shells of pages that are about no single scan: about all clusters, or about one cluster."""

from __future__ import annotations

from datetime import UTC
from typing import Final

from starlette.requests import Request

from scanner.store.catalog.clusters import StoredCluster
from scanner.web.addresses import Moment, cluster_key
from scanner.web.library import Library
from scanner.web.parameters import has_accounts, root_of
from scanner.web.shell import Shell, path_of

LATEST: Final = Moment()


def cluster_path(request: Request, cluster: StoredCluster) -> str:
    """The path of a cluster, with that of the application."""
    return f"{root_of(request)}/clusters{path_of(cluster_key(cluster))}"


def fleet_shell(library: Library, request: Request, place: str, query: str = "") -> Shell:
    """The shell of a page about all clusters; `query` is the text of the search."""
    return Shell(root=root_of(request), place=place, query=query, today=today(library), accounts=has_accounts(request))


def cluster_shell(library: Library, request: Request, cluster: StoredCluster) -> Shell:
    """The shell of a page about one cluster."""
    path, day = cluster_path(request, cluster), today(library)
    moment = f"{path}/{LATEST.path}"
    return Shell(
        root=root_of(request),
        today=day,
        cluster=path,
        date=day,
        is_latest=True,
        moment=moment,
        accounts=has_accounts(request),
    )


def today(library: Library) -> str:
    """The day of UTC."""
    return f"{library.clock().astimezone(UTC):%Y-%m-%d}"
