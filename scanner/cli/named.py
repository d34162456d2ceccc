"""A live cluster under the name that the user gives it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scanner.model.resource import Kind, Page, UserInfo
    from scanner.model.scan import ClusterIdentity
    from scanner.scan import Cluster, Discovery


class Named:
    """The same cluster, called otherwise."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name

    def identity(self) -> ClusterIdentity:
        """The cluster's own identity with the given name."""
        return replace(self._cluster.identity(), name=self._name)

    def requester(self) -> UserInfo:
        """See Cluster."""
        return self._cluster.requester()

    def discover(self) -> Discovery:
        """See Cluster."""
        return self._cluster.discover()

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """See Cluster."""
        return self._cluster.pages(kind, namespace=namespace, selector=selector)
