"""Optional values: their constructors and accessors (cel-go's optional library version 2).

`or` and `orValue` decide whether their argument is evaluated at all, so the evaluator handles them; indexes and selections
are the evaluator's too.

Rules: `docs/semantics/cel-libraries.md#optional-values`.
"""

from __future__ import annotations

from scanner.cel import releases
from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import ONE
from scanner.cel.functions.result_sizes import parts
from scanner.cel.types.type_system import BOOL, DYN, INT, STRING, A, B, list_of, map_of, opaque, optional_of
from scanner.cel.values.runtime import print_value
from scanner.cel.values.values import NONE, Duration, KeyedMap, Message, Optional, Timestamp, UInt, Value
from scanner.cel.values.wrapped_values import is_wrapped

_OPTIONAL = optional_of(A)
_LIST = list_of(A)
_MAP = map_of(A, B)
_YEAR_ONE = -62_135_596_800 * 10**9


def _is_zero(value: Value) -> bool:
    if value is None:
        return True
    if type(value) in (bool, int, UInt, float, str, bytes):
        return not value
    if type(value) is list or type(value) is dict or type(value) is KeyedMap:
        return len(value) == 0
    if type(value) is Timestamp:
        return value.nanoseconds == _YEAR_ONE
    if type(value) is Message:
        return not value.fields and not value.unknown
    return type(value) is Duration and value.nanoseconds == 0


def _wrap_non_zero(value: Value) -> Value:
    """Wrap a value that is not zero; a wrapped Go value always counts as non-zero."""
    return NONE if _is_zero(value) and not is_wrapped(value) else Optional(value)


def _unwrap(optionals: list[Optional]) -> Value:
    for optional in optionals:
        if type(optional) is not Optional:
            raise EvaluationError(f"value {print_value(optional)} is not optional")
    return [optional.value for optional in optionals if optional.present]


def _first(values: list[Value]) -> Value:
    return Optional(values[0]) if values else NONE


def _last(values: list[Value]) -> Value:
    return Optional(values[-1]) if values else NONE


LIBRARY = Library(
    "optional",
    (
        Function(
            "optional.of",
            (Overload("optional_of", (A,), _OPTIONAL, Optional),),
            cost=ONE,
            result=parts,
            flow=ArgumentFlow.CARRIES,
        ),
        Function(
            "optional.ofNonZeroValue",
            (Overload("optional_ofNonZeroValue", (A,), _OPTIONAL, _wrap_non_zero),),
            cost=ONE,
            result=parts,
            flow=ArgumentFlow.CARRIES,
        ),
        Function("optional.none", (Overload("optional_none", (), _OPTIONAL, lambda: NONE),), cost=ONE, result=parts),
        Function(
            "value",
            (declare_member("optional_value", (_OPTIONAL,), A, Optional.unwrapped),),
            cost=ONE,
            result=parts,
            flow=ArgumentFlow.PASSES,
        ),
        Function(
            "hasValue",
            (declare_member("optional_hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.present),),
            cost=ONE,
            flow=ArgumentFlow.COUNTS,
        ),
        Function(
            "or",
            (declare_member("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL),),
            cost=ONE,
            result=parts,
            flow=ArgumentFlow.PASSES,
        ),
        Function(
            "orValue",
            (declare_member("optional_orValue_value", (_OPTIONAL, A), A),),
            cost=ONE,
            result=parts,
            flow=ArgumentFlow.PASSES,
        ),
        Function("_?._", (Overload("select_optional_field", (DYN, STRING), _OPTIONAL),), cost=ONE),
        Function(
            "_[?_]",
            (
                Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
                Overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
                Overload("map_optindex_optional_value", (_MAP, A), optional_of(B)),
                Overload("optional_map_optindex_optional_value", (optional_of(_MAP), A), optional_of(B)),
            ),
            cost=ONE,
        ),
    ),
)
LISTS = Library(
    "optional.lists",
    (
        Function(
            "optional.unwrap",
            (Overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap),),
            cost=ONE,
            result=parts,
        ),
        Function(
            "unwrapOpt",
            (declare_member("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrap),),
            cost=ONE,
            result=parts,
        ),
        Function("first", (declare_member("list_first", (_LIST,), _OPTIONAL, _first),), cost=ONE, result=parts),
        Function("last", (declare_member("list_last", (_LIST,), _OPTIONAL, _last),), cost=ONE, result=parts),
    ),
    since=releases.OPTIONAL_LISTS.since,
    gated=False,
)
BARE_NAME = Library(
    "optional.name",
    (),
    types=(opaque("optional_type"),),
    since=releases.OPTIONAL_NAME.since,
    ended_by=releases.GENERIC_OPTIONAL_NAME,
    gated=False,
)
NAME = Library("optional.name", (), types=(optional_of(DYN),), brought_by=releases.GENERIC_OPTIONAL_NAME, gated=False)
