"""The fast test for a mutation that changes nothing: the object already holds all values of a patch.

The test needs no copy and no merge. The answer may be yes only where the full merge (`patch.apply_configuration`, `patch.apply_patch`)
would leave the object as it is, without a fault; no means only that the full merge is necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

from scanner import cel
from scanner.cel.syntax.tree import Comprehension, Identifier, Node, Select, StructLiteral, walk
from scanner.model.json import Json, JsonObject
from scanner.mutate.merge import find_scalar_fault
from scanner.mutate.schema import MergedListType, Schema

Holds: TypeAlias = Callable[[object], bool]
_Key: TypeAlias = "str | tuple[object, ...]"
ROOT = "Object"
_SETTING = ("add", "replace")
_SCALARS = frozenset({str, int, bool})
_LARGEST = 2**53 - 1


def is_configured(schema: Schema, live: JsonObject, value: cel.Value) -> bool:
    """Return whether an object of a built-in kind holds all values of an apply configuration."""
    return (
        schema.builtin and isinstance(value, cel.Struct) and _holds(schema, schema.root, live, value=value, path=ROOT)
    )


def make_holds_test(schema: Schema, value: cel.Value) -> Holds:
    """The same test for a constant apply configuration: its schema is resolved once."""
    leaves: list[Leaf] = []
    suits = (
        schema.builtin and isinstance(value, cel.Struct) and gather_leaves(schema, schema.root, value, (ROOT,), leaves)
    )
    return partial(holds_leaves, tuple(leaves)) if suits else _fail_always


def _fail_always(_live: object) -> bool:
    return False


class Leaf(NamedTuple):
    """A part of a configuration: its path, and the scalar that the object must have there, or a test of the object's value."""

    path: tuple[str, ...]
    expected: object
    kind: type | None
    test: Holds | None = None


def gather_leaves(schema: Schema, ref: Json, value: object, path: tuple[str, ...], leaves: list[Leaf]) -> bool:
    """Collect the parts of a configuration; False when no fast test can prove that an object holds it."""
    if not isinstance(value, cel.Struct):
        texts = _get_texts(schema, ref, value)
        if texts:
            leaves.extend(Leaf((*path[1:], name), text, str) for name, text in texts.items())
        elif type(value) in _SCALARS and _is_scalar(schema, ref, value):
            leaves.append(Leaf(path[1:], value, type(value)))
        else:
            test = partial(_holds, schema, ref, value=value, path=".".join(path))
            leaves.append(Leaf(path[1:], None, None, test))
        return True
    of = schema.resolve(ref).map
    if value.type.name != ".".join(path) or of is None or of.atomic:
        return False
    if not value.fields:
        leaves.append(Leaf(path[1:], None, None, _is_map))
    below = [(name, of.of(name), member) for name, member in value.fields.items()]
    return all(
        ref is not None and gather_leaves(schema, ref, member, (*path, name), leaves) for name, ref, member in below
    )


def _get_texts(schema: Schema, ref: Json, value: object) -> dict[str, object]:
    """The entries of a map of strings, where such a map is merged; none for any other value."""
    of = schema.resolve(ref).map
    if of is None or of.atomic or not isinstance(value, dict):
        return {}
    return value if all(type(text) is str and of.of(name) == "s" for name, text in value.items()) else {}


def _is_map(live: object) -> bool:
    return isinstance(live, dict)


def holds_leaves(leaves: tuple[Leaf, ...], live: Any) -> bool:
    """Return whether an object, or a part of it, has all parts of a configuration."""
    try:
        for path, expected, kind, test in leaves:
            part = live
            for name in path:
                part = part[name]
            if test is not None:
                if not test(part):
                    return False
            # The class decides too, as Python takes True for 1.
            elif part.__class__ is not kind or part != expected:
                return False
    except (KeyError, TypeError):
        return False
    return True


def is_patched(live: JsonObject, value: cel.Value) -> bool:
    """Return whether every operation of a JSON patch sets a member to the scalar that it already has."""
    return isinstance(value, list) and all(_is_set(live, operation) for operation in value)


