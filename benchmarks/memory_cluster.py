"""A cluster whose lists are in memory: a scan of it is whole but for the network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from benchmarks.objects import Made
from scanner.cel import Decider
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.json import JsonObject, as_object, as_text
from scanner.model.resource import Kind, Page, UserInfo
from scanner.model.scans.scan import ClusterIdentity, ServerCounts
from scanner.scan.edges import Discovery

_PAGE: Final = 500

Lists: TypeAlias = Mapping[tuple[str, str], list[bytes]]


@dataclass(frozen=True)
class MemoryCluster:
    """A cluster with these pages, by API version and kind."""

    lists: Lists

    def identity(self) -> ClusterIdentity:
        """The identity of the cluster."""
        return ClusterIdentity("benchmark", "uid-of-kube-system", "v1.36.0")

    def now(self) -> None:
        """No time: a cluster in memory has no API server."""

    def requester(self) -> UserInfo:
        """The user that scans."""
        return UserInfo("auditor", groups=("system:authenticated",))

    def object_counts(self) -> ServerCounts:
        """No counts."""
        return ServerCounts(why_not="a cluster in memory has no API server")

    def authorizer(self) -> Decider | None:
        """No authorizer."""
        return None

    def schemas(self) -> KnownSchemas:
        """The schemas of Kubernetes."""
        return KnownSchemas(builtin_schemas())

    def discover(self) -> Discovery:
        """The kinds of Kubernetes."""
        return Discovery(builtin_kinds())

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """Do nothing: lists in memory never wait."""

    def pause(self) -> AbstractContextManager[None]:
        """Pause nothing."""
        return nullcontext()

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """Fetch nothing ahead."""

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """The pages of a kind."""
        del namespace, selector
        return self.metadata(kind)

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """The same pages: a server would leave the rest out."""
        del namespace
        for number, data in enumerate(self.lists.get((kind.api_version, kind.kind), [b'{"items":[]}']), start=1):
            yield Page(kind, number, data, resource_version="1")


def stored(made: Made, uid: int, resource_version: str = "1") -> JsonObject:
    """An object as the server would list it."""
    server_set = {"uid": f"{uid:08d}-0000-4000-8000-000000000000", "resourceVersion": resource_version}
    metadata = {**as_object(made.body["metadata"]), **server_set}
    return {**made.body, "metadata": metadata, **({"status": made.status} if made.status else {})}


def paged(objects: Iterable[JsonObject]) -> Lists:
    """The pages of all objects by kind."""
    by_kind: defaultdict[tuple[str, str], list[JsonObject]] = defaultdict(list)
    for body in objects:
        by_kind[as_text(body["apiVersion"]), as_text(body["kind"])].append(body)
    return {key: [*_pages(items)] for key, items in by_kind.items()}


def _pages(items: list[JsonObject]) -> Iterator[bytes]:
    for start in range(0, len(items), _PAGE):
        yield orjson.dumps({"items": items[start : start + _PAGE]})
