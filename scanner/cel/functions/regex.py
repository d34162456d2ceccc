"""Regular expressions: `find` and `findAll`, and the search behind `matches` (K9 of the admission semantics).

RE2 decides what is a pattern and matches in linear time. Results of `matches` are remembered per pattern, because names and
images repeat heavily in a cluster.
"""

from __future__ import annotations

from functools import lru_cache

import re2

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, member
from scanner.cel.type_system import INT, STRING, list_of
from scanner.cel.values import Value

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re2._Regexp:
    """Return a compiled pattern; raise `EvaluationError` with Go's text for what is none."""
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise EvaluationError(f"error parsing regexp: {_reason(error)}") from None


def _reason(error: re2.error) -> str:
    text = error.args[0]
    return text.decode() if isinstance(text, bytes) else str(text)


@lru_cache(maxsize=65536)
def search(pattern: str, text: str) -> bool:
    """Return whether the pattern matches anywhere in the text."""
    return compiled(pattern).search(text) is not None


def _dynamic(pattern: str) -> re2._Regexp:
    try:
        return compiled(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> Value:
    match = _dynamic(pattern).search(text)
    return "" if match is None else match.group()


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    regex = _dynamic(pattern)
    if limit == 0:
        return []
    found: list[Value] = []
    for match in regex.finditer(text):
        found.append(match.group())
        if len(found) == limit:
            break
    return found


LIBRARY = Library(
    "regex",
    (
        Function("find", (member("string_find_string", (STRING, STRING), STRING, _find),)),
        Function(
            "findAll",
            (
                member("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
                member("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
            ),
        ),
    ),
)
