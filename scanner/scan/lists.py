"""The lists that a scan makes, within its scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from scanner.audit.items import decode_items, find_item_fault
from scanner.cel import Decider
from scanner.errors import ListFailed
from scanner.model.json import as_object
from scanner.model.missing_right import parse_missing_right
from scanner.model.resource import NAMESPACES, Kind, Page, Resource, resource_of
from scanner.model.scans.scan import ListVersion, Scope
from scanner.scan.edges import Cluster
from scanner.scan.workers.relay import Relay


class ScanLists:
    """The cluster's lists, within the user's scope; with `ahead` the cluster may fetch lists before they are read."""

    def __init__(
        self,
        cluster: Cluster,
        scope: Scope,
        *,
        ahead: bool,
        withheld: bool = False,
        kept: dict[tuple[Kind, str], tuple[Resource, ...]] | None = None,
    ) -> None:
        """`withheld` tells that the cluster is a snapshot, of which the pages name the places that it withholds.

        With `kept`, each list of `list_all` is made once, and its objects are added there.
        """
        self._cluster = cluster
        self._kept = kept
        self._withheld = withheld
        self._ahead = ahead
        self._scope = scope
        self.relay = Relay(cluster.schemas)
        self._versions: dict[tuple[str, str], ListVersion] = {}
        self._namespaces: tuple[Resource, ...] | None = None
        self._namespace_pages: list[Page] = []
        self.scoped = scope.namespaces
        self.namespaces = scope.namespaces or ("",)

    def list_all(self, kind: Kind, namespaces: Iterable[str] = ("",), *, keep: bool = True) -> Iterator[Resource]:
        """Every object of a kind in some namespaces, once. The scope of the scan does not apply. Without `keep` no list is kept.

        The empty namespace stands for all of them. The list of all Namespaces is made once. Raises ListFailed, and ValueError for a
        page that cannot be decoded.
        """
        identities: set[tuple[str, str]] = set()
        for namespace in namespaces:
            for resource in (
                self._list_once(kind, namespace, keep=keep) if kind != NAMESPACES else self._list_namespaces(namespace)
            ):
                if (resource.namespace, resource.name) not in identities:
                    identities.add((resource.namespace, resource.name))
                    yield resource

    def _list_once(self, kind: Kind, namespace: str, *, keep: bool) -> Iterable[Resource]:
        """The objects of one list, from the kept ones if lists are kept. A list that fails is made again."""
        if self._kept is None or not keep:
            return self._list(kind, namespace)
        if (kind, namespace) not in self._kept:
            self._kept[kind, namespace] = tuple(self._list(kind, namespace))
        return self._kept[kind, namespace]

    def fetch_ahead(self) -> None:
        """Let the cluster fetch the lists that are announced from now on before they are read."""
        self._ahead = True

    def _list_namespaces(self, name: str) -> Iterable[Resource]:
        """The Namespace of a name, or all of them: two lists of all could differ in a label that decides about other objects."""
        if self._namespaces is None and name:
            return self._list(NAMESPACES, name)
        if self._namespaces is None:
            pages: list[Page] = []
            self._namespaces = tuple(self._list(NAMESPACES, "", pages))
            self._namespace_pages = pages
        return (resource for resource in self._namespaces if name in ("", resource.name))

    def _list(self, kind: Kind, namespace: str, kept_pages: list[Page] | None = None) -> Iterator[Resource]:
        """The objects of one list, whose pages are added to `kept`; raises ListFailed at its end if objects may be missing."""
        inconsistencies: list[str] = []
        for page in self._note_versions(self._cluster.pages(kind, namespace=namespace), kind, rules=True):
            inconsistencies += [page.inconsistency] if page.inconsistency else []
            if kept_pages is not None:
                kept_pages.append(page)
            yield from decode_objects(page, withheld=self._withheld)
        if inconsistencies:
            raise ListFailed(
                "failed", f"cannot list all {kind.resource}: {'; '.join(dict.fromkeys(inconsistencies))}. Scan again"
            )

    def expect(self, kinds: Iterable[Kind]) -> None:
        """Announce to the cluster the kinds whose objects will be evaluated, in the order of their lists."""
        evaluated = [kind for kind in kinds if not self.find_exclusion(kind)]
        if NAMESPACES not in evaluated or self._scope.selector:
            self._namespace_pages = []
        kinds_to_list = [
            kind for kind in evaluated if self._ahead and not (kind == NAMESPACES and self._namespace_pages)
        ]
        self._cluster.expect((kind, place, self._scope.selector) for kind in kinds_to_list for place in self.namespaces)

    def authorizer(self) -> Decider | None:
        """The authorizer for the permission checks of expressions, in any process; None if the cluster has none.

        Raises ClusterError.
        """
        decider = self._cluster.authorizer()
        return self.relay.use_decider(decider) if decider else None

    def list_pages(self, kind: Kind) -> Iterator[Iterator[Page]]:
        """The pages of a kind to evaluate: an iterator for each namespace of the scope, or a single one for all namespaces.

        Those of Namespaces are the pages that decided about other objects, if they were kept. Reading the pages raises ListFailed.
        """
        if kind == NAMESPACES and self._namespace_pages:
            yield self._take_kept_pages()
            return
        for namespace in self.namespaces:
            pages = self._cluster.pages(kind, namespace=namespace, selector=self._scope.selector)
            yield self._note_versions(_advise_to_skip(pages, kind), kind)

    def _take_kept_pages(self) -> Iterator[Page]:
        """The pages of Namespaces, each of them once: it is not kept any longer."""
        pages, self._namespace_pages = self._namespace_pages, []
        while pages:
            yield pages.pop(0)

    def list_metadata(self, kind: Kind) -> Iterator[Iterator[Page]]:
        """The metadata of a kind: an iterator of pages for each namespace of the scope, or a single one.

        No selector narrows them. Reading the pages raises ListFailed.
        """
        for namespace in self.namespaces if kind.namespaced else ("",):
            yield self._note_versions(self._cluster.metadata(kind, namespace=namespace), kind)

    @property
    def versions(self) -> tuple[ListVersion, ...]:
        """The lists that were read so far, with the resource versions that can be compared: those that are numbers."""
        return tuple(self._versions.values())

    def _note_versions(self, pages: Iterator[Page], kind: Kind, *, rules: bool = False) -> Iterator[Page]:
        """The pages of a list. Upstream: resource versions of one store are ordered as numbers (KEP-5504)."""
        first = True
        for page in pages:
            version = page.resource_version
            if first and version.isascii() and version.isdecimal():
                key = kind.api_version, kind.kind
                before = self._versions.get(key, ListVersion(*key, version))
                lowest = min(version, before.resource_version, key=int)
                self._versions[key] = ListVersion(*key, lowest, rules or before.rules)
            first = False
            yield page

    @property
    def has_selector(self) -> bool:
        """Return whether a label selector limits the objects of the scan."""
        return bool(self._scope.selector)

    def excludes(self, namespace: str) -> bool:
        """Return whether the user excluded a namespace."""
        return bool(namespace) and any(fnmatchcase(namespace, name) for name in self._scope.exclude_namespaces)

    def find_exclusion(self, kind: Kind) -> str:
        """The reason why the user's options leave out a kind, or an empty string."""
        scope = self._scope
        if scope.kinds and not any(names_kind(pattern, kind) for pattern in scope.kinds):
            return "not named by --kind"
        if any(names_kind(pattern, kind) for pattern in scope.skip_kinds):
            return "left out by --skip-kind"
        if scope.namespaces and not kind.namespaced:
            return "cluster-scoped: left out by --namespace"
        return ""


