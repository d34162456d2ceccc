"""What is left of a change once the API server has decoded, defaulted and stored it.

Only what a mutation changed is looked at, in objects of kinds that are compiled into the server: quantities are numbers, empty
values of most fields are as if they were not given, a default that was removed comes back, and the server keeps what is its own.

Source of truth: `SetDefaults_*` and the JSON tags of the API types of Kubernetes 1.36, and its update strategies.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.model.json import Json, JsonObject
from scanner.mutate.defaults import default_of, labels_of
from scanner.mutate.operations import same
from scanner.mutate.paths import BadElement, element_key
from scanner.mutate.quantities import canonical, same_quantity
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
# Fields that are no pointers, so that false and 0 are the same as nothing.
_ZERO_IS_NOTHING = frozenset(
    {
        "failureThreshold",
        "globalDefault",
        "healthCheckNodePort",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostPort",
        "initialDelaySeconds",
        "insecureSkipTLSVerifyBackend",
        "minReadySeconds",
        "nodePort",
        "paused",
        "periodSeconds",
        "publishNotReadyAddresses",
        "readOnly",
        "stdin",
        "stdinOnce",
        "successThreshold",
        "tty",
        "unschedulable",
    }
)
# Texts that are pointers, so that an empty one is kept.
_EMPTY_TEXT_IS_KEPT = frozenset(
    {
        "appProtocol",
        "hostnameOverride",
        "ingressClassName",
        "loadBalancerClass",
        "localhostProfile",
        "runtimeClassName",
        "storageClassName",
        "timeZone",
        "volumeAttributesClassName",
    }
)


def settled(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object as its Go type holds it, with its defaults. Raises PatchFault for a quantity that is none."""
    if same(before, after):
        return before
    found = _Settling(schema).value(schema.root, before, after)
    return found if isinstance(found, dict) else after


def owned(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
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


class _Settling:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def value(self, ref: Json, before: Json, after: Json) -> Json:
        if same(before, after):
            return before
        atom = self._schema.resolve(ref)
        if isinstance(after, dict) and atom.map:
            return self._map(atom, atom.map, before if isinstance(before, dict) else {}, after)
        if isinstance(after, list) and atom.list:
            return self._list(atom.list, before if isinstance(before, list) else [], after)
        return _quantity(before, after) if atom.scalar == "quantity" else after

    def _map(self, atom: Atom, of: MapType, before: JsonObject, after: JsonObject) -> JsonObject:
        known = {name: one for name, one in after.items() if of.of(name) is not None}
        found = {name: self.value(of.of(name), before.get(name), one) for name, one in known.items()}
        kept = {
            name: one
            for name, one in found.items()
            if (name in before and same(before[name], one)) or not self._is_nothing(of, name, one)
        }
        removed = {name: default_of(atom.name, name, after) for name in before if name not in kept}
        return {**kept, **{name: default for name, default in removed.items() if default is not None}}

    def _is_nothing(self, of: MapType, name: str, value: Json) -> bool:
        """Whether a value that was given to a field is as if it were not given."""
        if value is None and name in of.fields:
            return name not in of.nullable
        if name not in of.fields or name in of.written:
            return False
        atom = self._schema.resolve(of.fields[name])
        match value:
            case "":
                return name not in _EMPTY_TEXT_IS_KEPT
            case bool() | int():
                return not value and name in _ZERO_IS_NOTHING
            case list():
                return not value
            case dict():
                return not value and bool(atom.map and not atom.map.fields and atom.map.element not in ("?", None))
            case _:
                return False

    def _list(self, of: ListType, before: list[Json], after: list[Json]) -> list[Json]:
        partners = self._partners(of, before)
        return [self.value(of.element, partners.get(self._key(of, at, one)), one) for at, one in enumerate(after)]

    def _partners(self, of: ListType, before: list[Json]) -> dict[str, Json]:
        return {self._key(of, at, one): one for at, one in enumerate(before)}

    def _key(self, of: ListType, at: int, element: Json) -> str:
        try:
            return element_key(self._schema, of, element) if of.associative else str(at)
        except BadElement:
            return str(at)


def _quantity(before: Json, after: Json) -> Json:
    """A quantity as the server writes it: as before when it is the same number."""
    if before is not None and same_quantity(before, after):
        return before
    return canonical(after)
