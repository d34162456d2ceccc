"""The two edges of a scan, as Protocols: where objects come from, and where outcomes go.

Edges satisfy them by shape, so the whole run is tested with two in-memory objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from scanner.audit.page import PageEvaluator
from scanner.cel import Decider
from scanner.model.opinion import Opinion
from scanner.model.outcome import Gap
from scanner.model.resource import Kind, Page, UserInfo
from scanner.model.scan import (
    ClusterIdentity,
    Coverage,
    PageResult,
    Scan,
    ScanEnd,
    ScanStart,
)
from scanner.policies.mutating.mutation import Schemas
from scanner.policies.plan import KindPlan


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

    def authorizer(self) -> Decider | None:
        """Who answers what expressions ask about permissions; None where nobody may be asked.

        Raises ClusterError. What it cannot answer later is an AuthorizerFailed.
        """
        ...

    def schemas(self) -> Schemas:
        """How the objects of a kind are merged; asked only when some policy mutates."""
        ...

    def discover(self) -> Discovery:
        """Every served kind. Raises ClusterError when there is no cluster to talk to."""
        ...

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """Hear which lists are going to be read, in this order: kind, namespace and selector of each.

        A cluster that is far away may begin to fetch them.
        """
        ...

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """The objects of a kind, page by page, of one namespace or of all, narrowed by a label selector.

        A namespace narrows no cluster-scoped kind but that of namespaces themselves, where it may.

        Raises ListFailed when the list is refused or breaks off; pages already yielded stay good.
        """
        ...

    def paused(self) -> AbstractContextManager[None]:
        """A block in which nothing is fetched, and no thread of the cluster's runs: the process may be forked."""
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


Progress = Callable[[Coverage], None]


class Comparison(Protocol):
    """A second engine that evaluates a sample of the same objects; it changes no outcome."""

    def page(self, page: Page, plan: KindPlan, judging: PageEvaluator) -> None:
        """Compare on the objects of a page that are in the sample."""
        ...

    def opinion(self) -> Opinion:
        """Return what the comparison found."""
        ...
