"""The value of a protobuf literal in an expression: most messages become plain values, and the rest stay messages.

Mirrors `Registry.NewValue` and `NativeToValue` of cel-go, `unwrapDynamic` of its `types/pb`, and `AsDuration` and `AsTime` of Go's
protobuf. Of two fields of one `Value` upstream keeps either, as Go's maps have no order; here it is the last in the literal.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.errors import EvaluationError
from scanner.cel.protobuf.fields import assign_field
from scanner.cel.protobuf.messages import MESSAGES, PACKAGE
from scanner.cel.protobuf.prototext import SEPARATOR, quote
from scanner.cel.protobuf.wire import Decoder, MalformedMessage
from scanner.cel.values import list_kinds
from scanner.cel.values.runtime import SECOND
from scanner.cel.values.times import make_unix_time, wrap_to_64_bits
from scanner.cel.values.values import INT_MAX, INT_MIN, Duration, Message, UInt, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scanner.cel.protobuf.messages import MessageType
    from scanner.cel.releases import Version

Fields: TypeAlias = "dict[str, Value]"

_ZEROS: Mapping[str, Value] = {
    "bool": False,
    "bytes": b"",
    "double": 0.0,
    "float": 0.0,
    "int32": 0,
    "int64": 0,
    "string": "",
    "uint32": UInt(0),
    "uint64": UInt(0),
}


def make_maker(message: MessageType, version: Version) -> Callable[[Fields], Value]:
    """Return a constructor of a literal's value from its fields; it raises EvaluationError for a value that does not fit."""
    return partial(_make, message, version)


def _make(message: MessageType, version: Version, fields: Fields) -> Value:
    converted = {name: assign_field(message, name, value, version) for name, value in fields.items()}
    return list_kinds.record_message(_unwrap(message, converted, b""))


def _unwrap(message: MessageType, fields: Fields, unknown: bytes) -> Value:
    """Return the value of a message. `unknown` are fields that its type does not declare: a message keeps them."""
    unwrap = _BY_NAME.get(message.name)
    if unwrap is not None:
        return unwrap(fields)
    if message.type.family == "object":
        return _make_message(message, fields, unknown)
    (field,) = message.fields.values()
    return fields.get("value", _ZEROS[field.kind])


def _make_message(message: MessageType, fields: Fields, unknown: bytes, go_type: str = "*dynamicpb.Message") -> Value:
    """Return a message that stays a message; a plain field with its zero counts as absent."""
    absent = {name: _ZEROS.get(field.kind) for name, field in message.fields.items()}
    set_fields = {name: value for name, value in fields.items() if absent[name] is None or value != absent[name]}
    return Message(message.type, set_fields, absent, go_type, unknown)


def _make_duration(fields: Fields) -> Value:
    """Return a duration, limited to the longest valid one."""
    seconds, rest = _read_whole(fields.get("seconds")), _read_whole(fields.get("nanos"))
    total = seconds * SECOND
    if INT_MIN <= total <= INT_MAX:
        total += rest
    return Duration(max(INT_MIN, min(total, INT_MAX)))


def _make_timestamp(fields: Fields) -> Value:
    seconds, rest = divmod(_read_whole(fields.get("nanos")), SECOND)
    return make_unix_time(wrap_to_64_bits(_read_whole(fields.get("seconds")) + seconds), rest)


def _read_whole(value: Value) -> int:
    return value if isinstance(value, int) else 0


def _unwrap_value(fields: Fields) -> Value:
    name, value = next(reversed(fields.items()), ("null_value", None))
    return None if name == "null_value" else value


def _unwrap_any(fields: Fields) -> Value:
    """Unpack the content of an Any; of the types that a server has, only those that expressions can name are values."""
    url, data = fields.get("type_url", ""), fields.get("value", b"")
    packed = MESSAGES.get(str(url).rpartition("/")[2])
    if packed is None or not isinstance(data, bytes) or packed.name == f"{PACKAGE}.Struct.FieldsEntry":
        raise _make_unpacked(fields)
    try:
        return _DECODER.decode(packed, data)
    except (MalformedMessage, EvaluationError):
        raise _make_unpacked(fields) from None


def _list_texts(fields: Fields) -> Iterator[tuple[str, str | bytes]]:
    return ((name, value) for name, value in fields.items() if value and isinstance(value, str | bytes))


def _make_unpacked(fields: Fields) -> EvaluationError:
    shown = SEPARATOR.join(f"{name}:{quote(value)}" for name, value in sorted(_list_texts(fields)))
    return EvaluationError(f"unsupported conversion to ref.Val: (*dynamicpb.Message){shown}")


_BY_NAME: Mapping[str, Callable[[Fields], Value]] = {
    f"{PACKAGE}.Any": _unwrap_any,
    f"{PACKAGE}.Duration": _make_duration,
    f"{PACKAGE}.ListValue": lambda fields: fields.get("values", []),
    f"{PACKAGE}.Struct": lambda fields: fields.get("fields", {}),
    f"{PACKAGE}.Timestamp": _make_timestamp,
    f"{PACKAGE}.Value": _unwrap_value,
}


def _unpack(message: MessageType, fields: Fields, unknown: bytes) -> Value:
    """Return the value of a packed message: Go has a separate type for each."""
    if message.type.family == "object":
        return _make_message(message, fields, unknown, "*emptypb.Empty")
    return _unwrap(message, fields, unknown)


_DECODER = Decoder(_unpack)
