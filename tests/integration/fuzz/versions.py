"""Policies whose rule names another served version of an object's kind, so that the server converts the object for them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

from scanner.model.json import JsonObject, as_list, as_object
from scanner.model.resource import Kind
from scanner.mutate.schema import Schema
from tests.integration.fuzz import configurations
from tests.integration.fuzz.case import Case
from tests.integration.fuzz.patches import VALUES, walked

_PATCHED = 0.5


def cases(schema: Schema, other: Kind, document: JsonObject, chance: Random, names: Iterator[str]) -> Iterator[Case]:
    """Endless cases about an object in another of its kinds, in which it is `document`."""
    paths = [path for path, _, _ in walked(document) if not path.startswith("/metadata/managedFields")]
    written = configurations.cases(schema, other, document, chance, names)
    while True:
        if chance.random() < _PATCHED:
            text = _patch(chance.choice(paths), chance)
            yield _in_version(configurations.case((text,), other, next(names), "/metadata", chance), other)
        else:
            yield from (_in_version(case, other) for case in islice(written, 1))


def _patch(path: str, chance: Random) -> str:
    op = chance.choice(("add", "replace", "test", "remove"))
    value = "" if op == "remove" else f", value: {chance.choice([*VALUES.values()])}"
    return f"[JSONPatch{{op: '{op}', path: '{path}'{value}}}]"


def _in_version(case: Case, kind: Kind) -> Case:
    """The same case by a policy whose rule names one version alone."""
    return Case(tuple(named(policy, kind) for policy in case.policies), case.user, case.shown, case.path)


def named(policy: JsonObject, kind: Kind) -> JsonObject:
    """The policy with rules that name the version of a kind alone."""
    spec = as_object(policy["spec"])
    constraints = as_object(spec["matchConstraints"])
    rules = [{**as_object(rule), "apiVersions": [kind.version]} for rule in as_list(constraints["resourceRules"])]
    return {**policy, "spec": {**spec, "matchConstraints": {**constraints, "resourceRules": rules}}}
