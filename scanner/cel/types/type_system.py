"""CEL's types: those of the checker, and those that `type()` returns.

A type prints in two ways upstream: the checker's (`null`, `timestamp`, `list(string)`) and the run-time name (`null_type`,
`google.protobuf.Timestamp`, `list`).

Rules: `docs/semantics/cel-types.md#types`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal as Choice
from typing import TypeAlias

Family: TypeAlias = Choice[
    "dyn",
    "any",
    "error",
    "primitive",
    "null",
    "list",
    "map",
    "type",
    "object",
    "opaque",
    "parameter",
    "timestamp",
    "duration",
]


@dataclass(frozen=True, slots=True)
class Type:
    """One type; `name` is its run-time name, `parameters` are those of lists, maps, optionals and types.

    A `nullable` type is that of a protobuf wrapper: the plain type, except that null fits, too. It is equal to the plain type.
    """

    family: Family
    name: str
    parameters: tuple[Type, ...] = ()
    nullable: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        """Return the type as compile errors print it."""
        if self.family in _CHECKER_NAMES:
            return _CHECKER_NAMES[self.family]
        if not self.parameters:
            return self.declared_name()
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def full_name(self) -> str:
        """Return the name with parameters, as `must evaluate to … but got …` prints it."""
        if not self.parameters:
            return self.declared_name()
        return f"{self.name}({', '.join(parameter.full_name() for parameter in self.parameters)})"

    def declared_name(self) -> str:
        """Return the name without parameters; `wrapper(…)` for a nullable type."""
        return f"wrapper({self.name})" if self.nullable else self.name

    @property
    def is_dyn(self) -> bool:
        """True if the checker has no type for the values."""
        return self.family in ("dyn", "any")


_CHECKER_NAMES: dict[Family, str] = {
    "dyn": "dyn",
    "any": "any",
    "error": "!error!",
    "null": "null",
    "timestamp": "timestamp",
    "duration": "duration",
}

DYN = Type("dyn", "dyn")
ANY = Type("any", "google.protobuf.Any")
ERROR = Type("error", "!error!")
BOOL = Type("primitive", "bool")
INT = Type("primitive", "int")
UINT = Type("primitive", "uint")
DOUBLE = Type("primitive", "double")
STRING = Type("primitive", "string")
BYTES = Type("primitive", "bytes")
NULL = Type("null", "null_type")
TIMESTAMP = Type("timestamp", "google.protobuf.Timestamp")
DURATION = Type("duration", "google.protobuf.Duration")
LIST = Type("list", "list", (DYN,))
MAP = Type("map", "map", (DYN, DYN))
TYPE = Type("type", "type")
OPTIONAL = Type("opaque", "optional_type")
UNTYPED = Type("opaque", "")
"""The type of values that some releases leave without any type: it is assignable to dyn only, not even to itself."""


def list_of(element: Type) -> Type:
    """Return `list(element)`."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return `map(key, value)`."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return `optional_type(value)`."""
    return Type("opaque", "optional_type", (value,))


def is_untyped(type_: Type) -> bool:
    """Return whether a type, or one of its parameters, is untyped."""
    return type_ == UNTYPED or any(map(is_untyped, type_.parameters))


def empty_type(type_: Type) -> Type:
    """Return a type with untyped parameters: lists and maps as releases before 1.34 type their values."""
    return replace(type_, parameters=(UNTYPED,) * len(type_.parameters))


def name_optionals_as_before(type_: Type) -> Type:
    """Return a type in which optionals have their first name, `optional`, as releases before 1.31 print it."""
    if not type_.parameters:
        return Type(type_.family, "optional") if type_ == OPTIONAL else type_
    name = "optional" if type_.name == OPTIONAL.name else type_.name
    return Type(type_.family, name, tuple(map(name_optionals_as_before, type_.parameters)))


def type_of_type(denoted: Type) -> Type:
    """Return `type(denoted)`, the type of a type's name."""
    return Type("type", "type", (denoted,))


def nullable(plain: Type) -> Type:
    """Return a plain type that null fits, too: that of a protobuf wrapper."""
    return replace(plain, nullable=True)


def object_type(name: str) -> Type:
    """Return the type of this name with declared fields."""
    return Type("object", name)


def opaque(name: str) -> Type:
    """Return the type of this name without fields."""
    return Type("opaque", name)


def parameter(name: str) -> Type:
    """Return the type parameter of this name."""
    return Type("parameter", name)


A = parameter("A")
B = parameter("B")
