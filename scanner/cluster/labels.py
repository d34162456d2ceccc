"""Label selectors in the form of `-l`: `app=web,tier in (a, b),!legacy`.

Source of truth: `labels.Parse` of apimachinery.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn, TypeAlias

from msgspec import Struct

from scanner.errors import UsageError
from scanner.model.selector import Requirement

_TOKEN: Final = re.compile(r"[ \t\r\n]*(!=|==|[=!(),<>]|[^=!(),<> \t\r\n]+|$)")
_SYMBOLS: Final = frozenset({"!=", "==", "=", "!", "(", ")", ",", "<", ">", ""})
_EXACT: Final = {"=": "In", "==": "In", "!=": "NotIn"}
_SETS: Final = {"in": "In", "notin": "NotIn"}
_NAME: Final = re.compile(r"(?=.{1,63}$)([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PREFIX: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,19}")
_LARGEST: Final = 2**63 - 1


class IntegerTerm(Struct, frozen=True):
    """`key > bound` or `key < bound`: true of labels that are integers on the right side of the bound."""

    key: str
    greater: bool
    bound: int

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy this comparison."""
        value = labels.get(self.key, "")
        if not _INTEGER.fullmatch(value) or abs(int(value)) > _LARGEST:
            return False
        return int(value) > self.bound if self.greater else int(value) < self.bound


Term: TypeAlias = Requirement | IntegerTerm


class LabelQuery(Struct, frozen=True):
    """A parsed selector; without terms it selects everything."""

    terms: tuple[Term, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy every term."""
        return all(term.matches(labels) for term in self.terms)


def parse_selector(text: str) -> LabelQuery:
    """The query of a selector; an empty text selects every object. Raises UsageError for one that kubectl would reject.

    Mirrors `labels.Parse` of `apimachinery/pkg/labels`.
    """
    return LabelQuery(tuple(_SelectorParser(text).parse()))


class _SelectorParser:
    """Parses the tokens, the last of which is empty."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match[1] for match in _TOKEN.finditer(text)]
        self._position = 0

    def parse(self) -> list[Term]:
        terms: list[Term] = []
        if not self._peek():
            return terms
        while True:
            terms.append(self._parse_term())
            if not (separator := self._take()):
                return terms
            if separator != ",":
                self._fail(f"found '{separator}', expected ',' or the end")

    def _parse_term(self) -> Term:
        absent = self._peek() == "!"
        if absent:
            self._take()
        key = self._parse_key()
        if self._peek() in (",", ""):
            return Requirement(key, "DoesNotExist" if absent else "Exists")
        operator = self._take()
        if absent:
            self._fail(f"found '{operator}' after '!{key}', expected ',' or the end")
        if operator in _SETS:
            return Requirement(key, _SETS[operator], self._parse_set())
        if operator in ("<", ">"):
            return IntegerTerm(key, operator == ">", self._parse_bound(key))
        if operator not in _EXACT:
            self._fail(f"found '{operator}', expected one of in, notin, =, ==, !=, <, >")
        return Requirement(key, _EXACT[operator], (self._parse_value(),))

    def _parse_key(self) -> str:
        key = self._take()
        if key in _SYMBOLS:
            self._fail(f"found '{key}', expected a label key")
        prefix, slash, name = key.rpartition("/")
        if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
            self._fail(f"'{key}' is not a label key")
        return key

    def _parse_set(self) -> tuple[str, ...]:
        if (opening := self._take()) != "(":
            self._fail(f"found '{opening}', expected '('")
        values = [self._parse_value(")")]
        while (symbol := self._take()) == ",":
            values.append(self._parse_value(")"))
        if symbol != ")":
            self._fail(f"found '{symbol}', expected ',' or ')'")
        return tuple(dict.fromkeys(values))

    def _parse_value(self, end: str = "") -> str:
        if self._peek() in (",", end):
            return ""
        value = self._take()
        if not _NAME.fullmatch(value):
            self._fail(f"'{value}' is not a label value")
        return value

    def _parse_bound(self, key: str) -> int:
        value = self._parse_value()
        if not _INTEGER.fullmatch(value) or int(value) > _LARGEST:
            self._fail(f"{key} is compared to '{value}', expected a whole number")
        return int(value)

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._position += 1
        return token

    def _fail(self, why: str) -> NoReturn:
        raise UsageError(
            f"the selector '{self._text}' is invalid: {why}. Write it as for kubectl, e.g. app=web,tier!=cache"
        )
