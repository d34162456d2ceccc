"""The object that an update stores, given the object that admission has admitted.

Mirrors, for the kinds that are compiled into the server, `rest.BeforeUpdate`, the strategies of `pkg/registry` and the
conversion of the object to its internal type and its stored form. It happens once, at the end of a request (`stored`): mutations
of one pass read each other's `stringData` and `status`. `between_passes` does the conversion between the passes of admission. The
validation by a strategy is out of scope: objects are validated after admission.

An object without all its defaults, such as one in a file, is compared with its stored form: a difference that every request
causes is not a change of the policy, and is reverted.
"""

from __future__ import annotations

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object, dig
from scanner.mutate.defaulting import defaulted
from scanner.mutate.operations import same
from scanner.mutate.registry.conversion import converted_into, round_tripped
from scanner.mutate.registry.features import without_disabled
from scanner.mutate.registry.restoring import completed, restored
from scanner.mutate.registry.strategies import creation_of, strategy_of
from scanner.mutate.schema import Schema
from scanner.mutate.walk import with_member, within, without

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


# The metadata after an update: fields that clients cannot set keep the stored values.
#
# Mirrors `rest.BeforeUpdate`, `dedupOwnerReferences` and, for counters and dates, the values that every write sets.

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


def kept_metadata(before: JsonObject, after: JsonObject) -> JsonObject:
    """An object whose server-set metadata is that of the stored object (`rest.BeforeUpdate`)."""
    stored, given = as_object(before.get("metadata")), as_object(after.get("metadata"))
    if given is stored:
        return after
    own = {name: stored[name] for name in _SERVER_SET if name in stored}
    metadata = {**without(given, *_SERVER_SET), **own}
    if "namespace" not in stored:  # EnsureObjectNamespaceMatchesRequestNamespace
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = stored["namespace"]
    metadata = {**metadata, **_owners(metadata)}
    return {**after, "metadata": metadata} if metadata else without(after, "metadata")


def _owners(metadata: JsonObject) -> JsonObject:
    owners = as_list(metadata.get("ownerReferences"))
    once: list[Json] = [owner for index, owner in enumerate(owners) if owner not in owners[:index]]
    return {} if len(once) == len(owners) else {"ownerReferences": once}


def with_status(before: JsonObject, after: JsonObject) -> JsonObject:
    """An object with the stored status: only the status subresource changes it."""
    return with_member(after, "status", before["status"]) if "status" in before else without(after, "status")


# The changes of other admission plugins to an updated pod: of plugins that are on by default and need only the
# object.
#
# Mirrors `plugin/pkg/admission/priority` and `defaulttolerationseconds`: when a policy has changed the object, the
# server calls them once more, before the second run of the policies. No plugin runs after the second run.

_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PRIORITY = ("priority", "preemptionPolicy")


def after_plugins(type_name: str, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object after the plugins; only pods change. `type_name` is the name of the kind's definition."""
    if type_name != "io.k8s.api.core.v1.Pod":
        return after
    old = as_object(before.get("spec"))
    return within("spec", lambda spec: _tolerating(old, _with_priority(old, spec)))(after)


def _with_priority(old: JsonObject, spec: JsonObject) -> JsonObject:
    missing = {name: old[name] for name in _PRIORITY if old.get(name) is not None and spec.get(name) is None}
    return {**spec, **missing} if missing else spec


def _tolerating(old: JsonObject, spec: JsonObject) -> JsonObject:
    """Add tolerations for unavailable nodes of five minutes unless the pod has its own.

    A pod without them before the update comes from a file, or from a server without this plugin.
    """
    new = _missing_tolerations(spec)
    return (
        spec
        if not new or _missing_tolerations(old)
        else {**spec, "tolerations": [*as_list(spec.get("tolerations")), *new]}
    )


def _missing_tolerations(spec: JsonObject) -> list[JsonObject]:
    ending = [
        toleration
        for toleration in as_list(spec.get("tolerations"))
        if dig(toleration, "effect") in (None, "", "NoExecute")
    ]
    keys = {dig(toleration, "key") or "" for toleration in ending}
    return [_toleration(taint) for taint in _TAINTS if taint not in keys and "" not in keys]


def _toleration(taint: str) -> JsonObject:
    return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
