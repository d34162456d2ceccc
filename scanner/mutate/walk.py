"""Rules by type, applied to a whole document: the rule of a type first, then those of the types inside it.

Nothing is changed in place, and what no rule changes is shared with the result. What became of a part is remembered for a while:
the results of several mutations share most of their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object
from scanner.mutate.schema import Atom, Schema

Rule: TypeAlias = Callable[[JsonObject], JsonObject]
Rules: TypeAlias = Mapping[str, Rule]


_REMEMBERED = 4096


class _Known:
    """What is known of the types of a schema: which of them hold none with a rule at any depth, and what became of parts."""

    __slots__ = ("concerned", "parts", "types")

    def __init__(self, types: Sequence[Json]) -> None:
        self.types = types
        self.concerned: dict[int, bool] = {}
        self.parts: dict[tuple[int, int], tuple[JsonObject, Json]] = {}


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules by the names of definitions. What a rule makes of a struct depends on that struct alone."""

    rules: Rules
    _known: dict[int, _Known] = field(default_factory=dict, compare=False, repr=False)

    def applied(self, schema: Schema, document: JsonObject) -> JsonObject:
        """A document with the rules of its types applied; itself when they change nothing."""
        found = _Walk(self.rules, schema, self._of(schema.types)).value(schema.root, document)
        return found if isinstance(found, Mapping) else document

    def _of(self, types: Sequence[Json]) -> _Known:
        """What is known of the types of a schema, which many schemas share."""
        known = self._known.get(id(types))
        if known is None or known.types is not types:
            known = self._known[id(types)] = _Known(types)
        if len(known.parts) > _REMEMBERED:
            known.parts.clear()
        return known


@dataclass(frozen=True, slots=True)
class _Walk:
    rules: Rules
    schema: Schema
    known: _Known

    def value(self, ref: Json, value: Json) -> Json:
        if isinstance(ref, str) or (isinstance(ref, int) and not self._is_concerned(ref)):
            return value
        if isinstance(value, dict):
            return self._part(ref, value) if isinstance(ref, int) else self._object(self.schema.resolve(ref), value)
        return self._list(self.schema.resolve(ref), value) if isinstance(value, list) else value

    def _part(self, number: int, value: JsonObject) -> Json:
        key = (number, id(value))
        known = self.known.parts.get(key)
        if known is not None and known[0] is value:
            return known[1]
        found = self._object(self.schema.resolve(number), value)
        self.known.parts[key] = value, found
        if isinstance(found, dict) and found is not value:
            # Rules come to an end: what they have made of a struct they leave as it is.
            self.known.parts[number, id(found)] = found, found
        return found

    def _object(self, atom: Atom, value: JsonObject) -> JsonObject:
        rule = self.rules.get(atom.name)
        found = rule(value) if rule else value
        if atom.map is None:
            return found
        changed = {}
        for name, one in found.items():
            if isinstance(one, dict | list):
                ref = atom.map.of(name)
                after = one if ref is None else self.value(ref, one)
                if after is not one:
                    changed[name] = after
        return {**found, **changed} if changed else found

    def _list(self, atom: Atom, value: list[Json]) -> list[Json]:
        element = atom.list.element if atom.list else None
        if element is None or isinstance(element, str):
            return value
        after = [self.value(element, one) for one in value]
        return value if is_shared(value, after) else after

    def _is_concerned(self, number: int) -> bool:
        if number not in self.known.concerned:
            names = (self.schema.names[one] for one in _reached(self.schema.types, number))
            self.known.concerned[number] = any(name in self.rules for name in names)
        return self.known.concerned[number]


def _reached(types: Sequence[Json], number: int) -> set[int]:
    """The numbers of the types that a type is made of, its own among them."""
    found = {number}
    waiting: list[Json] = [types[number]]
    while waiting:
        match waiting.pop():
            case int(inner) if inner not in found:
                found.add(inner)
                waiting.append(types[inner])
            case {"r": inner}:
                waiting.append(inner)
            case {"e": inner}:
                waiting.append(inner)
            case dict(shape):
                waiting += [*as_object(shape.get("f")).values(), shape.get("v")]
            case _:
                pass
    return found


def in_order(*rules: Rule) -> Rule:
    """Apply one rule after the other."""

    def apply(value: JsonObject) -> JsonObject:
        for rule in rules:
            value = rule(value)
        return value

    return apply


def within(name: str, rule: Rule) -> Rule:
    """Apply a rule to a struct inside the object, which is there even when it is not written."""
    return lambda value: with_member(value, name, rule(as_object(value.get(name))))


def where(name: str, rule: Rule) -> Rule:
    """Apply a rule to the struct that a pointer of the object points to, when it is set."""
    return lambda value: value if value.get(name) is None else within(name, rule)(value)


def each(name: str, rule: Rule) -> Rule:
    """Apply a rule to every object of a list."""

    def apply(value: JsonObject) -> JsonObject:
        before = as_list(value.get(name))
        after = [rule(one) if isinstance(one, Mapping) else one for one in before]
        return value if is_shared(before, after) else {**value, name: after}

    return apply


def with_member(value: JsonObject, name: str, member: Json) -> JsonObject:
    """The object with a member, itself when it has it; a struct that is not written and is left empty stays so."""
    before = value.get(name)
    if member is before or (before is None and member is EMPTY):
        return value
    return {**value, name: member}


def without(value: JsonObject, *names: str) -> JsonObject:
    """The object without some members, itself when it has none of them."""
    if not any(name in value for name in names):
        return value
    return {name: one for name, one in value.items() if name not in names}


def is_shared(before: Sequence[Json], after: Sequence[Json]) -> bool:
    """Whether two lists of one length hold the same values."""
    return all(left is right for left, right in zip(before, after, strict=True))
