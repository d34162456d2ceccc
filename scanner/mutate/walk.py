"""Rules by type, applied to a whole document: the rule of a type first, then those of the types inside it.

Nothing is changed in place, and what no rule changes is shared with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object
from scanner.mutate.schema import Atom, Schema

Rule: TypeAlias = Callable[[JsonObject], JsonObject]
Rules: TypeAlias = Mapping[str, Rule]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_PLAIN = frozenset({f"{_META}ObjectMeta", f"{_META}LabelSelector"})
"""Types that are in most documents and that no rule is about."""


def applied(rules: Rules, schema: Schema, document: JsonObject) -> JsonObject:
    """A document with the rules of its types applied; itself when they change nothing."""
    found = _value(rules, schema, schema.root, document)
    return found if isinstance(found, Mapping) else document


def _value(rules: Rules, schema: Schema, ref: Json, value: Json) -> Json:
    if isinstance(value, dict):
        atom = schema.resolve(ref)
        return value if atom.name in _PLAIN else _object(rules, schema, atom, value)
    if isinstance(value, list):
        return _list(rules, schema, schema.resolve(ref), value)
    return value


def _object(rules: Rules, schema: Schema, atom: Atom, value: JsonObject) -> JsonObject:
    rule = rules.get(atom.name)
    found = rule(value) if rule else value
    if atom.map is None:
        return found
    changed = {}
    for name, one in found.items():
        if isinstance(one, dict | list):
            ref = atom.map.of(name)
            after = one if ref is None else _value(rules, schema, ref, one)
            if after is not one:
                changed[name] = after
    return {**found, **changed} if changed else found


def _list(rules: Rules, schema: Schema, atom: Atom, value: list[Json]) -> list[Json]:
    if atom.list is None or not value or not isinstance(value[0], dict | list):
        return value
    after = [_value(rules, schema, atom.list.element, one) for one in value]
    return value if is_shared(value, after) else after


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
