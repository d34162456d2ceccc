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
from collections.abc import Callable, Iterable, Iterator
from string import hexdigits
from typing import Any, ClassVar, NoReturn

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.named_formats import NamedFormat
from scanner.cel.functions.pricing import WRAP, Cost, Price, limit_cost
from scanner.cel.functions.url import Url
from scanner.cel.protobuf.fields import convert_value
from scanner.cel.types.type_system import Type, opaque
from scanner.cel.values import text, times
from scanner.cel.values.values import Duration, KeyedMap, Opaque, Optional, Struct, Timestamp, UInt, Value
from scanner.model.release import Minor
from scanner.policies.kyverno.libraries.cluster_data import ClusterData
from scanner.policies.kyverno.libraries.declared import Implementation
from scanner.policies.kyverno.libraries.natives import as_string, converted, native_type
from scanner.policies.kyverno.libraries.records import EXCEPTIONS, SERVICE_ACCOUNT
from scanner.policies.kyverno.releases import JSON_NULLS

JSON = opaque("json.Json")
YAML = opaque("yaml.Yaml")
_SMALLEST_PLAIN = 1e-6
_LARGEST_PLAIN = 1e21
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029", "\x7f": "\x7f"}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_BAD_NUMBERS = (
    (re.compile(r"-(?!\d)"), "in numeric literal"),
    (re.compile(r"-?(0|[1-9]\d*)\.(?!\d)"), "after decimal point in numeric literal"),
    (re.compile(r"-?(0|[1-9]\d*)(\.\d+)?[eE][+-]?(?!\d)"), "in exponent of numeric literal"),
)
_ENDS_IN_ESCAPE = re.compile(r"(?<!\\)(\\\\)*\\\Z")
_END = "' '"
"""Go reads a space after the text, which most tokens do not accept."""
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
    written = as_string(value)
    try:
        document: Value = json.loads(written, parse_int=_double, parse_float=_double, parse_constant=_reject_constant)
        return _without_surrogates(document) if _SURROGATE.search(written) else document
    except json.JSONDecodeError as error:
        raise EvaluationError(_go_message(written, error)) from None
    except RecursionError:
        raise EvaluationError("exceeded max depth") from None


def _double(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise EvaluationError(f"json: cannot unmarshal number {number} into Go value of type float64")
    return value


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
    if number := _bad_number(document, at):
        return number
    if error.msg.startswith("Unterminated string") and _ENDS_IN_ESCAPE.search(document):
        return f"invalid character {_END} in string escape code"
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
        case message if message.startswith("Invalid \\u"):
            return _bad_digit(document[at + 1 :][:4])
        case message if message.startswith("Invalid \\"):
            return f"invalid character {_shown(document[at + 1 : at + 2])} in string escape code"
        case _:
            return _beginning(document[at:].lstrip(), shown)


def _bad_number(document: str, at: int) -> str:
    """Describe the first wrong character of a number that has an error at a position; empty if it has none."""
    start = len(document[:at].rstrip("0123456789+-.eE"))
    for bad, place in _BAD_NUMBERS:
        if match := bad.match(document, start):
            return f"invalid character {_shown(document[match.end() :][:1])} {place}"
    return ""


def _bad_digit(digits: str) -> str:
    """Describe the first character that is no digit of an escape with four of them."""
    bad = next((character for character in digits if character not in hexdigits), "")
    return f"invalid character {_shown(bad)} in \\u hexadecimal character escape"


def _beginning(rest: str, shown: str) -> str:
    """Describe the invalid beginning of a value: the wrong letter of a literal, or the wrong character."""
    literal = _LITERALS.get(rest[0])
    if literal is None:
        return f"invalid character {shown} looking for beginning of value"
    for position, expected in enumerate(literal):
        if rest[position : position + 1] != expected:
            character = _shown(rest[position : position + 1])
            return f"invalid character {character} in literal {literal} (expecting '{expected}')"
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
    """A character as Go shows it; the end of the text is a space."""
    if not character:
        return _END
    return f"'{text.quote(character)[1:-1]}'" if character not in ("'", '"') else {"'": "'\\''", '"': "'\"'"}[character]


def _marshal(_reader: JsonReader, value: Value) -> Value:
    return marshalled(value)


def marshalled(value: Value) -> str:
    """Return the JSON text of a value as Go writes it. Raises EvaluationError for a value that has none."""
    return "".join(_written(_native(value)))


def _native(value: Value) -> Value:
    """Return the Go value that is written: the parts of lists and maps, and the content of an optional."""
    match value:
        case list():
            return _converted(value, "list to native slice")
        case dict():
            return _converted(value, "map to native map")
        case KeyedMap():
            entries = {_string_key(key): item for key, item in value.items()}
            return _converted(entries, "map to native map")
        case Type():
            return value.name
        case Optional():
            return _native(value.value) if value.present else None
        case _:
            return value


def _converted(value: Value, what: str) -> Value:
    try:
        return converted(value)
    except EvaluationError as error:
        raise EvaluationError(f"json: failed to convert CEL {what}: {error}") from None


def _string_key(key: Value) -> str:
    try:
        return as_string(key)
    except EvaluationError as error:
        raise EvaluationError(f"json: failed to convert CEL map to native map: {error}") from None


def _written(value: Value) -> list[str]:
    match value:
        case list():
            return ["[", ",".join("".join(_written(item)) for item in value), "]"]
        case dict():
            return _object([*value.items()])
        case KeyedMap():
            return _object([(_key(key), item) for key, item in value.items()])
        case Struct():
            name = _FIELD_NAMES[value.type]
            return _object([(name(field), item) for field, item in value.fields.items()])
        case Url():
            return _members(url_fields(value))
        case _:
            return [_scalar(value)]


def _key(key: Value) -> str:
    if type(key) is str:
        return key
    kind = native_type(key)
    raise EvaluationError(f"json: unsupported map key type {kind} (original key type: {kind})")


def _scalar(value: Value) -> str:
    write = _SCALARS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, NamedFormat):
        raise EvaluationError("json: unsupported type: func(string) []string")
    return _quoted(str(value))


