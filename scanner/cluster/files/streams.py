"""Splits a file into documents as kubectl does.

Source of truth: `YAMLOrJSONDecoder` of apimachinery: a text that begins with `{` is read as JSON objects one after the
other, any other text is split at lines that begin with `---`, and each piece is read as YAML. Unlike in kubectl, an invalid
piece does not end the stream.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import orjson
from msgspec import Struct

from scanner.cluster.scalars import BadScalar, convert_to_json
from scanner.cluster.yaml import MAX_DEPTH, MalformedDocument, load
from scanner.model.json import Json

_LARGE_INTEGER: Final = re.compile(rb"(?:^|[\s:,\[-])[0-9]{19}")
"""The possible start of an integer beyond 64 bits; digits within a checksum do not count."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_NO_FIELD: Final = re.compile(r"\s*(?:#|---|%|$)")
_BAD_SEPARATOR: Final = re.compile(r"---[ \t]*[^ \t\n#]")


class Piece(Struct, frozen=True):
    """A document of a stream: its number, from 1, its value or its error, and the line where it begins, from 1."""

    number: int
    value: Json
    fault: str = ""
    line: int = 1


def read_pieces(data: bytes) -> Iterator[Piece]:
    """Every document that is not empty. An invalid document has a fault instead of a value."""
    number = 0
    for value, line in _read_values(data):
        if value is None:
            continue
        number += 1
        if isinstance(value, MalformedDocument):
            yield Piece(number, None, str(value), line)
        else:
            yield Piece(number, value, line=line)


_Value: TypeAlias = "tuple[Json | MalformedDocument, int]"
"""A value or its error, and the line where it begins, from 1."""


def _read_values(data: bytes) -> Iterator[_Value]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield MalformedDocument(f"byte {error.start + 1} is not UTF-8: save the file as UTF-8"), 1
        return
    if "\0" in text:
        yield (
            MalformedDocument(
                f"line {text.count(chr(10), 0, text.index(chr(0))) + 1} holds a NUL byte: is this a text file?"
            ),
            1,
        )
        return
    yield from _read_json(data, text) if text.lstrip().startswith("{") else _read_yaml(text)


def _read_json(data: bytes, text: str) -> Iterator[_Value]:
    try:
        value: Json = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        yield from _read_json_objects(text)
        return
    yield _check_encodable(value, exact=not _LARGE_INTEGER.search(data)), _count_line(text, _skip_blanks(text, 0))


def _count_line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _read_json_objects(text: str) -> Iterator[_Value]:
    """JSON values in sequence, and YAML from the first piece that is not JSON."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    position = _skip_blanks(text, 0)
    count = 0
    while position < len(text):
        line = _count_line(text, position)
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            yield from _read_rest(text, position, error, count)
            return
        yield _check_encodable(value, exact=False), line
        count += 1
        position = _skip_blanks(text, position)


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANK.match(text, position)
    return blanks.end() if blanks else position


def _read_rest(text: str, position: int, error: Exception, count: int) -> Iterator[_Value]:
    """The rest of a text that is not JSON: YAML, unless its beginning is no valid YAML either."""
    if count > 1:
        yield _explain_json_error(error), _count_line(text, position)
        return
    first = True
    lines = text.count("\n", 0, position)
    for value, line in _read_yaml(text[position:], line_offset=lines):
        yield (
            _explain_json_error(error) if first and count == 0 and isinstance(value, MalformedDocument) else value,
            line,
        )
        first = False


def _explain_json_error(error: Exception) -> MalformedDocument:
    if isinstance(error, json.JSONDecodeError):
        return MalformedDocument(f"not JSON: {error.msg}", error.lineno, error.colno)
    if isinstance(error, RecursionError):
        return MalformedDocument(f"nested deeper than {MAX_DEPTH} levels")
    return MalformedDocument(f"not JSON: {error}")


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON number")


def _read_yaml(text: str, line_offset: int = 0) -> Iterator[_Value]:
    for first_line, chunk in _split_chunks(text):
        lines = line_offset + first_line
        yield _read_yaml_value(chunk, lines), lines + _count_lines_before(chunk) + 1


def _count_lines_before(chunk: str) -> int:
    """The number of lines before the first field of a document: separators, comments and blank lines."""
    return next((number for number, line in enumerate(chunk.splitlines()) if not _NO_FIELD.match(line)), 0)


def _read_yaml_value(chunk: str, line_offset: int) -> Json | MalformedDocument:
    if _BAD_SEPARATOR.match(chunk):
        return MalformedDocument(
            "invalid YAML document separator: begin the document on the next line", line_offset + 1, 1
        )
    try:
        return _check_encodable(load(chunk, line_offset=line_offset), exact=True)
    except MalformedDocument as error:
        return error


def _split_chunks(text: str) -> Iterator[tuple[int, str]]:
    """Pieces that begin with a separator line (the first may not), each with the number of lines before it."""
    start = 0
    lines: list[str] = []
    for number, line in enumerate(text.split("\n")):
        if line.startswith("---"):
            yield start, "\n".join((*lines, ""))
            start, lines = number, []
        lines.append(line.removesuffix("\r"))
    yield start, "\n".join((*lines, ""))


def _check_encodable(value: Json, *, exact: bool) -> Json | MalformedDocument:
    """The value, if it can be encoded. With `exact`, its scalars are already as a server reads them."""
    try:
        converted = value if exact else _convert_as_server(value)
        orjson.dumps({"items": [converted]})
    except BadScalar as error:
        return MalformedDocument(str(error))
    except (RecursionError, orjson.JSONEncodeError):
        return MalformedDocument(f"nested deeper than {MAX_DEPTH} levels")
    return converted


def _convert_as_server(value: Json) -> Json:
    """The value as Go decodes it: integers beyond int64 are floats, lone surrogates replacement characters."""
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case float() if math.isinf(value):
            raise BadScalar("a number is too large for a float")
        case int() if not isinstance(value, bool):
            return convert_to_json(value)
        case Mapping():
            return {_SURROGATE.sub("\ufffd", key): _convert_as_server(item) for key, item in value.items()}
        case Sequence():
            return [_convert_as_server(item) for item in value]
        case _:
            return value
