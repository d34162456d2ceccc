"""What is left of a change once the API server has stored the object.

Only what a mutation changed is visited. In objects of kinds that are compiled into the server a default that was removed comes
back, and the server keeps what is its own.

Source of truth: the `SetDefaults_*` functions of Kubernetes 1.36 and its update strategies.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.model.json import Json, JsonObject
from scanner.mutate.defaults import default_of, labels_of
from scanner.mutate.operations import same
from scanner.mutate.paths import BadElement, element_key
from scanner.mutate.pruning import pruned
from scanner.mutate.schema import Atom, ListType, MapType, Schema

# What clients cannot set on a stored object; the server puts it back.
_SERVER_SET = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)


def settled(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object as the server would keep it. `after` is what its decoder left. Raises PatchFault."""
    if same(before, after):
        return before
    found = _Restoring(schema).value(schema.root, before, after) if schema.builtin else pruned(schema, before, after)
    return _owned(schema, before, found) if isinstance(found, dict) else after


def _owned(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object with what is the server's own put back."""
    metadata = _kept(_part(before, "metadata"), _part(after, "metadata"), _SERVER_SET)
    if labels := labels_of(after, _part(metadata, "labels")):
        metadata = {**metadata, "labels": labels}
    return {
        **_kept(before, after, ("status",) if schema.builtin else ()),
        **({"metadata": metadata} if metadata else {}),
    }


def _part(value: JsonObject, name: str) -> JsonObject:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}


def _kept(before: JsonObject, after: JsonObject, names: tuple[str, ...]) -> JsonObject:
    own = {name: before[name] for name in names if name in before}
    return {**{name: value for name, value in after.items() if name not in names}, **own}


class _Restoring:
    """Puts defaults back where a field that had one was removed."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def value(self, ref: Json, before: Json, after: Json) -> Json:
        if before is after:
            return after
        atom = self._schema.resolve(ref)
        if isinstance(after, dict) and isinstance(before, dict) and atom.map:
            return self._map(atom, atom.map, before, after)
        if isinstance(after, list) and isinstance(before, list) and atom.list:
            return self._list(atom.list, before, after)
        return after

    def _map(self, atom: Atom, of: MapType, before: JsonObject, after: JsonObject) -> JsonObject:
        kept = {name: self.value(of.of(name), before.get(name), one) for name, one in after.items()}
        removed = {name: default_of(atom.name, name, after) for name in before if name not in kept}
        return {**kept, **{name: default for name, default in removed.items() if default is not None}}

    def _list(self, of: ListType, before: list[Json], after: list[Json]) -> list[Json]:
        partners = {self._key(of, at, one): one for at, one in enumerate(before)}
        return [self.value(of.element, partners.get(self._key(of, at, one)), one) for at, one in enumerate(after)]

    def _key(self, of: ListType, at: int, element: Json) -> str:
        try:
            return element_key(self._schema, of, element) if of.associative else str(at)
        except BadElement:
            return str(at)
