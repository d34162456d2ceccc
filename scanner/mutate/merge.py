"""The merge of an object and a patch by their schema: the patch has precedence, and no value is removed.

Mirrors `typed.Merge` of structured-merge-diff v6 with the order of merged lists: elements of the object alone keep their
relative order, elements of both follow the patch.

Rules: `docs/semantics/mutation.md#merge`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import is_
from typing import TypeAlias

from scanner.cel.values.text import quote, write_printed
from scanner.model.json import Json
from scanner.mutate.native import Foreign, NilList, PatchFault, write_container
from scanner.mutate.paths import BadElement, make_element_key
from scanner.mutate.schema import Atom, MergedListType, MergedMapType, Scalar, Schema

_Entry: TypeAlias = "tuple[str, object]"
"""An element of a list behind the key that finds its partner."""


class _Absent:
    """A marker for the side that has no value; null is a value."""


_ABSENT = _Absent()


def merge_patch(schema: Schema, live: object, patch: object, *, strategic: bool = False) -> object:
    """The object with the patch merged in; the same object if nothing changes.

    Mirrors the merge of `structured-merge-diff`; a `strategic` one merges atomic maps, too. Raises PatchFault when a merged list has an
    element without its keys.
    """
    return _Merge(schema, strategic=strategic).merge_value(schema.root, live, patch)


class _Merge:
    def __init__(self, schema: Schema, *, strategic: bool) -> None:
        self._schema, self._strategic = schema, strategic

    def merge_value(self, ref: Json, live: object, patch: object) -> object:
        if patch is _ABSENT:
            return live
        atom = self._schema.resolve(ref).deduce(patch)
        if atom.map:
            return self._merge_map(atom.map, live, patch)
        if atom.list and not atom.scalar:
            return self._merge_list(atom.list, live, patch)
        return live if type(live) is type(patch) and live == patch else _convert_to_json(patch)

    def _merge_map(self, of: MergedMapType, live: object, patch: object) -> object:
        ours = live if isinstance(live, dict) else {}
        theirs = patch if isinstance(patch, dict) else {}
        if (of.atomic and not self._strategic) or not (ours or theirs):
            return _convert_to_json(patch)
        changed = {
            name: self.merge_value(of.of(name), ours.get(name, _ABSENT), member) for name, member in theirs.items()
        }
        if all(ours.get(name, _ABSENT) is member for name, member in changed.items()):
            return live
        return {**ours, **changed}

    def _merge_list(self, of: MergedListType, live: object, patch: object) -> object:
        ours = live if isinstance(live, list) else []
        theirs = patch if isinstance(patch, list) else []
        if not of.associative or not (ours or theirs):
            return _convert_to_json(patch)
        left, right = self._read_keys(of, ours), self._read_keys(of, theirs)
        partners = _index_by_key(left)
        elements = [self._merge_element(of, pair, partners) for pair in _order_elements(left, right)]
        return live if len(elements) == len(ours) and all(map(is_, elements, ours)) else elements

    def _read_keys(self, of: MergedListType, elements: Iterable[object]) -> list[_Entry]:
        try:
            return [(make_element_key(self._schema, of, element), element) for element in elements]
        except BadElement as error:
            raise PatchFault(str(error)) from None

    def _merge_element(self, of: MergedListType, choice: tuple[_Entry, bool], partners: dict[str, object]) -> object:
        (key, element), from_patch = choice
        return self.merge_value(of.element, partners.get(key, _ABSENT), element) if from_patch else element


def _convert_to_json(patch: object) -> object:
    """A part of a patch as JSON: an empty list literal becomes null."""
    match patch:
        case NilList():
            return None
        case list():
            return [_convert_to_json(item) for item in patch]
        case dict():
            return {name: _convert_to_json(member) for name, member in patch.items()}
        case _:
            return patch


def _index_by_key(left: list[_Entry]) -> dict[str, object]:
    """The object's elements by key; of elements with the same key, none is kept."""
    partners: dict[str, object] = {}
    for key, element in left:
        partners[key] = _ABSENT if key in partners else element
    return partners


def _order_elements(left: list[_Entry], right: list[_Entry]) -> Iterator[tuple[_Entry, bool]]:
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


# The validation of a value against its schema, and of a patch that writes into an atomic part.
#
# Mirrors `typed.validate` of structured-merge-diff v6 and `validatePatch` of apiserver 1.36's ApplyConfiguration
# patcher.
#
# Rules: `docs/semantics/mutation.md#apply-configuration`.

_NUMERIC = frozenset({"numeric", "int32", "int64"})
_GO_TYPES = {bool: "bool", int: "int64", float: "float64", str: "string"}


