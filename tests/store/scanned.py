"""Scans of a changing cluster into a store, and what each of them recorded of findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import Any, TypeAlias

from scanner import __version__
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind, Page
from scanner.model.scans.scan import ClusterIdentity, Scan, ScanEnd, ScanStart, Scope
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.scans.stored_scan import StoredScan
from scanner.policies.language import LANGUAGES, Language
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import SqlStore
from tests.documents import KINDS, Document
from tests.scan.fakes import FakeCluster, forbidden
from tests.store.made import DAWN

Facts: TypeAlias = dict[tuple[str, str, str], tuple[str, ...]]
"""The change, the kind of the check, and the name of the object of findings: the resolution, if any, and the kinds of the cause."""


@dataclass
class _Versioned(FakeCluster):
    name: str = ""
    version: str = "v1.36.0"
    at_list: Callable[[str], object] = field(default=lambda _: None)

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        self.at_list(kind.resource)
        yield from super().pages(kind, namespace=namespace, selector=selector)

    def identity(self) -> ClusterIdentity:
        return ClusterIdentity(self.name, f"uid-of-{self.name}", self.version, self.source)


class _Begun:
    """A store in which scans are those of a version of Assay; `meanwhile` happens before a scan ends."""

    def __init__(self, store: SqlStore, assay: str, meanwhile: Callable[[], object]) -> None:
        self._store, self._assay, self._meanwhile = store, assay, meanwhile

    def begin(self, start: ScanStart) -> None:
        self._store.begin(replace(start, tool_version=self._assay))

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        self._meanwhile()
        return self._store.finish(scan_id, end)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@dataclass
class Story:
    """Scans of one cluster, one each day."""

    store: SqlStore
    languages: tuple[Language, ...] = LANGUAGES
    kinds: tuple[Kind, ...] = KINDS
    source: str = "cluster"
    name: str = "story"
    scans: str = "scan"
    days: count[int] = field(default_factory=lambda: count(1))

    def scan(
        self,
        documents: Iterable[Document],
        *,
        server: str = "v1.36.0",
        assay: str = __version__,
        meanwhile: Callable[[], object] = lambda: None,
        at_list: Callable[[str], object] = lambda _: None,
        without: Iterable[Kind] = (),
        refused: Iterable[str] = (),
        gaps: Iterable[tuple[str, str]] = (),
        resource_version: str = "100",
        allow_empty: bool = True,
        **options: Any,
    ) -> StoredScan:
        """Scan these documents with a version of the server and of Assay.

        The cluster does not serve the kinds in `without`, and refuses the lists in `refused`; `gaps` are those of discovery. `meanwhile` happens before the end,
        `at_list` when the list of a resource begins.
        """
        day = next(self.days)
        cluster = _Versioned(
            list(documents),
            kinds=tuple(kind for kind in self.kinds if kind not in without),
            source=self.source,
            name=self.name,
            version=server,
            at_list=at_list,
            resource_version=resource_version,
            refused={name: forbidden(name) for name in refused},
            gaps=tuple(Gap(GapKind(kind), where, "did not answer") for kind, where in gaps),
        )
        options = {"scope": Scope(), **options}
        wanted = Options(languages=self.languages, allow_empty=allow_empty, **options)
        at = DAWN + timedelta(days=day)
        store = _Begun(self.store, assay, meanwhile)
        scanned = run(cluster, store, wanted, scan_id=f"{self.scans}-{day}", clock=lambda: at)  # type: ignore[arg-type]
        return self.store.read_scan(scanned.id)


def facts(record: StoredScan) -> Facts:
    """What a scan changed."""
    changed = {_key(stored, stored.status): _cause(stored) for stored in record.findings() if stored.cause}
    resolved = {_key(stored, "resolved"): (stored.resolution, *_cause(stored)) for stored in record.resolved_findings()}
    return {**changed, **resolved}


def _key(stored: StoredFinding, change: str) -> tuple[str, str, str]:
    finding = stored.finding
    return change, finding.check.kind.value, "/".join(filter(None, (finding.namespace, finding.name)))


def _cause(stored: StoredFinding) -> tuple[str, ...]:
    return tuple(kind.value for kind in stored.cause.kinds) if stored.cause else ()


def versioned(document: Document, version: int) -> Document:
    """An object as a server has it: with a UID and a resource version."""
    metadata = document["metadata"]
    uid = f"uid-{metadata.get('namespace', '')}-{metadata['name']}"
    return {**document, "metadata": {**metadata, "uid": uid, "resourceVersion": str(version)}}
