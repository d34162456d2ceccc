"""Write the definition of findings in `docs/report.schema.json`, and the tables of columns in `docs/formats.md`, from the columns.

`make docs` and `python -m scripts.generate_columns` run it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scanner.report.lists.columns import Column, Columns
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.lists.problem_columns import PROBLEMS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "formats.md"
SCHEMA = DOCS / "report.schema.json"
_BEGIN = "<!-- The rest of this page is generated from the columns: make docs -->\n"


def page() -> str:
    """Return the page: its text as it is, and the tables anew."""
    text, _, _ = PAGE.read_text().partition(_BEGIN)
    lines = ["## Columns of a finding", "", *_table(FINDINGS), "", "## Columns of a problem", "", *_table(PROBLEMS)]
    return text + _BEGIN + "\n" + "\n".join(lines) + "\n"


def schema() -> str:
    """Return the schema of the report: as it is, and the definition of findings anew."""
    document = json.loads(SCHEMA.read_text())
    document["$defs"]["finding"] = FINDINGS.schema()
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _table(columns: Columns[Any]) -> Iterator[str]:
    yield "| JSON | CSV | since | content |"
    yield "|---|---|---|---|"
    for column in columns.columns:
        name = f"`{column.name}`" if column.in_json else ""
        yield f"| {name} | {_cells(column)} | {column.since} | {column.help} |"


def _cells(column: Column[Any]) -> str:
    return ", ".join(f"`{cell.name or column.name}`" for cell in column.cells)


if __name__ == "__main__":
    PAGE.write_text(page())
    SCHEMA.write_text(schema())