def find_faults(schema: Schema, value: object, *, duplicates: bool = False) -> str:
    """The errors of a value, in the API's words, empty for a valid one. With `duplicates`, keys of lists may occur twice."""
    errors = list(_Validation(schema, duplicates=duplicates).visit(schema.root, value, ""))
    if len(errors) < 2:  # noqa: PLR2004 - one error stands alone, several are listed
        return "".join(errors)
    return "\n  ".join(["errors:", *errors])


class _Validation:
    def __init__(self, schema: Schema, *, duplicates: bool) -> None:
        self._schema = schema
        self._duplicates = duplicates

    def visit(self, ref: Json, value: object, path: str) -> Iterator[str]:
        atom = self._schema.resolve(ref).deduce(value)
        if atom.map:
            yield from self._visit_map(atom.map, value, path)
        elif atom.scalar:
            yield from _prefix_path(path, find_scalar_fault(atom.scalar, value))
        elif atom.list:
            yield from self._visit_list(atom.list, value, path)

    def _visit_map(self, of: MergedMapType, value: object, path: str) -> Iterator[str]:
        if value is None:
            return
        if not isinstance(value, dict):
            yield from _prefix_path(path, f"expected map, got {_write_pointer(value)}")
            return
        for name, member in value.items():
            ref = of.of(name)
            if ref is None:
                yield f"{path}.{name}: field not declared in schema"
                return
            yield from self.visit(ref, member, f"{path}.{name}")

    def _visit_list(self, of: MergedListType, value: object, path: str) -> Iterator[str]:
        if value is None:
            return
        if not isinstance(value, list):
            yield from _prefix_path(path, f"expected list, got {_write_pointer(value)}")
            return
        seen: set[str] = set()
        for index, element in enumerate(value):
            try:
                place = make_element_key(self._schema, of, element) if of.associative else f"[{index}]"
            except BadElement as error:
                yield from _prefix_path(path, f"element {index}: {error}")
                return
            if of.associative and place in seen and not self._duplicates:
                yield from _prefix_path(path, f"duplicate entries for key {place}")
            seen.add(place)
            yield from self.visit(of.element, element, path + place)


def _prefix_path(path: str, message: str) -> Iterator[str]:
    if message:
        yield f"{path}: {message}" if path else message


def find_scalar_fault(scalar: Scalar, value: object) -> str:
    """The error of a value that is not of a scalar type, or an empty text. Null is of every type."""
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar in _NUMERIC:
        return "" if is_number else f"expected numeric (int or float), got {_write_type(value)}"
    if scalar == "string":
        return (
            ""
            if isinstance(value, str)
            else f"expected string, got &value.valueUnstructured{{Value:{_write_source(value)}}}"
        )
    if scalar == "boolean":
        return "" if isinstance(value, bool) else f"expected boolean, got {_write_pointer(value)}"
    return "" if is_number or isinstance(value, bool | str) else f"expected any scalar, got {_write_pointer(value)}"


def _write_type(value: object) -> str:
    if isinstance(value, Foreign):
        return value.type
    if isinstance(value, list):
        return "[]interface {}"
    return _GO_TYPES.get(type(value), "map[string]interface {}")


def _write_pointer(value: object) -> str:
    return f"&{{{write_container(value)}}}"


def _write_source(value: object) -> str:
    """A value as Go's `%#v` prints it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return write_printed(value)
        case str():
            return quote(value)
        case NilList():
            return "[]interface {}(nil)"
        case list():
            return f"[]interface {{}}{{{', '.join(map(_write_source, value))}}}"
        case Mapping():
            pairs = ", ".join(f"{quote(key)}:{_write_source(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{pairs}}}"
        case None:
            return "interface {}(nil)"
        case Foreign():
            return value.source
        case _:
            return write_container(value)


def list_atomics(schema: Schema, patch: object) -> list[str]:
    """The paths at which a patch touches an atomic list, map or struct, in order."""
    return list(_list_atomics(schema, schema.root, patch, ""))


def _list_atomics(schema: Schema, ref: Json, value: object, path: str) -> Iterator[str]:
    atom: Atom = schema.resolve(ref)
    if isinstance(value, dict) and atom.map:
        if atom.map.atomic:
            yield path
        for name, element in value.items():
            if name in atom.map.fields:
                yield from _list_atomics(schema, atom.map.fields[name], element, f"{path}.{name}")
    if isinstance(value, list) and atom.list:
        if not atom.list.associative:
            yield path
        for index, element in enumerate(value):
            yield from _list_atomics(schema, atom.list.element, element, f"{path}[{index}]")
