"""What an update stores of the object that admission has let through.

Mirrors, for the kinds that are compiled into the server, `rest.BeforeUpdate`, the strategies of `pkg/registry` and the way of the
object through its internal type and its stored form. It happens once, at the end of a request: mutations see each other's
`stringData` and `status`. What a strategy refuses is no matter here: objects are validated after admission.

An object that has not all its defaults, as those in files, is compared with what the server would hold of it: a difference that
every request brings about is none of the policy's, and is taken back.
"""

from __future__ import annotations

from scanner.model.json import JsonObject
from scanner.mutate.defaulting import defaulted
from scanner.mutate.operations import same
from scanner.mutate.registry.conversion import round_tripped
from scanner.mutate.registry.features import without_disabled
from scanner.mutate.registry.metadata import kept_metadata, with_status
from scanner.mutate.registry.plugins import after_plugins
from scanner.mutate.registry.restoring import completed, restored
from scanner.mutate.registry.strategies import strategy_of
from scanner.mutate.schema import Schema

__all__ = ["kept_metadata", "round_tripped", "stored"]


def stored(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object that is stored, given the one that is and the one that admission has left of it."""
    if same(before, after):
        return before
    start = _updated(schema, before, before)
    if start is before or same(start, before):
        found = _updated(schema, before, after)
    else:
        found = restored(before, start, _updated(schema, start, completed(before, start, after)))
    return before if same(before, found) else found


def _updated(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """What the store holds after an update."""
    name = schema.resolve(schema.root).name
    old = round_tripped(schema, defaulted(schema, before))
    new = after_plugins(name, old, round_tripped(schema, defaulted(schema, after)))
    new = with_status(old, kept_metadata(before, new))
    return defaulted(schema, strategy_of(name)(old, without_disabled(schema, old, new)))
