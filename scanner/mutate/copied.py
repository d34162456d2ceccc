"""Apply configurations that write the same into every element of a list: `Object.spec{containers: object.spec.containers.map(c, …)}`.

The module detects that such a configuration changes nothing without a configuration for each object. The answers follow the
guarantee of `unchanged`: yes only where the full merge would leave the object as it is, without a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TypeAlias, cast

from scanner import cel
from scanner.cel.syntax.tree import Comprehension, Identifier, Node, Select, StructLiteral, walk
from scanner.model.json import Json, JsonObject
from scanner.mutate.schema import Schema
from scanner.mutate.unchanged import ROOT, Holds, Leaf, gather, holds_leaves, is_configured

CopiedLists: TypeAlias = "Mapping[tuple[str, ...], str]"
"""The field that each element of the configuration copies from an element of the object, by the path of the list."""


def copied_lists(root: Node) -> CopiedLists:
    """The lists of the object that a configuration iterates over; none where it depends on the object in another way."""
    try:
        return dict(_lists(root, ()))
    except _OtherShape:
        return {}


class _OtherShape(Exception):
    """A configuration that is not the same for all elements."""


def _lists(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    match node:
        case StructLiteral(entries=entries):
            for field in entries:
                if field.optional:
                    raise _OtherShape
                yield from _lists(field.value, (*path, field.name))
        case Comprehension(
            fold="map", predicate=None, second_variable=None, is_open=False, body=StructLiteral() as body
        ) if _is_at(node.range, path):
            yield path, _copied_field(body, node.variable)
        case _ if not _is_constant(node):
            raise _OtherShape


def _is_at(node: Node, path: tuple[str, ...]) -> bool:
    """Return whether an expression selects the value at a path of the object."""
    for name in reversed(path):
        if not isinstance(node, Select) or node.test or node.field != name:
            return False
        node = node.operand
    return isinstance(node, Identifier) and node.name == "object"


def _copied_field(body: StructLiteral, variable: str) -> str:
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


def holds_copied(schema: Schema, program: cel.Program, lists: CopiedLists) -> Holds:
    """A test: whether an object of a built-in kind holds a configuration that iterates over these lists."""
    value = program.evaluate({"object": _sample(lists)})
    tests = {path: _of_list(schema, path, key, value) for path, key in lists.items()}
    leaves: list[Leaf] = []
    if not schema.builtin or None in tests.values() or not gather(schema, schema.root, value, (ROOT,), leaves):
        return lambda live: is_configured(schema, cast("JsonObject", live), program.evaluate({"object": live}))
    return partial(holds_leaves, tuple(leaf._replace(test=tests.get(leaf.path, leaf.test)) for leaf in leaves))


def _sample(lists: CopiedLists) -> JsonObject:
    """An object with one element in each list."""
    sample: dict[str, Json] = {}
    for (*above, name), key in lists.items():
        place = sample
        for step in above:
            place = cast("dict[str, Json]", place.setdefault(step, {}))
        place[name] = [{key: ""}]
    return sample


def _of_list(schema: Schema, path: tuple[str, ...], key: str, value: cel.Value) -> Holds | None:
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
    if not gather(schema, of.element, value[0], (ROOT, *path), leaves):
        return None
    own = (leaf._replace(path=leaf.path[len(path) :]) for leaf in leaves)
    return partial(_each_holds, tuple(leaf for leaf in own if leaf.path != (key,)), key)


def _each_holds(leaves: tuple[Leaf, ...], key: str, live: object) -> bool:
    """Return whether a list has elements with distinct keys, each of which holds the values that the configuration writes."""
    if not isinstance(live, list) or not live:
        return False
    keys = {element[key] for element in live if element[key].__class__ is str and holds_leaves(leaves, element)}
    return len(keys) == len(live)
