"""The ordinary mutation, which changes nothing: an object that holds already what a patch says.

Deciding that takes no copy and no merge. These answers may only be yes where the whole way (`patch.configured`, `patch.patched`)
would leave the object as it is, without a fault; no says only that it has to be gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from scanner import cel
from scanner.model.json import Json, JsonObject
from scanner.mutate.decoding import suits
from scanner.mutate.schema import ListType, Schema
from scanner.mutate.typed import scalar_fault

Holds: TypeAlias = Callable[[object], bool]
_Key: TypeAlias = "tuple[object, ...]"
_ROOT = "Object"
_SETTING = ("add", "replace")
_KEYS = frozenset({str, int, bool})
_LARGEST = 2**53 - 1


def is_configured(schema: Schema, live: JsonObject, value: cel.Value) -> bool:
    """Whether an object of a built-in kind holds all that an apply configuration says."""
    return (
        schema.builtin and isinstance(value, cel.Struct) and _holds(schema, schema.root, live, value=value, path=_ROOT)
    )


def holds(schema: Schema, value: cel.Value) -> Holds:
    """The same for an apply configuration that is always the same: what can be known of it is found out once."""
    test = _test(schema, schema.root, value, _ROOT) if schema.builtin and isinstance(value, cel.Struct) else None
    return test or _never


def _never(_live: object) -> bool:
    return False


def _test(schema: Schema, ref: Json, value: object, path: str) -> Holds | None:
    """How to tell that part of an object holds part of a configuration; None for what cannot be told so."""
    if not isinstance(value, cel.Struct):
        return partial(_holds, schema, ref, value=value, path=path)
    of = schema.resolve(ref).map
    if value.type.name != path or of is None or of.atomic:
        return None
    texts, tests = {}, []
    for name, one in value.fields.items():
        below = of.of(name)
        if type(one) is str and below == "s":
            texts[name] = one
            continue
        test = None if below is None else _test(schema, below, one, f"{path}.{name}")
        if test is None:
            return None
        tests.append((name, test))
    return partial(_holds_all, tuple(texts.items()), tuple(tests))


def _holds_all(texts: tuple[tuple[str, str], ...], tests: tuple[tuple[str, Holds], ...], live: object) -> bool:
    if not isinstance(live, dict):
        return False
    for name, text in texts:
        if live.get(name) != text:
            return False
    return all(name in live and test(live[name]) for name, test in tests)


def is_patched(schema: Schema, live: JsonObject, value: cel.Value) -> bool:
    """Whether every operation of a JSON patch sets a member to the scalar that it is, and the object decodes as it stands."""
    return isinstance(value, list) and all(_is_set(live, one) for one in value) and suits(schema, live)


def _holds(schema: Schema, ref: Json, live: object, *, value: object, path: str) -> bool:
    if isinstance(value, cel.Struct):
        return value.type.name == path and _holds_members(schema, ref, live, value.fields, path)
    if type(value) is list:
        return _holds_elements(schema, ref, live, value, path)
    if type(value) is dict:
        return all(type(one) is str for one in value.values()) and _holds_members(schema, ref, live, value, path)
    return _is_same(value, live) and _is_scalar(schema, ref, value)


def _holds_members(schema: Schema, ref: Json, live: object, members: dict[str, object], path: str) -> bool:
    of = schema.resolve(ref).map
    if of is None or of.atomic or not isinstance(live, dict):
        return False
    for name, one in members.items():
        below = of.of(name)
        if below is None or name not in live:
            return False
        known = live[name]
        if type(one) is str:
            if one != known or not (below == "s" or _is_scalar(schema, below, one)):
                return False
        elif not _holds(schema, below, known, value=one, path=f"{path}.{name}"):
            return False
    return True


def _holds_elements(schema: Schema, ref: Json, live: object, elements: list[object], path: str) -> bool:
    """Whether a merged list has all these elements, in this order, each of them once."""
    of = schema.resolve(ref).list
    if of is None or not of.keys or not elements or not isinstance(live, list):
        return False
    keys = [_key(of, one) for one in live]
    if None in keys or len(set(keys)) < len(keys):
        return False
    at = 0
    for one in elements:
        key = _key(of, one.fields) if isinstance(one, cel.Struct) else None
        if key is None or key not in keys[at:]:
            return False
        at = keys.index(key, at) + 1
        if not _holds(schema, of.element, live[at - 1], value=one, path=path):
            return False
    return True


def _key(of: ListType, element: object) -> _Key | None:
    """The values of an element's keys, None when one is missing: it may have a default."""
    if not isinstance(element, dict):
        return None
    key = tuple([element.get(name) for name in of.keys])
    return key if _KEYS.issuperset(map(type, key)) else None


def _is_set(live: JsonObject, operation: object) -> bool:
    if not isinstance(operation, cel.Struct) or operation.type != cel.JSON_PATCH:
        return False
    fields = operation.fields
    path, value = fields.get("path"), fields.get("value")
    if fields.get("op") not in _SETTING or not isinstance(path, str) or not path.startswith("/"):
        return False
    is_exact = type(value) is not int or abs(value) <= _LARGEST
    return is_exact and _is_same(value, _at(live, path.split("/")[1:]))


def _at(live: Json, steps: Sequence[str]) -> Json:
    """What stands at a path that leads through members alone, None when it does not."""
    for step in steps:
        if not isinstance(live, dict):
            return None
        live = live.get(step.replace("~1", "/").replace("~0", "~"))
    return live


def _is_same(value: object, live: object) -> bool:
    """Whether both are the same scalar, of the same type."""
    return type(value) is type(live) and type(value) in (str, bool, int) and value == live


def _is_scalar(schema: Schema, ref: Json, value: object) -> bool:
    scalar = schema.resolve(ref).scalar
    return scalar is not None and not scalar_fault(scalar, value)