def _holds(schema: Schema, ref: Json, live: object, *, value: object, path: str) -> bool:
    if isinstance(value, cel.Struct):
        return value.type.name == path and _holds_members(schema, ref, live, value.fields, path)
    if type(value) is list:
        return _holds_elements(schema, ref, live, value, path)
    if type(value) is dict:
        return all(type(member) is str for member in value.values()) and _holds_members(schema, ref, live, value, path)
    return _is_same(value, live) and _is_scalar(schema, ref, value)


def _holds_members(schema: Schema, ref: Json, live: object, members: dict[str, object], path: str) -> bool:
    of = schema.resolve(ref).map
    if of is None or of.atomic or not isinstance(live, dict):
        return False
    fields, element = of.fields, of.element
    for name, member in members.items():
        below = fields.get(name, element)
        if below is None or name not in live:
            return False
        present = live[name]
        if type(member) is str:
            if member != present or not (below == "s" or _is_scalar(schema, below, member)):
                return False
        elif member.__class__ is bool and below == "b":
            if member is not present:
                return False
        elif not _holds(schema, below, present, value=member, path=f"{path}.{name}"):
            return False
    return True


def _holds_elements(schema: Schema, ref: Json, live: object, elements: list[object], path: str) -> bool:
    """Return whether a merged list has all these elements, in this order, each of them once."""
    of = schema.resolve(ref).list
    if of is None or not of.keys or not elements or not isinstance(live, list):
        return False
    keys = [_get_key(of, element) if element.__class__ is dict else None for element in live]
    if None in keys or len(set(keys)) < len(keys):
        return False
    at = 0
    for element in elements:
        key = _get_key(of, element.fields) if isinstance(element, cel.Struct) else None
        if key is None or key not in keys[at:]:
            return False
        at = keys.index(key, at) + 1
        if not _holds(schema, of.element, live[at - 1], value=element, path=path):
            return False
    return True


def _get_key(of: MergedListType, element: dict[str, object]) -> _Key | None:
    """The values of an element's keys, None when one is absent: it may have a default."""
    if len(of.keys) == 1:
        only = element.get(of.keys[0])
        return only if only.__class__ is str else None
    key = tuple([element.get(name) for name in of.keys])
    return key if _SCALARS.issuperset(map(type, key)) else None


def _is_set(live: JsonObject, operation: object) -> bool:
    if not isinstance(operation, cel.Struct) or operation.type != cel.JSON_PATCH:
        return False
    fields = operation.fields
    path, value = fields.get("path"), fields.get("value")
    if fields.get("op") not in _SETTING or not isinstance(path, str) or not path.startswith("/"):
        return False
    is_exact = type(value) is not int or abs(value) <= _LARGEST
    return is_exact and _is_same(value, _get_at(live, path.split("/")[1:]))


def _get_at(live: Json, steps: Sequence[str]) -> Json:
    """The value at a path that leads through members alone, None when there is no such value."""
    for step in steps:
        if not isinstance(live, dict):
            return None
        live = live.get(step.replace("~1", "/").replace("~0", "~"))
    return live


def _is_same(value: object, live: object) -> bool:
    """Return whether both are the same scalar, of the same type."""
    return type(value) is type(live) and type(value) in _SCALARS and value == live


def _is_scalar(schema: Schema, ref: Json, value: object) -> bool:
    scalar = schema.resolve(ref).scalar
    return scalar is not None and not find_scalar_fault(scalar, value)


# Apply configurations that write the same into every element of a list: `Object.spec{containers:
# object.spec.containers.map(c, …)}`.
#
# The module detects that such a configuration changes nothing without a configuration for each object. The answers
# follow the guarantee of `unchanged`: yes only where the full merge would leave the object as it is, without a fault.

CopiedLists: TypeAlias = "Mapping[tuple[str, ...], str]"
"""The field that each element of the configuration copies from an element of the object, by the path of the list."""


