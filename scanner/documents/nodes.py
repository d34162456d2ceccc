"""A value of a document with its place, and what a reader of settings asks of it.

Each question has one type as its answer, and raises BadDocument for any other value. No message repeats a value: a password may stand
in the wrong place, and file, line and column lead to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Final, NamedTuple, NoReturn, TypeVar

from scanner.errors import UsageError
from scanner.model.json import Json
from scanner.model.nearest import did_you_mean

_LONGEST_SHOWN: Final = 60
_NAME: Final = re.compile(r"[\w$][\w$./\[\]-]*")
_Choice = TypeVar("_Choice", bound=StrEnum)


class Position(NamedTuple):
    """A position in a file; `line` and `column` count from 1."""

    source: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}, column {self.column}"


class BadDocument(UsageError):
    """A settings file with an error. `place` is its position, `problem` the sentence about it."""

    def __init__(self, place: Position, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place. `path` is the field, such as `spec.until`; empty for the whole document.

    `value` is a scalar, a list of nodes, or nodes by key. `text` is a scalar as it is written, without quotes. `keys` are the places
    of the keys of an object.
    """

    place: Position
    path: str
    value: bool | int | float | str | list[Node] | dict[str, Node] | None
    text: str = ""
    keys: Mapping[str, Position] = field(default_factory=dict)

    def fail(self, problem: str) -> NoReturn:
        """Raise BadDocument at the place of this value, with the name of the field before the problem."""
        raise BadDocument(self.place, f"{self.path}: {problem}" if self.path else problem)

    def fields(self, known: Collection[str]) -> dict[str, Node]:
        """The fields of an object. Fields that are null are left out. Raises BadDocument for a field that is not in `known`."""
        nodes = self.entries()
        for key in nodes:
            if key not in known:
                path = f"{self.path}.{key}" if self.path else key
                choices = did_you_mean(key, known) or f" The fields are {', '.join(known)}."
                raise BadDocument(self.keys[key], f"unknown field {shorten_key(path)}.{choices}")
        return {key: node for key, node in nodes.items() if node.value is not None}

    def entries(self) -> dict[str, Node]:
        """The entries of an object with free keys."""
        return self.value if isinstance(self.value, dict) else self._fail_type("an object")

    def items(self) -> list[Node]:
        """The items of a list."""
        return self.value if isinstance(self.value, list) else self._fail_type("a list")

    def string(self) -> str:
        """A string that is not empty."""
        if not isinstance(self.value, str):
            self._fail_type("a string", hint=": quote it" if self.text else "")
        if not self.value.strip():
            self.fail("must not be empty")
        return self.value

    def strings(self) -> tuple[str, ...]:
        """A list of strings, or one string for a list of one."""
        if isinstance(self.value, str):
            return (self.string(),)
        return tuple(item.string() for item in self.items())

    def string_map(self) -> dict[str, str]:
        """An object whose values are strings, such as labels; they may be empty."""
        return {key: node.any_string() for key, node in self.entries().items()}

    def boolean(self) -> bool:
        """True or false."""
        return self.value if isinstance(self.value, bool) else self._fail_type("true or false")

    def integer(self, *, least: int = 0) -> int:
        """A whole number that is not below `least`."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self._fail_type("a whole number")
        if self.value < least:
            self.fail(f"must be {least} or more")
        return self.value

    def number(self) -> float:
        """A number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self._fail_type("a number")
        return self.value

    def day(self) -> date:
        """A date such as 2026-12-31."""
        text = self.string()
        try:
            day = date.fromisoformat(text)
        except ValueError:
            self.fail("must be a date: write it as YYYY-MM-DD, such as 2026-12-31")
        if day.isoformat() != text:
            self.fail(f"must be a date: write it as {day.isoformat()}")
        return day

    def choice(self, choices: type[_Choice]) -> _Choice:
        """A member of an enumeration, by its value."""
        text = self.string()
        values = [choice.value for choice in choices]
        if text not in values:
            self.fail(f"must be one of {', '.join(values)}.{did_you_mean(text, values)}")
        return choices(text)

    def json(self) -> Json:
        """The value without its places."""
        if isinstance(self.value, dict):
            return {key: node.json() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.json() for node in self.value]
        return self.value

    def any_string(self) -> str:
        """A string, which may be empty."""
        return self.value if isinstance(self.value, str) else self._fail_type("a string", hint=": quote it")

    def _fail_type(self, wanted: str, *, hint: str = "") -> NoReturn:
        self.fail(f"must be {wanted}, not {_name_kind(self.value)}{hint}")


def shorten_key(text: str) -> str:
    """A key or a name for a message, shortened; an ellipsis for a key that is no name, such as `password:x` without a space."""
    if not _NAME.fullmatch(text):
        return "…"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _name_kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"
