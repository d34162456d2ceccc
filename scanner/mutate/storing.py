"""What the API server makes of an object after each mutation, and what of it is stored in the end.

Source of truth: `dispatchOne` of apiserver 1.36, which converts and defaults the object after every mutation, within a policy
and from one policy to the next; `dispatchInvocations`, which takes it through its internal type before admission runs once more;
and the update strategies of the registries, which run once, when all of admission is over.
So a mutation sees what the one before wrote, `status` included, and the difference with the stored object does not have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scanner.model.json import Json, JsonObject, as_object, dig
from scanner.mutate import aggregated, custom, registry
from scanner.mutate.defaulting import defaulted
from scanner.mutate.difference import aligned
from scanner.mutate.operations import same
from scanner.mutate.registry.conversion import reject_unconvertible
from scanner.mutate.registry.restoring import completed
from scanner.mutate.schema import Schema


def mutated(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object as the next mutation sees it. Raises RequestFault for one that cannot be converted to its internal type."""
    if same(before, after):
        return before
    if schema.builtin:
        reject_unconvertible(after)
        return _with_defaults(schema, before, after)
    return custom.defaulted(schema.custom, after) if schema.custom else after


def _with_defaults(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """A mutated object with its defaults: those that it had before the mutation, had it come through a server, stay.

    An object with a uid did, and is complete.
    """
    start = before if dig(before, "metadata", "uid") else defaulted(schema, before)
    return defaulted(schema, after if start is before else completed(before, start, after))


def between_passes(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """What the first pass of admission has made of an object, as the second one sees it, whether or not it changes anything."""
    return registry.between_passes(schema, before, after) if schema.builtin and after is not before else after


def stored(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object as it would be kept in the place of the stored one."""
    if after is before:
        return before
    if schema.builtin:
        return registry.stored(schema, before, after)
    if schema.custom is None:
        return aggregated.stored(schema, before, after)
    known = custom.stored(schema.custom, before, before)
    return as_object(_carried(before, known, custom.stored(schema.custom, before, after)))


def _carried(given: Json, known: Json, after: Json) -> Json:
    """What has changed from the object as the server knows it, carried over to the object as it was given.

    A file may leave out what the server fills in: that is no change, and nothing of it is in the difference.
    """
    if same(known, after):
        return given
    if isinstance(given, Mapping) and isinstance(known, Mapping) and isinstance(after, Mapping):
        return dict(_members(given, known, after))
    if isinstance(given, list) and isinstance(known, list) and isinstance(after, list) and len(given) == len(known):
        return _elements(given, known, after)
    return after


def _members(given: JsonObject, known: JsonObject, after: JsonObject) -> Iterator[tuple[str, Json]]:
    for name, value in after.items():
        if name in given and name in known:
            yield name, _carried(given[name], known[name], value)
        elif name not in known or not same(known[name], value):
            yield name, value


def _elements(given: Sequence[Json], known: Sequence[Json], after: Sequence[Json]) -> list[Json]:
    pairs = aligned(known, after)  # type: ignore[arg-type]
    taken = {left for left, _ in pairs}
    in_place = {index: index for index in range(len(given)) if index not in taken}
    partners = {**in_place, **{right: left for left, right in pairs}}
    return [
        _carried(given[partners[at]], known[partners[at]], value) if at in partners else value
        for at, value in enumerate(after)
    ]