def find_copied_lists(root: Node) -> CopiedLists:
    """The lists of the object that a configuration iterates over; none where it depends on the object in another way."""
    try:
        return dict(_find_lists(root, ()))
    except _OtherShape:
        return {}


class _OtherShape(Exception):
    """A configuration that is not the same for all elements."""


def _find_lists(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    match node:
        case StructLiteral(entries=entries):
            for field in entries:
                if field.optional:
                    raise _OtherShape
                yield from _find_lists(field.value, (*path, field.name))
        case Comprehension(
            fold="map", predicate=None, second_variable=None, is_open=False, body=StructLiteral() as body
        ) if _is_at(node.range, path):
            yield path, _find_copied_field(body, node.variable)
        case _ if not _is_constant(node):
            raise _OtherShape


def _is_at(node: Node, path: tuple[str, ...]) -> bool:
    """Return whether an expression selects the value at a path of the object."""
    for name in reversed(path):
        if not isinstance(node, Select) or node.test or node.field != name:
            return False
        node = node.operand
    return isinstance(node, Identifier) and node.name == "object"


def _find_copied_field(body: StructLiteral, variable: str) -> str:
    """The only field of an element that is not constant: its value is that of the object's element. Raises _OtherShape."""
    variable_members = [member for member in body.entries if not _is_constant(member.value)]
    match variable_members:
        case [member] if not any(other.optional for other in body.entries):
            match member.value:
                case Select(operand=Identifier(name=name), field=field, test=False) if (name, field) == (
                    variable,
                    member.name,
                ):
                    return field
    raise _OtherShape


def _is_constant(node: Node) -> bool:
    return not any(isinstance(part, Identifier) for part in walk(node))


def make_copied_test(schema: Schema, program: cel.Program, lists: CopiedLists) -> Holds:
    """A test: whether an object of a built-in kind holds a configuration that iterates over these lists."""
    value = program.evaluate({"object": _make_sample(lists)})
    tests = {path: _make_list_test(schema, path, key, value) for path, key in lists.items()}
    leaves: list[Leaf] = []
    if not schema.builtin or None in tests.values() or not gather_leaves(schema, schema.root, value, (ROOT,), leaves):
        return lambda live: is_configured(schema, cast("JsonObject", live), program.evaluate({"object": live}))
    return partial(holds_leaves, tuple(leaf._replace(test=tests.get(leaf.path, leaf.test)) for leaf in leaves))


def _make_sample(lists: CopiedLists) -> JsonObject:
    """An object with one element in each list."""
    sample: dict[str, Json] = {}
    for (*above, name), key in lists.items():
        place = sample
        for step in above:
            place = cast("dict[str, Json]", place.setdefault(step, {}))
        place[name] = [{key: ""}]
    return sample


def _make_list_test(schema: Schema, path: tuple[str, ...], key: str, value: cel.Value) -> Holds | None:
    """The test of one list that is merged by this string key alone."""
    ref = schema.root
    for name in path:
        members = schema.resolve(ref).map
        ref = members.of(name) if members else None
        value = value.fields[name] if isinstance(value, cel.Struct) else None
    of = schema.resolve(ref).list
    fields = schema.resolve(of.element).map if of else None
    if of is None or of.keys != (key,) or fields is None or fields.of(key) != "s" or not isinstance(value, list):
        return None
    leaves: list[Leaf] = []
    if not gather_leaves(schema, of.element, value[0], (ROOT, *path), leaves):
        return None
    leaves_of_elements = (leaf._replace(path=leaf.path[len(path) :]) for leaf in leaves)
    return partial(_each_holds, tuple(leaf for leaf in leaves_of_elements if leaf.path != (key,)), key)


def _each_holds(leaves: tuple[Leaf, ...], key: str, live: object) -> bool:
    """Return whether a list has elements with distinct keys, each of which holds the values that the configuration writes."""
    if not isinstance(live, list) or not live:
        return False
    keys = {element[key] for element in live if element[key].__class__ is str and holds_leaves(leaves, element)}
    return len(keys) == len(live)
