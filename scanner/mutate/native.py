"""The JSON of expression values, as patches need it.

Mirrors `ObjectVal.ConvertToNative` and `convertField` of apiserver. A list or map that was written in the expression is
converted one level deep, so that another one inside it stays a Go value that no schema accepts (`Foreign`); a list that `+` has
joined is JSON at every depth, and a list of texts that a function returned is at none, nor is the value of a protobuf message.
Data read from the request is JSON already until 1.36, and is rebuilt from 1.37 on: an empty list of it becomes null, and a null
no value at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, assert_never, cast

from scanner import cel
from scanner.cel.protobuf import prototext
from scanner.cel.values.runtime import go_type, print_value
from scanner.cel.values.text import quote
from scanner.mutate.origin import RequestData

Native: TypeAlias = "bool | int | float | str | list[Native] | dict[str, Native] | Foreign | None"
_SIMPLE = frozenset({str, int, float, bool, cel.Struct})
_NATIVE_TYPES = {"types.Bytes": "[]uint8", "types.Timestamp": "time.Time", "types.Duration": "time.Duration"}


class PatchFault(ValueError):
    """The failure of a mutation; the message is the API server's."""


class RequestFault(PatchFault):
    """The error that ends the request with the code of an internal error, under either failure policy."""


CONNECTION_ENDS = "the API server ends the connection"


def end_connection(cause: str) -> RequestFault:
    """The fault of a mutation on which the API server panics: the client gets no answer, so the request is refused."""
    return RequestFault(f"{CONNECTION_ENDS}: {cause}")


class ForeignKey(PatchFault):
    """A field whose value is a map with a key that is not a string."""

    def __init__(self, field: str, key: object) -> None:
        shown = f"%!q(types.Bool={print_value(key)})" if isinstance(key, bool) else _write_rune(key)
        super().__init__(f'fail to convert field "{field}": map key {shown} is of type {go_type(key)}, not string')


def _write_rune(key: object) -> str:
    """A number as Go's `%q` prints it: as the character with that code point."""
    number = int(key) if isinstance(key, int) and 0 <= key <= sys.maxunicode else 0xFFFD
    character = chr(number)
    return "'" + (character if character.isprintable() else quote(character)[1:-1]) + "'"


class NilList(list["Native"]):
    """An empty list literal: a nil slice of Go, which is a list to a schema, and null as JSON."""


class Foreign:
    """A Go value that is not JSON: as `%T`, `%v` and `%#v` print it."""

    __slots__ = ("source", "text", "type")

    def __init__(self, type_: str, text: str, source: str | None = None) -> None:
        self.type = type_
        self.text = text
        self.source = text if source is None else source


def convert_object(value: cel.Struct, data: RequestData) -> dict[str, Native]:
    """The JSON of an `Object{…}`. Raises ForeignKey for a map with a key that is not a string."""
    return {name: _convert_field(name, field, data) for name, field in value.fields.items()}


def _convert_field(name: str, value: object, data: RequestData) -> Native:
    """A field's value: lists and maps are opened once."""
    if isinstance(value, cel.KeyedMap):
        raise ForeignKey(name, next(key for key in value if not isinstance(key, str)))
    if data.get_list_kind(value) is cel.ListKind.MESSAGE:
        return _convert_message_value(value)
    if isinstance(value, list | dict) and not _is_flat(value) and value in data:
        return _copy_request_data(value) if data.rebuilds else cast("Native", value)
    if isinstance(value, list) and data.get_list_kind(value) is not cel.ListKind.SPLIT:
        return [_convert_inside(item, data) for item in value] or NilList()
    if isinstance(value, dict):
        return {key: _convert_inside(item, data) for key, item in value.items()}
    return _convert_inside(value, data)


def _is_flat(value: list[object] | dict[str, object]) -> bool:
    """Return whether the origin of a list or map is irrelevant: it is not empty, and all its values are scalars."""
    items = value.values() if isinstance(value, dict) else value
    return bool(value) and all(type(item) in _SIMPLE for item in items)


