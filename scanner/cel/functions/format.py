"""`string.format` (cel-go's strings extension version 2).

The same scanner runs an evaluation and the checks of constant calls at compile time; the two differ in the action of a clause.

Rules: `docs/semantics/cel-libraries.md#format`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, declare_member
from scanner.cel.functions.pricing import PRINTING, TRAVERSED, UNIT, Cost, Operands, bound_print
from scanner.cel.functions.result_sizes import ESCAPED
from scanner.cel.syntax.tree import Literal
from scanner.cel.types.type_system import DYN, STRING, Type, list_of, name_optionals_as_before
from scanner.cel.values import conversions, times
from scanner.cel.values.extent import BOUNDLESS, SizeBound
from scanner.cel.values.text import quote
from scanner.cel.values.values import Duration, KeyedMap, Optional, Timestamp, UInt, Value, type_of

DEFAULT_PRECISION = 6
_SUPERSCRIPTS = str.maketrans("0123456789-", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b")
_NAMED_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MOST_PRECISION = 2**63 - 1
STRING_CLAUSE = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
COMPLAINTS = {
    "s": STRING_CLAUSE,
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}

Clause: TypeAlias = "Callable[[int, str, int | None], str]"
"""A printer of the argument at an index, by a verb with an optional precision."""
Printer: TypeAlias = "Callable[[Value, int | None], str]"
"""A printer of a value with an optional precision."""


class BadFormat(Exception):
    """A format string or argument that does not fit; the message is upstream's."""


def interpolate(template: str, clause: Clause, reject_missing: Callable[[int], None], size: int) -> tuple[str, int]:
    """Return the text of a template and how many arguments it took; `size` is the number of arguments.

    `clause` prints the argument of a clause. `reject_missing` raises `BadFormat` before a clause is parsed when its argument is
    missing. Raises `BadFormat` for a malformed template, too.
    """
    out: list[str] = []
    position = 0
    argument = 0
    while position < len(template):
        percent = template.find("%", position)
        if percent < 0:
            break
        out.append(template[position:percent])
        if template.startswith("%%", percent):
            out.append("%")
            position = percent + 2
            continue
        reject_missing(argument)
        if percent + 1 >= len(template):
            raise BadFormat("unexpected end of string")
        if argument >= size:
            raise BadFormat(f"index {argument} out of range")
        verb, precision, position = _read_clause(template, percent + 1)
        out.append(clause(argument, verb, precision))
        argument += 1
    out.append(template[position:])
    return "".join(out), argument


def _read_clause(template: str, position: int) -> tuple[str, int | None, int]:
    """Return verb and precision of a clause and where it ends."""
    precision = None
    if template[position] == ".":
        precision, position = _read_precision(template, position + 1)
    verb = template[position]
    if verb not in COMPLAINTS:
        shown = verb if verb.isascii() else chr(verb.encode()[0])
        raise BadFormat(f'could not parse formatting clause: unrecognized formatting clause "{shown}"')
    return verb, precision, position + 1


_LARGEST_PRECISION = 1_000_000
_BYTE, _SHORT = 1 << 8, 1 << 16
"""Upstream's formatter keeps a precision in one byte, a width in two."""
_NO_VERB = "%!(NOVERB)"


def _read_precision(template: str, position: int) -> tuple[int, int]:
    problem = "could not parse formatting clause: error while parsing precision: "
    end = position
    while end < len(template) and template[end] in "0123456789":
        end += 1
    if end == len(template):
        raise BadFormat(problem + "could not find end of precision specifier")
    digits = template[position:end]
    converting = f'{problem}error while converting precision to integer: strconv.Atoi: parsing "{digits}": '
    if not digits:
        raise BadFormat(converting + "invalid syntax")
    if len(digits.lstrip("0")) > len(str(_MOST_PRECISION)) or int(digits) > _MOST_PRECISION:
        raise BadFormat(converting + "value out of range")
    return int(digits), end


