"""A cluster and a store in memory, which satisfy the Protocols of a scan by shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from scanner.audit.population import unpack
from scanner.cel import Decider
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.errors import ListFailed
from scanner.model.outcome import Finding, Gap
from scanner.model.population import GroupKind, PopulationMember
from scanner.model.resource import NAMESPACES, Kind, Page, UserInfo
from scanner.model.scans.scan import ClusterIdentity, Coverage, PageResult, Scan, ScanEnd, ScanStart, ServerCounts
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.scan.edges import Discovery
from scanner.scan.options import Options
from scanner.scan.run import run
from tests.documents import KINDS, Document

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass
class FakeCluster:
    """Documents by kind, `page_size` to a page.

    `refused` maps plurals to the exception of their list before its first page, `broken` to that after it, `raw` to pages
    that replace all others.
    """

    documents: Iterable[Document] = ()
    kinds: tuple[Kind, ...] = KINDS
    gaps: tuple[Gap, ...] = ()
    page_size: int = 2
    source: str = "cluster"
    user: UserInfo = field(default_factory=lambda: UserInfo("auditor", groups=("auditors",)))
    clerk: Decider | None = None
    refused: Mapping[str, BaseException] = field(default_factory=dict)
    broken: Mapping[str, BaseException] = field(default_factory=dict)
    raw: Mapping[str, list[bytes]] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    beat: Callable[[], None] = field(default=lambda: None)
    counts: ServerCounts = field(default=ServerCounts(why_not="no server"))
    counted: int = 0
    time: datetime | None = None
    resource_version: str = "100"

    def identity(self) -> ClusterIdentity:
        return ClusterIdentity("test", "uid-of-kube-system", "v1.36.0", self.source)

    def now(self) -> datetime | None:
        return self.time

    def requester(self) -> UserInfo:
        return self.user

    def authorizer(self) -> Decider | None:
        return self.clerk

    def schemas(self) -> KnownSchemas:
        return KnownSchemas(builtin_schemas())

    def discover(self) -> Discovery:
        return Discovery(self.kinds, self.gaps)

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        self.expected = [f"{place}/{kind.resource}" if place else kind.resource for kind, place, _ in lists]

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        self.listed.append(f"{namespace}/{kind.resource}" if namespace else kind.resource)
        for trouble in (self.refused.get(kind.resource), self.refused.get(f"{namespace}/{kind.resource}")):
            if trouble:
                raise trouble
        for number, data in enumerate(self._pages(kind, namespace, selector), start=1):
            yield Page(kind, number, data, resource_version=self.resource_version)
            if number == 1 and kind.resource in self.broken:
                raise self.broken[kind.resource]

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """The metadata of the documents, as a server sends it; refused or broken where `metadata/PLURAL` is."""
        name = f"metadata/{namespace}/{kind.resource}" if namespace else f"metadata/{kind.resource}"
        self.listed.append(name)
        for refusal in (self.refused.get(f"metadata/{kind.resource}"), self.refused.get(name)):
            if refusal:
                raise refusal
        pages = self.raw.get(f"metadata/{kind.resource}") or [
            json.dumps({"items": [_metadata_of(item) for item in json.loads(data)["items"]]}).encode()
            for data in self._pages(kind, namespace, "")
        ]
        for number, data in enumerate(pages, start=1):
            yield Page(kind, number, data, resource_version=self.resource_version)
            if number == 1 and f"metadata/{kind.resource}" in self.broken:
                raise self.broken[f"metadata/{kind.resource}"]

    def object_counts(self) -> ServerCounts:
        """See Cluster."""
        self.counted += 1
        return self.counts

    def while_waiting(self, beat: Callable[[], None]) -> None:
        self.beat = beat

    def pause(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _pages(self, kind: Kind, namespace: str, selector: str) -> list[bytes]:
        if kind.resource in self.raw:
            return self.raw[kind.resource]
        here = ("", *([] if kind.namespaced else [namespace]))
        items = [
            item
            for item in self._items(kind, selector)
            if namespace in here or namespace == item["metadata"].get("namespace")
        ]
        starts = range(0, max(len(items), 1), self.page_size)
        return [json.dumps({"items": items[start : start + self.page_size]}).encode() for start in starts]

    def _items(self, kind: Kind, selector: str) -> list[dict[str, Any]]:
        """The objects as in list responses: without apiVersion and kind."""
        key, _, value = selector.partition("=")
        return [
            {"metadata": document["metadata"], **{k: v for k, v in document.items() if k not in ("apiVersion", "kind")}}
            for document in self.documents
            if (document["apiVersion"], document["kind"]) == (kind.api_version, kind.kind)
            and (not key or document["metadata"].get("labels", {}).get(key) == value)
        ]


def _metadata_of(item: dict[str, Any]) -> dict[str, Any]:
    """An object of a metadata-only list."""
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": item["metadata"]}


@dataclass
class FakeStore:
    """Keeps everything that a scan records."""

    starts: list[ScanStart] = field(default_factory=list)
    pages: list[PageResult] = field(default_factory=list)
    ends: list[ScanEnd] = field(default_factory=list)
    intermediates: list[PopulationMember] = field(default_factory=list)
    namespaces: list[PopulationMember] = field(default_factory=list)
    beats: list[str] = field(default_factory=list)
    time: datetime | None = None
    resource_version: str = "100"

    def now(self) -> datetime | None:
        return self.time

    def begin(self, start: ScanStart) -> None:
        self.starts.append(start)

    def pack(self, result: PageResult) -> PageResult:
        return result

    def beat(self, scan_id: str) -> None:
        self.beats.append(scan_id)

    def write_page(self, scan_id: str, result: PageResult) -> None:
        self.pages.append(result)

    def write_controllers(self, scan_id: str, kind: Kind, objects: bytes) -> None:
        (self.namespaces if kind == NAMESPACES else self.intermediates).extend(unpack(kind, objects))

    def workload_kinds(self, scan_id: str) -> frozenset[GroupKind]:
        return frozenset()

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        self.ends.append(end)
        start = self.starts[-1]
        return Scan(
            scan_id,
            start.cluster,
            start.started_at,
            end.finished_at,
            end.state,
            start.scope,
            start.tool_version,
            findings=sum(len(page.findings) for page in self.pages),
        )


@dataclass(frozen=True)
class Recorded:
    """Everything that a scan recorded in its store."""

    scan: Scan
    start: ScanStart
    end: ScanEnd
    pages: tuple[PageResult, ...]
    namespaces: tuple[PopulationMember, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order in which they were recorded."""
        return tuple(finding for page in self.pages for finding in page.findings)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """All gaps."""
        return self.end.gaps

    @property
    def tallies(self) -> dict[TallyKey, int]:
        """The counts of all pages together."""
        total: dict[TallyKey, int] = {}
        for page in self.pages:
            for key, count in page.tallies.items():
                total[key] = total.get(key, 0) + count
        return total

    def counted(self, *names: OutcomeName) -> int:
        """The number of outcomes with one of these names, or of all outcomes."""
        return sum(count for key, count in self.tallies.items() if not names or key.outcome in names)

    def coverage(self, kind: str, api_version: str = "") -> Coverage:
        """The coverage of one kind."""
        return next(
            coverage
            for coverage in self.end.coverage
            if coverage.kind == kind and api_version in ("", coverage.api_version)
        )

    @property
    def messages(self) -> list[str]:
        """The findings as `namespace/name: message`, sorted."""
        return sorted(f"{finding.namespace}/{finding.name}: {finding.outcome.message}" for finding in self.findings)

    @property
    def health(self) -> list[tuple[str, str, str]]:
        """Kind, policy and binding of each problem in policy health."""
        return [(str(problem.kind), problem.policy, problem.binding) for problem in self.end.health]


def scanned(cluster: FakeCluster, options: Options | None = None, workers: int = 1) -> Recorded:
    """Scan a cluster at noon, and return the records."""
    store = FakeStore()
    scan = run(cluster, store, options or Options(), scan_id="s1", clock=lambda: NOON, workers=workers)
    return Recorded(scan, store.starts[0], store.ends[0], tuple(store.pages), tuple(store.namespaces))


def changed(cluster: FakeCluster, **fields: Any) -> FakeCluster:
    """The same cluster with other fields, before any list."""
    return replace(cluster, **{"listed": [], **fields})


def forbidden(what: str) -> ListFailed:
    """The error of a list without permission."""
    return ListFailed("forbidden", f"cannot list {what}: forbidden")