def _copy_request_data(value: object) -> Native:
    """Data read from the request, as 1.37 copies it."""
    match value:
        case list():
            return [_copy_request_data(item) for item in value] or None
        case dict():
            return {key: _copy_request_data(item) for key, item in value.items()}
        case bool() | int() | float() | str():
            return value
        case _:
            return Foreign("structpb.NullValue", "NULL_VALUE")


def _convert_inside(value: object, data: RequestData) -> Native:
    """The conversion of a value inside a list or map."""
    match value:
        case None:
            return Foreign("structpb.NullValue", write_value(value), write_source(value))
        case cel.UInt():
            return Foreign("uint64", write_value(value), write_source(value))
        case bool() | int() | float() | str():
            return value
        case cel.Struct():
            return _convert_object_inside(value, data)
        case cel.Message():
            return Foreign(value.go_type, prototext.print_message(value))
        case dict() if data.get_list_kind(value) is cel.ListKind.MESSAGE:
            return _convert_message_value(value)
        case list() | dict() if value in data and not data.find_go_types(value):
            return value
        case list():
            return _convert_list(value, data)
        case dict() | cel.KeyedMap():
            return _write_map(value)
        case cel.Optional():
            return _convert_inside(value.value, data) if value.present else None
        case cel.Type():
            return value.name
        case _:
            return Foreign(_name_native_type(value), write_value(value), write_source(value))


def _convert_object_inside(value: cel.Struct, data: RequestData) -> Native:
    if value.type == cel.JSON_PATCH:
        return Foreign("*mutation.JSONPatchVal", "JSONPatch")
    try:
        return convert_object(value, data)
    except ForeignKey as fault:
        return Foreign("*types.Err", str(fault))


def _name_native_type(value: object) -> str:
    name = go_type(value)
    return getattr(type(value), "GO_NATIVE", "") or _NATIVE_TYPES.get(name, name)


def _write_map(value: dict[str, object] | cel.KeyedMap) -> Foreign:
    pairs = sorted((print_value(key), print_value(item)) for key, item in value.items())
    sources = sorted(f"{write_source(key)}:{write_source(item)}" for key, item in value.items())
    shown = " ".join(f"{key}:{item}" for key, item in pairs)
    return Foreign("map[ref.Val]ref.Val", f"map[{shown}]", f"map[ref.Val]ref.Val{{{', '.join(sources)}}}")


def _convert_list(value: list[cel.Value], data: RequestData) -> Native:
    """A list inside a list or map; a server of 1.37 does not distinguish their origins."""
    match data.get_list_kind(value):
        case cel.ListKind.JOINED:
            return [_convert_inside(item, data) for item in value]
        case cel.ListKind.MESSAGE:
            return _convert_message_value(value)
        case cel.ListKind.SPLIT:
            return _make_foreign_list("[]string", value)
        case None:
            return _make_foreign_list("[]ref.Val", value)
        case _ as never:
            assert_never(never)


def _convert_message_value(value: object) -> Foreign:
    """A list or map that is the value of a protobuf message, and that stays a Go value."""
    return Foreign(
        "*structpb.ListValue" if isinstance(value, list) else "*structpb.Struct", prototext.print_message(value)
    )


def _make_foreign_list(type_: str, value: list[cel.Value]) -> Foreign:
    sources = ", ".join(map(write_source, value))
    return Foreign(type_, f"[{' '.join(map(print_value, value))}]", f"{type_}{{{sources}}}")


def write_container(value: object) -> str:
    """A value as Go's `%v` prints the slice or map that holds it."""
    match value:
        case list():
            return f"[{' '.join(map(write_container, value))}]"
        case dict():
            return f"map[{' '.join(f'{key}:{write_container(value[key])}' for key in sorted(value))}]"
        case None:
            return "<nil>"
        case Foreign():
            return value.text
        case cel.Struct():
            return write_container(value.fields)
        case _:
            return print_value(value)


