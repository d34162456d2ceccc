"""What is left of a change once the API server has decoded, defaulted and stored it.

Only what a mutation changed is looked at. For kinds that are compiled into the server: quantities are numbers, empty values of
most fields are as if they were not given, a default that was removed comes back, and the server keeps what is its own. For
custom resources: fields that the schema does not know are pruned, defaults come back.

Source of truth: `SetDefaults_*` and the JSON tags of the API types of Kubernetes 1.36, its update strategies, and the pruning of
`apiextensions`.
"""

from __future__ import annotations

from scanner.model.json import Json, JsonObject
from scanner.mutate.operations import same
from scanner.mutate.paths import BadElement, element_key
from scanner.mutate.quantities import canonical, same_quantity
from scanner.mutate.registry import kept_metadata, stored
from scanner.mutate.schema import Atom, ListType, MapType, Schema

_COMPILED = "io.k8s."
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
    """The object as the server would keep it. Raises PatchFault for a quantity that is none."""
    if same(before, after):
        return before
    found = _Settling(schema).value(schema.root, before, after)
    if not isinstance(found, dict):
        return after
    return stored(schema, before, found) if schema.builtin else kept_metadata(before, found)


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
            if (name in before and same(before[name], one)) or not self._is_nothing(atom, of, name, one)
        }
        removed = {name: self._default(of, name) for name in before if name not in kept}
        return {**kept, **{name: default for name, default in removed.items() if default is not None}}

    def _default(self, of: MapType, name: str) -> Json:
        """What comes back where a field of a custom resource was removed."""
        return None if self._schema.builtin else of.defaults.get(name)

    def _is_compiled(self, atom: Atom) -> bool:
        """Whether a Go type decodes it: in custom resources, that is their metadata."""
        return self._schema.builtin or atom.name.startswith(_COMPILED)

    def _is_nothing(self, owner: Atom, of: MapType, name: str, value: Json) -> bool:
        """Whether a value that was given to a field is as if it were not given."""
        if value is None and name in of.fields:
            return name not in of.nullable
        if not self._is_compiled(owner) or name not in of.fields or name in of.written:
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
