"""Decodes a policy or binding as the API server does before it validates, or raises the server's error.

Source of truth: the decoder of `sigs.k8s.io/json` in its lenient form, which drops fields that a type does not have, and the
defaults and checks of `metav1.Time`. Names of fields are case-sensitive. Null is an absent field, and an empty element of a list.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from typing import assert_never

from scanner.errors import InvalidManifest
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text
from scanner.policies.api_validation.types import METADATA, Anything, Labels, Listed, Scalar, Struct, Time, Type, kinds
from scanner.policies.unknown_fields import UnknownField, unknown_field

_INT64 = 2**63
_BEYOND_ASCII = 0x80
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_TIME = (
    ("2006", r"[0-9]{4}"),
    ("-", "-"),
    ("01", r"[0-9]{2}"),
    ("-", "-"),
    ("02", r"[0-9]{2}"),
    ("T", "T"),
    ("15", r"[0-9]{2}"),
    (":", ":"),
    ("04", r"[0-9]{2}"),
    (":", ":"),
    ("05", r"[0-9]{2}([.,][0-9]+)?"),
    ("Z07:00", r"Z|[+-][0-9]{2}:[0-9]{2}"),
)
"""The parts of a time, in Go's notation of layouts."""
_RANGES = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}


class Undecodable(InvalidManifest):
    """A document that the server rejects with 400, before its field errors."""


def decoded(document: JsonObject) -> JsonObject:
    """A manifest as the server decodes it: without unknown fields and nulls. Raises Undecodable for a value of a wrong type."""
    kind, version = as_text(document.get("kind")), as_text(document.get("apiVersion")).rpartition("/")[2]
    type_ = kinds(version)[kind]
    try:
        return _struct(document, type_, "")
    except _Mismatch as error:
        why = f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        raise Undecodable((why,)) from None


def unknown_fields(document: JsonObject) -> tuple[UnknownField, ...]:
    """The fields that the server drops, such as `spec.later` or `spec.variables[0].type`, in the manifest's order."""
    kind, version = as_text(document.get("kind")), as_text(document.get("apiVersion")).rpartition("/")[2]
    return tuple(_unknown(document, kinds(version)[kind], ""))


class _Mismatch(Exception):
    """A value that Go cannot decode into a type."""


def _struct(value: JsonObject, struct: Struct, path: str) -> JsonObject:
    made: dict[str, Json] = {}
    for key, item in value.items():
        if key in struct.fields and item is not None:
            where = f"{path}{struct.embedded.get(key, key)}"
            made[key] = _value(item, struct.fields[key], struct.bare_name, where)
    return made


def _value(value: Json, type_: Type, owner: str, path: str) -> Json:
    match type_:
        case Anything():
            return value
        case Scalar():
            return _scalar(value, type_, owner, path)
        case Time():
            return _time(value, owner, path)
        case Labels():
            entries = _expect(value, "object", type_.name, owner, path)
            texts = as_object(entries).items()
            return {key: "" if item is None else _scalar(item, _TEXT, owner, path) for key, item in texts}
        case Listed():
            items = as_list(_expect(value, "array", type_.name, owner, path))
            return [_empty(type_.item) if item is None else _value(item, type_.item, owner, path) for item in items]
        case Struct():
            return _struct(as_object(_expect(value, "object", type_.name, owner, path)), type_, f"{path}.")
        case _ as never:
            assert_never(never)


_TEXT = Scalar("string")


def _scalar(value: Json, scalar: Scalar, owner: str, path: str) -> Json:
    expected = _expect(value, scalar.takes, scalar.name, owner, path)
    if scalar.takes == "number" and not (isinstance(expected, int) and -_INT64 <= expected < _INT64):
        raise _mismatch(f"number {expected}", scalar.name, owner, path)
    return expected


def _time(value: Json, owner: str, path: str) -> Json:
    """Decode a time; Go names the first part that is malformed or out of its range, and compares the day with the month last."""
    text = rest = as_text(_expect(value, "string", "string", owner, path))
    for name, pattern in _TIME:
        match = re.match(pattern, rest)
        if match is None:
            whole, part = _quoted(text), _quoted(rest)
            raise _Mismatch(f'parsing time {whole} as "{_LAYOUT}": cannot parse {part} as "{name}"')
        rest = rest[match.end() :]
        what, least, most = _RANGES.get(name, ("", 0, 0))
        if what and not least <= int(match[0][:2]) <= most:
            raise _Mismatch(f"parsing time {_quoted(text)}: {what} out of range")
    if rest:
        raise _Mismatch(f"parsing time {_quoted(text)}: extra text: {_quoted(rest)}")
    if not 1 <= int(text[8:10]) <= _days(int(text[:4]), int(text[5:7])):
        raise _Mismatch(f"parsing time {_quoted(text)}: day out of range")
    return text


def _days(year: int, month: int) -> int:
    """The days of a month; the year 0 is a leap year."""
    return monthrange(year or 4, month)[1]


def _quoted(text: str) -> str:
    """A text as package `time` quotes it, with escapes for bytes beyond ASCII."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(code) if ord(" ") <= code < _BEYOND_ASCII else f"\\x{code:02x}" for code in escaped) + '"'


def _expect(value: Json, takes: str, name: str, owner: str, path: str) -> Json:
    word = _word(value)
    if word != takes:
        raise _mismatch(word, name, owner, path)
    return value


def _mismatch(word: str, name: str, owner: str, path: str) -> _Mismatch:
    return _Mismatch(f"json: cannot unmarshal {word} into Go struct field {owner}.{path} of type {name}")


def _word(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "object" if as_object(value) is value else "array"


def _empty(type_: Scalar | Struct) -> Json:
    return {} if isinstance(type_, Struct) else ""


def unknown_metadata(document: JsonObject) -> tuple[UnknownField, ...]:
    """The unknown fields of the metadata of an object of any kind."""
    return tuple(_unknown(document.get("metadata"), METADATA, "metadata"))


def _unknown(value: Json, type_: Type, path: str) -> Iterator[UnknownField]:
    if isinstance(type_, Listed):
        for index, item in enumerate(as_list(value)):
            yield from _unknown(item, type_.item, f"{path}[{index}]")
    if isinstance(type_, Struct):
        for key, item in as_object(value).items():
            where = f"{path}.{key}" if path else key
            if key in type_.fields:
                yield from _unknown(item, type_.fields[key], where)
            else:
                yield unknown_field(where, key, type_.fields)
