"""Files as a cluster: the objects of an empty server after the documents were applied.

Source of truth: namespace defaulting and storage by name of kube-apiserver. No server defaults the objects;
only the fields that matching needs are added: the namespace of an object, the name label of a namespace.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice, product
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Final

import orjson
from msgspec import Struct

from scanner.cluster.definitions import (
    BrokenDefinition,
    Definition,
    builtin_kinds,
    is_definition,
    read_definition,
    sort_by_registration,
)
from scanner.cluster.files.field_lines import WantedLines, find_field_lines, has_lines
from scanner.cluster.files.manifests import FileDocument, ReadFiles, UnreadDocument, stream_documents
from scanner.cluster.files.other_tools import OtherToolFile
from scanner.cluster.labels import LabelQuery, parse_selector
from scanner.cluster.schemas import KnownSchemas, builtin_schemas, read_custom_schemas
from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_object, as_text, dig, text_map
from scanner.model.outcome import Gap, GapKind
from scanner.model.population import GroupKind
from scanner.model.release import NEWEST, format_minor
from scanner.model.resource import Kind, ObjectKey, Page, UserInfo
from scanner.model.scans.out_of_scope import OutOfScope, Unneeded
from scanner.model.scans.place import ObjectName, Place, PlacedObject, name_field
from scanner.model.scans.scan import FILES, STDIN, ClusterIdentity, ServerCounts
from scanner.mutate.versions import convert
from scanner.policies import manifest
from scanner.policies.language import LANGUAGES, Language
from scanner.scan.edges import Discovery

PAGE_SIZE: Final = 500
NO_FIELDS: Final[Mapping[ObjectName, Collection[str]]] = {}
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_NAMESPACES: Final = ("", "Namespace")
_COHABITANTS: Final = {("events.k8s.io", "Event"): ("", "Event")}
_OTHER_GROUPS: Final = {family: (group,) for (group, _), family in _COHABITANTS.items()}


@dataclass(frozen=True, slots=True)
class _SnapshotDocument:
    """A document of the files, from `start` to `end` in the texts of all of them.

    JSON takes less memory than the objects that it describes. In one buffer it is shared with the workers: reading an object of
    Python's own changes its reference count, and copies the page of memory that it is in.
    """

    source: str
    api_version: str
    kind: str
    namespace: str
    name: str
    texts: bytearray
    start: int
    end: int
    file: str
    line: int
    items: tuple[int, ...]

    @property
    def text(self) -> memoryview:
        """The document as JSON."""
        return memoryview(self.texts)[self.start : self.end]

    @property
    def body(self) -> JsonObject:
        """The document, decoded."""
        return as_object(orjson.loads(self.text))


class _StoredObject(Struct, frozen=True):
    """An object of the simulated server, in the version of its document."""

    kind: Kind
    namespace: str
    document: _SnapshotDocument

    @property
    def family(self) -> tuple[str, str]:
        """The key that all versions of the object's kind share."""
        return _get_family(self.kind)

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.document.name

    @property
    def source(self) -> str:
        """The place of the document."""
        return self.document.source

    @property
    def body(self) -> JsonObject:
        """The object as the server would store it, decoded."""
        document = self.document.body
        metadata = as_object(document.get("metadata"))
        changed = {key: value for key, value in metadata.items() if key != "namespace"}
        if self.namespace:
            changed["namespace"] = self.namespace
        if self.family == _NAMESPACES:
            changed["labels"] = {**as_object(metadata.get("labels")), _NAME_LABEL: self.name}
        return {**document, "apiVersion": self.kind.api_version, "metadata": changed}


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
        definitions: Iterable[FileDocument] = (),
        namespace_labels: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> None:
        """Read the files. Raises UsageError for a path that does not exist.

        `kubernetes_version` is that of the simulated server, by default the newest supported one. The custom kinds of `languages`
        need no definitions among the files; `definitions` are further ones. `namespace_labels` are the labels of namespaces that the
        files do not describe.
        """
        self._languages = tuple(languages)
        places = tuple(paths)
        unread: list[UnreadDocument] = []
        documents: list[_SnapshotDocument] = []
        self.policies: list[FileDocument] = []
        self._definitions: list[FileDocument] = [*definitions]
        self._namespace_labels = namespace_labels
        self._generated = 0
        texts = bytearray()
        for document in _read(places, unread):
            self._generated += document.generates_name
            documents.append(_add_document(document, texts))
            if any(language.reads(document.body) for language in self._languages):
                self.policies.append(document)
            if is_definition(document.body):
                self._definitions.append(document)
        self._name = name or ", ".join(place.resolve().name if place.name != "-" else "stdin" for place in places)
        self._folder = name_folders(places)
        self._default_namespace = default_namespace
        self._version = kubernetes_version or format_minor(NEWEST)
        custom, broken = _read_definitions(self._definitions)
        of_languages = _list_language_kinds(self._languages, {document.api_version for document in documents})
        relabelled = (
            *(kind for definition in custom if definition.relabels for kind in definition.kinds),
            *of_languages,
        )
        self._relabelled = frozenset(map(_get_family, relabelled))
        self._kinds = _list_served(custom, of_languages)
        objects, refused, copies = self._store(documents)
        self._objects = {family: tuple(group) for family, group in groupby(objects, key=attrgetter("family"))}
        of_others = [item for item in unread if item.other_tool is None]
        self._outside = (
            *(_report_other_tool(item.gap, item.other_tool) for item in unread if item.other_tool),
            *copies,
        )
        self._gaps = (*(item.gap for item in of_others), *broken, *refused)
        self._concerns = {**{item.gap: item.concerns for item in of_others if item.concerns}, **refused}

    def identity(self) -> ClusterIdentity:
        """The given name, or that of the folder or file, and the absolute path."""
        version = f"v{self._version.removeprefix('v')}"
        return ClusterIdentity(name=self._name, server_version=version, source=FILES, folder=self._folder)

    def requester(self) -> UserInfo:
        """A placeholder, because no server reports a user."""
        return UserInfo(username="assay", groups=("system:authenticated",))

    def authorizer(self) -> None:
        """None: files have no authorizer."""
        return

    def schemas(self) -> KnownSchemas:
        """The merge schemas: the shipped ones, and those of the definitions in the files."""
        custom = [read_custom_schemas(document.body) for document in self._definitions]
        return KnownSchemas({key: schema for part in (*custom, builtin_schemas()) for key, schema in part.items()})

    def discover(self) -> Discovery:
        """The kinds of a new 1.36 server and of the definitions in the files.

        A document that cannot be read, is of another kind or repeats an object is a gap, and so is an invalid definition.
        """
        described = self.list_described_namespaces()
        return Discovery(
            self._kinds,
            self._gaps,
            kinds_of_gaps=self._concerns,
            outside=self._outside,
            unlabelled=self._find_unlabelled(described),
            namespaces=tuple(
                _make_namespace(*item) for item in self._namespace_labels.items() if item[0] not in described
            ),
            notes=(_note_generated_names(self._generated),) if self._generated else (),
        )

    def _find_unlabelled(self, described: Collection[str]) -> dict[str, frozenset[Kind]]:
        """The namespaces whose labels are not known, each with the kinds of its objects."""
        kinds: defaultdict[str, set[Kind]] = defaultdict(set)
        for stored in (stored for family in self._objects.values() for stored in family if stored.namespace):
            if stored.namespace not in described and stored.namespace not in self._namespace_labels:
                kinds[stored.namespace].add(stored.kind)
        return {namespace: frozenset(of_namespace) for namespace, of_namespace in kinds.items()}

    def list_implied_namespaces(self) -> tuple[str, ...]:
        """The names of the namespaces in which objects are, without those that a document describes, in order."""
        namespaces = {stored.namespace for family in self._objects.values() for stored in family if stored.namespace}
        return tuple(sorted(namespaces - self.list_described_namespaces()))

    def list_described_namespaces(self) -> frozenset[str]:
        """The names of the namespaces that documents describe."""
        return frozenset(stored.name for stored in self._objects.get(_NAMESPACES, ()))

    def has_lines(self) -> bool:
        """Return whether some file has more than one line; a file that cannot be read any more counts as one that has."""
        files = {stored.document.file for stored in chain.from_iterable(self._objects.values())}
        return any(has_lines(Path(file)) for file in files if file != "-")

    def list_places(self, fields: Mapping[ObjectName, Collection[str]] = NO_FIELDS) -> Iterator[PlacedObject]:
        """The files and lines of the objects, and of some of their fields; those of standard input have none."""
        paths = {stored.document.file for family in self._objects.values() for stored in family}
        shown_paths = {path: _show_path(Path(path)) for path in paths if path != "-"}
        wanted_lines: defaultdict[str, list[tuple[tuple[ObjectName, ...], WantedLines]]] = defaultdict(list)
        for stored in chain.from_iterable(self._objects.values()):
            document = stored.document
            if document.file not in shown_paths:
                continue
            names = _list_names(stored)
            if of_object := [path for name in names for path in fields.get(name, ())]:
                wanted_lines[document.file].append((names, WantedLines(document.line, document.items, of_object)))
            else:
                yield from (PlacedObject(*name, Place(shown_paths[document.file], document.line)) for name in names)
        for file, objects in wanted_lines.items():
            all_lines = find_field_lines(Path(file), [lines for _, lines in objects])
            for (names, _), lines in zip(objects, all_lines, strict=True):
                for name, (path, line) in product(names, lines.items()):
                    field_object = name._replace(name=name_field(name.name, path))
                    yield PlacedObject(*field_object, Place(shown_paths[file], line))

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """Do nothing: files need no prefetching."""

    def now(self) -> None:
        """No time: files have no API server."""

    def object_counts(self) -> ServerCounts:
        """No counts: no server counts the objects of files."""
        return ServerCounts(why_not="files have no API server that counts objects")

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """Do nothing: the reader of files never waits."""

    def pause(self) -> AbstractContextManager[None]:
        """Do nothing: no requests run."""
        return nullcontext()

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """The objects of a kind by namespace and name, 500 a page.

        Raises UsageError for a malformed selector, and ListFailed after the last page when objects of this kind are
        written in a version that cannot be offered in this one.
        """
        query = parse_selector(selector)
        family = self._objects.get(_get_family(kind), ())
        selected = [stored for stored in family if _is_selected(stored, kind, namespace, query)]
        withheld: list[_StoredObject] = []
        offered = self._convert_objects(selected, kind, withheld)
        for number, bodies in enumerate(iter(lambda: list(islice(offered, PAGE_SIZE)), []), start=1):
            yield Page(kind, number, orjson.dumps({"items": bodies}))
        if withheld:
            raise ListFailed("failed", _explain_inconvertible(withheld, kind))

    def read_objects(self, names: Sequence[ObjectKey]) -> list[JsonObject | ListFailed | None]:
        """The objects of some names, in the versions of their kinds; None for one that no document describes."""
        return [self._read_object(name) for name in names]

    def _read_object(self, wanted: ObjectKey) -> JsonObject | ListFailed | None:
        kind, namespace, name = wanted
        family = self._objects.get(_get_family(kind), ())
        selected = [stored for stored in family if (stored.namespace, stored.name) == (namespace, name)]
        withheld: list[_StoredObject] = []
        body = next(self._convert_objects(selected, kind, withheld), None)
        return ListFailed("failed", _explain_inconvertible(withheld, kind)) if withheld else body

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """The metadata of the objects of a kind by namespace and name, 500 a page; it is the same in every version."""
        objects = self._objects.get(_get_family(kind), ())
        selected = (stored for stored in objects if _is_selected(stored, kind, namespace, parse_selector("")))
        bodies = ({"metadata": stored.body["metadata"]} for stored in selected)
        for number, items in enumerate(iter(lambda: list(islice(bodies, PAGE_SIZE)), []), start=1):
            yield Page(kind, number, orjson.dumps({"items": items}))

    def _convert_objects(
        self, objects: Iterable[_StoredObject], kind: Kind, withheld: list[_StoredObject]
    ) -> Iterator[JsonObject]:
        """The objects in a version. Those that only a server can convert are added to `withheld`."""
        for stored in objects:
            relabels = stored.family in self._relabelled
            body = {**stored.body, "apiVersion": kind.api_version} if relabels else convert(stored.body, kind)
            if body is None:
                withheld.append(stored)
            else:
                yield body

    def _store(
        self, documents: Iterable[_SnapshotDocument]
    ) -> tuple[tuple[_StoredObject, ...], dict[Gap, GroupKind], tuple[OutOfScope, ...]]:
        """The objects; the gaps of documents that describe none, each with group and kind; documents that repeat an equal one."""
        kinds = {(kind.api_version, kind.kind): kind for kind in self._kinds}
        stored: dict[tuple[object, ...], _StoredObject] = {}
        gaps: dict[Gap, GroupKind] = {}
        copies: list[OutOfScope] = []
        for document in documents:
            concerns = (document.api_version.rpartition("/")[0], document.kind)
            kind = kinds.get(_find_written_kind(document, self._languages))
            if kind is None:
                gaps[_report_unknown_kind(document, self._kinds)] = concerns
                continue
            namespace = document.namespace or self._default_namespace if kind.namespaced else ""
            stored_object = _StoredObject(kind, namespace, document)
            first = stored.setdefault(
                (stored_object.family, stored_object.namespace, stored_object.name), stored_object
            )
            if first is stored_object:
                continue
            if first.document.text == document.text:
                copies.append(_report_copy(document, first.document))
            else:
                gaps[_report_repeated(stored_object, first)] = concerns
        ordered = sorted(
            stored.values(),
            key=lambda stored_object: (stored_object.family, stored_object.namespace, stored_object.name),
        )
        return tuple(ordered), gaps, tuple(copies)


