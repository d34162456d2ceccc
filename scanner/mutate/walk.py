"""Rules by type, applied to a whole document: the rule of a type first, then those of the types inside it.

Nothing is changed in place, and parts that no rule changes are shared with the result. The result for a part is cached for a
while: the results of several mutations share most of their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import NamedTuple, TypeAlias

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object
from scanner.mutate.schema import MergedMapType, Schema

Rule: TypeAlias = Callable[[JsonObject], JsonObject]
Rules: TypeAlias = Mapping[str, Rule]


_REMEMBERED = 256
"""The parts with a known result. Each keeps its whole object in memory, and mutations of one object follow one another."""
_CONTAINERS = (dict, list)


class _TypeRules(NamedTuple):
    """The rules for a value of a type: the rule for itself, and the members and elements that a walk has to visit.

    A field that no rule applies to is absent, or None where members of other names are visited.
    """

    rule: Rule | None
    fields: Mapping[str, Json]
    others: Json
    element: Json


_UNCONCERNED = _TypeRules(None, {}, None, None)


class _TypeCache:
    """A cache for the types of a schema: the types that contain no type with a rule, and the results for parts."""

    __slots__ = ("_concerned", "_inline", "_numbered", "_rules", "_schema", "parts", "types")

    def __init__(self, rules: Rules, schema: Schema) -> None:
        self.types = schema.types
        self._rules, self._schema = rules, schema
        self._concerned: dict[int, bool] = {}
        self._numbered: dict[int, _TypeRules] = {}
        self._inline: dict[int, _TypeRules] = {}
        self.parts: dict[tuple[int, int], tuple[JsonObject, Json]] = {}

    def get_type(self, ref: Json) -> _TypeRules:
        """The type of a reference; an inline type is identified by its address in memory."""
        if type(ref) is int:
            return self._numbered.get(ref) or self._numbered.setdefault(ref, self._make_type(ref))
        if isinstance(ref, str):
            return _UNCONCERNED
        return self._inline.get(id(ref)) or self._inline.setdefault(id(ref), self._make_type(ref))

    def _make_type(self, ref: Json) -> _TypeRules:
        if not self._is_concerned(ref):
            return _UNCONCERNED
        atom = self._schema.resolve(ref)
        members = atom.map or _NO_MEMBERS
        others = self._keep_concerned(members.element)
        fields = {name: self._keep_concerned(type_) for name, type_ in members.fields.items()}
        visited = fields if others is not None else {name: type_ for name, type_ in fields.items() if type_ is not None}
        element = self._keep_concerned(atom.list.element) if atom.list else None
        return _TypeRules(self._rules.get(atom.name), visited, others, element)

    def _keep_concerned(self, ref: Json) -> Json:
        """A reference, None when no rule applies to its type or the types inside it."""
        return ref if self._is_concerned(ref) else None

    def _is_concerned(self, ref: Json) -> bool:
        if type(ref) is not int:
            return any(map(self._is_concerned, _list_references(ref)))
        if ref not in self._concerned:
            users = _find_users(self.types, ref)
            concerned = _find_reached(users, (number for number in users if self._schema.names[number] in self._rules))
            self._concerned |= {number: number in concerned for number in users}
        return self._concerned[ref]


_NO_MEMBERS = MergedMapType()


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules by the names of definitions. The result of a rule depends on its struct alone."""

    rules: Rules
    _cache: dict[int, _TypeCache] = field(default_factory=dict, compare=False, repr=False)

    def apply(self, schema: Schema, document: JsonObject) -> JsonObject:
        """A document with the rules of its types applied; the same document when they change nothing."""
        result = _RuleWalk(self._of(schema)).apply_to_value(schema.root, document)
        return result if isinstance(result, Mapping) else document

    def _of(self, schema: Schema) -> _TypeCache:
        """The cache for the types of a schema, which many schemas share."""
        cached = self._cache.get(id(schema.types))
        if cached is None or cached.types is not schema.types:
            cached = self._cache[id(schema.types)] = _TypeCache(self.rules, schema)
        if len(cached.parts) > _REMEMBERED:
            cached.parts.clear()
        return cached


