"""A cluster that has introduced itself, under the name that the user gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scanner.cel import Decider
    from scanner.model.resource import Kind, Page, UserInfo
    from scanner.model.scan import ClusterIdentity
    from scanner.scan import Cluster, Discovery


class Named:
    """The same cluster, asked for its identity once; an empty name keeps its own."""

    def __init__(self, cluster: Cluster, name: str = "") -> None:
        """Ask for the identity. Raises ClusterError when there is no cluster to talk to."""
        self._cluster = cluster
        identity = cluster.identity()
        self._identity = replace(identity, name=name) if name else identity

    def identity(self) -> ClusterIdentity:
        """See Cluster."""
        return self._identity

    def requester(self) -> UserInfo:
        """See Cluster."""
        return self._cluster.requester()

    def authorizer(self) -> Decider | None:
        """See Cluster."""
        return self._cluster.authorizer()

    def discover(self) -> Discovery:
        """See Cluster."""
        return self._cluster.discover()

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """See Cluster."""
        self._cluster.expect(lists)

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """See Cluster."""
        return self._cluster.pages(kind, namespace=namespace, selector=selector)
