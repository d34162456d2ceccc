"""The columns of findings and problems: JSON, CSV, schemas, pages and the documentation have the same ones."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest

from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats.json import SCHEMA_VERSION
from scanner.report.lists.columns import TEXT, Cell, Column, Columns
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.lists.problem_columns import PROBLEMS
from scripts.generate_columns import PAGE, SCHEMA, page, schema
from tests.report.records import small_record

BOTH = pytest.mark.parametrize("columns", [FINDINGS, PROBLEMS])
TITLES_OF_FINDINGS = (
    *("id", "problem", "status", "firstSeen", "resolvedAt", "resolution", "cause", "language", "policy", "binding"),
    *("outcome", "actions", "kind", "namespace", "name", "workload", "message", "severity", "title", "category"),
    *("owner", "waiver", "openedAt", "lastSeen", "wouldDeny", "param", "check", "controls", "exceptions", "evidence"),
)
TITLES_OF_PROBLEMS = (
    *("id", "status", "firstSeen", "openedAt", "resolvedAt", "resolution", "cause", "findings", "language", "policy"),
    *("check", "action", "kind", "namespace", "name", "severity", "title", "category", "owner", "waiver"),
)


def column(name: str, place: int, *, fact: str = "") -> Column[str]:
    """A column of texts."""
    return Column(name, "1.0", TEXT, "A text.", lambda row, _: row, (Cell(place),), fact=fact)


def _constant(value: Any, place: int) -> Column[str]:
    """A column that has one value in every row."""
    return Column(f"c{place}", "1.0", TEXT, "A value.", lambda row, _: value, (Cell(place),))


@pytest.mark.parametrize(("columns", "titles"), [(FINDINGS, TITLES_OF_FINDINGS), (PROBLEMS, TITLES_OF_PROBLEMS)])
def test_a_column_of_csv_keeps_its_place(columns: Columns[Any], titles: tuple[str, ...]) -> None:
    """The columns of released versions come first, in their order: spreadsheets may refer to them by place."""
    assert titles == columns.titles[: len(titles)]


@pytest.mark.parametrize("places", [(1, 1), (1, 3), (2, 3)])
def test_places_in_csv_are_taken_once(places: tuple[int, int]) -> None:
    """A place that two columns have, or that no column has, is refused."""
    with pytest.raises(ValueError, match="not 1 to 2, each once"):
        Columns("A row.", [column(f"c{number}", place) for number, place in enumerate(places)])


def test_an_optional_column_is_left_out_if_it_is_null() -> None:
    """A column that is not optional is null."""
    kept: Column[str] = Column("kept", "1.0", TEXT, "A text.", lambda row, _: None)
    left_out: Column[str] = Column("leftOut", "1.0", TEXT, "A text.", lambda row, _: None, optional=True)
    columns = Columns("A row.", [left_out, kept])

    assert {"kept": None} == columns.json("", document_of(small_record()))
    assert ["kept"] == columns.schema()["required"]


def test_a_cell_is_the_text_of_its_value() -> None:
    """Null is empty, a fact is true or false, and a list has commas."""
    values: tuple[Any, ...] = (None, True, False, ["a", "b"], 7, "text")
    columns = Columns("A row.", [_constant(value, place) for place, value in enumerate(values, 1)])

    assert ("", "true", "false", "a,b", "7", "text") == columns.cells("", document_of(small_record()))


def test_a_column_with_a_title_is_a_fact_of_pages() -> None:
    """A column without a title is none."""
    columns = Columns("A row.", [column("hidden", 1), column("shown", 2, fact="Shown")])

    assert (("Shown",), ("text",)) == (columns.facts, columns.fact_texts("text", document_of(small_record())))


@BOTH
def test_names_are_unique(columns: Columns[Any]) -> None:
    """In JSON and in CSV."""
    names = [each.name for each in columns.columns]

    assert sorted(set(names)) == sorted(names)
    assert sorted(set(columns.titles)) == sorted(columns.titles)


@BOTH
def test_every_column_has_a_help_and_a_version(columns: Columns[Any]) -> None:
    """The help is a sentence, and the version is not newer than that of the reports."""
    newest = tuple(map(int, SCHEMA_VERSION.split(".")))

    assert [] == [each.name for each in columns.columns if not re.fullmatch(r"[A-Z].*\.", each.help)]
    assert [] == [each.name for each in columns.columns if tuple(map(int, each.since.split("."))) > newest]


def test_json_and_csv_of_a_report_have_the_columns() -> None:
    """Each object of JSON has the required columns at least, and the heading of CSV has all cells."""
    document = document_of(small_record())
    findings = [FINDINGS.json(stored, document) for stored in document.findings()]
    out = io.StringIO()
    FORMATS["csv"].render(document, out)

    required = [each.name for each in FINDINGS.columns if each.in_json and not each.optional]
    assert [required] * len(findings) == [
        [name for name in each if name not in {"drift", "error"}] for each in findings
    ]
    assert list(FINDINGS.titles) == next(csv.reader(io.StringIO(out.getvalue())))


def test_the_schema_of_reports_is_that_of_the_columns() -> None:
    """A column that is added or reworded is in `docs/report.schema.json` after `make docs`."""
    assert schema() == SCHEMA.read_text(), "docs/report.schema.json is out of date: run make docs"
    assert FINDINGS.schema() == json.loads(SCHEMA.read_text())["$defs"]["finding"]


def test_the_documentation_has_the_columns() -> None:
    """A column that is added or reworded is in `docs/formats.md` after `make docs`."""
    assert page() == PAGE.read_text(), "docs/formats.md is out of date: run make docs"
