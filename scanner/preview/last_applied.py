"""What `kubectl apply` removes from a live object: the fields that the last manifest had, and the new one has no more.

Source of truth: `strategicpatch.CreateThreeWayMergePatch` and `jsonmergepatch.CreateThreeWayJSONMergePatch`, which compare the annotation
`kubectl.kubernetes.io/last-applied-configuration` with the manifest. An object that was never applied so has no such annotation.
"""

from __future__ import annotations

from typing import Final, cast

import orjson

from scanner.model.json import Json, JsonObject, as_object, dig
from scanner.model.resource import LAST_APPLIED, SERVER_SET_METADATA
from scanner.mutate.paths import BadElement, make_element_key
from scanner.mutate.schema import MergedListType, MergedMapType, Schema

_IDENTITY: Final = ("apiVersion", "kind")
_KEPT_METADATA: Final = ("name", "namespace", *SERVER_SET_METADATA)


def read_last_applied(live: JsonObject) -> JsonObject | None:
    """The last manifest that kubectl applied to an object. None without the annotation, or if it has no JSON object."""
    text = dig(live, "metadata", "annotations", LAST_APPLIED)
    try:
        last = orjson.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return last if isinstance(last, dict) else None


def remove_unnamed(schema: Schema, live: JsonObject, last: JsonObject, manifest: JsonObject) -> JsonObject:
    """The live object without them, given both manifests; the same object if there are none."""
    named = {**dict.fromkeys(_KEPT_METADATA), "annotations": {}, **as_object(manifest.get("metadata"))}
    now: JsonObject = {**dict.fromkeys(_IDENTITY), **manifest, "metadata": named}
    return cast("JsonObject", _Removal(schema).remove(schema.root, live, last, now))


class _Removal:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def remove(self, ref: Json, live: object, last: object, now: object) -> object:
        """A part of the live object, given the same part of both manifests."""
        atom = self._schema.resolve(ref).deduce(live)
        if atom.map and isinstance(live, dict) and isinstance(now, dict):
            return self._remove_members(atom.map, live, last if isinstance(last, dict) else {}, now)
        if not (atom.list and isinstance(live, list) and isinstance(now, list)):
            return live
        if self._schema.custom is not None:  # a JSON merge patch replaces each list
            return live if live == now else now
        return self._remove_elements(atom.list, live, last, now) if isinstance(last, list) else live

    def _remove_members(
        self, of: MergedMapType, live: dict[str, object], last: dict[str, object], now: dict[str, object]
    ) -> object:
        kept = {
            name: self.remove(of.of(name), member, last.get(name), now[name]) if name in now else member
            for name, member in live.items()
            if name in now or name not in last
        }
        is_same = len(kept) == len(live) and all(kept[name] is member for name, member in live.items())
        return live if is_same else kept

    def _remove_elements(self, of: MergedListType, live: list[object], last: list[object], now: list[object]) -> object:
        if not of.associative:
            return live
        try:
            before, after = ({self._name(of, each): each for each in elements} for elements in (last, now))
            names = [self._name(of, each) for each in live]
        except BadElement:
            return live
        kept = [
            self.remove(of.element, element, before[name], after[name]) if name in before and name in after else element
            for name, element in zip(names, live, strict=True)
            if name in after or name not in before
        ]
        is_same = len(kept) == len(live) and all(one is other for one, other in zip(kept, live, strict=True))
        return live if is_same else kept

    def _name(self, of: MergedListType, element: object) -> str:
        return make_element_key(self._schema, of, element)
