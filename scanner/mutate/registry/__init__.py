"""The object that an update stores, given the object that admission has admitted.

Mirrors, for the kinds that are compiled into the server, `rest.BeforeUpdate`, the strategies of `pkg/registry` and the
conversion of the object to its internal type and its stored form. It happens once, at the end of a request (`store_update`): mutations
of one pass read each other's `stringData` and `status`. `prepare_second_pass` does the conversion between the passes of admission. The
validation by a strategy is out of scope: objects are validated after admission.

An object without all its defaults, such as one in a file, is compared with its stored form: a difference that every request
causes is not a change of the policy, and is reverted.
"""

from __future__ import annotations

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object, dig
from scanner.mutate.defaulting import set_defaults
from scanner.mutate.operations import is_same_json
from scanner.mutate.registry.conversion import convert_into, convert_round_trip
from scanner.mutate.registry.features import drop_disabled
from scanner.mutate.registry.first_status import complete_status, set_first_status
from scanner.mutate.registry.restoring import complete, restore
from scanner.mutate.registry.strategies import count_template, find_creation_strategy, find_update_strategy
from scanner.mutate.schema import Schema
from scanner.mutate.walk import apply_within, drop_members, set_member

__all__ = [
    "clear_metadata",
    "complete_status",
    "convert_round_trip",
    "decode",
    "keep_metadata",
    "prepare_second_pass",
    "prepare_write",
    "store_update",
]

_REMEMBERED = 8


def store_update(schema: Schema, before: JsonObject, after: JsonObject, *, created: bool = False) -> JsonObject:
    """The object that an update stores, given the stored object and the object that admission produced.

    With `created`, the object that a request to create the same object stores. The same object as `before` if the request changes
    nothing.
    """
    return before if is_same_json(before, after) else _LATEST.of(schema, before, created=created).store(after)


class _Update:
    """The updates of one object: its stored form, and the stored form of each object that admission produces."""

    def __init__(self, schema: Schema, before: JsonObject, *, created: bool) -> None:
        self.schema, self.before, self.created = schema, before, created
        self._old = decode(schema, before)
        self._start = self._update(self._old, self._old)
        self._known: list[tuple[JsonObject, JsonObject]] = []

    def store(self, after: JsonObject) -> JsonObject:
        """The object that is stored instead; the same object when it does not change. The latest results are cached."""
        result = next((result for mutated, result in self._known if is_same_json(mutated, after)), None)
        if result is None:
            result = self._store(after)
            self._known = [(after, result), *self._known[: _REMEMBERED - 1]]
        return result

    def _store(self, after: JsonObject) -> JsonObject:
        schema, before, start = self.schema, self.before, self._start
        after = convert_into(schema, before, after)
        if start is before or is_same_json(start, before):
            updated = self._update(self._old, decode(schema, after))
        else:
            updated = restore(before, start, self._update(start, decode(schema, complete(before, start, after))))
        return before if is_same_json(before, updated) else updated

    def _update(self, old: JsonObject, new: JsonObject) -> JsonObject:
        """The stored object after the request."""
        name = self.schema.resolve(self.schema.root).name
        new = keep_status(old, keep_metadata(old, new))
        if self.created:
            prepared = find_creation_strategy(name)(old, drop_disabled(self.schema, EMPTY, new))
        else:
            prepared = find_update_strategy(name)(old, drop_disabled(self.schema, old, new))
        return new if prepared is new else set_defaults(self.schema, prepared)


class _LatestUpdate:
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


_LATEST = _LatestUpdate()


