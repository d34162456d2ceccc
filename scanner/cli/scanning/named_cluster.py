"""A cluster under the name that the user gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime

    from scanner.cel import AuthorizerAnswer, Decider, Question
    from scanner.cli.scanning.interruption import Interruption
    from scanner.model.resource import Kind, Page, UserInfo
    from scanner.model.scans.scan import ClusterIdentity, ServerCounts
    from scanner.mutate.schema import Conversion, Schema, Schemas
    from scanner.scan.edges import Cluster, Discovery


class NamedCluster:
    """The same cluster with its identity read once; an empty name keeps the cluster's own.

    While the scan runs, an interruption may end calls that wait for the cluster, and nothing else.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str = "",
        interruption: Interruption | None = None,
        expected: Callable[[int | None], None] = lambda _: None,
    ) -> None:
        """Read the identity. `expected` is called with the number of objects that the lists will have, as far as it is known.

        Raises ClusterError when the cluster cannot be reached.
        """
        self._cluster = cluster
        self._counts: Mapping[str, int] = {}
        self._expected = expected
        self._interruption = interruption
        self._interruptible = interruption.interruptible if interruption else nullcontext
        with self._interruptible():
            identity = cluster.identity()
        self._identity = replace(identity, name=name, given_name=name) if name else identity

    def identity(self) -> ClusterIdentity:
        """See Cluster."""
        return self._identity

    def now(self) -> datetime | None:
        """See Cluster."""
        with self._interruptible():
            return self._cluster.now()

    def requester(self) -> UserInfo:
        """See Cluster."""
        with self._interruptible():
            return self._cluster.requester()

    def authorizer(self) -> Decider | None:
        """See Cluster. A signal ends the wait for each answer."""
        with self._interruptible():
            decider = self._cluster.authorizer()
        return _Decider(decider, self._interruptible) if decider else None

    def schemas(self) -> Schemas:
        """See Cluster. A signal ends the wait for each schema."""
        return _Schemas(self._cluster.schemas(), self._interruptible)

    def discover(self) -> Discovery:
        """See Cluster."""
        with self._interruptible():
            return self._cluster.discover()

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """See Cluster."""
        named = tuple(lists)
        self._expected(self._total(kind for kind, _, _ in named))
        self._cluster.expect(named)

    def _total(self, kinds: Iterable[Kind]) -> int | None:
        """The number of objects of some kinds that the server counts, None without counts."""
        names = {kind.resource for kind in kinds}
        return sum(self._counts.get(name, 0) for name in names) if self._counts else None

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """See Cluster."""
        yield from self._interruptible_pages(self._cluster.pages(kind, namespace=namespace, selector=selector))

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """See Cluster."""
        yield from self._interruptible_pages(self._cluster.metadata(kind, namespace=namespace))

    def _interruptible_pages(self, pages: Iterator[Page]) -> Iterator[Page]:
        while True:
            with self._interruptible():
                page = next(pages, None)
            if page is None:
                return
            yield page

    def object_counts(self) -> ServerCounts:
        """See Cluster."""
        with self._interruptible():
            counts = self._cluster.object_counts()
        self._counts = counts.counts
        return counts

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """See Cluster. From now on the scan is recorded as running: a signal waits for the current page."""
        if self._interruption:
            self._interruption.protect()
        self._cluster.while_waiting(beat)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """See Cluster."""
        with ExitStack() as stack:
            with self._interruptible():
                stack.enter_context(self._cluster.pause())
            yield


class _Decider:
    """An authorizer whose answers a signal may interrupt."""

    def __init__(self, decider: Decider, interruptible: Callable[[], AbstractContextManager[None]]) -> None:
        self._decider = decider
        self._interruptible = interruptible

    def decide(self, question: Question) -> AuthorizerAnswer:
        """See Decider."""
        with self._interruptible():
            return self._decider.decide(question)


class _Schemas:
    """Schemas whose requests a signal may interrupt."""

    def __init__(self, schemas: Schemas, interruptible: Callable[[], AbstractContextManager[None]]) -> None:
        self._schemas = schemas
        self._interruptible = interruptible

    def schema(self, kind: Kind) -> Schema | None:
        """See Schemas."""
        with self._interruptible():
            return self._schemas.schema(kind)

    def conversion(self, kind: Kind) -> Conversion:
        """See Schemas."""
        with self._interruptible():
            return self._schemas.conversion(kind)
