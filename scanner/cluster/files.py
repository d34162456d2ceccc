"""Files as a cluster: the objects of an empty server after the documents were applied.

Source of truth: namespace defaulting and storage by name of kube-apiserver. No server defaults the objects;
only the fields that matching needs are added: the namespace of an object, the name label of a namespace.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Final

import orjson

from scanner.admission.versions import convert
from scanner.cluster.definitions import (
    BrokenDefinition,
    Definition,
    builtin_kinds,
    definition_of,
    in_registration_order,
    is_definition,
)
from scanner.cluster.labels import LabelQuery, parse_selector
from scanner.cluster.manifests import Document, read_documents
from scanner.cluster.schemas import KnownSchemas, builtin_schemas, custom_schemas
from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_object, as_text, dig, text_map
from scanner.model.outcome import Gap, GapKind
from scanner.model.release import NEWEST, shown
from scanner.model.resource import Kind, Page, UserInfo
from scanner.model.scan import STDIN, ClusterIdentity
from scanner.policies import manifest
from scanner.policies.language import LANGUAGES, Language
from scanner.scan.edges import Discovery

PAGE_SIZE: Final = 500
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_NAMESPACES: Final = ("", "Namespace")
_COHABITANTS: Final = {("events.k8s.io", "Event"): ("", "Event")}


@dataclass(frozen=True, slots=True)
class _Stored:
    """An object of the simulated server, in the version of its document."""

    kind: Kind
    namespace: str
    name: str
    body: JsonObject
    source: str

    @property
    def family(self) -> tuple[str, str]:
        """The key that all versions of the object's kind share."""
        return _family(self.kind)