def _object(entries: list[tuple[str, Value]]) -> list[str]:
    return _members(sorted(entries, key=lambda pair: pair[0]))


def _members(entries: Iterable[tuple[str, Value]]) -> list[str]:
    return ["{", ",".join(f"{_quoted(key)}:{''.join(_written(item))}" for key, item in entries), "}"]


def url_fields(url: Url) -> Iterator[tuple[str, Value]]:
    """Yield the fields of Go's url.URL in their order; the user is a struct without exported fields."""
    parts = url.parts
    yield from (("Scheme", parts.scheme), ("Opaque", parts.opaque), ("User", None if parts.user is None else {}))
    yield from (
        ("Host", parts.host),
        ("Path", parts.path),
        ("Fragment", url.fragment.removeprefix("#")),
        ("RawQuery", parts.query),
    )
    yield from (("RawPath", parts.raw_path), ("RawFragment", ""), ("ForceQuery", parts.force_query))
    yield ("OmitHost", parts.omit_host)


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
    Duration: lambda span: str(span.nanoseconds),
}


_FIELD_NAMES: dict[Type, Callable[[str], str]] = {
    SERVICE_ACCOUNT: str.lower,
    EXCEPTIONS: lambda field: field[0].upper() + field[1:],
}
"""The names of the fields of Go's structs in JSON."""


def _encode(value: Value) -> Value:
    """Return the JSON text of a value by the rules of protobuf: `jsonEncodeValue` of cel-go's extension of encoders."""
    converted_value = convert_value(_without_structs(value), "value")
    _reject_special_numbers(converted_value)
    return "".join(_written(converted_value))


def _without_structs(value: Value) -> Value:
    match value:
        case list():
            return [_without_structs(item) for item in value]
        case dict():
            return {key: _without_structs(item) for key, item in value.items()}
        case Struct():
            name = str if value.type == SERVICE_ACCOUNT else _FIELD_NAMES[value.type]
            return {name(field): item for field, item in value.fields.items()}
        case _:
            return value


def _reject_special_numbers(value: Value) -> None:
    match value:
        case list():
            for item in value:
                _reject_special_numbers(item)
        case dict():
            for item in value.values():
                _reject_special_numbers(item)
        case float() if not math.isfinite(value):
            # The space after the colon is one that does not break.
            raise EvaluationError(
                f"proto:\u00a0google.protobuf.Value.number_value: invalid {text.write_printed(value)} value"
            )
        case _:
            return


def _marshal_before(_reader: JsonReader, value: Value) -> Value:
    """Return the JSON text of a value as earlier releases write it: of Go's null, which is a zero, and with other errors."""
    inner = value.value if type(value) is Optional and value.present else value
    if inner is None:
        return "0"
    strange = (
        next((key for key in inner if isinstance(key, Opaque | Optional)), None) if type(inner) is KeyedMap else None
    )
    if strange is not None:
        raise EvaluationError(f"no such key: {strange}")
    try:
        return marshalled(value)
    except EvaluationError as error:
        raise EvaluationError(re.sub(r"^json: failed to convert CEL [a-z ]+: ", "", str(error))) from None


def _parse(reader: YamlReader, document: str) -> Value:
    return reader.cluster_data.parse_yaml(document)


ENCODE = Implementation(
    {"json_encode_dyn": _encode}, cost=Cost(Price(lambda _arguments, _result: WRAP - 1), limit_cost(WRAP))
)
"""Each call costs the highest number: where an expression has cost something before, the sum wraps around and is one less."""


def implementation(release: Minor) -> Implementation:
    """Return the functions as a release has them."""
    return Implementation(
        {
            "unmarshal_string_dyn": _unmarshal,
            "marshal_dyn_string": _marshal if JSON_NULLS.holds(release) else _marshal_before,
            "parse_string_dyn": _parse,
        }
    )
