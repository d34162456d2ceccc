"""The line: discover, list, match, resolve params, evaluate, record.

This is the one place that joins the pure questions to the two edges. The edges are described here, by the two
Protocols, and satisfied by shape: the whole run is tested with two in-memory objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from scanner.model.outcome import Gap
from scanner.model.resource import Kind, Page, UserInfo
from scanner.model.scan import ClusterIdentity, PageResult, Scan, ScanEnd, ScanStart


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a cluster serves: every kind in every served version, a group's preferred version first.

    Kinds without the list verb, and subresources, are left out. `gaps` are groups that did not answer, and (for
    files) documents that could not be read.
    """

    kinds: tuple[Kind, ...]
    gaps: tuple[Gap, ...] = ()


class Cluster(Protocol):
    """A source of cluster state."""

    def identity(self) -> ClusterIdentity:
        """Which cluster this is."""
        ...

    def requester(self) -> UserInfo:
        """The identity that scans; it stands in for the requester in simulated requests."""
        ...

    def discover(self) -> Discovery:
        """Every served kind. Raises ClusterError when there is no cluster to talk to."""
        ...

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """The objects of a kind, page by page, of one namespace or of all, narrowed by a label selector.

        Raises ListFailed when the list is refused or breaks off; pages already yielded stay good.
        """
        ...


class Store(Protocol):
    """Where a scan is recorded. Only the parent process writes."""

    def begin(self, start: ScanStart) -> None:
        """Record that a scan runs, with the policies and bindings it uses."""
        ...

    def page(self, scan_id: str, result: PageResult) -> None:
        """Commit one page's outcomes and its completion together."""
        ...

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        """Merge the pages into history and make the scan visible, in one transaction."""
        ...
