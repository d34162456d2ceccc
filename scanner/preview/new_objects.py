"""The objects of manifests, as objects of a cluster that does not have them yet: their kinds and namespaces.

Source of truth: the REST mapping and the default namespace of kubectl, and the paths of the API: a cluster-scoped object has no namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_object, as_text
from scanner.model.nearest import did_you_mean
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind, ObjectKey, Resource, find_name_fault, resource_of
from scanner.preview.requested import drop_name
from scanner.preview.verdict import CheckedObject, Decision, Effect, Place


class Document(Protocol):
    """An object in a file."""

    @property
    def source(self) -> str:
        """The file and the document, for people."""
        ...

    @property
    def body(self) -> JsonObject:
        """The object."""
        ...

    @property
    def file(self) -> str:
        """The path, or `-`."""
        ...

    @property
    def line(self) -> int:
        """The line where the document begins."""
        ...

    @property
    def items(self) -> tuple[int, ...]:
        """The numbers of the item in its lists, from 1."""
        ...

    @property
    def generates_name(self) -> bool:
        """Return whether the server makes the name."""
        ...


class StoredObjects(Protocol):
    """The objects that a cluster has now."""

    def read_objects(self, names: Sequence[ObjectKey]) -> Sequence[JsonObject | ListFailed | None]:
        """Each object, None for one that does not exist, or the reason why it cannot be read. Raises ClusterError."""
        ...


class NewObject(Struct, frozen=True):
    """An object of a manifest as a request would name it. With `generates_name` no such object can exist."""

    place: Place
    resource: Resource
    generates_name: bool = False

    @property
    def name(self) -> ObjectKey:
        """The name by which the cluster may have the object."""
        return ObjectKey(self.resource.kind, self.resource.namespace, self.resource.name)

    @property
    def sent(self) -> Resource:
        """The object as a client sends it: without a name, if the server makes the name."""
        return drop_name(self.resource) if self.generates_name else self.resource

    def conclude(self, *decisions: Decision) -> CheckedObject:
        """The answer about the object, without a request."""
        kind, namespace, name = self.name
        return CheckedObject(self.place, kind.api_version, kind.kind, namespace, name, decisions=decisions)


class Kinds:
    """The kinds that a cluster serves, and why others may be missing."""

    def __init__(self, kinds: Iterable[Kind], gaps: Iterable[Gap] = ()) -> None:
        self._kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._unanswered = {gap.where: gap.why for gap in gaps if gap.kind is GapKind.DISCOVERY}

    def find(self, body: JsonObject) -> Kind | None:
        """The served kind of an object, or None."""
        return self._kinds.get(_read_type(body))

    def explain_missing(self, body: JsonObject) -> Decision:
        """The decision about an object of a kind that is not served, or whose group did not answer."""
        api_version, name = _read_type(body)
        for where in (api_version, api_version.partition("/")[0] if "/" in api_version else "/api", "/apis"):
            if where in self._unanswered:
                return Decision(Effect.UNDECIDED, f"its API group did not answer: {self._unanswered[where]}")
        versions = sorted(version for version, kind in self._kinds if kind == name)
        near = did_you_mean(name, {kind for _, kind in self._kinds})
        advice = f"it serves {name} in {', '.join(versions)}" if versions else f"no version of it is served.{near}"
        message = f'no matches for kind "{name}" in version "{api_version}": {advice}'
        return Decision(Effect.UNDECIDED, message)


def _read_type(body: JsonObject) -> tuple[str, str]:
    return as_text(body.get("apiVersion")), as_text(body.get("kind"))


def read_new_objects(
    documents: Iterable[Document], kinds: Kinds, namespace: str
) -> Iterator[NewObject | CheckedObject]:
    """The objects of documents; those without a namespace are in `namespace`. An object of an unknown kind is decided at once.

    An object that repeats an earlier one is an object of its own: kubectl applies both, one after the other.
    """
    for document in documents:
        place = Place(document.source, document.file, document.line, document.items)
        kind = kinds.find(document.body)
        if kind is None:
            api_version, name = _read_type(document.body)
            metadata = as_object(document.body.get("metadata"))
            named = as_text(metadata.get("namespace")), as_text(metadata.get("name"))
            missing = kinds.explain_missing(document.body)
            yield CheckedObject(place, api_version, name, *named, decisions=(missing,))
        else:
            body = set_namespace(kind, document.body, namespace)
            new = NewObject(place, resource_of(kind, body), document.generates_name)
            fault = _find_name_fault(as_object(body.get("metadata")))
            yield new.conclude(Decision(Effect.REFUSES, fault)) if fault else new


def _find_name_fault(metadata: JsonObject) -> str:
    """The reason why the API refuses the names of an object, whose path would be another one; empty if it does not (`BeforeCreate`)."""
    for field in ("name", "generateName", "namespace"):
        if fault := find_name_fault(as_text(metadata.get(field))):
            return f"metadata.{field}: Invalid value: {fault}"
    return ""


def set_namespace(kind: Kind, body: JsonObject, default: str) -> JsonObject:
    """The object in the namespace of its request: its own or the default, none if the kind is cluster-scoped."""
    metadata = as_object(body.get("metadata"))
    if kind.namespaced:
        return body if metadata.get("namespace") else {**body, "metadata": {**metadata, "namespace": default}}
    if "namespace" not in metadata:
        return body
    return {**body, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}


def read_stored(stored: StoredObjects, objects: Sequence[NewObject]) -> dict[ObjectKey, JsonObject | ListFailed | None]:
    """The objects that the cluster has under the names of new ones."""
    names = tuple(dict.fromkeys(each.name for each in objects if not each.generates_name))
    return dict(zip(names, stored.read_objects(names), strict=True))
