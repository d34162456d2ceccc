"""The form of an object that the API server produces after each mutation, and the form that it stores in the end.

Source of truth: `dispatchOne` of apiserver 1.36, which converts and defaults the object after every mutation, within a policy
and from one policy to the next; `dispatchInvocations`, which takes it through its internal type before admission runs once more;
and the update strategies of the registries, which run once, when all of admission is over.
So a mutation reads the values that the previous one wrote, `status` included, and the difference with the stored object lacks
them.

Rules: `docs/semantics/mutation.md#defaults`.
"""

from __future__ import annotations

from scanner.model.json import EMPTY, Json, JsonObject, as_object, dig
from scanner.mutate import custom, registry
from scanner.mutate.decoding import DecoderEnded, UnstructuredDecoder
from scanner.mutate.defaulting import set_defaults
from scanner.mutate.gotypes import is_known
from scanner.mutate.operations import is_same_json
from scanner.mutate.paths import place_element
from scanner.mutate.registry import keep_metadata
from scanner.mutate.registry.conversion import reject_unconvertible
from scanner.mutate.registry.restoring import complete, restore
from scanner.mutate.rewriting import FieldPlace, Rewriting
from scanner.mutate.schema import Atom, MergedListType, MergedMapType, Schema


def read_request(schema: Schema, body: JsonObject) -> JsonObject:
    """The object of a request that writes a stored object again, as admission reads it.

    A custom resource that is stored in another version than that of the request gets the defaults of both: those of the stored one
    when it is read, those of the other when the request is decoded.
    """
    versions = schema.custom.versions if schema.custom else None
    if schema.custom is None or versions is None or versions.schema == schema.custom.schema:
        return body
    return custom.fill_defaults(schema.custom, body)


def read_mutated(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object as the next mutation reads it. Raises RequestFault for one that cannot be converted to its internal type."""
    if is_same_json(before, after):
        return before
    if schema.builtin:
        reject_unconvertible(after)
        return _set_defaults(schema, before, after)
    return custom.fill_defaults(schema.custom, after) if schema.custom else after


def _set_defaults(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """A mutated object with its defaults: those that it would have had before the mutation on a server stay.

    An object with a uid was read from a server, and is complete.
    """
    start = before if dig(before, "metadata", "uid") else set_defaults(schema, before)
    return set_defaults(schema, after if start is before else complete(before, start, after))


def convert_to_version(schema: Schema, after: JsonObject) -> JsonObject:
    """A custom resource after a mutation in another version than that of the request: it has the defaults of that version.

    The server sets them after every mutation, whether or not it changes anything.
    """
    return custom.fill_defaults(schema.custom, after) if schema.custom else after


def prepare_second_pass(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object of the first pass of admission as the second pass reads it, whether or not that changes anything."""
    return registry.prepare_second_pass(schema, before, after) if schema.builtin and after is not before else after


def store_update(schema: Schema, before: JsonObject, after: JsonObject, *, created: bool = False) -> JsonObject:
    """The object as the server would store it in the place of the stored one; with `created` as if it were new."""
    if after is before:
        return before
    if schema.builtin:
        return registry.store_update(schema, before, after, created=created)
    if schema.custom is None:
        return store_aggregated(schema, before, after)
    start = custom.store_custom(schema.custom, before, before)
    return restore(before, start, custom.store_custom(schema.custom, before, after))


# The stored form of a changed object of an aggregated API server, which publishes only its OpenAPI document.
#
# Assay does not have the Go types of such a server. The server drops fields that the document does not name, and it
# restores the default of a field that the mutation removed. Types that every server has, such as that of metadata,
# are read as elsewhere. Only the parts that the mutation changed are visited.


def store_aggregated(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object as its aggregated API server would store it in the place of `before`.

    `before` is the stored object, `after` the mutated one.
    """
    return keep_metadata(before, as_object(_Pruning(schema).prune_value(schema.root, before, after)))


class _Pruning:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def prune_value(self, ref: Json, before: Json, after: Json) -> Json:
        if is_same_json(before, after):
            return before
        atom = self._schema.resolve(ref)
        if isinstance(after, dict) and atom.map:
            return self._prune_object(atom, atom.map, before if isinstance(before, dict) else EMPTY, after)
        if isinstance(after, list) and atom.list:
            return self._prune_list(atom.list, before if isinstance(before, list) else [], after)
        return after

    def _prune_object(self, atom: Atom, of: MergedMapType, before: JsonObject, after: JsonObject) -> JsonObject:
        if is_known(atom.name):
            return self._prune_struct(atom, before, after)
        pruned = {
            name: self.prune_value(of.of(name), before.get(name), member)
            for name, member in after.items()
            if of.of(name) is not None and not (member is None and name in of.fields and name not in of.nullable)
        }
        removed = {name: of.defaults.get(name) for name in before if name not in pruned}
        return {**pruned, **{name: default for name, default in removed.items() if default is not None}}

    def _prune_struct(self, atom: Atom, before: JsonObject, after: JsonObject) -> JsonObject:
        try:
            return Rewriting(self._schema, UnstructuredDecoder()).rewrite_struct(atom, after, before, FieldPlace())
        except DecoderEnded:
            return after

    def _prune_list(self, of: MergedListType, before: list[Json], after: list[Json]) -> list[Json]:
        partners = {place_element(self._schema, of, at, element): element for at, element in enumerate(before)}
        return [
            self.prune_value(of.element, partners.get(place_element(self._schema, of, at, element)), element)
            for at, element in enumerate(after)
        ]
