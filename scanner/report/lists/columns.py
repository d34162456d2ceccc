"""Columns of rows: one definition of each, from which JSON, CSV, JSON schemas, the documentation and pages derive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from scanner.model.json import JsonObject
from scanner.model.outcome import Check
from scanner.model.policy import PolicyKey
from scanner.posture.triage import Triage
from scanner.report.text.json_text import Plain

TEXT: Final[JsonObject] = {"type": "string"}
TEXT_OR_NULL: Final[JsonObject] = {"type": ["string", "null"]}
TEXTS: Final[JsonObject] = {"type": "array", "items": TEXT}
NUMBER: Final[JsonObject] = {"type": "integer", "minimum": 0}
BOOLEAN: Final[JsonObject] = {"type": "boolean"}
TIME: Final[JsonObject] = {**TEXT, "format": "date-time"}
TIME_OR_NULL: Final[JsonObject] = {**TEXT_OR_NULL, "format": "date-time"}


def choice(*values: str | None) -> JsonObject:
    """One of some values; None is null."""
    return {"enum": [*values]}


def refer_to(name: str) -> JsonObject:
    """A value that a definition of the report's schema describes."""
    return {"$ref": f"#/$defs/{name}"}


def refer_to_or_null(name: str) -> JsonObject:
    """A value that a definition of the report's schema describes, or null."""
    return {"oneOf": [refer_to(name), {"type": "null"}]}


SEVERITY: Final = choice("critical", "high", "medium", "low", "info")


_RowT = TypeVar("_RowT")


class RowContext(Protocol):
    """The parts of a report that its rows need; a `Document` has them."""

    @property
    def triage(self) -> Triage:
        """Severities, owners, controls and waivers."""

    @property
    def check_ids(self) -> Mapping[tuple[PolicyKey, Check], str]:
        """The ids of the checks of the scan."""

    @property
    def requester_checks(self) -> frozenset[tuple[PolicyKey, Check]]:
        """The checks whose outcomes may differ for another user."""


@dataclass(frozen=True, slots=True)
class Cell(Generic[_RowT]):
    """A column of CSV at a place, from 1 on, which never changes. Without a `name` and a `text` it has those of its column."""

    place: int
    name: str = ""
    text: Callable[[_RowT, RowContext], str] | None = None


@dataclass(frozen=True, slots=True)
class Column(Generic[_RowT]):
    """A column: its name, the version of the JSON report that began to have it, its type as a JSON schema, its help and its value.

    `in_json` is false for a column of CSV alone. A column that is `optional` is left out of JSON if its value is null.
    `fact` is the title of its first cell among the facts that a page shows of a row; empty for a column that the page shows
    in a way of its own, or not at all.
    """

    name: str
    since: str
    schema: JsonObject
    help: str
    value: Callable[[_RowT, RowContext], Plain]
    cells: tuple[Cell[_RowT], ...] = ()
    in_json: bool = True
    optional: bool = False
    fact: str = ""

    def describe(self) -> JsonObject:
        """The schema with the help."""
        return {**self.schema, "description": self.help}


class Columns(Generic[_RowT]):
    """The columns of a kind of rows, in the order of JSON."""

    def __init__(self, help_: str, columns: Sequence[Column[_RowT]]) -> None:
        """Order the cells. Raises ValueError if two have one place, or if a place is left out."""
        self.help: Final = help_
        self.columns: Final = tuple(columns)
        cells = sorted(((cell, column) for column in columns for cell in column.cells), key=lambda pair: pair[0].place)
        if [cell.place for cell, _ in cells] != [*range(1, len(cells) + 1)]:
            raise ValueError(f"the places of columns in CSV are not 1 to {len(cells)}, each once")
        self.titles: Final = tuple(cell.name or column.name for cell, column in cells)
        self._texts: Final = tuple(cell.text or _text_of(column.value) for cell, column in cells)
        in_json = [column for column in columns if column.in_json]
        self._values: Final = tuple((column.name, column.value) for column in in_json)
        self._optional: Final = tuple(column.name for column in in_json if column.optional)
        facts = [column for column in columns if column.fact]
        self.facts: Final = tuple(column.fact for column in facts)
        self._fact_texts: Final = tuple(column.cells[0].text or _text_of(column.value) for column in facts)

    def json(self, row: _RowT, context: RowContext) -> dict[str, Plain]:
        """A row as a JSON object."""
        values = {name: value(row, context) for name, value in self._values}
        for name in self._optional:
            if values[name] is None:
                del values[name]
        return values

    def cells(self, row: _RowT, context: RowContext) -> tuple[str, ...]:
        """The cells of a row, in the order of `titles`. Times are RFC 3339 in UTC; an empty cell is a value that it lacks."""
        return tuple([text(row, context) for text in self._texts])

    def fact_texts(self, row: _RowT, context: RowContext) -> tuple[str, ...]:
        """The texts of the facts of a row, in the order of `facts`; an empty text is a value that it lacks."""
        return tuple([text(row, context) for text in self._fact_texts])

    def schema(self) -> JsonObject:
        """The JSON schema of a row."""
        shown = [column for column in self.columns if column.in_json]
        return {
            "type": "object",
            "description": self.help,
            "properties": {column.name: column.describe() for column in shown},
            "required": [column.name for column in shown if not column.optional],
        }


def _text_of(value: Callable[[_RowT, RowContext], Plain]) -> Callable[[_RowT, RowContext], str]:
    return lambda row, context: _text(value(row, context))


def _text(value: Plain) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return ",".join(map(str, value))
        case _:
            return str(value)
