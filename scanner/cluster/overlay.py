"""A cluster as it would be after some manifests were applied: their objects, and the kinds that they define, count for each other.

Source of truth: server-side apply, which merges a manifest into the object of its name. Policies and what they rely on are left as they
are: rules that change are another question than objects that do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol, cast

import orjson

from scanner.cel import Decider
from scanner.cluster.definitions import BrokenDefinition, is_definition, read_definition
from scanner.cluster.schemas import KnownSchemas, read_custom_schemas
from scanner.errors import ListFailed
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text
from scanner.model.resource import NAMESPACES, Kind, ObjectKey, Page, UserInfo, resource_of
from scanner.model.scans.scan import ClusterIdentity, ServerCounts
from scanner.model.withheld import has_withheld, mark_like
from scanner.mutate import merge
from scanner.mutate.native import PatchFault
from scanner.mutate.schema import Conversion, Schema, Schemas
from scanner.mutate.versions import list_views
from scanner.policies import manifest
from scanner.policies.language import Language
from scanner.preview.new_objects import Kinds, StoredObjects, set_namespace
from scanner.scan.edges import Cluster, Discovery

_NAME_LABEL: Final = "kubernetes.io/metadata.name"


class Base(Cluster, StoredObjects, Protocol):
    """A cluster whose objects can be read one by one."""


class AppliedManifests:
    """The objects of manifests in the kinds of a cluster, and the kinds that they define."""

    def __init__(self, documents: Iterable[JsonObject], languages: Sequence[Language], namespace: str) -> None:
        """Take the manifests, those without a namespace in a default one. Policies, bindings and webhooks are left out."""
        every = tuple(documents)
        self._namespace = namespace
        self._documents = tuple(
            body
            for body in every
            if not as_text(body.get("apiVersion")).startswith(f"{manifest.GROUP}/")
            and not any(language.reads(body) for language in languages)
        )
        self._definitions = tuple(body for body in every if is_definition(body))

    @property
    def kinds(self) -> Iterator[Kind]:
        """The kinds that the manifests define; a definition that defines none is left out."""
        for body in self._definitions:
            try:
                yield from read_definition(body).kinds
            except BrokenDefinition:
                continue

    @property
    def schemas(self) -> KnownSchemas:
        """The schemas of these kinds."""
        return KnownSchemas(
            {key: each for body in self._definitions for key, each in read_custom_schemas(body).items()}
        )

    def list_objects(self, kinds: Sequence[Kind], schemas: Schemas) -> Mapping[ObjectKey, JsonObject]:
        """The objects in each of their kinds to which they are converted without a server; the last one of a name counts."""
        served = Kinds(kinds)
        families = _group_versions(kinds)
        objects: dict[ObjectKey, JsonObject] = {}
        for document in self._documents:
            if kind := served.find(document):
                body = _add_name_label(kind, set_namespace(kind, document, self._namespace))
                schema = schemas.schema(kind) if kind.group else None
                custom = schema.custom if schema else None
                relabels = bool(custom and custom.versions and custom.versions.relabels)
                for view in list_views(body, kind, families[kind.group, kind.kind] - {kind}, relabels=relabels):
                    objects[ObjectKey(view.kind, view.namespace, view.name)] = view.body
        return objects


def _group_versions(kinds: Iterable[Kind]) -> Mapping[tuple[str, str], frozenset[Kind]]:
    """The kinds of the same objects, by group and kind."""
    families: dict[tuple[str, str], frozenset[Kind]] = {}
    for kind in kinds:
        key = (kind.group, kind.kind)
        families[key] = families.get(key, frozenset()) | {kind}
    return families


def _add_name_label(kind: Kind, body: JsonObject) -> JsonObject:
    """A Namespace with the label that the server adds."""
    if kind != NAMESPACES:
        return body
    metadata = as_object(body.get("metadata"))
    labels = {**as_object(metadata.get("labels")), _NAME_LABEL: metadata.get("name")}
    return {**body, "metadata": {**metadata, "labels": labels}}


class ClusterAfter:
    """A cluster after manifests were applied. Satisfies `Cluster` and `StoredObjects`."""

    def __init__(self, cluster: Base, manifests: AppliedManifests) -> None:
        """Ask the cluster nothing yet."""
        self._cluster, self._manifests = cluster, manifests
        self._identity: ClusterIdentity | None = None
        self._schemas: _SchemasAfter | None = None
        self._discovery: Discovery | None = None
        self._new_kinds: frozenset[Kind] = frozenset()
        self._applied: Mapping[ObjectKey, JsonObject] | None = None

    def identity(self) -> ClusterIdentity:
        """See Cluster. The cluster is asked once."""
        if self._identity is None:
            self._identity = self._cluster.identity()
        return self._identity

    def now(self) -> datetime | None:
        """See Cluster."""
        return self._cluster.now()

    def requester(self) -> UserInfo:
        """See Cluster."""
        return self._cluster.requester()

    def authorizer(self) -> Decider | None:
        """See Cluster."""
        return self._cluster.authorizer()

    def schemas(self) -> Schemas:
        """See Cluster: those of the definitions among the manifests come first."""
        if self._schemas is None:
            self._schemas = _SchemasAfter(self._cluster.schemas(), self._manifests.schemas, {*self._manifests.kinds})
        return self._schemas

    def discover(self) -> Discovery:
        """See Cluster: with the kinds that the manifests define. The cluster is asked once."""
        if self._discovery is None:
            discovery = self._cluster.discover()
            self._new_kinds = frozenset(self._manifests.kinds) - frozenset(discovery.kinds)
            self._discovery = replace(discovery, kinds=tuple(dict.fromkeys((*discovery.kinds, *self._manifests.kinds))))
        return self._discovery

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """See Cluster."""
        self._cluster.expect(lists)

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """See Cluster: the objects of the manifests are merged into those of the cluster. A selector selects among the latter only."""
        applied = {
            key: body for key, body in self._objects.items() if key.kind == kind and namespace in ("", key.namespace)
        }
        number = 0
        if kind not in self._new_kinds:
            for page in self._cluster.pages(kind, namespace=namespace, selector=selector):
                number = page.number
                yield self._merge_page(page, applied) if applied else page
        if applied:
            yield Page(kind, number + 1, orjson.dumps({"items": [*applied.values()]}))

    def _merge_page(self, page: Page, applied: dict[ObjectKey, JsonObject]) -> Page:
        """The page with the objects that manifests change, which are removed from `applied`."""
        items: list[Json] = []
        document = as_object(orjson.loads(page.data))
        for item in as_list(document.get("items")):
            resource = resource_of(page.kind, as_object(item))
            manifest_body = applied.pop(ObjectKey(page.kind, resource.namespace, resource.name), None)
            items.append(item if manifest_body is None else self._merge(page.kind, resource.body, manifest_body))
        # The places that a snapshot withholds stay: where one is gone, the page cannot be decoded, and nothing is claimed.
        return replace(page, data=orjson.dumps({"withheld": as_object(document.get("withheld")), "items": items}))

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """See Cluster: the objects of the cluster only."""
        return self._cluster.metadata(kind, namespace=namespace)

    def read_objects(self, names: Sequence[ObjectKey]) -> Sequence[JsonObject | ListFailed | None]:
        """See StoredObjects: each object as it would be after its manifest was applied."""
        known = [name for name in names if name.kind not in self._new_kinds]
        stored = dict(zip(known, self._cluster.read_objects(known), strict=True))
        return [self._merge_named(name, stored.get(name)) for name in names]

    def _merge_named(self, name: ObjectKey, stored: JsonObject | ListFailed | None) -> JsonObject | ListFailed | None:
        applied = self._objects.get(name)
        if applied is None or isinstance(stored, ListFailed):
            return stored
        return applied if stored is None else self._merge(name.kind, stored, applied)

    def _merge(self, kind: Kind, stored: JsonObject, applied: JsonObject) -> JsonObject:
        """The object after the manifest was applied; that of the manifest, if it cannot be merged."""
        schema = self.schemas().schema(kind)
        try:
            merged = cast("JsonObject", merge.merge_patch(schema, stored, applied)) if schema else applied
        except PatchFault:
            return applied
        return as_object(mark_like(merged, stored)) if has_withheld(stored) else merged

    @property
    def _objects(self) -> Mapping[ObjectKey, JsonObject]:
        if self._applied is None:
            self._applied = self._manifests.list_objects(self.discover().kinds, self.schemas())
        return self._applied

    def object_counts(self) -> ServerCounts:
        """See Cluster."""
        return self._cluster.object_counts()

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """See Cluster."""
        self._cluster.while_waiting(beat)

    def pause(self) -> AbstractContextManager[None]:
        """See Cluster."""
        return self._cluster.pause()


class _SchemasAfter:
    """The schemas of a cluster, and those of kinds that manifests define."""

    def __init__(self, schemas: Schemas, defined: KnownSchemas, kinds: frozenset[Kind] | set[Kind]) -> None:
        self._schemas, self._defined, self._kinds = schemas, defined, frozenset(kinds)

    def schema(self, kind: Kind) -> Schema | None:
        """See Schemas."""
        return self._defined.schema(kind) if kind in self._kinds else self._schemas.schema(kind)

    def conversion(self, kind: Kind) -> Conversion:
        """See Schemas."""
        return self._defined.conversion(kind) if kind in self._kinds else self._schemas.conversion(kind)