class SnapshotCluster:
    """A cluster of manifest files, all of which are read at the start."""

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        default_namespace: str = "default",
        name: str = "",
        kubernetes_version: str = "",
        languages: Iterable[Language] = LANGUAGES,
    ) -> None:
        """Read the files. Raises UsageError for a path that does not exist.

        `kubernetes_version` is that of the simulated server, by default the newest supported one. The custom kinds of `languages`
        need no definitions among the files.
        """
        self._languages = tuple(languages)
        places = tuple(paths)
        read = [(place, *read_documents(place)) for place in places]
        self.documents = tuple(
            Document(_inside(place, document.source), document.body)
            for place, contents, _ in read
            for document in contents
        )
        gaps = [replace(gap, where=_inside(place, gap.where)) for place, _, faults in read for gap in faults]
        self._name = name or ", ".join(place.resolve().name if place.name != "-" else "stdin" for place in places)
        self._folder = folder_of(places)
        self._default_namespace = default_namespace
        self._version = kubernetes_version or shown(NEWEST)
        custom, broken = _definitions(self.documents)
        of_languages = _language_kinds(self._languages, self.documents)
        relabelled = (
            *(kind for definition in custom if definition.relabels for kind in definition.kinds),
            *of_languages,
        )
        self._relabelled = frozenset(map(_family, relabelled))
        self._kinds = _served(custom, of_languages)
        objects, refused = self._store()
        self._objects = {family: tuple(group) for family, group in groupby(objects, key=attrgetter("family"))}
        self._gaps = (*gaps, *broken, *refused)

    def identity(self) -> ClusterIdentity:
        """The given name, or that of the folder or file, and the absolute path."""
        version = f"v{self._version.removeprefix('v')}"
        return ClusterIdentity(name=self._name, server_version=version, source="files", folder=self._folder)

    def requester(self) -> UserInfo:
        """A placeholder, because no server reports a user."""
        return UserInfo(username="assay", groups=("system:authenticated",))

    def authorizer(self) -> None:
        """None: files have no authorizer."""
        return

    def schemas(self) -> KnownSchemas:
        """The merge schemas: the shipped ones, and those of the definitions in the files."""
        custom = [custom_schemas(document.body) for document in self.documents if is_definition(document.body)]
        return KnownSchemas({key: schema for part in (*custom, builtin_schemas()) for key, schema in part.items()})

    def discover(self) -> Discovery:
        """The kinds of a new 1.36 server and of the definitions in the files.

        A document that cannot be read, is of another kind or repeats an object is a gap, and so is an invalid definition.
        """
        return Discovery(self._kinds, self._gaps)

    def implied_namespaces(self) -> tuple[str, ...]:
        """The names of the namespaces in which objects are, without those that a document describes, in order."""
        described = {stored.name for stored in self._objects.get(_NAMESPACES, ())}
        named = {stored.namespace for family in self._objects.values() for stored in family if stored.namespace}
        return tuple(sorted(named - described))

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """Do nothing: files need no prefetching."""

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """Do nothing: the reader of files never waits."""

    def paused(self) -> AbstractContextManager[None]:
        """Do nothing: no requests run."""
        return nullcontext()

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """The objects of a kind by namespace and name, 500 a page.

        Raises UsageError for a malformed selector, and ListFailed after the last page when objects of this kind are
        written in a version that cannot be offered in this one.
        """
        query = parse_selector(selector)
        family = self._objects.get(_family(kind), ())
        wanted = [stored for stored in family if _selected(stored, kind, namespace, query)]
        offered = iter([body for stored in wanted if (body := self._offered(stored, kind)) is not None])
        for number, bodies in enumerate(iter(lambda: list(islice(offered, PAGE_SIZE)), []), start=1):
            yield Page(kind, number, orjson.dumps({"items": bodies}))
        withheld = [stored for stored in wanted if self._offered(stored, kind) is None]
        if withheld:
            raise ListFailed("failed", _inconvertible(withheld, kind))

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """The metadata of the objects of a kind by namespace and name, 500 a page; it is the same in every version."""
        objects = self._objects.get(_family(kind), ())
        selected = (stored for stored in objects if _selected(stored, kind, namespace, parse_selector("")))
        bodies = ({"metadata": stored.body["metadata"]} for stored in selected)
        for number, items in enumerate(iter(lambda: list(islice(bodies, PAGE_SIZE)), []), start=1):
            yield Page(kind, number, orjson.dumps({"items": items}))

    def _offered(self, stored: _Stored, kind: Kind) -> JsonObject | None:
        """The object in a version, or None if only a server can convert it."""
        if stored.family in self._relabelled:
            return {**stored.body, "apiVersion": kind.api_version}
        return convert(stored.body, kind)

    def _store(self) -> tuple[tuple[_Stored, ...], tuple[Gap, ...]]:
        kinds = {(kind.api_version, kind.kind): kind for kind in self._kinds}
        stored: dict[tuple[object, ...], _Stored] = {}
        gaps: list[Gap] = []
        for document in self.documents:
            kind = kinds.get(_written_kind(document.body, self._languages))
            if kind is None:
                gaps.append(_unknown(document, self._kinds))
                continue
            stored_object = _stored(document, kind, self._default_namespace)
            first = stored.setdefault(
                (stored_object.family, stored_object.namespace, stored_object.name), stored_object
            )
            if first is not stored_object:
                gaps.append(_repeated(stored_object, first))
        ordered = sorted(
            stored.values(),
            key=lambda stored_object: (stored_object.family, stored_object.namespace, stored_object.name),
        )
        return tuple(ordered), tuple(gaps)


def folder_of(places: Iterable[Path]) -> str:
    """The absolute paths of folders and files, or `stdin`. Symbolic links stay: they may lead elsewhere tomorrow."""
    return ", ".join(STDIN if place.name == "-" else os.path.abspath(place) for place in places)  # noqa: PTH100 - absolute() keeps `..`


def _inside(place: Path, source: str) -> str:
    """The path relative to the given folder, because two scans of one cluster may have its files in different places."""
    return source.removeprefix(f"{place}{os.sep}")


