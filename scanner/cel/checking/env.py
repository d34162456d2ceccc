"""The names that an expression may use: variables, object types and their fields, functions and type names.

The tables are the declarations of kube-apiserver's admission plugins. Field names are the
declared ones even where the run-time value has others: `namespaceObject.metadata.UID` compiles and then finds no such key.

Rules: `docs/semantics/cel-environment.md#variables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from scanner.cel.errors import EvaluationError
from scanner.cel.functions import load_functions, load_macros, load_types
from scanner.cel.functions.authorizer import AUTHORIZER, RESOURCE_CHECK
from scanner.cel.protobuf import unwrapping
from scanner.cel.protobuf.messages import ENUMS, MESSAGES
from scanner.cel.releases import NAMED_TYPES, Version
from scanner.cel.stack import run_with_room
from scanner.cel.types.type_system import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST,
    MAP,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    A,
    B,
    Type,
    list_of,
    map_of,
    object_type,
    type_of_type,
)
from scanner.cel.values.values import Lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from scanner.cel.functions.declaration import Function, Library
    from scanner.cel.syntax.macros import Expand
    from scanner.cel.values.values import Value

# The variables that a policy has declared before one of its expressions.
#
# A policy may declare thousands, and each expression sees those above it: all share one table, in which every view
# counts how many of the declarations are its own.
#
# Rules: `docs/semantics/cel-environment.md#policy-variables`.


class ComposedVariables:
    """Names and types, in the order of their declaration; the last declaration of a name counts.

    Equal objects have equal declarations. A digest compares them, as comparing thousands of names for each expression is slow.
    """

    __slots__ = ("_count", "_digest", "_log")

    def __init__(self, log: _Log | None = None, digest: bytes = b"") -> None:
        """Take the present declarations of a table; none without a table."""
        self._log = log or _Log()
        self._count = len(self._log.names)
        self._digest = digest

    def declare(self, name: str, type_: Type) -> ComposedVariables:
        """Return these declarations and one more."""
        log = self._log if self._count == len(self._log.names) and self._count else _make_log(self)
        log.append(name, type_)
        declaration = run_with_room(lambda: f"{name} {type_!r}")
        return ComposedVariables(log, sha256(self._digest + declaration.encode()).digest())

    def get(self, name: str) -> Type | None:
        """Return the type of a variable, None when none of this name is declared."""
        declared = reversed(self._log.types.get(name, ()))
        return next((type_ for number, type_ in declared if number < self._count), None)

    def __iter__(self) -> Iterator[tuple[str, Type]]:
        for name in dict.fromkeys(self._log.names[: self._count]):
            type_ = self.get(name)
            if type_ is not None:
                yield name, type_

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposedVariables) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)


class _Log:
    """The table: names in the order of declaration, and the types of each with its number."""

    __slots__ = ("names", "types")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.types: dict[str, list[tuple[int, Type]]] = {}

    def append(self, name: str, type_: Type) -> None:
        self.types.setdefault(name, []).append((len(self.names), type_))
        self.names.append(name)


def _make_log(entries: Iterable[tuple[str, Type]]) -> _Log:
    log = _Log()
    for name, type_ in entries:
        log.append(name, type_)
    return log


Fields = tuple[tuple[str, Type], ...]

ADMISSION_REQUEST = object_type("kubernetes.AdmissionRequest")
GROUP_VERSION_KIND = object_type("kubernetes.GroupVersionKind")
GROUP_VERSION_RESOURCE = object_type("kubernetes.GroupVersionResource")
USER_INFO = object_type("kubernetes.UserInfo")
NAMESPACE = object_type("kubernetes.Namespace")
NAMESPACE_METADATA = object_type("kubernetes.NamespaceMetadata")
NAMESPACE_SPEC = object_type("kubernetes.NamespaceSpec")
NAMESPACE_STATUS = object_type("kubernetes.NamespaceStatus")
NAMESPACE_CONDITION = object_type("kubernetes.NamespaceCondition")
VARIABLES = Lazy.TYPE

_STRINGS = map_of(STRING, STRING)
_OBJECTS: dict[str, Fields] = {
    ADMISSION_REQUEST.name: (
        ("kind", GROUP_VERSION_KIND),
        ("resource", GROUP_VERSION_RESOURCE),
        ("subResource", STRING),
        ("requestKind", GROUP_VERSION_KIND),
        ("requestResource", GROUP_VERSION_RESOURCE),
        ("requestSubResource", STRING),
        ("name", STRING),
        ("namespace", STRING),
        ("operation", STRING),
        ("userInfo", USER_INFO),
        ("dryRun", BOOL),
        ("options", DYN),
    ),
    GROUP_VERSION_KIND.name: (("group", STRING), ("version", STRING), ("kind", STRING)),
    GROUP_VERSION_RESOURCE.name: (("group", STRING), ("version", STRING), ("resource", STRING)),
    USER_INFO.name: (
        ("username", STRING),
        ("uid", STRING),
        ("groups", list_of(STRING)),
        ("extra", map_of(STRING, list_of(STRING))),
    ),
    NAMESPACE.name: (("metadata", NAMESPACE_METADATA), ("spec", NAMESPACE_SPEC), ("status", NAMESPACE_STATUS)),
    NAMESPACE_METADATA.name: (
        ("name", STRING),
        ("generateName", STRING),
        ("namespace", STRING),
        ("labels", _STRINGS),
        ("annotations", _STRINGS),
        ("UID", STRING),
        ("creationTimestamp", TIMESTAMP),
        ("deletionGracePeriodSeconds", INT),
        ("deletionTimestamp", TIMESTAMP),
        ("generation", INT),
        ("resourceVersion", STRING),
        ("finalizers", list_of(STRING)),
    ),
    NAMESPACE_SPEC.name: (("finalizers", list_of(STRING)),),
    NAMESPACE_STATUS.name: (("conditions", list_of(NAMESPACE_CONDITION)), ("phase", STRING)),
    NAMESPACE_CONDITION.name: (
        ("status", STRING),
        ("type", STRING),
        ("lastTransitionTime", TIMESTAMP),
        ("message", STRING),
        ("reason", STRING),
    ),
    VARIABLES.name: (),
}
_TYPE_NAMES: dict[str, Type] = {
    type_.name: type_ for type_ in (BOOL, BYTES, DOUBLE, DURATION, INT, LIST, MAP, NULL, STRING, TIMESTAMP, TYPE, UINT)
} | {message.name: message.type for message in MESSAGES.values() if message.named}
"""The names of types that are values themselves, as in `type(x) == int`."""
_DECLARED_SCALARS: dict[str, Type] = {type_.name: type_ for type_ in (BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT)} | {
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "list": LIST,
    "map": MAP,
}
"""The types that Kubernetes declares without fields (`findScalar` of its DeclTypeProvider); a map has any field."""

ADMISSION: Fields = (
    ("object", DYN),
    ("oldObject", DYN),
    ("request", ADMISSION_REQUEST),
    ("namespaceObject", NAMESPACE),
    ("variables", VARIABLES),
)
"""The names of every expression of an admission policy."""
PARAMS: Fields = (("params", DYN),)
"""Declared when the policy has a paramKind."""
AUTHORIZATION: Fields = (("authorizer", AUTHORIZER), ("authorizer.requestResource", RESOURCE_CHECK))
"""Declared everywhere but in message expressions."""


class Structs(Protocol):
    """Object types that expressions may make values of: `Name{field: value}`. Hashable, as a part of environments."""

    def find_type(self, name: str) -> Type | None:
        """Return the object type of a name, or None."""
        ...

    def field(self, type_name: str, name: str) -> Type | None:
        """Return the type of a field, or None when the type has no such field."""
        ...

    def maker(self, type_: Type) -> Callable[[dict[str, Value]], Value]:
        """Return a constructor of a type's values from fields; it raises EvaluationError when a field's value does not fit."""
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """The declarations of one kind of expression.

    - `variables`: names and types; `composed`: the fields of `variables`.
    - `objects`: object types beyond Kubernetes' own, by name; `structs`: the types of which values can be made.
    - `results`: the allowed types of the whole expression, None for any.
    - `version`: the release whose libraries and rules hold. With `compatible`, expressions may only use what that release has, as
      in policies that are being written.
    - `extras`: libraries that only some environments have.
    """

    variables: Fields = ADMISSION
    composed: ComposedVariables = field(default_factory=ComposedVariables)
    objects: tuple[tuple[str, Fields], ...] = field(default=())
    results: tuple[Type, ...] | None = None
    version: Version = (1, 36)
    compatible: Version | None = None
    extras: tuple[Library, ...] = ()
    structs: Structs | None = None

    @property
    def features(self) -> Version:
        """The release whose libraries expressions may use."""
        return self.compatible or self.version

    def extend(self, *more: Fields) -> Environment:
        """Return an environment with more variables, declared as pairs of a name and a type."""
        return replace(self, variables=(*self.variables, *(declaration for fields in more for declaration in fields)))

    def add_variable(self, name: str, type_: Type) -> Environment:
        """Return an environment in which `variables.name` is declared; the last declaration of a name counts."""
        return replace(self, composed=self.composed.declare(name, run_with_room(lambda: get_declared_type(type_))))

    def remove_variable(self, name: str) -> Environment:
        """Return an environment without a variable."""
        return replace(self, variables=tuple(declaration for declaration in self.variables if declaration[0] != name))

    def require_results(self, *results: Type) -> Environment:
        """Return an environment whose expressions must have one of these types; without types, any."""
        return replace(self, results=results or None)

    def is_variable(self, name: str) -> bool:
        """Return whether a name is a declared variable."""
        return any(name == declared for declared, _ in self.variables)

    @property
    def roots(self) -> frozenset[str]:
        """The names that an activation provides: variables, and types that count as variables without a value."""
        declared = frozenset(name for name, _ in self.variables)
        return (
            declared if NAMED_TYPES.holds(self.version) else declared | _DECLARED_SCALARS.keys() | self._objects.keys()
        )

    def find_identifier(self, name: str) -> Type | None:
        """Return the type of a variable, or `type(T)` for the name of a type T; None when nothing has this name."""
        declared = _list_identifiers(self.version, self.features, self.objects, self.variables).get(name)
        if declared is not None or self.structs is None:
            return declared
        struct = self.structs.find_type(name)
        return None if struct is None else type_of_type(struct)

    def constant(self, name: str) -> int | None:
        """Return the number of a name that denotes a value of a protobuf enumeration; None for another name."""
        return ENUMS.get(name)

    def find_type(self, name: str) -> Type | None:
        """Return the type that a name denotes as a value; None for another name."""
        return _list_type_values(self.version, self.features).get(name)

    def has_fields(self, type_name: str) -> bool:
        """Return whether an object type has declared fields."""
        is_declared = type_name in self._objects or type_name in MESSAGES or type_name in _DECLARED_SCALARS
        return is_declared or (self.structs is not None and self.structs.find_type(type_name) is not None)

    def field(self, type_name: str, name: str) -> Type | None:
        """Return the type of a field of an object type, or None when there is no such field."""
        if type_name == VARIABLES.name:
            return self.composed.get(name)
        fields = self._objects.get(type_name)
        if fields is not None:
            return fields.get(name)
        if type_name in MESSAGES:
            field_ = MESSAGES[type_name].fields.get(name)
            return None if field_ is None else field_.type
        if type_name in _DECLARED_SCALARS:
            return ANY if type_name == MAP.name else None
        return None if self.structs is None else self.structs.field(type_name, name)

    def maker(self, type_name: str) -> Callable[[dict[str, Value]], Value] | None:
        """Return a constructor of a type's values from fields, which raises EvaluationError; None for an unknown type."""
        if type_name in MESSAGES:
            return unwrapping.make_maker(MESSAGES[type_name], self.version)
        struct = None if self.structs is None else self.structs.find_type(type_name)
        if self.structs is not None and struct is not None:
            return self.structs.maker(struct)
        return partial(_reject_type, type_name) if self.has_fields(type_name) else None

    @property
    def _objects(self) -> dict[str, dict[str, Type]]:
        return _merge_objects(self.objects, has_variables=self.is_variable("variables"))

    def function(self, name: str) -> Function | None:
        """Return the function of a full name, such as `optional.of`; None when there is none."""
        return load_functions(self.version, self.features, self.extras).get(name)

    @property
    def macros(self) -> dict[tuple[str, int, bool], Expand]:
        """The macros that only this environment has, by name, number of arguments and whether they are member calls."""
        return load_macros(self.extras)


