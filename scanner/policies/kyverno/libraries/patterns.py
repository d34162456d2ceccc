r"""`regex.replace`, `regex.extract`, `regex.extractAll`: cel-go's regex extension, which Kubernetes does not have.

Source of truth: ext.Regex version 1 of cel-go 0.31. In a replacement `\1` is a group and `\0` the whole match.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from scanner.cel.errors import EvaluationError
from scanner.cel.functions import regex
from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import INT, STRING, list_of, optional_of
from scanner.cel.values.text import quote
from scanner.cel.values.values import NONE, Optional, Value

_REFERENCE = re.compile(r"\\(.?)", re.DOTALL)


def _pattern(text: str) -> regex.Pattern:
    try:
        return regex.compile_pattern(text)
    except EvaluationError as error:
        raise EvaluationError(f"given regex is invalid: {error}") from None


def _replace(target: str, pattern: str, replacement: str, count: int = -1) -> Value:
    compiled = _pattern(pattern)
    pieces = tuple(_pieces(replacement, compiled.groups))
    if count == 0:
        return target
    parts: list[str] = []
    end = 0
    for number, match in enumerate(compiled.list_occurrences(target)):
        if number == count:
            break
        parts += [
            target[end : match.start],
            *(match.groups[piece] if type(piece) is int else str(piece) for piece in pieces),
        ]
        end = match.end
    return "".join((*parts, target[end:]))


def _pieces(replacement: str, groups: int) -> Iterator[str | int]:
    """Yield the parts of a replacement: texts, and the numbers of groups."""
    end = 0
    for match in _REFERENCE.finditer(replacement):
        yield replacement[end : match.start()]
        end = match.end()
        yield _reference(match.group(1), groups)
    yield replacement[end:]


def _reference(escaped: str, groups: int) -> str | int:
    if escaped == "\\":
        return escaped
    if not escaped.isascii() or not escaped.isdigit():
        raise EvaluationError("invalid replacement string: \\ must be followed by a digit or \\")
    if int(escaped) > groups:
        raise EvaluationError(f"replacement string references group {escaped} but regex has only {groups} group(s)")
    return int(escaped)


def _one_group(pattern: str) -> regex.Pattern:
    compiled = _pattern(pattern)
    if compiled.groups > 1:
        raise EvaluationError(f"regular expression has more than one capturing group: {quote(pattern)}")
    return compiled


def _extract(target: str, pattern: str) -> Value:
    match = next(_one_group(pattern).list_occurrences(target), None)
    if match is None or not match.captured:
        return NONE
    return Optional(match.groups[-1])


def _extract_all(target: str, pattern: str) -> Value:
    compiled = _one_group(pattern)
    return [
        match.groups[-1]
        for match in compiled.list_occurrences(target)
        if match.captured and (match.groups[-1] or not compiled.groups)
    ]


LIBRARY = Library(
    "kyverno.regex",
    (
        Function(
            "regex.replace",
            (
                Overload("regex_replaceAll_string_string_string", (STRING, STRING, STRING), STRING, _replace),
                Overload(
                    "regex_replaceCount_string_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace
                ),
            ),
            cost=ONE,
        ),
        Function(
            "regex.extract",
            (Overload("regex_extract_string_string", (STRING, STRING), optional_of(STRING), _extract),),
            cost=ONE,
        ),
        Function(
            "regex.extractAll",
            (Overload("regex_extractAll_string_string", (STRING, STRING), list_of(STRING), _extract_all),),
            cost=ONE,
        ),
    ),
)
