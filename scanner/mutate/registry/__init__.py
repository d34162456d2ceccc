"""The object that an update stores, given the object that admission has admitted.

Mirrors, for the kinds that are compiled into the server, `rest.BeforeUpdate`, the strategies of `pkg/registry` and the
conversion of the object to its internal type and its stored form. It happens once, at the end of a request (`stored`): mutations
of one pass read each other's `stringData` and `status`. `between_passes` does the conversion between the passes of admission. The
validation by a strategy is out of scope: objects are validated after admission.

An object without all its defaults, such as one in a file, is compared with its stored form: a difference that every request
causes is not a change of the policy, and is reverted.
"""

from __future__ import annotations

from scanner.model.json import EMPTY, JsonObject
from scanner.mutate.defaulting import defaulted
from scanner.mutate.operations import same
from scanner.mutate.registry.conversion import converted_into, round_tripped
from scanner.mutate.registry.features import without_disabled
from scanner.mutate.registry.metadata import kept_metadata, with_status
from scanner.mutate.registry.plugins import after_plugins
from scanner.mutate.registry.restoring import completed, restored
from scanner.mutate.registry.strategies import creation_of, strategy_of
from scanner.mutate.schema import Schema

__all__ = ["between_passes", "kept_metadata", "round_tripped", "stored"]

_REMEMBERED = 8


def stored(schema: Schema, before: JsonObject, after: JsonObject, *, created: bool = False) -> JsonObject:
    """The object that an update stores, given the stored object and the object that admission produced.

    With `created`, the object that a request to create the same object stores. The same object as `before` if the request changes
    nothing.
    """
    return before if same(before, after) else _LATEST.of(schema, before, created=created).stored(after)


class _Update:
    """The updates of one object: its stored form, and the stored form of each object that admission produces."""

    def __init__(self, schema: Schema, before: JsonObject, *, created: bool) -> None:
        self.schema, self.before, self.created = schema, before, created
        self._old = _decoded(schema, before)
        self._start = self._updated(self._old, self._old)
        self._known: list[tuple[JsonObject, JsonObject]] = []

    def stored(self, after: JsonObject) -> JsonObject:
        """The object that is stored instead; the same object when it does not change. The latest results are cached."""
        result = next((result for mutated, result in self._known if same(mutated, after)), None)
        if result is None:
            result = self._stored(after)
            self._known = [(after, result), *self._known[: _REMEMBERED - 1]]
        return result

    def _stored(self, after: JsonObject) -> JsonObject:
        schema, before, start = self.schema, self.before, self._start
        after = converted_into(schema, before, after)
        if start is before or same(start, before):
            updated = self._updated(self._old, _decoded(schema, after))
        else:
            updated = restored(before, start, self._updated(start, _decoded(schema, completed(before, start, after))))
        return before if same(before, updated) else updated

    def _updated(self, old: JsonObject, new: JsonObject) -> JsonObject:
        """The stored object after the request."""
        name = self.schema.resolve(self.schema.root).name
        new = with_status(old, kept_metadata(old, new))
        if self.created:
            prepared = creation_of(name)(old, without_disabled(self.schema, EMPTY, new))
        else:
            prepared = strategy_of(name)(old, without_disabled(self.schema, old, new))
        return new if prepared is new else defaulted(self.schema, prepared)


class _Latest:
    """A cache of the latest object: policies, alone and together, produce several results for one object in a row."""

    def __init__(self) -> None:
        self._update: _Update | None = None

    def of(self, schema: Schema, before: JsonObject, *, created: bool) -> _Update:
        update = self._update
        if (
            update is None
            or update.schema is not schema
            or update.before is not before
            or update.created is not created
        ):
            update = self._update = _Update(schema, before, created=created)
        return update


_LATEST = _Latest()


def between_passes(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object of the second pass of admission: after its internal type, and after the plugins that run earlier."""
    converted = round_tripped(schema, converted_into(schema, before, after))
    return after_plugins(schema.resolve(schema.root).name, before, converted)


def _decoded(schema: Schema, document: JsonObject) -> JsonObject:
    """An object as the server stores it."""
    return round_tripped(schema, defaulted(schema, document))