def _reject_type(name: str, _fields: dict[str, Value]) -> Value:
    """Raise for a type whose fields are declared but whose values expressions cannot make."""
    raise EvaluationError(f"unknown type '{name}'")


def get_declared_type(inferred: Type) -> Type:
    """Return the type under which a composed variable is declared: plain types as inferred, all others dyn.

    Mirrors `convertCelTypeToDeclType` of apiserver's `pkg/admission/plugin/cel/composition.go`.
    """
    match inferred.family:
        case "primitive" if inferred.nullable:
            return DYN
        case "primitive" | "null" | "timestamp" | "duration" | "any":
            return inferred
        case "list" | "map":
            return Type(inferred.family, inferred.name, tuple(map(get_declared_type, inferred.parameters)))
        case _:
            return DYN


@cache
def _list_type_values(version: Version, features: Version) -> dict[str, Type]:
    return _TYPE_NAMES | {type_.name: type_ for type_ in load_types(version, features)}


_GENERIC_NAMES = {LIST.name: type_of_type(list_of(A)), MAP.name: type_of_type(map_of(A, B))}


@cache
def _list_identifiers(
    version: Version, features: Version, objects: tuple[tuple[str, Fields], ...], variables: Fields
) -> dict[str, Type]:
    has_variables = any(name == "variables" for name, _ in variables)
    declared = _DECLARED_SCALARS | {
        name: object_type(name) for name in _merge_objects(objects, has_variables=has_variables)
    }
    names = {name: type_of_type(type_) if NAMED_TYPES.holds(version) else type_ for name, type_ in declared.items()}
    names |= {
        name: type_of_type(denoted) for name, denoted in _list_type_values(version, features).items()
    } | _GENERIC_NAMES
    names |= {name: type_of_type(message.type) for name, message in MESSAGES.items()} | dict.fromkeys(ENUMS, INT)
    return names | dict(variables)


@cache
def _merge_objects(objects: tuple[tuple[str, Fields], ...], *, has_variables: bool) -> dict[str, dict[str, Type]]:
    """Return the object types with declared fields; the fields of `variables` are the composed ones, and not included."""
    declared = {name: dict(fields) for name, fields in (*_OBJECTS.items(), *objects)}
    return declared if has_variables else {name: fields for name, fields in declared.items() if name != VARIABLES.name}
