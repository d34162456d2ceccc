r"""`regex.replace`, `regex.extract`, `regex.extractAll`: cel-go's regex extension, which Kubernetes does not have.

Source of truth: ext.Regex version 1 of cel-go 0.30. In a replacement `\1` is a group and `\0` the whole match.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from scanner.cel.errors import EvaluationError
from scanner.cel.functions import regex
from scanner.cel.values.text import quote
from scanner.cel.values.values import NONE, Optional, Value
from scanner.policies.kyverno.libraries.declared import Implementation

_REFERENCE = re.compile(r"\\(.?)", re.DOTALL)


def _replace(target: str, pattern: str, replacement: str, count: int = -1) -> Value:
    if count == 0:
        return target
    compiled = regex.compile_pattern(pattern)
    parts: list[str] = []
    end = 0
    for number, match in enumerate(compiled.list_occurrences(target)):
        if number == count:
            break
        parts += [target[end : match.start], *_pieces(replacement, match.groups)]
        end = match.end
    return "".join((*parts, target[end:]))


def _pieces(replacement: str, groups: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a replacement: its texts, and the groups that it names. Raises EvaluationError, in any match."""
    end = 0
    for match in _REFERENCE.finditer(replacement):
        yield replacement[end : match.start()]
        end = match.end()
        yield _reference(match.group(1), groups, replacement)
    yield replacement[end:]


def _reference(escaped: str, groups: Sequence[str], replacement: str) -> str:
    if escaped == "\\":
        return escaped
    if not escaped:
        raise EvaluationError(f"invalid replacement string: '{replacement}' \\ not allowed at end")
    if not escaped.isascii() or not escaped.isdigit():
        raise EvaluationError(f"invalid replacement string: '{replacement}' \\ must be followed by a digit or \\")
    if int(escaped) >= len(groups):
        raise EvaluationError(
            f"replacement string references group {escaped} but regex has only {len(groups) - 1} group(s)"
        )
    return groups[int(escaped)]


def _one_group(pattern: str) -> regex.Pattern:
    compiled = regex.compile_pattern(pattern)
    if compiled.groups > 1:
        raise EvaluationError(f"regular expression has more than one capturing group: {quote(pattern)}")
    return compiled


def _extract(target: str, pattern: str) -> Value:
    compiled = _one_group(pattern)
    match = next(compiled.list_occurrences(target), None)
    if match is None or (compiled.groups and not match.groups[-1]):
        return NONE
    return Optional(match.groups[-1])


def _extract_all(target: str, pattern: str) -> Value:
    compiled = _one_group(pattern)
    found = [match.groups[-1] for match in compiled.list_occurrences(target)]
    return [text for text in found if text] if compiled.groups else found


IMPLEMENTATION = Implementation(
    {
        "regex_replace_string_string_string": _replace,
        "regex_replace_string_string_string_int": _replace,
        "regex_extract_string_string": _extract,
        "regex_extractAll_string_string": _extract_all,
    }
)
