"""Strings (cel-go's strings extension version 2); offsets count code points.

Rules: `docs/semantics/cel-libraries.md#strings`.
"""

from __future__ import annotations

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import (
    ONE,
    READ,
    REWRITTEN,
    SOUGHT,
    TRAVERSED,
    UNIT,
    Arguments,
    Cost,
    Operands,
    Outcome,
    Work,
    bound_read,
    make_price,
    take_tenth,
)
from scanner.cel.functions.result_sizes import parts, pieces, text
from scanner.cel.types.type_system import INT, STRING, list_of
from scanner.cel.values import list_kinds
from scanner.cel.values.extent import SizeBound
from scanner.cel.values.runtime import print_value
from scanner.cel.values.text import GO_ESCAPES
from scanner.cel.values.values import Value

WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""The characters that Go's TrimSpace removes; Python's strip would also remove U+001C to U+001F."""
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER = _UPPER.lower()
_TO_LOWER = str.maketrans(_UPPER, _LOWER)
_TO_UPPER = str.maketrans(_LOWER, _UPPER)
_QUOTED = str.maketrans(GO_ESCAPES)
_STRINGS = list_of(STRING)


def _make_outside(position: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {position}")


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _make_outside(position)
    return text[position : position + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    """Return the first offset of a part, in code points, from an offset on; that offset for an empty part, -1 if absent.

    Raises EvaluationError for a negative offset.
    """
    if not part:
        return offset
    if offset < 0:
        raise _make_outside(offset)
    return text.find(part, offset)


def last_index_of(text: str, part: str) -> int:
    """Return the last offset of a part, in code points; -1 if absent."""
    if not part:
        return len(text)
    if len(text.encode()) < len(part.encode()):
        return -1
    return last_index_before(text, part, len(text) - 1)


def last_index_before(text: str, part: str, offset: int) -> int:
    """Return the last offset of a part, in code points, at or before an offset; -1 if absent.

    Raises EvaluationError for a negative offset.
    """
    if not part:
        return offset
    if offset < 0:
        raise _make_outside(offset)
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, times: int = -1) -> str:
    return text.replace(old, new, max(times, -1))


def _split(text: str, separator: str, limit: int = -1) -> list[Value]:
    if limit == 0:
        return list_kinds.make_text_list([])
    if not separator:
        return list_kinds.make_text_list(_split_code_points(text, limit))
    return list_kinds.make_text_list([*text.split(separator, limit - 1 if limit > 0 else -1)])


def _split_code_points(text: str, limit: int) -> list[Value]:
    if limit < 0 or limit >= len(text):
        return [*text]
    return [*text[: limit - 1], text[limit - 1 :]]


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _make_outside(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _make_outside(position)
    return text[start:end]


def _join(parts: list[Value], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            raise EvaluationError(f"join: invalid input: {print_value(part)}")
    return separator.join(map(str, parts))


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


# --- what these functions cost, and what they return at most


def _price_join(arguments: Arguments, _result: Outcome) -> int:
    return take_tenth(float(_measure_joined(*arguments)) * 2)


def _measure_joined(elements: Outcome, separator: Outcome = "") -> int:
    """Return the length of a text before it is made; a failed call counts as one character."""
    if (
        type(elements) is not list
        or type(separator) is not str
        or any(type(element) is not str for element in elements)
    ):
        return 1
    return sum(map(len, elements)) + len(separator) * max(len(elements) - 1, 0)


def _size_joined(operands: Operands) -> SizeBound:
    elements = operands[0].extent
    separator = operands[1].extent.characters if len(operands) > 1 else 0.0
    return SizeBound(0.0, elements.characters + elements.elements * separator)


def _bound_join(operands: Operands) -> float:
    return 2 * _size_joined(operands).span / 10 + 1


def _size_replaced(operands: Operands) -> SizeBound:
    whole, _, new = operands[:3]
    return SizeBound(0.0, whole.extent.characters + (whole.extent.characters + 1) * new.extent.characters)


def _measure_replacement(values: tuple[Value, ...]) -> int:
    """Return the length of the text that replacing every occurrence makes, where that is longer."""
    whole, old, new = values[:3]
    if type(whole) is not str or type(old) is not str or type(new) is not str or len(new) <= len(old):
        return 0
    return whole.count(old) * len(new)


LIBRARY = Library(
    "strings",
    (
        Function(
            "charAt", (declare_member("string_char_at_int", (STRING, INT), STRING, _char_at),), cost=ONE, result=parts
        ),
        Function(
            "indexOf",
            (
                declare_member("string_index_of_string", (STRING, STRING), INT, index_of),
                declare_member("string_index_of_string_int", (STRING, STRING, INT), INT, index_of),
            ),
            cost=SOUGHT,
        ),
        Function(
            "lastIndexOf",
            (
                declare_member("string_last_index_of_string", (STRING, STRING), INT, last_index_of),
                declare_member("string_last_index_of_string_int", (STRING, STRING, INT), INT, last_index_before),
            ),
            cost=SOUGHT,
        ),
        Function(
            "lowerAscii",
            (declare_member("string_lower_ascii", (STRING,), STRING, lambda text: text.translate(_TO_LOWER)),),
            cost=READ,
            result=parts,
        ),
        Function(
            "upperAscii",
            (declare_member("string_upper_ascii", (STRING,), STRING, lambda text: text.translate(_TO_UPPER)),),
            cost=READ,
            result=parts,
        ),
        Function(
            "replace",
            (
                declare_member("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
                declare_member("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
            ),
            cost=REWRITTEN.add_work(Work(characters=_measure_replacement)),
            result=_size_replaced,
        ),
        Function(
            "split",
            (
                declare_member("string_split_string", (STRING, STRING), _STRINGS, _split),
                declare_member("string_split_string_int", (STRING, STRING, INT), _STRINGS, _split),
            ),
            cost=REWRITTEN,
            result=pieces,
        ),
        Function(
            "substring",
            (
                declare_member("string_substring_int", (STRING, INT), STRING, _substring),
                declare_member("string_substring_int_int", (STRING, INT, INT), STRING, _substring_range),
            ),
            cost=READ,
            result=parts,
        ),
        Function(
            "trim",
            (declare_member("string_trim", (STRING,), STRING, lambda text: text.strip(WHITE_SPACE)),),
            cost=READ,
            result=parts,
        ),
        Function(
            "strings.quote",
            (Overload("strings_quote", (STRING,), STRING, _quote, price=TRAVERSED),),
            cost=Cost(UNIT, bound_read),
            result=text,
        ),
        Function(
            "join",
            (
                declare_member("list_join", (_STRINGS,), STRING, _join),
                declare_member("list_join_string", (_STRINGS, STRING), STRING, _join),
            ),
            cost=Cost(make_price(_price_join), _bound_join),
            result=_size_joined,
            flow=ArgumentFlow.CARRIES,
        ),
    ),
)
