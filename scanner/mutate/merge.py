"""The merge of an object and a patch by their schema: the patch has precedence, and no value is removed.

Mirrors `typed.Merge` of structured-merge-diff v6 with the order of merged lists: elements of the object alone keep their
relative order, elements of both follow the patch.

Rules: `docs/semantics/mutation.md#merge`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import is_
from typing import TypeAlias

from scanner.model.json import Json
from scanner.mutate.native import NilList, PatchFault
from scanner.mutate.paths import BadElement, element_key
from scanner.mutate.schema import ListType, MapType, Schema

_Entry: TypeAlias = "tuple[str, object]"
"""An element of a list behind the key that finds its partner."""


class _Absent:
    """A marker for the side that has no value; null is a value."""


_ABSENT = _Absent()


def merged(schema: Schema, live: object, patch: object) -> object:
    """The object with the patch merged in; the same object if nothing changes.

    Mirrors the merge of `structured-merge-diff`. Raises PatchFault when a merged list has an element without its keys.
    """
    return _Merge(schema).value(schema.root, live, patch)


class _Merge:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def value(self, ref: Json, live: object, patch: object) -> object:
        if patch is _ABSENT:
            return live
        atom = self._schema.resolve(ref).deduced(patch)
        if atom.map:
            return self._map(atom.map, live, patch)
        if atom.list and not atom.scalar:
            return self._list(atom.list, live, patch)
        return live if type(live) is type(patch) and live == patch else _json(patch)

    def _map(self, of: MapType, live: object, patch: object) -> object:
        ours = live if isinstance(live, dict) else {}
        theirs = patch if isinstance(patch, dict) else {}
        if of.atomic or not (ours or theirs):
            return _json(patch)
        changed = {name: self.value(of.of(name), ours.get(name, _ABSENT), member) for name, member in theirs.items()}
        if all(ours.get(name, _ABSENT) is member for name, member in changed.items()):
            return live
        return {**ours, **changed}

    def _list(self, of: ListType, live: object, patch: object) -> object:
        ours = live if isinstance(live, list) else []
        theirs = patch if isinstance(patch, list) else []
        if not of.associative or not (ours or theirs):
            return _json(patch)
        left, right = self._indexed(of, ours), self._indexed(of, theirs)
        partners = _partners(left)
        elements = [self._element(of, pair, partners) for pair in _ordered(left, right)]
        return live if len(elements) == len(ours) and all(map(is_, elements, ours)) else elements

    def _indexed(self, of: ListType, elements: Iterable[object]) -> list[_Entry]:
        try:
            return [(element_key(self._schema, of, element), element) for element in elements]
        except BadElement as error:
            raise PatchFault(str(error)) from None

    def _element(self, of: ListType, chosen: tuple[_Entry, bool], partners: dict[str, object]) -> object:
        (key, element), from_patch = chosen
        return self.value(of.element, partners.get(key, _ABSENT), element) if from_patch else element


def _json(patch: object) -> object:
    """A part of a patch as JSON: an empty list literal becomes null."""
    match patch:
        case NilList():
            return None
        case list():
            return [_json(item) for item in patch]
        case dict():
            return {name: _json(member) for name, member in patch.items()}
        case _:
            return patch


def _partners(left: list[_Entry]) -> dict[str, object]:
    """The object's elements by key; of elements with the same key, none is kept."""
    partners: dict[str, object] = {}
    for key, element in left:
        partners[key] = _ABSENT if key in partners else element
    return partners


def _ordered(left: list[_Entry], right: list[_Entry]) -> Iterator[tuple[_Entry, bool]]:
    """The elements of the merged list, and whether they come from the patch. Two cursors walk both lists."""
    ours, theirs = {key for key, _ in left}, {key for key, _ in right}
    shared = [key for key, _ in right if key in ours]
    at = after = 0
    done: set[str] = set()
    while at < len(left) or after < len(right):
        key = left[at][0] if at < len(left) else ""
        if at < len(left) and key not in theirs:
            yield left[at], False
            at += 1
            continue
        chosen = right[after][0] if after < len(right) else ""
        if at < len(left) and key != chosen:
            out_of_turn = bool(chosen and shared and shared[0] != key)
            at += out_of_turn or key in done
            if out_of_turn or not chosen:
                continue
        if chosen:
            yield right[after], True
            done.add(chosen)
            at += at < len(left) and left[at][0] == chosen == key
            after += 1
            shared = shared[1:] if shared[:1] == [chosen] else shared