class RepeatedLists:
    """The lists that languages read when they are bound, each made once: the languages of a family read the same ones."""

    def __init__(self, listing: ScanLists) -> None:
        self._listing = listing
        self._made: dict[tuple[Kind, tuple[str, ...]], tuple[Resource, ...]] = {}

    def list_all(self, kind: Kind, namespaces: Iterable[str] = ("",)) -> Iterator[Resource]:
        """See ScanLists."""
        key = kind, tuple(namespaces)
        if key not in self._made:
            self._made[key] = tuple(self._listing.list_all(*key))
        yield from self._made[key]


def _advise_to_skip(pages: Iterator[Page], kind: Kind) -> Iterator[Page]:
    """The pages of a kind that a scan needs for nothing else: a missing right has a second remedy.

    Policies, params, namespaces and what expressions read are needed also if their kinds are left out.
    """
    try:
        yield from pages
    except ListFailed as error:
        if kind.resource == NAMESPACES.resource or not parse_missing_right(error.why):
            raise
        remedy = f"or pass --skip-kind {kind.resource} to record the gap on purpose."
        raise ListFailed(error.state, f"{error.why}, {remedy}") from error


def names_kind(pattern: str, kind: Kind) -> bool:
    """Return whether `Pod`, `pods`, `deployments.apps` or a glob of these names a kind."""
    forms = (kind.kind, kind.plural, kind.resource, f"{kind.plural}.{kind.version}.{kind.group}")
    return any(fnmatchcase(form.lower(), pattern.lower()) for form in forms)


def decode_objects(page: Page, *, metadata_only: bool = False, withheld: bool = False) -> Iterator[Resource]:
    """Yield the objects of a page, or of a metadata-only page; `withheld` parts of a page of a snapshot are marked.

    Raises ValueError for an item that is no object of the kind.
    """
    for item in decode_items(page, withheld=withheld):
        if fault := find_item_fault(page.kind, item, metadata_only=metadata_only):
            raise ValueError(fault)
        yield resource_of(page.kind, {**as_object(item), "apiVersion": page.kind.api_version, "kind": page.kind.kind})