class _RuleWalk:
    __slots__ = ("_cache", "_parts")

    def __init__(self, cached: _TypeCache) -> None:
        self._cache, self._parts = cached, cached.parts

    def apply_to_value(self, ref: Json, value: Json) -> Json:
        if not isinstance(value, _CONTAINERS):
            return value
        of = self._cache.get_type(ref)
        if not isinstance(value, dict):
            return value if of.element is None else self._apply_to_list(of.element, value)
        if of.rule is None and of.others is None and of.fields.keys().isdisjoint(value):
            return value
        return self._apply_to_part(ref, of, value) if type(ref) is int else self._apply_to_object(of, value)

    def _apply_to_part(self, number: int, of: _TypeRules, value: JsonObject) -> Json:
        key = (number, id(value))
        cached = self._parts.get(key)
        if cached is not None and cached[0] is value:
            return cached[1]
        result = self._apply_to_object(of, value)
        self._parts[key] = value, result
        if result is not value and isinstance(result, dict):
            # Rules are idempotent: they do not change their own result.
            self._parts[number, id(result)] = result, result
        return result

    def _apply_to_object(self, of: _TypeRules, value: JsonObject) -> JsonObject:
        rule, fields, others, _ = of
        result = rule(value) if rule else value
        changed: dict[str, Json] = {}
        for name, member in result.items():
            ref = fields.get(name, others) if isinstance(member, _CONTAINERS) else None
            if ref is not None:
                after = self.apply_to_value(ref, member)
                if after is not member:
                    changed[name] = after
        return {**result, **changed} if changed else result

    def _apply_to_list(self, element: Json, value: list[Json]) -> list[Json]:
        after = [self.apply_to_value(element, item) for item in value]
        return value if is_shared(value, after) else after


def _find_users(types: Sequence[Json], number: int) -> dict[int, list[int]]:
    """The numbers of the types that a type contains, its own among them, each with those of the types that contain it directly."""
    users: dict[int, list[int]] = {number: []}
    stack = [number]
    while stack:
        user = stack.pop()
        for inner in _list_numbers(types[user]):
            if inner not in users:
                users[inner] = []
                stack.append(inner)
            users[inner].append(user)
    return users


def _find_reached(users: Mapping[int, Sequence[int]], numbers: Iterable[int]) -> set[int]:
    """The numbers of some types, and of all types that contain one of them."""
    stack = [*numbers]
    reached = set(stack)
    while stack:
        more = set(users[stack.pop()]) - reached
        reached |= more
        stack += more
    return reached


def _list_numbers(shape: Json) -> Iterator[int]:
    """The numbers of the types to which a type refers directly."""
    stack = [shape]
    while stack:
        ref = stack.pop()
        if type(ref) is int:
            yield ref
        else:
            stack += _list_references(ref)


def _list_references(shape: Json) -> list[Json]:
    """The references in an inline type."""
    match shape:
        case {"r": inner} | {"e": inner}:
            return [inner]
        case dict(members):
            return [*as_object(members.get("f")).values(), members.get("v")]
        case _:
            return []


def chain_rules(*rules: Rule) -> Rule:
    """A rule that applies the given rules one after the other."""

    def apply(value: JsonObject) -> JsonObject:
        for rule in rules:
            value = rule(value)
        return value

    return apply


def apply_within(name: str, rule: Rule) -> Rule:
    """A rule for the struct in member `name` of the object; an absent struct counts as empty."""
    return lambda value: set_member(value, name, rule(as_object(value.get(name))))


def apply_when_set(name: str, rule: Rule) -> Rule:
    """A rule for the struct in member `name` of the object, when it is set."""
    return lambda value: value if value.get(name) is None else apply_within(name, rule)(value)


def apply_to_each(name: str, rule: Rule) -> Rule:
    """A rule for every object in the list `name` of the object."""

    def apply(value: JsonObject) -> JsonObject:
        before = as_list(value.get(name))
        after = [rule(element) if isinstance(element, Mapping) else element for element in before]
        return value if is_shared(before, after) else {**value, name: after}

    return apply


def set_member(value: JsonObject, name: str, member: Json) -> JsonObject:
    """The object with a member, the same object when it has it; a struct that is absent and would stay empty stays absent."""
    before = value.get(name)
    if member is before or (before is None and member is EMPTY):
        return value
    return {**value, name: member}


def drop_members(value: JsonObject, *names: str) -> JsonObject:
    """The object without some members, the same object when it has none of them."""
    if not any(name in value for name in names):
        return value
    return {name: member for name, member in value.items() if name not in names}


def is_shared(before: Sequence[Json], after: Sequence[Json]) -> bool:
    """Return whether two lists of equal length hold the identical objects."""
    return all(map(is_, before, after))


# Default rules that fill fields. A null counts as absent, as in Go's decoder.


def fill_absent(**defaults: Json) -> Rule:
    """Fill pointer fields, which keep an explicit zero."""
    return lambda value: _fill(value, {name: default for name, default in defaults.items() if value.get(name) is None})


def fill_zero(**defaults: Json) -> Rule:
    """Fill plain fields, whose zero value counts as absent."""
    return lambda value: _fill(value, {name: default for name, default in defaults.items() if not value.get(name)})


def _fill(value: JsonObject, missing: JsonObject) -> JsonObject:
    return {**value, **missing} if missing else value