def prepare_second_pass(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object of the second pass of admission: after its internal type, and after the plugins that run earlier."""
    converted = convert_round_trip(schema, convert_into(schema, before, after))
    return apply_plugins(schema.resolve(schema.root).name, before, converted)


def decode(schema: Schema, document: JsonObject) -> JsonObject:
    """An object as the server reads it: with its defaults, and after its internal type."""
    return convert_round_trip(schema, set_defaults(schema, document))


def prepare_write(schema: Schema, old: JsonObject | None, new: JsonObject) -> JsonObject:
    """The decoded object of a request as validation reads it: `rest.BeforeCreate` without an old object, `rest.BeforeUpdate` with it.

    The fields that a server sets when it creates an object, such as its uid, are missing.
    """
    name = schema.resolve(schema.root).name
    if old is None:
        kept = set_first_status(schema, clear_metadata(new))
        prepared = find_creation_strategy(name)(kept, drop_disabled(schema, EMPTY, kept))
        # The status of the strategy is validated without the defaults of its type.
        first = {"status": prepared["status"]} if "status" in prepared else {}
        return {**set_defaults(schema, prepared), **first}
    kept = keep_status(old, keep_metadata(old, new))
    prepared = find_update_strategy(name)(old, drop_disabled(schema, old, kept))
    return set_defaults(schema, count_template(name, old, prepared))


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


def keep_metadata(before: JsonObject, after: JsonObject) -> JsonObject:
    """An object whose server-set metadata is that of the stored object (`rest.BeforeUpdate`)."""
    old, new = as_object(before.get("metadata")), as_object(after.get("metadata"))
    if new is old:
        return after
    set_by_server = {name: old[name] for name in _SERVER_SET if name in old}
    metadata = {**drop_members(new, *_SERVER_SET), **set_by_server}
    if "namespace" not in old:  # EnsureObjectNamespaceMatchesRequestNamespace
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = old["namespace"]
    metadata = {**metadata, **_keep_owners(metadata)}
    return {**after, "metadata": metadata} if metadata else drop_members(after, "metadata")


def clear_metadata(new: JsonObject) -> JsonObject:
    """A new object without the metadata that no client can set (`rest.BeforeCreate`)."""
    return keep_metadata({"metadata": drop_members(as_object(new.get("metadata")), *_SERVER_SET)}, new)


def _keep_owners(metadata: JsonObject) -> JsonObject:
    owners = as_list(metadata.get("ownerReferences"))
    once: list[Json] = [owner for index, owner in enumerate(owners) if owner not in owners[:index]]
    return {} if len(once) == len(owners) else {"ownerReferences": once}


def keep_status(before: JsonObject, after: JsonObject) -> JsonObject:
    """An object with the stored status: only the status subresource changes it."""
    return set_member(after, "status", before["status"]) if "status" in before else drop_members(after, "status")


# The changes of other admission plugins to an updated pod: of plugins that are on by default and need only the
# object.
#
# Mirrors `plugin/pkg/admission/priority` and `defaulttolerationseconds`: when a policy has changed the object, the
# server calls them once more, before the second run of the policies. No plugin runs after the second run.

_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PRIORITY = ("priority", "preemptionPolicy")


def apply_plugins(type_name: str, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object after the plugins; only pods change. `type_name` is the name of the kind's definition."""
    if type_name != "io.k8s.api.core.v1.Pod":
        return after
    old = as_object(before.get("spec"))
    return apply_within("spec", lambda spec: _add_tolerations(old, _keep_priority(old, spec)))(after)


def _keep_priority(old: JsonObject, spec: JsonObject) -> JsonObject:
    missing = {name: old[name] for name in _PRIORITY if old.get(name) is not None and spec.get(name) is None}
    return {**spec, **missing} if missing else spec


def _add_tolerations(old: JsonObject, spec: JsonObject) -> JsonObject:
    """Add tolerations for unavailable nodes of five minutes unless the pod has its own.

    A pod without them before the update comes from a file, or from a server without this plugin.
    """
    new = _list_missing_tolerations(spec)
    return (
        spec
        if not new or _list_missing_tolerations(old)
        else {**spec, "tolerations": [*as_list(spec.get("tolerations")), *new]}
    )


def _list_missing_tolerations(spec: JsonObject) -> list[JsonObject]:
    ending = [
        toleration
        for toleration in as_list(spec.get("tolerations"))
        if dig(toleration, "effect") in (None, "", "NoExecute")
    ]
    keys = {dig(toleration, "key") or "" for toleration in ending}
    # A toleration without a key tolerates every taint.
    return [
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for taint in _TAINTS
        if taint not in keys and "" not in keys
    ]
