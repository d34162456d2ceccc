"""CEL's values as Python objects.

| CEL | Python | | CEL | Python |
|---|---|---|---|---|
| null | None | | list | list |
| bool | bool | | map with string keys only | dict |
| int | int | | any other map | `KeyedMap` |
| uint | `UInt` | | timestamp, duration | `Timestamp`, `Duration` (nanoseconds) |
| double | float | | type | `Type` |
| string | str | | optional | `Optional` |
| bytes | bytes | | Kubernetes' own types | subclasses of `Opaque` |
| | | | made by `Name{field: value}` | `Struct`, `Message` |

Classes are compared with `type(x) is …`, never `isinstance`: Python's bool is an int, CEL's is not.

Rules: `docs/semantics/cel-evaluation.md#values`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.types.type_system import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    LIST,
    MAP,
    NULL,
    OPTIONAL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    object_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Value: TypeAlias = object
"""Any of the shapes in the table above."""

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
UINT_MAX = 2**64 - 1


class UInt(int):
    """An unsigned 64 bit integer."""

    __slots__ = ()


class Timestamp:
    """A moment: nanoseconds since 1970-01-01T00:00:00Z; `offset` is the zone it prints in, in seconds east of UTC."""

    __slots__ = ("nanoseconds", "offset")

    def __init__(self, nanoseconds: int, offset: int = 0) -> None:
        self.nanoseconds = nanoseconds
        self.offset = offset

    def __repr__(self) -> str:
        return f"Timestamp({self.nanoseconds})"


class Duration:
    """A number of nanoseconds."""

    __slots__ = ("nanoseconds",)

    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    def __repr__(self) -> str:
        return f"Duration({self.nanoseconds})"


class Optional:
    """A value that may be absent. The one absent value is `NONE`."""

    __slots__ = ("present", "value")

    def __init__(self, value: Value, *, present: bool = True) -> None:
        self.value = value
        self.present = present

    def __repr__(self) -> str:
        return f"Optional({self.value!r})" if self.present else "NONE"

    def unwrapped(self) -> Value:
        """Return the value. Raises EvaluationError if there is none, or if it is an error itself."""
        if not self.present:
            raise EvaluationError("optional.none() dereference")
        if isinstance(self.value, EvaluationError):
            raise EvaluationError(str(self.value))
        return self.value


NONE = Optional(None, present=False)


class Opaque:
    """A value of a type that is not part of CEL itself.

    `GO_TYPE` is upstream's name for it in error texts; `GO_NATIVE` that of the Go value inside, for those that cannot be made
    from it again.
    """

    __slots__ = ()
    TYPE: ClassVar[Type]
    GO_TYPE: ClassVar[str]
    EQUAL_AT_ONCE: ClassVar[bool] = False
    """The flag of types for which a comparison with a value on its left costs 1, at any size."""

    def cost_size(self) -> int:
        """Return the size that prices of calls count for this value: 1, unless a subclass has another."""
        return 1

    def __str__(self) -> str:
        """Return a text that is the same in every process: error messages may contain it."""
        return f"<{self.TYPE.name}>"

    def go_type(self) -> str:
        """Return upstream's name for the implementation of this value."""
        return self.GO_TYPE

    def equals(self, other: Opaque) -> bool:
        """Return whether a value of the same class is equal to this one. Subclasses may raise EvaluationError."""
        return self is other

    def map_key(self) -> Hashable:
        """Return the identity of this value as the key of a map: upstream's pointer, unless a subclass defines another.

        Raises EvaluationStopped in subclasses whose Go values cannot be hashed.
        """
        return (type(self), id(self))