def _definitions(documents: Iterable[Document]) -> tuple[tuple[Definition, ...], tuple[Gap, ...]]:
    definitions: list[Definition] = []
    gaps: list[Gap] = []
    for document in documents:
        if not is_definition(document.body):
            continue
        try:
            definitions.append(definition_of(document.body))
        except BrokenDefinition as error:
            gaps.append(_gap(document, f"this CustomResourceDefinition defines no kind: {error}"))
    return tuple(definitions), tuple(gaps)


def _served(custom: Iterable[Definition], of_languages: Iterable[Kind]) -> tuple[Kind, ...]:
    builtin = builtin_kinds()
    taken = {(kind.group, kind.version, kind.kind) for kind in builtin}
    defined = {kind: None for definition in custom for kind in definition.kinds}
    added = defined | dict.fromkeys(of_languages)
    return (*builtin, *in_registration_order(k for k in added if (k.group, k.version, k.kind) not in taken))


def _language_kinds(languages: Iterable[Language], documents: Iterable[Document]) -> tuple[Kind, ...]:
    """The custom kinds of policy languages in the groups of the documents, because these kinds need no definitions."""
    groups = {as_text(document.body.get("apiVersion")).partition("/")[0] for document in documents}
    return tuple(kind for language in languages for kind in language.custom_kinds if kind.group in groups)


def _stored(document: Document, kind: Kind, default_namespace: str) -> _Stored:
    metadata = as_object(document.body.get("metadata"))
    name = as_text(metadata.get("name"))
    namespace = as_text(metadata.get("namespace")) or default_namespace if kind.namespaced else ""
    changed = {key: value for key, value in metadata.items() if key != "namespace"}
    if namespace:
        changed["namespace"] = namespace
    if _family(kind) == _NAMESPACES:
        changed["labels"] = {**as_object(metadata.get("labels")), _NAME_LABEL: name}
    body = {**document.body, "apiVersion": kind.api_version, "metadata": changed}
    return _Stored(kind, namespace, name, body, document.source)


def _written_kind(body: JsonObject, languages: Iterable[Language]) -> tuple[str, str]:
    """The apiVersion and kind of a document; every version of an admission policy or of its binding counts as v1."""
    api_version, kind = as_text(body.get("apiVersion")), as_text(body.get("kind"))
    if api_version.startswith(f"{manifest.GROUP}/") and any(language.reads(body) for language in languages):
        return f"{manifest.GROUP}/v1", kind
    return api_version, kind


def _selected(stored: _Stored, kind: Kind, namespace: str, query: LabelQuery) -> bool:
    if namespace and kind.namespaced and stored.namespace != namespace:
        return False
    return query.matches(text_map(dig(stored.body, "metadata", "labels")))


def _family(kind: Kind) -> tuple[str, str]:
    return _COHABITANTS.get((kind.group, kind.kind), (kind.group, kind.kind))


def _unknown(document: Document, kinds: Iterable[Kind]) -> Gap:
    api_version, name = as_text(document.body.get("apiVersion")), as_text(document.body.get("kind"))
    served = sorted({kind.api_version for kind in kinds if kind.kind == name})
    advice = "add its CustomResourceDefinition to the files"
    if served:
        advice = f"write it as {' or '.join(served)}, or {advice}"
    return _gap(document, f"no kind {name} in version {api_version} is known: {advice}")


def _repeated(repeated: _Stored, first: _Stored) -> Gap:
    name = f"{repeated.namespace}/{repeated.name}" if repeated.namespace else repeated.name
    why = f"{repeated.kind.kind} {name} is already in {first.source}, which is used: remove or rename one of them"
    return Gap(GapKind.DOCUMENT, repeated.source, why)


def _inconvertible(withheld: Sequence[_Stored], kind: Kind) -> str:
    written = ", ".join(sorted({stored.kind.api_version for stored in withheld}))
    example = withheld[0].source
    return (
        f"{len(withheld)} objects are written as {written} and only a server can convert them to {kind.api_version} "
        f"(the first is {example}): write them as {kind.api_version}, or scan the cluster itself"
    )


def _gap(document: Document, why: str) -> Gap:
    return Gap(GapKind.DOCUMENT, document.source, why)
