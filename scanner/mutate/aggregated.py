"""The stored form of a changed object of an aggregated API server, which publishes only its OpenAPI document.

Assay does not have the Go types of such a server. The server drops fields that the document does not name, and it restores the
default of a field that the mutation removed. Types that every server has, such as that of metadata, are read as elsewhere. Only
the parts that the mutation changed are visited.
"""

from __future__ import annotations

from scanner.model.json import EMPTY, Json, JsonObject, as_object
from scanner.mutate.decoding import Ended, Unstructured
from scanner.mutate.gotypes import is_known
from scanner.mutate.operations import same
from scanner.mutate.paths import BadElement, element_key
from scanner.mutate.registry import kept_metadata
from scanner.mutate.rewriting import Place, Rewriting
from scanner.mutate.schema import Atom, ListType, MapType, Schema


def stored(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object as its aggregated API server would store it in the place of `before`.

    `before` is the stored object, `after` the mutated one.
    """
    return kept_metadata(before, as_object(_Pruning(schema).value(schema.root, before, after)))


class _Pruning:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def value(self, ref: Json, before: Json, after: Json) -> Json:
        if same(before, after):
            return before
        atom = self._schema.resolve(ref)
        if isinstance(after, dict) and atom.map:
            return self._object(atom, atom.map, before if isinstance(before, dict) else EMPTY, after)
        if isinstance(after, list) and atom.list:
            return self._list(atom.list, before if isinstance(before, list) else [], after)
        return after

    def _object(self, atom: Atom, of: MapType, before: JsonObject, after: JsonObject) -> JsonObject:
        if is_known(atom.name):
            return self._typed(atom, before, after)
        kept = {
            name: self.value(of.of(name), before.get(name), member)
            for name, member in after.items()
            if of.of(name) is not None and not (member is None and name in of.fields and name not in of.nullable)
        }
        removed = {name: of.defaults.get(name) for name in before if name not in kept}
        return {**kept, **{name: default for name, default in removed.items() if default is not None}}

    def _typed(self, atom: Atom, before: JsonObject, after: JsonObject) -> JsonObject:
        try:
            return Rewriting(self._schema, Unstructured()).struct(atom, after, before, Place())
        except Ended:
            return after

    def _list(self, of: ListType, before: list[Json], after: list[Json]) -> list[Json]:
        partners = {self._key(of, at, element): element for at, element in enumerate(before)}
        return [
            self.value(of.element, partners.get(self._key(of, at, element)), element)
            for at, element in enumerate(after)
        ]

    def _key(self, of: ListType, at: int, element: Json) -> str:
        try:
            return element_key(self._schema, of, element) if of.associative else str(at)
        except BadElement:
            return str(at)
