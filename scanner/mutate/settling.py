"""What is left of a change once the API server has stored the object.

Objects of kinds that are compiled into the server are decoded by now: they get their defaults, and what their registry puts back.
Custom resources lose the fields that their schema does not know.
"""

from __future__ import annotations

from scanner.model.json import JsonObject
from scanner.mutate.operations import same
from scanner.mutate.pruning import pruned
from scanner.mutate.registry import kept_metadata, stored
from scanner.mutate.schema import Schema


def settled(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object as the server would keep it. `after` is what its decoder left."""
    if same(before, after):
        return before
    if schema.builtin:
        return stored(schema, before, after)
    found = pruned(schema, before, after)
    return kept_metadata(before, found) if isinstance(found, dict) else after
