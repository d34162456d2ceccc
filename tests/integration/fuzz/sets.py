"""Two or three policies that act on the same object: conditions on what another one does, order, second runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

from scanner.api import UserInfo
from scanner.model.json import JsonObject
from scanner.model.resource import Kind
from scanner.mutate.schema import Schema
from tests.integration.fuzz import configurations
from tests.integration.fuzz.case import Case
from tests.integration.fuzz.manifests import policy_named
from tests.integration.fuzz.stage import GROUPS

_LABELS = "object.metadata.?labels.orValue({{}})"
_NOTES = "object.metadata.?annotations.orValue({{}})"
NAMES = ("x", "y", "z")
MUTATIONS = (
    'Object{{metadata: Object.metadata{{labels: {{"{0}": "1"}}}}}}',
    'Object{{metadata: Object.metadata{{labels: {{"{0}": "2"}}}}}}',
    f'Object{{{{metadata: Object.metadata{{{{labels: {{{{"{{0}}": {_LABELS}[?"{{1}}"].orValue("none")}}}}}}}}}}}}',
    f'Object{{{{metadata: Object.metadata{{{{annotations: {{{{"{{0}}": string(size({_LABELS}))}}}}}}}}}}}}',
    f'Object{{{{metadata: Object.metadata{{{{annotations: {{{{"{{0}}": {_NOTES}[?"{{0}}"].orValue("") + "+"}}}}}}}}}}}}',
    f"[JSONPatch{{{{op: 'add', path: '/metadata/labels', value: {_LABELS}.transformMap(k, v, v + 'a')}}}}]",
    "[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{'{0}': '3'}}}}]",
    "[JSONPatch{{op: 'remove', path: '/metadata/labels/{0}'}}]",
    "[JSONPatch{{op: 'test', path: '/metadata/labels/{0}', value: '1'}}, JSONPatch{{op: 'add', path: '/metadata/labels/{1}', value: '4'}}]",
    "Object{{}}",
)
CONDITIONS = (
    f"'{{0}}' in {_LABELS}",
    f"!('{{0}}' in {_LABELS})",
    f"{_LABELS}[?'{{0}}'].orValue('') == '1'",
    f"size({_LABELS}) < 3",
    f"'{{0}}' in {_NOTES}",
    "object.metadata.labels.{0} == '1'",
)


def cases(schema: Schema, kind: Kind, document: JsonObject, chance: Random, names: Iterator[str]) -> Iterator[Case]:
    """Endless sets for an object; each has a name out of `names`."""
    others = configurations.cases(schema, kind, document, chance, names)
    for name in names:
        user = UserInfo(name, groups=GROUPS)
        policies = tuple(_policy(f"{name}-{at}", name, kind, chance, others) for at in range(chance.choice((2, 2, 3))))
        yield Case(policies, user, "\n           ".join(map(_shown, policies)), "/metadata")


def _policy(name: str, user: str, kind: Kind, chance: Random, others: Iterator[Case]) -> JsonObject:
    mutations = [_mutation(chance) for _ in range(chance.choice((1, 1, 1, 2)))]
    if chance.random() < 0.2:
        mutations += [case.shown.partition(" then ")[0] for case in islice(others, 1)]
    return policy_named(
        name,
        mutations,
        user=user,
        resource=(kind.group, kind.plural),
        conditions=[_filled(chance.choice(CONDITIONS), chance)] if chance.random() < 0.5 else [],
        reinvocation_policy=chance.choice(("Never", "IfNeeded")),
        failure_policy=chance.choice(("Fail", "Ignore", "Ignore")),
    )


def _mutation(chance: Random) -> str:
    return _filled(chance.choice(MUTATIONS), chance)


def _filled(text: str, chance: Random) -> str:
    return text.format(*chance.sample(NAMES, 2))


def _shown(policy: JsonObject) -> str:
    spec = policy["spec"]
    assert isinstance(spec, dict)
    conditions = [condition["expression"] for condition in spec["matchConditions"][1:]]
    mutations = [
        mutation.get("jsonPatch", mutation.get("applyConfiguration"))["expression"] for mutation in spec["mutations"]
    ]
    how = f"{spec['failurePolicy']}, {spec['reinvocationPolicy']}"
    return f"{how}{''.join(f', if {condition}' for condition in conditions)}: {' then '.join(mutations)}"
