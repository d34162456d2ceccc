"""Expressions that Kubernetes 1.37 could answer otherwise than Assay, which judges its data by the rules of 1.36.

1.37 hands native objects to CEL as wrappers; only expressions that compare things of different kinds, or whole structures,
can tell. Each of them is named, for the kinds that its policy matches, by the schemas of these kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, Protocol

from scanner.cel import DYN, STRING, Environment, Type, telling
from scanner.cel.env import ADMISSION, AUTHORIZATION, PARAMS
from scanner.cel.type_system import BOOL, INT, list_of, map_of, object_type
from scanner.evaluate import CompiledPolicy
from scanner.match import could_match
from scanner.model.json import Json
from scanner.model.policy import Policy
from scanner.model.release import Minor
from scanner.model.resource import Kind
from scanner.model.scan import Health, HealthKind
from scanner.mutate.schema import Atom, MapType, Schema
from scanner.policies.validating import LANGUAGE, Bound

SINCE: Final[Minor] = (1, 37)
_SCALARS: Final = {"string": STRING, "boolean": BOOL, "int32": INT, "int64": INT}
_DEEPEST: Final = 40


class Schemas(Protocol):
    """Where the schemas of kinds are looked up."""

    def schema(self, kind: Kind) -> Schema | None:
        """The schema of a kind, or None when none is known."""
        ...


def of_policies(bound: Iterable[Bound], kinds: tuple[Kind, ...], schemas: Schemas, rules: Minor) -> Iterator[Health]:
    """An entry for each expression that could be answered otherwise; none before 1.37."""
    if rules < SINCE:
        return
    known: dict[Kind, Schema | None] = {}
    for entry in bound:
        if entry.policy.language != LANGUAGE:
            continue
        matched = [kind for kind in kinds if _matches(entry.policy, kind)]
        for kind in matched:
            if kind not in known:
                known[kind] = schemas.schema(kind)
        found = [(kind, schema) for kind in matched if (schema := known[kind]) is not None and schema.builtin]
        yield from _of_policy(entry.compiled, found, rules)


def _matches(policy: Policy, kind: Kind) -> bool:
    rules = policy.match.rules if policy.match else ()
    return any(could_match(rule, kind, ("CREATE", "UPDATE")) for rule in rules)


def _of_policy(compiled: CompiledPolicy, kinds: list[tuple[Kind, Schema]], rules: Minor) -> Iterator[Health]:
    told: dict[str, tuple[str, Kind]] = {}
    for kind, schema in kinds:
        environment = _environment(compiled, schema, rules)
        for path, text in _texts(compiled):
            type_, found = telling(text, environment)
            if path.startswith("spec.variables["):
                name = compiled.policy.variables[int(path[len("spec.variables[") : path.index("]")])].name
                environment = replace(environment, composed=(*environment.composed, (name, type_)))
            if found:
                told.setdefault(path, ("; ".join(found), kind))
    for path, (what, kind) in told.items():
        detail = (
            f"{path}: Kubernetes 1.37 may answer otherwise for objects such as {kind.kind}, because it does not compare native "
            f"values as plain maps and lists: {what}. It was judged as 1.36 does"
        )
        yield Health(HealthKind.NOTE, compiled.policy.name, "", detail)


def _texts(compiled: CompiledPolicy) -> Iterator[tuple[str, str]]:
    return ((path, expression.text) for path, expression in compiled.expressions() if not expression.fault)


def _environment(compiled: CompiledPolicy, schema: Schema, rules: Minor) -> Environment:
    types = _Types(schema)
    roots = {"object": types.root, "oldObject": types.root}
    variables = tuple((name, roots.get(name, type_)) for name, type_ in ADMISSION)
    environment = Environment(variables=variables, version=rules, structs=types).extend(AUTHORIZATION)
    return environment.extend(PARAMS) if compiled.policy.param_kind else environment


class _Types:
    """The types of a schema: a structure's name is the path to it, or the name that the schema gives it."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._maps: dict[str, MapType] = {}
        self.root = self._type(schema.root, "root", 0)

    def type_named(self, name: str) -> Type | None:
        """See Structs."""
        return object_type(name) if name in self._maps else None

    def field(self, type_name: str, name: str) -> Type | None:
        """See Structs."""
        known = self._maps.get(type_name)
        if known is None or name not in known.fields:
            return None
        return self._type(known.fields[name], f"{type_name}.{name}", 0)

    def make(self, type_: Type, fields: dict[str, object]) -> object:
        """See Structs: nothing is made here."""
        del type_
        return fields

    def _type(self, ref: Json, path: str, depth: int) -> Type:
        atom = self._schema.resolve(ref)
        if depth > _DEEPEST or sum(part is not None for part in (atom.scalar, atom.list, atom.map)) != 1:
            return DYN
        if atom.list:
            return list_of(self._type(atom.list.element, f"{path}.@", depth + 1))
        if atom.map:
            return self._map(atom, atom.map, path, depth)
        return _SCALARS.get(atom.scalar or "", DYN)

    def _map(self, atom: Atom, found: MapType, path: str, depth: int) -> Type:
        if not found.fields:
            return DYN if found.element is None else map_of(STRING, self._type(found.element, f"{path}.@", depth + 1))
        if found.element is not None:
            return DYN
        name = f"schema:{atom.name or path}"
        self._maps[name] = found
        return object_type(name)
