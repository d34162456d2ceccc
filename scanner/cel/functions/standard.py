"""CEL's standard functions and operators.

Operators check their operands themselves and therefore have no run per overload; conversions and time functions have.

Rules: `docs/semantics/cel-libraries.md#standard-functions`, `docs/semantics/cel-evaluation.md#arithmetic`,
`docs/semantics/cel-evaluation.md#conversions`, `docs/semantics/cel-evaluation.md#times`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace

from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import (
    AFFIXED,
    COMPARED,
    COMPARING,
    COMPARING_SHORTEST,
    CONCATENATED,
    CONTAINED,
    CONVERTED,
    EQUATED,
    ONE,
    SEARCHED,
    TRAVERSED,
    UNIT,
    VISITED,
    Cost,
    Operands,
    Price,
    bound_comparison,
    bound_reads,
    bound_search,
)
from scanner.cel.functions.python_forms import ArithmeticForm, ComparisonForm, DivisionForm, MethodForm, PlainForm
from scanner.cel.functions.regex import matches, matches_compiled
from scanner.cel.functions.result_sizes import parts, text
from scanner.cel.releases import PREFIX_COSTS
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
from scanner.cel.values import access, arithmetic, conversions, equality, runtime, times
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
    raise runtime.make_no_overload()


def _size(operand: runtime.Operand) -> Value:
    return len(operand)


def _not_strictly_false(operand: Value) -> Value:
    return operand if type(operand) is bool else True


def _identity(operand: Value) -> Value:
    return operand


_EQUALITY = Cost(UNIT, bound_comparison, COMPARING_SHORTEST)


def _declare_logic() -> tuple[Function, ...]:
    return (
        Function("_?_:_", (Overload("conditional", (BOOL, A, A), A),), cost=ONE, result=parts),
        Function("_&&_", (Overload("logical_and", (BOOL, BOOL), BOOL),), cost=ONE),
        Function("_||_", (Overload("logical_or", (BOOL, BOOL), BOOL),), cost=ONE),
        Function("!_", (Overload("logical_not", (BOOL,), BOOL),), shared=_not, cost=ONE),
        Function(
            "@not_strictly_false",
            (Overload("not_strictly_false", (BOOL,), BOOL, _not_strictly_false),),
            cost=ONE,
        ),
        Function(
            "_==_",
            (Overload("equals", (A, A), BOOL, price=EQUATED),),
            shared=equality.equal,
            cost=_EQUALITY,
            on_joined=equality.equal_sum,
        ),
        Function(
            "_!=_",
            (Overload("not_equals", (A, A), BOOL, price=COMPARED),),
            shared=equality.unequal,
            cost=_EQUALITY,
            on_joined=equality.unequal_sum,
        ),
    )


def _declare_arithmetic() -> tuple[Function, ...]:
    sums = (
        Overload("add_bytes", (BYTES, BYTES), BYTES, price=CONCATENATED),
        Overload("add_double", (DOUBLE, DOUBLE), DOUBLE),
        Overload("add_duration_duration", (DURATION, DURATION), DURATION),
        Overload("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
        Overload("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        Overload("add_int64", (INT, INT), INT),
        Overload("add_list", (_LIST, _LIST), _LIST),
        Overload("add_string", (STRING, STRING), STRING, price=CONCATENATED),
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
        Function(
            "_+_",
            sums,
            arithmetic.add,
            numbers | {str, bytes, list, Timestamp, Duration},
            cost=Cost(UNIT, bound_reads),
            result=parts,
            flow=ArgumentFlow.CARRIES,
            python=ArithmeticForm("+"),
        ),
        Function(
            "_/_",
            _overload_for_each("divide", (DOUBLE, INT, UINT)),
            arithmetic.divide,
            numbers,
            cost=ONE,
            python=DivisionForm("/"),
        ),
        Function(
            "_%_",
            _overload_for_each("modulo", (INT, UINT)),
            arithmetic.remainder,
            frozenset({int, UInt}),
            cost=ONE,
            python=DivisionForm("%"),
        ),
        Function(
            "_*_",
            _overload_for_each("multiply", (DOUBLE, INT, UINT)),
            arithmetic.multiply,
            numbers,
            cost=ONE,
            python=ArithmeticForm("*"),
        ),
        Function(
            "-_",
            (Overload("negate_double", (DOUBLE,), DOUBLE), Overload("negate_int64", (INT,), INT)),
            arithmetic.negate,
            frozenset({bool, int, float, Duration}),
            cost=ONE,
        ),
        Function(
            "_-_",
            differences,
            arithmetic.subtract,
            numbers | {Timestamp, Duration},
            cost=ONE,
            python=ArithmeticForm("-"),
        ),
    )


def _overload_for_each(name: str, types: tuple[Type, ...]) -> tuple[Overload, ...]:
    """Return overloads of two operands of one type."""
    return tuple(Overload(f"{name}_{_TYPE_IDS[type_]}", (type_, type_), type_) for type_ in types)


def _declare_relations() -> tuple[Function, ...]:
    return (
        _declare_relation(ComparisonForm("<"), "less", lambda left, right: equality.order(left, right) < 0),
        _declare_relation(ComparisonForm("<="), "less_equals", lambda left, right: equality.order(left, right) <= 0),
        _declare_relation(ComparisonForm(">"), "greater", lambda left, right: equality.order(left, right) > 0),
        _declare_relation(ComparisonForm(">="), "greater_equals", lambda left, right: equality.order(left, right) >= 0),
    )


def _declare_relation(python: ComparisonForm, name: str, run: runtime.Binary) -> Function:
    overloads: list[Overload] = []
    for left in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION):
        for right in _NUMBERS if left in _NUMBERS else (left,):
            suffix = _TYPE_IDS[left] if left == right else f"{_TYPE_IDS[left]}_{_TYPE_IDS[right]}"
            price = COMPARED if left in (STRING, BYTES) else None
            overloads.append(Overload(f"{name}_{suffix}", (left, right), BOOL, price=price))
    return Function(
        f"_{python.sign}_",
        tuple(overloads),
        run,
        _ORDERED_CLASSES,
        cost=Cost(UNIT, bound_comparison),
        python=python,
    )


def _bound_membership(operands: Operands) -> float:
    """Bound a search in a list, which compares every member with the operand."""
    whole = operands[1].extent
    return 2 + 2 * whole.elements + whole.characters / 10


def _declare_aggregates() -> tuple[Function, ...]:
    sized = (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING))
    sizes = tuple(
        overload
        for name, type_ in sized
        for overload in (Overload(f"size_{name}", (type_,), INT), declare_member(f"{name}_size", (type_,), INT))
    )
    return (
        Function(
            "@in",
            (Overload("in_list", (A, _LIST), BOOL, price=VISITED), Overload("in_map", (A, _MAP), BOOL)),
            lambda element, container: equality.contains(container, element),
            cost=Cost(UNIT, _bound_membership, COMPARING),
            on_joined=equality.contains_sum,
            python=PlainForm.MEMBERSHIP,
        ),
        Function(
            "_[_]",
            (
                Overload("index_list", (_LIST, INT), A),
                Overload("index_map", (_MAP, A), B),
                Overload("optional_list_index_int", (optional_of(_LIST), INT), optional_of(A)),
                Overload("optional_map_index_value", (optional_of(_MAP), A), optional_of(B)),
            ),
            access.index,
            cost=ONE,
        ),
        Function("size", sizes, _size, _SIZED, cost=ONE, flow=ArgumentFlow.COUNTS, python=PlainForm.SIZE),
    )


def _declare_conversion(name: str, convert: runtime.Unary, result: Type, sources: tuple[Type, ...]) -> Function:
    overloads = (
        Overload(
            f"{_CONVERSION_IDS[source]}_to_{_CONVERSION_IDS[result]}",
            (source,),
            result,
            convert,
            price=TRAVERSED if {source, result} == {STRING, BYTES} else None,
        )
        for source in sources
    )
    return Function(name, tuple(overloads), cost=ONE, folds=True)


def _declare_text_result(conversion: Function) -> Function:
    """Return a conversion whose result is a text, or bytes, of the length of its operand."""
    return replace(conversion, cost=CONVERTED, result=text)


_CONVERSION_IDS = _TYPE_IDS | {NULL: "null"}


def _declare_conversions() -> tuple[Function, ...]:
    return (
        Function("type", (Overload("type", (A,), type_of_type(A)),), type_of, cost=ONE, folds=True),
        _declare_conversion("bool", conversions.to_bool, BOOL, (BOOL, STRING)),
        _declare_text_result(_declare_conversion("bytes", conversions.to_bytes, BYTES, (BYTES, STRING))),
        _declare_conversion("double", conversions.to_double, DOUBLE, (DOUBLE, INT, STRING, UINT)),
        _declare_conversion("duration", conversions.to_duration, DURATION, (DURATION, INT, STRING)),
        Function(
            "dyn",
            (Overload("to_dyn", (A,), DYN),),
            _identity,
            cost=ONE,
            result=parts,
            flow=ArgumentFlow.PASSES,
            folds=True,
            python=PlainForm.SAME,
        ),
        _declare_conversion("int", conversions.to_int, INT, (INT, DOUBLE, DURATION, STRING, TIMESTAMP, UINT)),
        replace(
            _declare_text_result(
                _declare_conversion(
                    "string",
                    conversions.to_string,
                    STRING,
                    (STRING, BOOL, BYTES, DOUBLE, DURATION, INT, TIMESTAMP, UINT),
                )
            ),
            flow=ArgumentFlow.CARRIES,
            python=PlainForm.TEXT,
        ),
        _declare_conversion("timestamp", conversions.to_timestamp, TIMESTAMP, (TIMESTAMP, INT, STRING)),
        _declare_conversion("uint", conversions.to_uint, UINT, (UINT, DOUBLE, INT, STRING)),
    )


def _declare_texts() -> tuple[Function, ...]:
    return (
        replace(
            _declare_text("contains", "contains_string", operator.contains, CONTAINED),
            cost=Cost(UNIT, lambda operands: operands[0].read * operands[1].read),
            python=PlainForm.CONTAINS,
        ),
        _declare_affix("endsWith", "ends_with_string", str.endswith),
        _declare_affix("startsWith", "starts_with_string", str.startswith),
        Function(
            "matches",
            (
                Overload("matches", (STRING, STRING), BOOL, price=Price(SEARCHED.rule).begin_with(PREFIX_COSTS)),
                declare_member("matches_string", (STRING, STRING), BOOL, price=SEARCHED),
            ),
            matches,
            frozenset({str}),
            cost=Cost(UNIT, bound_search),
            with_pattern=matches_compiled,
            python=PlainForm.PATTERN,
        ),
    )


def _declare_affix(name: str, id_: str, answer: Callable[[str, str], bool]) -> Function:
    price = AFFIXED.begin_with(PREFIX_COSTS, before=TRAVERSED)
    cost = Cost(UNIT, bound_reads)
    return replace(_declare_text(name, id_, answer, price), cost=cost, python=MethodForm(name.lower()))


def _declare_text(name: str, id_: str, answer: Callable[[str, str], bool], price: Price) -> Function:
    def run(whole: Value, part: Value) -> Value:
        if type(whole) is str and type(part) is str:
            return answer(whole, part)
        raise runtime.make_no_overload()

    return Function(name, (declare_member(id_, (STRING, STRING), BOOL, run, price=price),), guarded=False)


def _declare_time(name: str, part: str, *, of_duration: int | None = None) -> Function:
    """Declare one time function; `of_duration` is the unit in nanoseconds where durations have it too."""

    def plain(moment: Value) -> Value:
        return times.get_part(moment, part, "UTC")

    def zoned(moment: Value, zone: Value) -> Value:
        return times.get_part(moment, part, zone)

    overloads = [
        declare_member(f"timestamp_to_{part}", (TIMESTAMP,), INT, plain),
        declare_member(f"timestamp_to_{part}_with_tz", (TIMESTAMP, STRING), INT, zoned),
    ]
    if of_duration is not None:
        unit = of_duration
        overloads.append(
            declare_member(f"duration_to_{part}", (DURATION,), INT, lambda span: times.count_whole_units(span, unit))
        )
    return Function(name, tuple(overloads), cost=ONE)


def _declare_times() -> tuple[Function, ...]:
    return (
        _declare_time("getFullYear", "year"),
        _declare_time("getMonth", "month"),
        _declare_time("getDayOfYear", "day_of_year"),
        _declare_time("getDayOfMonth", "day_of_month"),
        _declare_time("getDate", "day_of_month_1_based"),
        _declare_time("getDayOfWeek", "day_of_week"),
        _declare_time("getHours", "hours", of_duration=3600 * runtime.SECOND),
        _declare_time("getMinutes", "minutes", of_duration=60 * runtime.SECOND),
        _declare_time("getSeconds", "seconds", of_duration=runtime.SECOND),
        _declare_time("getMilliseconds", "milliseconds", of_duration=10**6),
    )


LIBRARY = Library(
    "standard",
    (
        *_declare_logic(),
        *_declare_arithmetic(),
        *_declare_relations(),
        *_declare_aggregates(),
        *_declare_conversions(),
        *_declare_texts(),
        *_declare_times(),
    ),
)