def _format(template: str, arguments: list[Value], printers: Mapping[str, Printer] | None = None) -> str:
    by_verb = printers or _PRINTERS

    def clause(argument: int, verb: str, precision: int | None) -> str:
        try:
            return by_verb[verb](arguments[argument], precision)
        except BadFormat as bad:
            raise BadFormat(f"error during formatting: {bad}") from None

    def reject_missing(argument: int) -> None:
        if argument >= len(arguments):
            raise BadFormat(f"index {argument} out of range")

    try:
        return interpolate(template, clause, reject_missing, len(arguments))[0]
    except BadFormat as bad:
        raise EvaluationError(str(bad)) from None


def make_type_error(verb: str, type_name: str) -> BadFormat:
    """Return the error of a clause that does not take values of a type."""
    return BadFormat(f"{COMPLAINTS[verb]}, was given {type_name}")


def _make_refusal(verb: str, value: Value) -> BadFormat:
    return make_type_error(verb, type_of(value).name)


# --- %s


def _print_string(value: Value, precision: int | None = None) -> str:
    del precision
    if value is None:
        return "null"
    if type(value) is list:
        return _print_list(value)
    if type(value) is dict or type(value) is KeyedMap:
        return _print_map(value)
    if type(value) is Type:
        return value.name
    try:
        return str(conversions.to_string(value))
    except EvaluationError as error:
        if type(value) is bytes:
            raise BadFormat(f"could not convert argument {quote(str(error))} to string") from None
        raise _make_refusal("s", value) from None


# Comprehensions, because Python 3.12 and later allow calls through `map` and generators a few thousand levels only.
def _print_list(values: list[Value]) -> str:
    return f"[{', '.join([_print_nested(item) for item in values])}]"


def _print_map(value: dict[str, Value] | KeyedMap) -> str:
    entries = sorted([(_print_key(key), _print_nested(item)) for key, item in value.items()])
    return "{" + ", ".join(f"{key}:{item}" for key, item in entries) + "}"


def _print_key(key: Value) -> str:
    if type(key) is str:
        return quote(key)
    if type(key) in (bool, int, UInt):
        return _print_string(key)
    raise BadFormat(f"no formatting function for map key of type {type_of(key).name}")


def _print_nested(value: Value) -> str:
    """Return a value inside a list or map: as a literal."""
    match value:
        case str():
            return quote(value)
        case bytes():
            return f"b{quote(_print_string(value))}"
        case float():
            return f"{value:.6f}" if math.isfinite(value) else quote(_print_not_finite(value))
        case Timestamp():
            return f"timestamp({quote(times.print_timestamp(value))})"
        case Duration():
            return f"duration({quote(conversions.write_duration(value))})"
        case None | bool() | int() | list() | dict() | KeyedMap() | Type():
            return _print_string(value)
        case _:
            raise BadFormat(f"no formatting function for {type_of(value).name}")


def _print_not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


# --- numbers


def _print_decimal(value: Value, precision: int | None) -> str:
    del precision
    if type(value) is int or type(value) is UInt:
        return str(int(value))
    raise _make_refusal("d", value)


def _require_number(value: Value, verb: str) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in _NAMED_NUMBERS:
        return _NAMED_NUMBERS[value]
    raise _make_refusal(verb, value)


def _print_fixed(value: Value, precision: int | None) -> str:
    number = _require_number(value, "f")
    if not math.isfinite(number):
        return _print_infinity(number)
    digits = DEFAULT_PRECISION if precision is None else precision
    return _NO_VERB if digits // 10 > _LARGEST_PRECISION else f"{number or 0.0:,.{digits % _BYTE}f}"


