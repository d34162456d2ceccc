"""The declarations of Kyverno's CEL environments by release, as Kyverno itself makes them.

`declarations.json` is generated from Kyverno's own code (`scripts/generate_kyverno_declarations.py`): every variable, field, macro
and overload, with its types. The other files here have the code of the functions, by the ids of their overloads; an overload that a
release does not declare does not exist in its environment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from scanner.cel.checking.env import Fields
from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, Overload, Run
from scanner.cel.functions.pricing import ONE, Cost
from scanner.cel.functions.result_sizes import ResultSize
from scanner.cel.syntax.macros import ANY_NUMBER, Macro
from scanner.cel.types import type_system
from scanner.cel.types.type_system import Type
from scanner.model.json import Json, JsonObject, as_list, as_object

_DATA = Path(__file__).with_name("declarations.json")
_PLAIN: Mapping[str, Type] = {
    "any": type_system.ANY,
    "bool": type_system.BOOL,
    "bytes": type_system.BYTES,
    "double": type_system.DOUBLE,
    "duration": type_system.DURATION,
    "dyn": type_system.DYN,
    "int": type_system.INT,
    "null": type_system.NULL,
    "string": type_system.STRING,
    "timestamp": type_system.TIMESTAMP,
    "uint": type_system.UINT,
}

MacroKey: TypeAlias = tuple[str, str, bool]
"""A name, a number of arguments or `*`, and whether the macro is a member call."""


class Signature(Struct, frozen=True):
    """An overload as a release declares it."""

    id: str
    member: bool
    arguments: tuple[Type, ...]
    result: Type


class Declarations(Struct, frozen=True):
    """The environment of the policies of one scope in one release: cluster-wide policies, or policies in a namespace."""

    variables: dict[str, Type]
    objects: Mapping[str, Fields]
    functions: Mapping[str, tuple[Signature, ...]]
    macros: frozenset[MacroKey]


class Implementation(Struct, frozen=True):
    """The code of functions, by the ids of their overloads, and the facts that are the same for all of these functions."""

    runs: Mapping[str, Run]
    cost: Cost = ONE
    flow: ArgumentFlow = ArgumentFlow.COMPUTES
    result: ResultSize | None = None

    def functions(self, declared: Declarations) -> Iterator[Function]:
        """Yield each function of which a release declares overloads with code here."""
        for name, signatures in declared.functions.items():
            overloads = tuple(
                Overload(each.id, each.arguments, each.result, self.runs[each.id], member=each.member)
                for each in signatures
                if each.id in self.runs
            )
            if overloads:
                yield Function(name, overloads, cost=self.cost, flow=self.flow, result=self.result)


def library(
    name: str, implementations: Iterable[Implementation], declared: Declarations, macros: tuple[Macro, ...] = ()
) -> Library:
    """Return the functions of one file with the signatures of a release."""
    functions = (function for each in implementations for function in each.functions(declared))
    present = tuple(macro for macro in macros if (macro[0], _written_size(macro[1]), macro[2]) in declared.macros)
    return Library(name, tuple(functions), macros=present)


def _written_size(size: int) -> str:
    return "*" if size == ANY_NUMBER else str(size)


@cache
def declarations(release: str, *, namespaced: bool) -> Declarations:
    """Return the declarations of a release, such as `1.19`, for cluster-wide policies or for policies in a namespace."""
    data = _data()
    position = as_list(data["releases"]).index(release)
    scope = "namespaced" if namespaced else "cluster"

    def rows(part: str) -> Iterator[JsonObject]:
        for row in map(as_object, as_list(data[part])):
            if row.get("policies", scope) == scope and _holds(row, position):
                yield row

    objects: dict[str, list[tuple[str, Type]]] = {}
    for row in rows("types"):
        objects.setdefault(str(row["name"]), []).append((str(row["field"]), type_of(row["type"])))
    functions: dict[str, list[Signature]] = {}
    for row in rows("functions"):
        functions.setdefault(str(row["name"]), []).append(_signature(row))
    return Declarations(
        variables={str(row["name"]): type_of(row["type"]) for row in rows("variables")},
        objects={name: tuple(fields) for name, fields in objects.items()},
        functions={name: tuple(signatures) for name, signatures in functions.items()},
        macros=frozenset((str(row["name"]), str(row["arguments"]), bool(row["member"])) for row in rows("macros")),
    )


@cache
def _data() -> JsonObject:
    return as_object(json.loads(_DATA.read_text(encoding="utf-8")))


def _holds(row: JsonObject, position: int) -> bool:
    releases = as_list(_data()["releases"])
    since, before = (row.get(name) for name in ("since", "before"))
    return (since is None or releases.index(since) <= position) and (
        before is None or position < releases.index(before)
    )


def _signature(row: JsonObject) -> Signature:
    arguments = tuple(map(type_of, as_list(row["arguments"])))
    return Signature(str(row["id"]), bool(row["member"]), arguments, type_of(row["result"]))


def type_of(written: Json) -> Type:
    """Return a type from its form in the data: a name, or a list of a constructor and its parameters."""
    if isinstance(written, str):
        return _PLAIN[written]
    constructor, *rest = as_list(written)
    match constructor:
        case "list" | "map" | "type":
            return Type(constructor, constructor, tuple(map(type_of, rest)))
        case "opaque":
            return Type("opaque", str(rest[0]), tuple(map(type_of, rest[1:])))
        case "object":
            return type_system.object_type(str(rest[0]))
        case "parameter":
            return type_system.parameter(str(rest[0]))
        case _:
            return type_system.nullable(type_of(rest[0]))
