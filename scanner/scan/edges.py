"""The edges of a scan, as Protocols: the source of the objects, and the store of the outcomes.

Edges satisfy the Protocols by shape, so tests run a whole scan with two in-memory objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from scanner.cel import Decider
from scanner.model.json import JsonObject
from scanner.model.outcome import Gap
from scanner.model.population import GroupKind
from scanner.model.resource import Kind, Page, UserInfo
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import ClusterIdentity, Coverage, PageResult, Scan, ScanEnd, ScanStart, ServerCounts
from scanner.mutate.schema import Schemas
from scanner.policies.plan import KindPlan

if TYPE_CHECKING:
    from scanner.audit.page import PageEvaluator
    from scanner.model.scans.opinion import Opinion


@dataclass(frozen=True, slots=True)
class Discovery:
    """The kinds of a cluster: every kind in every served version, a group's preferred version first.

    Subresources and kinds without the list verb are left out. `gaps` are groups that did not answer, and (for files) documents
    that could not be read; `kinds_of_gaps` has the group and the kind of those documents that name them.

    With `withholds`, the kinds are those of a snapshot, whose pages name the places that it withholds.

    The rest is empty except for files. `outside` are files of other tools. `unlabelled` are the namespaces whose labels are not
    known, each with the kinds of its objects, and `namespaces` the Namespaces that the user describes. `notes` are sentences.
    """

    kinds: tuple[Kind, ...]
    gaps: tuple[Gap, ...] = ()
    kinds_of_gaps: Mapping[Gap, GroupKind] = field(default_factory=dict)
    outside: tuple[OutOfScope, ...] = ()
    unlabelled: Mapping[str, frozenset[Kind]] = field(default_factory=dict)
    namespaces: tuple[JsonObject, ...] = ()
    notes: tuple[str, ...] = ()
    withholds: bool = False


class Cluster(Protocol):
    """A source of cluster state."""

    def identity(self) -> ClusterIdentity:
        """The identity of the cluster."""
        ...

    def now(self) -> datetime | None:
        """The time of the API server's clock, None without an API server. Raises ClusterError if the server does not answer."""
        ...

    def requester(self) -> UserInfo:
        """The identity of the scanner; it makes the simulated requests by default."""
        ...

    def authorizer(self) -> Decider | None:
        """The authorizer that answers the permission checks of expressions; None if the cluster has none.

        Raises ClusterError. A later check without an answer raises AuthorizerFailed.
        """
        ...

    def schemas(self) -> Schemas:
        """The schemas by which objects of a kind are merged; only mutating policies need them."""
        ...

    def discover(self) -> Discovery:
        """Every served kind. Raises ClusterError if the cluster cannot be reached."""
        ...

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """Announce the lists that will be read, in this order: kind, namespace and selector of each.

        A remote cluster may begin to fetch them.
        """
        ...

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """The objects of a kind, page by page, of one namespace or of all (""), narrowed by a label selector.

        A namespace narrows no cluster-scoped kind except Namespace, which it may narrow. Raises ListFailed if the server denies
        the list or the list breaks off; pages already yielded stay valid.
        """
        ...

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """The objects of a kind, page by page, of one namespace or of all, with their metadata at least.

        Items are of the kind `PartialObjectMetadata`, or of their own. Raises ListFailed as `pages` does.
        """
        ...

    def object_counts(self) -> ServerCounts:
        """The API server's own counts of stored objects, or the reason why there are none. Never raises."""
        ...

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """Call `beat` about once a second, in the thread of the reader, whenever the reader waits for a page.

        While the reader waits for another answer, `beat` is called before each request at least.
        """
        ...

    def pause(self) -> AbstractContextManager[None]:
        """A block in which the cluster fetches nothing and runs no thread: the process may be forked."""
        ...


class PageSink(Protocol):
    """The part of a store that takes the pages of a scan."""

    def write_page(self, scan_id: str, result: PageResult) -> None:
        """Commit the outcomes and the completion of one page together, packed or not. Raises StoreError."""
        ...

    def write_controllers(self, scan_id: str, kind: Kind, objects: bytes) -> None:
        """Keep objects that were read for the workloads or owners of others alone, packed by `audit.population`.

        Of a kind that is evaluated, none is kept.
        """
        ...

    def workload_kinds(self, scan_id: str) -> Collection[GroupKind]:
        """The kinds of the workloads of the findings that were open when the scan began. Raises StoreError."""
        ...


class Store(PageSink, Protocol):
    """The store of a scan. Only the parent process writes."""

    def now(self) -> datetime | None:
        """The time of the database's own clock, None for a database without a server. Raises StoreError."""
        ...

    def begin(self, start: ScanStart) -> None:
        """Record that a scan runs, with its policies, bindings, rules and method. Raises StoreError."""
        ...

    def pack(self, result: PageResult) -> PageResult:
        """The result in a form for `write_page` that is short, and quick to write. Runs in workers, apart from the store's connections."""
        ...

    def beat(self, scan_id: str) -> None:
        """Record that the scan still runs; called often, and never raises."""
        ...

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        """Merge the pages into history and make the scan visible, in one transaction. Raises StoreError."""
        ...


Progress = Callable[[Coverage], None]


class ComparisonEngine(Protocol):
    """A second engine that evaluates a sample of the same objects; it changes no outcome."""

    def compare_page(self, page: Page, plan: KindPlan, page_evaluator: PageEvaluator) -> None:
        """Compare the engines on the sampled objects of a page."""
        ...

    def opinion(self) -> Opinion:
        """The result of the comparison so far."""
        ...