def _print_scientific(value: Value, precision: int | None, gap: str = "") -> str:
    """Print a mantissa of six decimals; upstream uses the precision as a width."""
    number = _require_number(value, "e")
    width = DEFAULT_PRECISION if precision is None else precision % _SHORT
    if precision is not None and precision // 10 > _LARGEST_PRECISION:
        return _NO_VERB
    if not math.isfinite(number):
        return _print_infinity(number).rjust(width)
    mantissa, _, exponent = f"{number or 0.0:.6e}".partition("e")
    power = exponent.lstrip("+").translate(_SUPERSCRIPTS)
    return f"{mantissa}{gap}\u00d7{gap}10{power}".rjust(width)


def _print_infinity(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "\u221e" if number > 0 else "-\u221e"


def _print_binary(value: Value, precision: int | None) -> str:
    del precision
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) is int or type(value) is UInt:
        return f"{value:b}"
    raise _make_refusal("b", value)


def _print_hexadecimal(value: Value, precision: int | None) -> str:
    del precision
    if type(value) is str:
        return value.encode().hex()
    if type(value) is bytes:
        return value.hex()
    if type(value) is int or type(value) is UInt:
        return f"{value:x}"
    raise _make_refusal("x", value)


def _print_octal(value: Value, precision: int | None) -> str:
    del precision
    if type(value) is int or type(value) is UInt:
        return f"{value:o}"
    raise _make_refusal("o", value)


_PRINTERS: dict[str, Printer] = {
    "s": _print_string,
    "d": _print_decimal,
    "f": _print_fixed,
    "e": _print_scientific,
    "b": _print_binary,
    "x": _print_hexadecimal,
    "X": lambda value, precision: _print_hexadecimal(value, precision).upper(),
    "o": _print_octal,
}

_NARROW_SPACE = "\u202f"
_SPACED = {**_PRINTERS, "e": lambda value, precision: _print_scientific(value, precision, _NARROW_SPACE)}


def format_before_1_33(template: str, arguments: list[Value]) -> str:
    """Return the formatted text as releases before 1.33 print it. Raises EvaluationError as `format` does."""
    return _format(template, arguments, _SPACED)


def format_before_1_31(template: str, arguments: list[Value]) -> str:
    """Return the formatted text as releases before 1.31 print it: optionals have the name that they had first.

    Raises EvaluationError as `format` does.
    """
    return _format(template, [_rename_optionals(argument) for argument in arguments], _FIRST_NAMED)


def _name_optionals_as_before(verb: str, printer: Printer) -> Printer:
    """Return a printer that calls optionals by the name that they had first."""

    def printed(value: Value, precision: int | None) -> str:
        if type(value) is Optional:
            raise make_type_error(verb, name_optionals_as_before(type_of(value)).name)
        return printer(value, precision)

    return printed


_FIRST_NAMED = {verb: _name_optionals_as_before(verb, printer) for verb, printer in _SPACED.items()}


def _rename_optionals(value: Value) -> Value:
    if type(value) is Type:
        return name_optionals_as_before(value)
    if type(value) is list:
        return [_rename_optionals(part) for part in value]
    return {key: _rename_optionals(part) for key, part in value.items()} if type(value) is dict else value


_LONG_PRECISION = re.compile(r"\.\d{3}")
_LONGEST_NUMBER = 512.0
"""Characters of a number that is printed with a precision of two digits."""


def _bound_result(operands: Operands) -> SizeBound:
    template, arguments = operands
    template_text = template.node.value if isinstance(template.node, Literal) else None
    if type(template_text) is not str or _LONG_PRECISION.search(template_text):
        return BOUNDLESS
    whole = arguments.extent
    return SizeBound(0.0, len(template_text) + ESCAPED * whole.characters + _LONGEST_NUMBER * (whole.elements + 1))


LIBRARY = Library(
    "strings.format",
    (
        Function(
            "format",
            (declare_member("string_format", (STRING, list_of(DYN)), STRING, _format, price=TRAVERSED),),
            cost=Cost(UNIT, bound_print, PRINTING),
            result=_bound_result,
            in_turn=True,
        ),
    ),
)
