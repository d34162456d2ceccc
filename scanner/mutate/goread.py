"""Single values as the API server's Go types read them, and as it writes them afterwards.

Mirrors `literalStore` of sigs.k8s.io/json, `fromUnstructured` of apimachinery, and the `UnmarshalJSON` of `Time`, `MicroTime`,
`Quantity` and `IntOrString`.
"""

from __future__ import annotations

import base64

import orjson

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.quantity import compare, parse
from scanner.cel.values.text import printed_double
from scanner.model.json import Json
from scanner.mutate import gotimes
from scanner.mutate.gotypes import Plain, Special

_RANGES: dict[Plain, int] = {"int32": 31, "int64": 63}
_LARGEST_BYTE = 255
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_LINE_ENDS = b"\r\n"
_QUANTUM = 4
_INT64 = 1 << 63
ZEROS: dict[Plain, Json] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0, "uint8": 0}
SPECIAL_ZEROS: dict[Special, Json] = {"Quantity": "0", "IntOrString": 0}


class Mismatch(ValueError):
    """A JSON value that does not fit a Go type."""

    def __init__(self, word: str, type_: str) -> None:
        super().__init__(f"json: cannot unmarshal {word} into Go value of type {type_}")
        self.word = word
        self.type = type_


class Malformed(ValueError):
    """A text that the decoder of its type rejects; the message is that decoder's."""


class BadBytes(ValueError):
    """A text that is not base64; the message is Go's."""


def word(value: Json) -> str:
    """The name of a JSON value's type in error texts."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case None:
            return "null"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def plain(kind: Plain, name: str, value: Json) -> Json:
    """A text, number or boolean of a Go kind. Raises Mismatch for a value that does not fit it."""
    match kind:
        case "string":
            suits = isinstance(value, str)
        case "bool":
            suits = isinstance(value, bool)
        case "float64":
            suits = isinstance(value, int | float) and not isinstance(value, bool)
        case "int32" | "int64" | "uint8":
            return _integer(kind, name, value)
    if not suits:
        raise Mismatch(word(value), name)
    return value


def _integer(kind: Plain, name: str, value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Mismatch(word(value), name)
    lowest, highest = (0, _LARGEST_BYTE) if kind == "uint8" else (-(1 << _RANGES[kind]), (1 << _RANGES[kind]) - 1)
    if isinstance(value, float) or not lowest <= value <= highest:
        raise Mismatch(f"number {number_text(value)}", name)
    return value


def number_text(value: float) -> str:
    """A number as JSON has it."""
    return printed_double(value) if isinstance(value, float) else str(value)


def wrapped_integer(kind: Plain, value: float) -> int | None:
    """An integer as reflection converts a number, without the bits beyond its width; None for a number with a fraction."""
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value) if -_INT64 <= value < _INT64 else -_INT64
    width = 1 << (_RANGES.get(kind, 7) + 1)
    low = int(value) % width
    return low - width if low >= width // 2 else low


def read_bytes(text: str) -> str:
    """Bytes, from their base64, as base64 again. Raises BadBytes."""
    data = text.encode(errors="surrogatepass")
    fault = _first_bad(data)
    if fault is not None:
        raise BadBytes(f"illegal base64 data at input byte {fault}")
    return base64.b64encode(base64.b64decode(data.translate(None, _LINE_ENDS))).decode()


def written_bytes(numbers: list[int]) -> str:
    """The base64 of bytes that the document gave as numbers."""
    return base64.b64encode(bytes(numbers)).decode()


def _first_bad(data: bytes) -> int | None:
    """The offset of the first byte that is not valid base64, as `decodeQuantum` of Go counts."""
    place = 0
    for at, byte in enumerate(data):
        if byte in _LINE_ENDS:
            continue
        if byte not in _ALPHABET:
            return _bad_ending(data, at, place)
        place = (place + 1) % _QUANTUM
    return len(data) - place if place else None


def _bad_ending(data: bytes, at: int, place: int) -> int | None:
    """The offset of the error in the ending from the first non-digit byte on, or None when that is correct padding."""
    if data[at : at + 1] != b"=" or place < _QUANTUM // 2:
        return at
    rest = _after_line_ends(data, at + 1)
    if place == _QUANTUM // 2:
        if rest == len(data):
            return rest
        if data[rest : rest + 1] != b"=":
            return rest - 1
        rest = _after_line_ends(data, rest + 1)
    return rest if rest < len(data) else None


def _after_line_ends(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _LINE_ENDS:
        at += 1
    return at


def special(kind: Special, value: Json) -> Json:
    """A value of a type with its own decoder. Raises Mismatch and Malformed."""
    match kind:
        case "Time":
            return _time(value, gotimes.SECONDS)
        case "MicroTime":
            return _time(value, gotimes.MICROSECONDS)
        case "Quantity":
            return quantity(value)
        case "IntOrString":
            return value if isinstance(value, str) else 0 if value is None else _integer("int32", "int32", value)
        case "JSONSchemaPropsOrBool" if not isinstance(value, bool):
            raise Malformed("boolean or JSON schema expected")
        case _:
            return value


def _time(value: Json, layout: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Mismatch(word(value), "string")
    try:
        return gotimes.stored(value, layout)
    except gotimes.BadTime as error:
        raise Malformed(str(error)) from None


def quantity(value: Json) -> str:
    """A quantity in its canonical form, as the server writes it; null is `0`. Raises Malformed."""
    try:
        return "0" if value is None else str(parse(_quantity_text(value)))
    except EvaluationError as error:
        raise Malformed(str(error)) from None


def same_quantity(left: Json, right: Json) -> bool:
    """Return whether two quantities are the same number; a value that is not a quantity equals nothing else."""
    try:
        return compare(parse(_quantity_text(left)), parse(_quantity_text(right))) == 0
    except EvaluationError:
        return False


def _quantity_text(value: Json) -> str:
    match value:
        case str():
            return value.strip()
        case bool() | list() | dict():
            return orjson.dumps(value).decode()
        case int() | float():
            return number_text(value)
        case _:
            return str(value)
