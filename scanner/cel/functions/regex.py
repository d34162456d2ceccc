"""Regular expressions: `find` and `findAll`, and the search behind `matches`.

RE2 decides which patterns are valid and matches in linear time; its errors have the texts of Go's regexp/syntax, which
upstream uses. Results are cached per pattern, because names and images repeat heavily in a cluster.

Rules: `docs/semantics/cel-libraries.md#regular-expressions`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import re2
from msgspec import Struct

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, declare_member
from scanner.cel.functions.pricing import SEARCHED_IN
from scanner.cel.functions.result_sizes import parts, pieces
from scanner.cel.memo import ResultCache
from scanner.cel.types.type_system import INT, STRING, list_of
from scanner.cel.values import list_kinds
from scanner.cel.values.runtime import make_no_overload
from scanner.cel.values.values import Value

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 64 << 20
_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid character class range": "invalid character class range",
    "invalid character class": "invalid character class",
    "invalid escape sequence": "invalid escape sequence",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "trailing \\": "trailing backslash at end of expression",
    "invalid UTF-8": "invalid UTF-8",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
_WHOLE_PATTERN = frozenset({"missing )", "unexpected )"})
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*(\\C)")


class Occurrence(Struct, frozen=True):
    """One match: its offsets in code points, and its groups with the whole match first."""

    start: int
    end: int
    groups: tuple[str, ...]


class Pattern:
    """A compiled pattern; `answers` caches whether it matches a text."""

    __slots__ = ("_regex", "answers")

    def __init__(self, regex: re2._Regexp) -> None:
        self._regex = regex
        self.answers = ResultCache(self._matches)

    def search(self, subject: str) -> bool:
        """Return whether a text has a match. Raises EvaluationError for a value that is not a string."""
        return self.answers[subject]

    def _matches(self, subject: str) -> bool:
        if type(subject) is not str:
            raise make_no_overload()
        return self._regex.search(subject) is not None

    def find_first(self, subject: str) -> str:
        """Return the text of the first match; empty where there is none."""
        match = self._regex.search(subject)
        return "" if match is None else str(match.group())

    @property
    def groups(self) -> int:
        """The number of capturing groups."""
        return int(self._regex.groups)

    def list_occurrences(self, subject: str) -> Iterator[Occurrence]:
        """Yield the matches that do not overlap, no empty one right behind another."""
        end = -1
        for match in self._regex.finditer(subject):
            if match.end() > match.start() or match.start() != end:
                parts = (match.group(), *match.groups())
                groups = tuple("" if part is None else str(part) for part in parts)
                yield Occurrence(match.start(), match.end(), groups)
            end = match.end()

    def find_all(self, subject: str, limit: int) -> list[Value]:
        """Return the texts of the matches that do not overlap, at most `limit` of them unless it is negative.

        Go takes no empty match right behind another one.
        """
        matches: list[Value] = []
        end = -1
        for match in self._regex.finditer(subject):
            if len(matches) == limit:
                break
            if match.end() > match.start() or match.start() != end:
                matches.append(str(match.group()))
            end = match.end()
        return matches


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern:
    """Return a compiled pattern, from a cache; raise `EvaluationError` with Go's text for an invalid one."""
    unsupported = _ANY_BYTE.search(pattern)
    if unsupported:
        raise EvaluationError(f"error parsing regexp: invalid escape sequence: `{unsupported.group(1)}`")
    try:
        return Pattern(re2.compile(pattern, _OPTIONS))
    except re2.error as error:
        raise EvaluationError(f"error parsing regexp: {_describe_as_go(pattern, error)}") from None


def _describe_as_go(pattern: str, error: re2.error) -> str:
    text = error.args[0]
    reason, _, at = (text.decode() if isinstance(text, bytes) else str(text)).partition(": ")
    if reason in _WHOLE_PATTERN:
        at = pattern
    return f"{_WORDS.get(reason, reason)}: `{at}`"


def _compile_dynamic(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def matches(text: Value, pattern: Value) -> Value:
    """Return whether a pattern matches anywhere in a text.

    Raises EvaluationError if one of both is not a string, or the pattern is malformed.
    """
    if type(text) is str and type(pattern) is str:
        return compile_pattern(pattern).search(text)
    raise make_no_overload()


def _find(text: str, pattern: str) -> Value:
    return _compile_dynamic(pattern).find_first(text)


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    return list_kinds.make_text_list(_compile_dynamic(pattern).find_all(text, limit))


def matches_compiled(pattern: Pattern, text: Value, _pattern: Value) -> Value:
    """Return whether a constant pattern matches; the third argument is the pattern's text, which is not read.

    Such a call accepts any overload. Raises EvaluationError, without the function's name, for a value that is not a string.
    """
    return pattern.search(_require_text(text))


def _find_compiled(pattern: Pattern, text: Value, _pattern: Value) -> Value:
    return pattern.find_first(_require_text(text))


def _find_all_compiled(pattern: Pattern, text: Value, _pattern: Value, limit: Value = -1) -> Value:
    searched = _require_text(text)
    if type(limit) is not int:
        raise make_no_overload()
    return list_kinds.make_text_list(pattern.find_all(searched, limit))


def _require_text(text: Value) -> str:
    if type(text) is str:
        return text
    raise make_no_overload()


LIBRARY = Library(
    "regex",
    (
        Function(
            "find",
            (declare_member("string_find_string", (STRING, STRING), STRING, _find),),
            cost=SEARCHED_IN,
            result=parts,
            with_pattern=_find_compiled,
        ),
        Function(
            "findAll",
            (
                declare_member("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
                declare_member("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
            ),
            cost=SEARCHED_IN,
            result=pieces,
            with_pattern=_find_all_compiled,
        ),
    ),
)