def _report_copy(document: _SnapshotDocument, first: _SnapshotDocument) -> OutOfScope:
    return OutOfScope(Unneeded.REPEATED, document.source, f"this document is equal to {first.source}, which is read")


def _report_other_tool(gap: Gap, recognised: OtherToolFile) -> OutOfScope:
    return OutOfScope(recognised.kind, gap.where, recognised.why)


def _make_namespace(name: str, labels: Mapping[str, str]) -> JsonObject:
    """The Namespace of a name with the labels that the user describes."""
    metadata: JsonObject = {"name": name, "labels": {**labels, _NAME_LABEL: name}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _note_generated_names(number: int) -> str:
    objects = "1 object has" if number == 1 else f"{number:,} objects have"
    return f"{objects} a generateName and no name: Assay evaluates each under a name that a server could generate, such as PREFIXxxxxx"


def _list_names(stored: _StoredObject) -> tuple[ObjectName, ...]:
    """The names of an object: that of its kind, and those of the same kind in other groups."""
    group, kind = stored.family
    groups = group, *_OTHER_GROUPS.get((group, kind), ())
    return tuple(ObjectName(each, kind, stored.namespace, stored.name) for each in groups)


def _show_path(path: Path) -> str:
    """The path in the working directory, which is that of a checkout in CI, or the absolute path of another file."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - absolute() keeps `..`
    here = Path.cwd()
    return (absolute.relative_to(here) if absolute.is_relative_to(here) else absolute).as_posix()


def name_folders(places: Iterable[Path]) -> str:
    """The absolute paths of folders and files, or `stdin`. Symbolic links stay: they may lead elsewhere tomorrow."""
    return ", ".join(STDIN if place.name == "-" else os.path.abspath(place) for place in places)  # noqa: PTH100 - absolute() keeps `..`


def _read(places: Iterable[Path], unread: list[UnreadDocument]) -> Iterator[FileDocument]:
    """The documents at some places. The others are added to `unread`. Raises UsageError for a missing place."""
    read_files = ReadFiles()
    for place in places:
        for item in stream_documents(place, read_files):
            if isinstance(item, UnreadDocument):
                unread.append(
                    replace(item, gap=replace(item.gap, where=_remove_folder(place, item.gap.where)), text="")
                )
            else:
                yield replace(item, source=_remove_folder(place, item.source))


def _add_document(document: FileDocument, texts: bytearray) -> _SnapshotDocument:
    """Add a document to the texts."""
    metadata = as_object(document.body.get("metadata"))
    start = len(texts)
    texts += orjson.dumps(document.body)
    # Interned, because many documents have these texts in common.
    return _SnapshotDocument(
        source=document.source,
        api_version=sys.intern(as_text(document.body.get("apiVersion"))),
        kind=sys.intern(as_text(document.body.get("kind"))),
        namespace=sys.intern(as_text(metadata.get("namespace"))),
        name=as_text(metadata.get("name")),
        texts=texts,
        start=start,
        end=len(texts),
        file=sys.intern(document.file),
        line=document.line,
        items=document.items,
    )


def _remove_folder(place: Path, source: str) -> str:
    """The path relative to the given folder, because two scans of one cluster may have its files in different places."""
    return source.removeprefix(f"{place}{os.sep}")


def _read_definitions(documents: Iterable[FileDocument]) -> tuple[tuple[Definition, ...], tuple[Gap, ...]]:
    definitions: list[Definition] = []
    gaps: list[Gap] = []
    for document in documents:
        try:
            definitions.append(read_definition(document.body))
        except BrokenDefinition as error:
            gaps.append(_make_gap(document, f"this CustomResourceDefinition defines no kind: {error}"))
    return tuple(definitions), tuple(gaps)


def _list_served(custom: Iterable[Definition], of_languages: Iterable[Kind]) -> tuple[Kind, ...]:
    builtin = builtin_kinds()
    builtin_names = {(kind.group, kind.version, kind.kind) for kind in builtin}
    defined = {kind: None for definition in custom for kind in definition.kinds}
    added = defined | dict.fromkeys(of_languages)
    return (*builtin, *sort_by_registration(k for k in added if (k.group, k.version, k.kind) not in builtin_names))


def _list_language_kinds(languages: Iterable[Language], api_versions: Iterable[str]) -> tuple[Kind, ...]:
    """The custom kinds of policy languages in the groups of the documents, because these kinds need no definitions."""
    groups = {api_version.partition("/")[0] for api_version in api_versions}
    kinds = (kind for language in languages for kind in (*language.custom_kinds, *language.counted_kinds))
    return tuple(kind for kind in kinds if kind.group in groups)


def _find_written_kind(document: _SnapshotDocument, languages: Iterable[Language]) -> tuple[str, str]:
    """The apiVersion and kind of a document; every version of an admission policy or of its binding counts as v1."""
    if document.api_version.startswith(f"{manifest.GROUP}/"):
        body = document.body
        if any(language.reads(body) for language in languages):
            return f"{manifest.GROUP}/v1", document.kind
    return document.api_version, document.kind


def _is_selected(stored: _StoredObject, kind: Kind, namespace: str, query: LabelQuery) -> bool:
    if namespace and kind.namespaced and stored.namespace != namespace:
        return False
    return not query.terms or query.matches(text_map(dig(stored.body, "metadata", "labels")))


def _get_family(kind: Kind) -> tuple[str, str]:
    return _COHABITANTS.get((kind.group, kind.kind), (kind.group, kind.kind))


def _report_unknown_kind(document: _SnapshotDocument, kinds: Iterable[Kind]) -> Gap:
    api_version, name = document.api_version, document.kind
    served = sorted({kind.api_version for kind in kinds if kind.kind == name})
    advice = "add its CustomResourceDefinition to the files"
    if served:
        advice = f"write it as {' or '.join(served)}, or {advice}"
    return _make_gap(document, f"no kind {name} in version {api_version} is known: {advice}")


def _report_repeated(repeated: _StoredObject, first: _StoredObject) -> Gap:
    name = f"{repeated.namespace}/{repeated.name}" if repeated.namespace else repeated.name
    why = f"{repeated.kind.kind} {name} is already in {first.source}, which is used: remove or rename one of them"
    return Gap(GapKind.DOCUMENT, repeated.source, why)


def _explain_inconvertible(withheld: Sequence[_StoredObject], kind: Kind) -> str:
    versions = ", ".join(sorted({stored.kind.api_version for stored in withheld}))
    example = withheld[0].source
    return (
        f"{len(withheld)} objects are written as {versions} and only a server can convert them to {kind.api_version} "
        f"(the first is {example}): write them as {kind.api_version}, or scan the cluster itself"
    )


def _make_gap(document: FileDocument | _SnapshotDocument, why: str) -> Gap:
    return Gap(GapKind.DOCUMENT, document.source, why)
