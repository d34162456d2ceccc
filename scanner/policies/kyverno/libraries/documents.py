"""`json.unmarshal`, `json.marshal`, `yaml.parse`: documents inside texts.

Mirrors Kyverno's json and yaml libraries, which go through Go's encoding/json: every number read is a double, keys are written
in order, `<`, `>` and `&` are escaped.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, declare_member
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import DYN, STRING, Type, opaque
from scanner.cel.values import conversions, text, times
from scanner.cel.values.runtime import go_type
from scanner.cel.values.values import Duration, KeyedMap, Opaque, Optional, Struct, Timestamp, UInt, Value
from scanner.policies.kyverno.libraries.cluster_data import ClusterData

JSON = opaque("json.Json")
YAML = opaque("yaml.Yaml")
_SMALLEST_PLAIN = 1e-6
_LARGEST_PLAIN = 1e21
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029", "\x7f": "\x7f"}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LITERALS = {"t": "true", "f": "false", "n": "null"}


class JsonReader(Opaque):
    """The value of `json`."""

    __slots__ = ()
    TYPE: ClassVar[Type] = JSON
    GO_TYPE: ClassVar[str] = "json.Json"


class YamlReader(Opaque):
    """The value of `yaml`."""

    __slots__ = ("cluster_data",)
    TYPE: ClassVar[Type] = YAML
    GO_TYPE: ClassVar[str] = "yaml.Yaml"

    def __init__(self, cluster_data: ClusterData) -> None:
        self.cluster_data = cluster_data


def _unmarshal(_reader: JsonReader, value: Value) -> Value:
    if type(value) is not str:
        raise EvaluationError(f"unsupported native conversion to string from {go_type(value)}")
    try:
        document: Value = json.loads(value, parse_int=float, parse_constant=_reject_constant)
        return _without_surrogates(document) if _SURROGATE.search(value) else document
    except json.JSONDecodeError as error:
        raise EvaluationError(_go_message(value, error)) from None
    except RecursionError:
        raise EvaluationError("exceeded max depth") from None


def _without_surrogates(value: Value) -> Value:
    """The value without halves of characters, which Go replaces."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {str(_without_surrogates(key)): _without_surrogates(item) for key, item in value.items()}
        case _:
            return value


def _reject_constant(name: str) -> NoReturn:
    raise EvaluationError(f"invalid character {_shown(name.lstrip('-')[0])} looking for beginning of value")


def _go_message(document: str, error: json.JSONDecodeError) -> str:
    at = error.pos
    if not document[at:].strip() or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    shown = _shown(document[at:].lstrip()[0])
    match error.msg:
        case "Extra data":
            return f"invalid character {shown} after top-level value"
        case "Expecting ',' delimiter":
            return f"invalid character {shown} after {_container(document[:at])}"
        case "Expecting ':' delimiter":
            return f"invalid character {shown} after object key"
        case message if message.startswith("Expecting property name"):
            return f"invalid character {shown} looking for beginning of object key string"
        case message if message.startswith("Invalid control character"):
            return f"invalid character {shown} in string literal"
        case message if message.startswith("Invalid \\"):
            return f"invalid character {_shown(document[at + 1 : at + 2])} in string escape code"
        case _:
            return _beginning(document[at:].lstrip(), shown)


def _beginning(rest: str, shown: str) -> str:
    """Describe the invalid beginning of a value: the wrong letter of a literal, or the wrong character."""
    literal = _LITERALS.get(rest[0])
    if literal is None:
        return f"invalid character {shown} looking for beginning of value"
    for position, expected in enumerate(literal):
        if position == len(rest):
            return "unexpected end of JSON input"
        if rest[position] != expected:
            return f"invalid character {_shown(rest[position])} in literal {literal} (expecting '{expected}')"
    return f"invalid character {shown} looking for beginning of value"


def _container(before: str) -> str:
    """Return the container of the element or pair that ends here."""
    open_: list[str] = []
    quoted = escaped = False
    for character in before:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "[{":
            open_.append(character)
        elif character in "]}":
            open_.pop()
    return "array element" if open_ and open_[-1] == "[" else "object key:value pair"


def _shown(character: str) -> str:
    return f"'{text.quote(character)[1:-1]}'" if character not in ("'", '"') else {"'": "'\\''", '"': "'\"'"}[character]


def _marshal(_reader: JsonReader, value: Value) -> Value:
    return marshalled(value)


def marshalled(value: Value) -> str:
    """Return the JSON text of a value as Go writes it. Raises EvaluationError for a value that has none."""
    return "".join(_written(value))


def _written(value: Value) -> list[str]:
    match value:
        case list():
            return ["[", ",".join("".join(_written(item)) for item in value), "]"]
        case dict() | KeyedMap():
            return _object([(str(conversions.to_string(key)), item) for key, item in value.items()])
        case Struct():
            return _object([*value.fields.items()])
        case Optional() if value.present:
            return _written(value.value)
        case _:
            return [_scalar(value)]


def _scalar(value: Value) -> str:
    write = _SCALARS.get(type(value))
    if write is None:
        raise EvaluationError(f"unsupported conversion to JSON: {go_type(value)}")
    return write(value)


def _object(entries: list[tuple[str, Value]]) -> list[str]:
    pairs = (f"{_quoted(key)}:{''.join(_written(item))}" for key, item in sorted(entries, key=lambda pair: pair[0]))
    return ["{", ",".join(pairs), "}"]


def _quoted(content: str) -> str:
    return "".join(_ESCAPED.get(character, character) for character in json.dumps(content, ensure_ascii=False))


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise EvaluationError(f"json: unsupported value: {text.write_printed(value)}")
    if value == 0 or _SMALLEST_PLAIN <= abs(value) < _LARGEST_PLAIN:
        return text.write_fixed(value)
    mantissa, _, exponent = repr(value).partition("e")
    sign, digits = exponent[0], exponent[1:].lstrip("0")
    return f"{mantissa.removesuffix('.0')}e{sign}{digits}"


_SCALARS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _null: "null",
    bool: lambda truth: "true" if truth else "false",
    str: _quoted,
    int: str,
    UInt: lambda number: str(int(number)),
    float: _number,
    bytes: lambda raw: _quoted(base64.b64encode(raw).decode()),
    Timestamp: lambda moment: _quoted(times.print_timestamp(moment)),
    Duration: lambda span: _quoted(conversions.write_duration(span)),
}


def _parse(reader: YamlReader, document: str) -> Value:
    return reader.cluster_data.parse_yaml(document)


LIBRARY = Library(
    "kyverno.documents",
    (
        Function("unmarshal", (declare_member("json_unmarshal_string", (JSON, DYN), DYN, _unmarshal),), cost=ONE),
        Function("marshal", (declare_member("json_marshal_any", (JSON, DYN), STRING, _marshal),), cost=ONE),
        Function("parse", (declare_member("yaml_parse_string", (YAML, STRING), DYN, _parse),), cost=ONE),
    ),
)
