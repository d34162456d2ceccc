"""CEL's standard functions and operators.

Operators look at their operands themselves and therefore have no run per overload; conversions and time functions have.

Rules: `docs/semantics/cel-libraries.md#standard-functions`, `docs/semantics/cel-evaluation.md#arithmetic`,
`docs/semantics/cel-evaluation.md#conversions`, `docs/semantics/cel-evaluation.md#times`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from scanner.cel.functions.declaration import Function, Library, Overload, member
from scanner.cel.functions.regex import matches
from scanner.cel.types.type_system import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of_type,
)
from scanner.cel.values import conversions, runtime, times
from scanner.cel.values.values import Duration, KeyedMap, Timestamp, UInt, Value, type_of

_LIST = list_of(A)
_MAP = map_of(A, B)
_NUMBERS = (INT, UINT, DOUBLE)
_ORDERED_CLASSES = frozenset({bool, int, UInt, float, str, bytes, Timestamp, Duration})
_SIZED = frozenset({str, bytes, list, dict, KeyedMap})
_TYPE_IDS = {BOOL: "bool", INT: "int64", UINT: "uint64", DOUBLE: "double", STRING: "string", BYTES: "bytes"}
_TYPE_IDS |= {TIMESTAMP: "timestamp", DURATION: "duration"}


def _not(operand: Value) -> Value:
    if type(operand) is bool:
        return not operand
    raise runtime.no_overload()


def _size(operand: runtime.Operand) -> Value:
    return len(operand)


def _not_strictly_false(operand: Value) -> Value:
    return operand if type(operand) is bool else True


def _identity(operand: Value) -> Value:
    return operand


def _logic() -> tuple[Function, ...]:
    return (
        Function("_?_:_", (Overload("conditional", (BOOL, A, A), A),)),
        Function("_&&_", (Overload("logical_and", (BOOL, BOOL), BOOL),)),
        Function("_||_", (Overload("logical_or", (BOOL, BOOL), BOOL),)),
        Function("!_", (Overload("logical_not", (BOOL,), BOOL),), shared=_not),
        Function("@not_strictly_false", (Overload("not_strictly_false", (BOOL,), BOOL, _not_strictly_false),)),
        Function("_==_", (Overload("equals", (A, A), BOOL),)),
        Function("_!=_", (Overload("not_equals", (A, A), BOOL),)),
    )


def _arithmetic() -> tuple[Function, ...]:
    sums = (
        Overload("add_bytes", (BYTES, BYTES), BYTES),
        Overload("add_double", (DOUBLE, DOUBLE), DOUBLE),
        Overload("add_duration_duration", (DURATION, DURATION), DURATION),
        Overload("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
        Overload("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        Overload("add_int64", (INT, INT), INT),
        Overload("add_list", (_LIST, _LIST), _LIST),
        Overload("add_string", (STRING, STRING), STRING),
        Overload("add_uint64", (UINT, UINT), UINT),
    )
    differences = (
        Overload("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
        Overload("subtract_duration_duration", (DURATION, DURATION), DURATION),
        Overload("subtract_int64", (INT, INT), INT),
        Overload("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        Overload("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
        Overload("subtract_uint64", (UINT, UINT), UINT),
    )
    numbers = frozenset({int, UInt, float})
    return (
        Function("_+_", sums, runtime.add, numbers | {str, bytes, list, Timestamp, Duration}),
        Function("_/_", _same("divide", (DOUBLE, INT, UINT)), runtime.divide, numbers),
        Function("_%_", _same("modulo", (INT, UINT)), runtime.remainder, frozenset({int, UInt})),
        Function("_*_", _same("multiply", (DOUBLE, INT, UINT)), runtime.multiply, numbers),
        Function(
            "-_",
            (Overload("negate_double", (DOUBLE,), DOUBLE), Overload("negate_int64", (INT,), INT)),
            runtime.negate,
            frozenset({bool, int, float, Duration}),
        ),
        Function("_-_", differences, runtime.subtract, numbers | {Timestamp, Duration}),
    )


def _same(name: str, types: tuple[Type, ...]) -> tuple[Overload, ...]:
    """Return overloads of two operands of one type."""
    return tuple(Overload(f"{name}_{_TYPE_IDS[type_]}", (type_, type_), type_) for type_ in types)


def _relations() -> tuple[Function, ...]:
    return (
        _relation("_<_", "less", lambda left, right: runtime.order(left, right) < 0),
        _relation("_<=_", "less_equals", lambda left, right: runtime.order(left, right) <= 0),
        _relation("_>_", "greater", lambda left, right: runtime.order(left, right) > 0),
        _relation("_>=_", "greater_equals", lambda left, right: runtime.order(left, right) >= 0),
    )


def _relation(sign: str, name: str, run: runtime.Binary) -> Function:
    overloads: list[Overload] = []
    for left in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION):
        for right in _NUMBERS if left in _NUMBERS else (left,):
            suffix = _TYPE_IDS[left] if left == right else f"{_TYPE_IDS[left]}_{_TYPE_IDS[right]}"
            overloads.append(Overload(f"{name}_{suffix}", (left, right), BOOL))
    return Function(sign, tuple(overloads), run, _ORDERED_CLASSES)


def _aggregates() -> tuple[Function, ...]:
    sized = (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING))
    sizes = tuple(
        overload
        for name, type_ in sized
        for overload in (Overload(f"size_{name}", (type_,), INT), member(f"{name}_size", (type_,), INT))
    )
    return (
        Function(
            "@in",
            (Overload("in_list", (A, _LIST), BOOL), Overload("in_map", (A, _MAP), BOOL)),
            lambda element, container: runtime.contains(container, element),
        ),
        Function(
            "_[_]",
            (
                Overload("index_list", (_LIST, INT), A),
                Overload("index_map", (_MAP, A), B),
                Overload("optional_list_index_int", (optional_of(_LIST), INT), optional_of(A)),
                Overload("optional_map_index_value", (optional_of(_MAP), A), optional_of(B)),
            ),
            runtime.index,
        ),
        Function("size", sizes, _size, _SIZED),
    )


def _conversion(name: str, convert: runtime.Unary, result: Type, sources: tuple[Type, ...]) -> Function:
    overloads = (
        Overload(f"{_CONVERSION_IDS[source]}_to_{_CONVERSION_IDS[result]}", (source,), result, convert)
        for source in sources
    )
    return Function(name, tuple(overloads))


_CONVERSION_IDS = _TYPE_IDS | {NULL: "null"}


def _conversions() -> tuple[Function, ...]:
    return (
        Function("type", (Overload("type", (A,), type_of_type(A)),), type_of),
        _conversion("bool", conversions.to_bool, BOOL, (BOOL, STRING)),
        _conversion("bytes", conversions.to_bytes, BYTES, (BYTES, STRING)),
        _conversion("double", conversions.to_double, DOUBLE, (DOUBLE, INT, STRING, UINT)),
        _conversion("duration", conversions.to_duration, DURATION, (DURATION, INT, STRING)),
        Function("dyn", (Overload("to_dyn", (A,), DYN),), _identity),
        _conversion("int", conversions.to_int, INT, (INT, DOUBLE, DURATION, STRING, TIMESTAMP, UINT)),
        _conversion(
            "string",
            conversions.to_string,
            STRING,
            (STRING, BOOL, BYTES, DOUBLE, DURATION, INT, TIMESTAMP, UINT),
        ),
        _conversion("timestamp", conversions.to_timestamp, TIMESTAMP, (TIMESTAMP, INT, STRING)),
        _conversion("uint", conversions.to_uint, UINT, (UINT, DOUBLE, INT, STRING)),
    )


def _texts() -> tuple[Function, ...]:
    return (
        _text("contains", "contains_string", operator.contains),
        _text("endsWith", "ends_with_string", str.endswith),
        _text("startsWith", "starts_with_string", str.startswith),
        Function(
            "matches",
            (Overload("matches", (STRING, STRING), BOOL), member("matches_string", (STRING, STRING), BOOL)),
            matches,
            frozenset({str}),
        ),
    )


def _text(name: str, id_: str, answer: Callable[[str, str], bool]) -> Function:
    def run(text: Value, part: Value) -> Value:
        if type(text) is str and type(part) is str:
            return answer(text, part)
        raise runtime.no_overload()

    return Function(name, (member(id_, (STRING, STRING), BOOL, run),), guarded=False)


def _time(name: str, part: str, *, of_duration: int | None = None) -> Function:
    """Declare one time function; `of_duration` is the unit in nanoseconds where durations have it too."""

    def plain(moment: Value) -> Value:
        return times.part(moment, part, "UTC")

    def zoned(moment: Value, zone: Value) -> Value:
        return times.part(moment, part, zone)

    overloads = [
        member(f"timestamp_to_{part}", (TIMESTAMP,), INT, plain),
        member(f"timestamp_to_{part}_with_tz", (TIMESTAMP, STRING), INT, zoned),
    ]
    if of_duration is not None:
        unit = of_duration
        overloads.append(member(f"duration_to_{part}", (DURATION,), INT, lambda span: times.whole_units(span, unit)))
    return Function(name, tuple(overloads))


def _times() -> tuple[Function, ...]:
    return (
        _time("getFullYear", "year"),
        _time("getMonth", "month"),
        _time("getDayOfYear", "day_of_year"),
        _time("getDayOfMonth", "day_of_month"),
        _time("getDate", "day_of_month_1_based"),
        _time("getDayOfWeek", "day_of_week"),
        _time("getHours", "hours", of_duration=3600 * runtime.SECOND),
        _time("getMinutes", "minutes", of_duration=60 * runtime.SECOND),
        _time("getSeconds", "seconds", of_duration=runtime.SECOND),
        _time("getMilliseconds", "milliseconds", of_duration=10**6),
    )


LIBRARY = Library(
    "standard",
    (*_logic(), *_arithmetic(), *_relations(), *_aggregates(), *_conversions(), *_texts(), *_times()),
)
