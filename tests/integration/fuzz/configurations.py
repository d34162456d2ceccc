"""Apply configurations at random places of an object, one or two mutations in a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from scanner.api import UserInfo
from scanner.model.json import JsonObject
from scanner.model.resource import Kind
from scanner.mutate.schema import Schema
from tests.integration.fuzz import literals
from tests.integration.fuzz.case import Case
from tests.integration.fuzz.manifests import policy_named
from tests.integration.fuzz.patches import VALUES
from tests.integration.fuzz.stage import GROUPS

# Of the metadata, a policy may change labels and annotations; other fields are chosen rarely.
_RARELY = 0.1
_ABSENT, _NEW = 0.3, 0.25
_NUMBERS = ("0", "1", "7", "80")
_SUITED: Mapping[str | None, tuple[str, ...]] = {
    "string": ("'x'", "'other-1'", "''"),
    "boolean": ("true", "false"),
    "quantity": ("'2'", "'100m'", "'1024Mi'", "'0.5'"),
    **dict.fromkeys(("numeric", "int32", "int64"), _NUMBERS),
}
_STEPS = (
    "[JSONPatch{op: 'add', path: '/metadata/labels', value: object.metadata.?labels.orValue({}).transformMap(k, v, v + '2')}]",
    "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'size': string(size(object.metadata.name))}}]",
    'Object{metadata: Object.metadata{labels: {"step": "1"}}}',
    "Object{}",
)


def cases(schema: Schema, kind: Kind, document: JsonObject, chance: Random, names: Iterator[str]) -> Iterator[Case]:
    """Endless cases about an object; each has a name out of `names`."""
    there, absent = literals.places(schema, document)
    while there:
        place = chance.choice(absent if absent and chance.random() < _ABSENT else there)
        if place.path.startswith("/metadata/") and "s/" not in place.path and chance.random() > _RARELY:
            continue
        writer = literals.Writer(schema, document, new=chance.random() < _NEW)
        text = writer.configuration(place, value_at(place, chance))
        if not text.startswith("Object{"):
            continue
        mutations = (text, chance.choice(_STEPS)) if chance.random() < 0.2 else (text,)
        yield case(mutations, kind, next(names), place.path, chance)


def case(mutations: tuple[str, ...], kind: Kind, name: str, path: str, chance: Random) -> Case:
    """A case of one policy."""
    policy = policy_named(
        name,
        mutations if chance.random() < 0.5 else mutations[::-1],
        user=name,
        resource=(kind.group, kind.plural),
        reinvocation_policy=chance.choice(("Never", "IfNeeded")),
        failure_policy=chance.choice(("Fail", "Fail", "Ignore")),
    )
    return Case((policy,), UserInfo(name, groups=GROUPS), " then ".join(mutations), path)


def value_at(place: literals.Place, chance: Random) -> str:
    """What is there now, an empty object of its type, or one of the values of the patches."""
    chosen = chance.random()
    if chosen < 0.15 and not isinstance(place.value, dict):
        return f"dyn({literals.literal(place.value)})"
    if chosen < 0.3 and place.type_name and isinstance(place.value, dict):
        return f"{place.type_name}{{}}"
    if chosen < 0.7 and place.atom.scalar in _SUITED:
        return chance.choice(_SUITED[place.atom.scalar])
    return f"dyn({chance.choice([*VALUES.values()])})"