def find_misnamed(value: cel.Struct, data: RequestData) -> str:
    """The error text for types inside an `Object…{…}` whose names differ from their paths, or an empty text.

    Mirrors `CheckTypeNamesMatchFieldPathNames` of apiserver's `mutation`.
    """
    return "\n".join(_find_misnamed(value, value.type.name, data))


def _find_misnamed(value: object, path: str, data: RequestData) -> Iterator[str]:
    if isinstance(value, cel.Optional) and isinstance(value.value, list | dict):
        value = value.value
    if isinstance(value, cel.Struct):
        if value.type == cel.JSON_PATCH:
            return
        if value.type.name != path:
            yield (
                f'unexpected type name "{value.type.name}", expected "{path}", which matches field name path from root '
                "Object type"
            )
        for name, item in value.fields.items():
            yield from _find_misnamed(item, f"{path}.{name}", data)
    elif isinstance(value, list) and data.get_list_kind(value) is None:
        for item in value:
            yield from _find_misnamed(item, path, data)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _find_misnamed(item, path, data)


# Non-JSON values of expressions as Go's fmt prints them: with `%v`, and with `%#v`, as source.
#
# Mirrors the `String` and `GoString` of the time package, and the output of fmt for bytes and unsigned numbers.

_SECOND = 10**9
_UNITS = ((1, "ns"), (10**3, "µs"), (10**6, "ms"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_value(value: object) -> str:
    """A value as `%v` prints it inside a list or map."""
    match value:
        case None:
            return "NULL_VALUE"
        case cel.Timestamp():
            return _write_time(value)
        case cel.Duration():
            return _write_duration(value.nanoseconds)
        case _:
            return print_value(value)


def write_source(value: object) -> str:
    """A value as `%#v` prints it inside a list or map."""
    match value:
        case None:
            return "0"
        case bytes():
            return f"[]uint8{{{', '.join(f'0x{byte:x}' for byte in value)}}}"
        case cel.UInt():
            return f"0x{int(value):x}"
        case cel.Timestamp():
            return _write_time_source(value)
        case cel.Duration():
            return str(value.nanoseconds)
        case str():
            return quote(value)
        case _:
            return print_value(value)


def _write_duration(nanoseconds: int) -> str:
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if rest == 0:
        return "0s"
    if rest < _SECOND:
        scale, unit = next(unit_scale for unit_scale in reversed(_UNITS) if rest >= unit_scale[0])
        return f"{sign}{_write_decimal(rest, scale)}{unit}"
    minutes, below = divmod(rest, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    shown = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{shown}{_write_decimal(below, _SECOND)}s"


def _write_decimal(number: int, scale: int) -> str:
    whole, rest = divmod(number, scale)
    digits = str(rest).zfill(len(str(scale)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


def _shift_to_zone(value: cel.Timestamp) -> tuple[datetime, int]:
    seconds, nanoseconds = divmod(value.nanoseconds, _SECOND)
    return _EPOCH + timedelta(seconds=seconds + value.offset), nanoseconds


def _write_time(value: cel.Timestamp) -> str:
    moment, nanoseconds = _shift_to_zone(value)
    fraction = f".{nanoseconds:09d}".rstrip("0").rstrip(".")
    minutes = abs(value.offset) // 60
    zone = f"{'-' if value.offset < 0 else '+'}{minutes // 60:02d}{minutes % 60:02d}"
    name = "UTC" if value.offset == 0 else zone
    return f"{moment.year:04d}-{moment:%m-%d %H:%M:%S}{fraction} {zone} {name}"


def _write_time_source(value: cel.Timestamp) -> str:
    moment, nanoseconds = _shift_to_zone(value)
    place = "time.UTC" if value.offset == 0 else 'time.Location("")'
    parts = (moment.day, moment.hour, moment.minute, moment.second, nanoseconds)
    return f"time.Date({moment.year}, time.{moment:%B}, {', '.join(map(str, parts))}, {place})"
