"""The text, the Go type and the errors of values (cel-go's common/types).

Every function takes values and returns a value or raises `EvaluationError` with upstream's text.

Rules: `docs/semantics/cel-evaluation.md#values`, `docs/semantics/cel-evaluation.md#errors`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from scanner.cel.errors import EvaluationError
from scanner.cel.types.type_system import Type
from scanner.cel.values.text import write_converted
from scanner.cel.values.values import (
    Duration,
    KeyedMap,
    Message,
    Opaque,
    Optional,
    Struct,
    Timestamp,
    UInt,
    Value,
)
from scanner.cel.values.wrapped_values import find_go_name

SECOND = 10**9
FIRST_SECOND = -62_135_596_800
LAST_SECOND = 253_402_300_799
Unary: TypeAlias = "Callable[[Value], Value]"
Binary: TypeAlias = "Callable[[Value, Value], Value]"
Operand: TypeAlias = Any
"""A value whose class is checked before its use."""
_GO_TYPES = {
    bool: "types.Bool",
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    Timestamp: "types.Timestamp",
    Duration: "types.Duration",
    Type: "*types.Type",
    Optional: "*types.Optional",
    list: "*types.baseList",
    dict: "*types.baseMap",
    KeyedMap: "*types.baseMap",
    Struct: "*dynamic.ObjectVal",
    Message: "*types.protoObj",
}


def make_no_overload() -> EvaluationError:
    """Return the error of an operand of the wrong type, `no such overload`."""
    return EvaluationError("no such overload")


def print_value(value: Value) -> str:
    """Return the text of a value as Go's `%v` prints it inside error texts."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float:
        return write_converted(value)
    if type(value) is int or type(value) is UInt:
        return str(int(value))
    if type(value) is str:
        return value
    if value is None:
        return "0"
    if type(value) is bytes:
        return f"[{' '.join(map(str, value))}]"
    if type(value) is list:
        return f"[{', '.join([print_value(element) for element in value])}]"
    if type(value) is dict or type(value) is KeyedMap:
        return "{" + ", ".join([f"{print_value(key)}: {print_value(item)}" for key, item in value.items()]) + "}"
    if type(value) is Optional:
        return f"optional({print_value(value.value)})" if value.present else "optional.none()"
    return str(value)


def rewrap_value(value: Value) -> Value:
    """Return a value after upstream has unwrapped it to a Go value and wrapped it again.

    Plain values survive it; a nested optional loses a level, a type becomes its name, and a value that cannot be wrapped again
    becomes an error that shows when the value is used.
    """
    if type(value) is Optional:
        return rewrap_value(value.value) if value.present else None
    if type(value) is Type:
        return value.name
    native = getattr(type(value), "GO_NATIVE", None)
    if native is not None:
        return EvaluationError(f"unsupported conversion to ref.Val: ({native}){value}")
    return value


def go_type(value: Value) -> str:
    """Return upstream's Go type of a value, such as `types.Int`, which some error texts show."""
    return value.go_type() if isinstance(value, Opaque) else find_go_name(value) or _GO_TYPES[type(value)]