class Lazy(Opaque):
    """The value of `variables`: evaluates and caches one entry at a time.

    `entries` holds the values of entries that were read, for generated code; `read` evaluates any other entry.
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[str, Value] = {}

    TYPE: ClassVar[Type] = object_type("kubernetes.variables")
    GO_TYPE: ClassVar[str] = "*lazy.MapValue"

    def cost_size(self) -> int:
        """Return the number of entries."""
        return len(tuple(self.names()))

    def names(self) -> Iterable[str]:
        """Return the names of the entries, in their order."""
        raise NotImplementedError

    def find(self, name: str) -> tuple[Value] | None:
        """Return the value of an entry in a tuple of one, or None when there is no such name.

        Raises `EvaluationError` when the evaluation of the entry fails.
        """
        raise NotImplementedError

    def read(self, name: str) -> Value:
        """Return the value of an entry and keep it in `entries`. Raises KeyError for an unknown name, and what `find` raises."""
        value = self.find(name)
        if value is None:
            raise KeyError(name)
        self.entries[name] = value[0]
        return value[0]


class Struct:
    """The value of `Name{field: value}`; `absent` has the values of fields that were not given, all others do not exist then."""

    __slots__ = ("absent", "fields", "type")

    def __init__(
        self, type_: Type, fields: dict[str, Value], absent: Mapping[str, Value] = MappingProxyType({})
    ) -> None:
        self.type = type_
        self.fields = fields
        self.absent = absent

    def __repr__(self) -> str:
        return f"Struct({self.type.name}, {self.fields!r})"

    def find(self, field: Value) -> tuple[Value] | None:
        """Return the value of a field in a tuple of one, or None."""
        if type(field) is not str:
            return None
        if field in self.fields:
            return (self.fields[field],)
        return (self.absent[field],) if field in self.absent else None


class Message:
    """A message of protobuf that is not a plain value; `absent` has the values of its fields that are not set.

    `unknown` holds fields that came with it and that its type does not have, `go_type` is Go's type of it.
    """

    __slots__ = ("absent", "fields", "go_type", "type", "unknown")

    def __init__(
        self,
        type_: Type,
        fields: dict[str, Value],
        absent: Mapping[str, Value],
        go_type: str = "*dynamicpb.Message",
        unknown: bytes = b"",
    ) -> None:
        self.type = type_
        self.fields = fields
        self.absent = absent
        self.go_type = go_type
        self.unknown = unknown

    def __repr__(self) -> str:
        return f"Message({self.type.name}, {self.fields!r})"

    def find(self, field: Value) -> Value:
        """Return the value of a field, set or not; raise EvaluationError for a field that the type does not have."""
        if type(field) is not str:
            raise EvaluationError("no such overload")
        if field not in self.absent:
            raise EvaluationError(f"no such field '{field}'")
        return self.fields.get(field, self.absent[field])


def map_key(key: Value) -> Hashable:
    """Return the identity of a map key, as the hash of upstream's value does.

    Plain values are identified by type and value, lists, maps and the like as objects. Raises `EvaluationStopped` for a value
    that Go cannot hash.
    """
    kind = type(key)
    if kind is str or kind is int:
        return key
    if isinstance(key, Opaque):
        return key.map_key()
    if isinstance(key, bytes):
        raise make_unhashable("types.Bytes")
    return (kind, _make_identity(key))


def _make_identity(key: Value) -> Hashable:
    if isinstance(key, Type):
        return key.name
    # Go's time has a pointer to its zone, so that only moments in UTC are equal keys.
    if isinstance(key, Duration) or (isinstance(key, Timestamp) and key.offset == 0):
        return key.nanoseconds
    # NaN equals no key, itself included.
    if isinstance(key, float) and math.isnan(key):
        return object()
    return key if key is None or isinstance(key, bool | UInt | float) else id(key)


def make_unhashable(go_type: str) -> EvaluationStopped:
    """Return the error that ends an evaluation when a value of this Go type is a key of a map or of a lookup."""
    return EvaluationStopped(f"internal error: runtime error: hash of unhashable type {go_type}")


class KeyedMap:
    """A map with keys that are not all strings, in the order of their insertion."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Value, Value]]) -> None:
        self._entries = {map_key(key): (key, value) for key, value in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Value]:
        return (key for key, _ in self._entries.values())

    def items(self) -> Iterable[tuple[Value, Value]]:
        """Return the entries."""
        return self._entries.values()

    def insert(self, key: Value, value: Value) -> bool:
        """Add an entry unless its key is taken; return whether the key was free. Raises EvaluationStopped as `map_key`."""
        if self.find(key) is not None:
            return False
        self._entries[map_key(key)] = (key, value)
        return True

    def simplify(self) -> AnyMap:
        """Return the same map; it is a dict when all its keys are strings."""
        return make_map([*self._entries.values()])

    def find(self, key: Value) -> tuple[Value, Value] | None:
        """Return the key and value of an entry, or None; numbers find equal ints and uints of other types."""
        if not self._entries:
            return None
        for candidate in _list_spellings(key):
            pair = self._entries.get(candidate)
            if pair is not None:
                return pair
        return None


def _list_spellings(key: Value) -> tuple[Hashable, ...]:
    """Return the keys that a lookup tries, its own first."""
    own_key = map_key(key)
    if type(key) is float and key.is_integer():
        return own_key, int(key), (UInt, int(key))
    if type(key) is int:
        return own_key, (UInt, key)
    if type(key) is UInt:
        return own_key, int(key)
    return (own_key,)


AnyMap: TypeAlias = "dict[str, Value] | KeyedMap"


def make_map(entries: list[tuple[Value, Value]]) -> AnyMap:
    """Return a map of the entries, a dict where all keys are strings; of equal keys the last wins.

    Raises EvaluationStopped for a key that Go cannot hash.
    """
    if all(type(key) is str for key, _ in entries):
        return {str(key): value for key, value in entries}
    return KeyedMap(entries)


def drop_key(entries: list[tuple[Value, Value]], key: Value) -> list[tuple[Value, Value]]:
    """Return the entries without those under a key: an absent optional entry removes earlier ones."""
    removed = map_key(key)
    return [pair for pair in entries if map_key(pair[0]) != removed]


_TYPES: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
    list: LIST,
    dict: MAP,
    KeyedMap: MAP,
    Timestamp: TIMESTAMP,
    Duration: DURATION,
    Type: TYPE,
    Optional: OPTIONAL,
}


def type_of(value: Value) -> Type:
    """Return a value's run-time type. Raises TypeError for an object that is not a CEL value."""
    type_ = _TYPES.get(type(value))
    if type_ is not None:
        return type_
    if isinstance(value, Opaque):
        return value.TYPE
    if type(value) is Struct or type(value) is Message:
        return value.type
    # A part of a document that a snapshot withholds has a class of its own, derived from that of its value.
    for base in type(value).__mro__[1:-1]:
        if base in _TYPES:
            return _TYPES[base]
    message = f"not a CEL value: {type(value).__name__}"
    raise TypeError(message)


def type_name(value: Value) -> str:
    """Return the run-time name of a value's type, such as `null_type` or `google.protobuf.Timestamp`."""
    return type_of(value).name
