"""CSV that spreadsheets open as text: the findings of a scan, and the objects that it examined.

A cell that would be read as a formula gets a quote before it.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TextIO

from scanner.model.population import EvaluatedObjects, ObjectIds, RecordedObject
from scanner.report.document.document import Document
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.text.safe_text import visible

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def guard_formula(text: str) -> str:
    """The text, after a quote if a spreadsheet would take it for a formula or a command."""
    # Spreadsheets overlook spaces and a byte order mark before a formula.
    return f"'{text}" if text.lstrip(" \ufeff").startswith(_FORMULA) else text


def write(out: TextIO, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a heading and rows as RFC 4180 describes, with line feeds."""
    add = open_rows(out)
    add((head,))
    add(rows)


def open_rows(out: TextIO) -> Callable[[Iterable[Sequence[str]]], None]:
    """Return a function that adds rows as `write` writes them."""
    writer = csv.writer(out, lineterminator="\n")
    return lambda rows: writer.writerows([_cell(cell) for cell in row] for row in rows)


def line(cells: Sequence[str]) -> str:
    """Cells as `write` writes them, without a line feed; cells and lines may be joined by commas."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([_cell(cell) for cell in cells])
    return out.getvalue()[:-1]


def _cell(text: str) -> str:
    """The text with escapes for characters that do not print: a terminal that shows the file obeys none of them."""
    return guard_formula(visible(text, lines=True))


def render(document: Document, out: TextIO) -> None:
    """Write a heading and one line for each finding."""
    findings = chain(document.findings(), document.resolved())
    write(out, FINDINGS.titles, (FINDINGS.cells(stored, document) for stored in findings))


# The objects that a scan examined as CSV: who was examined, by how many checks, and with how many findings.
#
# An object without findings whose `evaluated` is not 0 passed all these checks.

POPULATION_TITLES: Final = (
    *("apiVersion", "kind", "namespace", "name", "uid", "workloadKind", "workload", "derived"),
    *("evaluated", "notEvaluated", "findings", "labels"),
)


def render_population(document: Document, out: TextIO) -> None:
    """Write a heading and one line for each examined object; only the heading for a scan of an older version."""
    write(out, POPULATION_TITLES, _rows(document))


def _rows(document: Document) -> Iterator[tuple[str, ...]]:
    findings = document.stored.count_findings_by_object()
    checks = _checks_by_kind(document.stored.evaluated_objects())
    for item in document.stored.population():
        yield _cells(item, checks[item.api_version, item.kind], findings.get(item.id, 0))


def _checks_by_kind(evaluated: Iterator[EvaluatedObjects]) -> defaultdict[tuple[str, str], list[EvaluatedObjects]]:
    checks: defaultdict[tuple[str, str], list[EvaluatedObjects]] = defaultdict(list)
    for each in evaluated:
        checks[each.api_version, each.kind].append(each)
    return checks


def _cells(item: RecordedObject, checks: list[EvaluatedObjects], findings: int) -> tuple[str, ...]:
    top = item.workload
    return (
        item.api_version,
        item.kind,
        item.namespace,
        item.name,
        item.uid,
        top.kind,
        top.name,
        "true" if top.derived else "false",
        str(_number(item.id, [each.evaluated for each in checks])),
        str(_number(item.id, [ids for each in checks for ids in each.not_evaluated.values()])),
        str(findings),
        ",".join(f"{key}={value}" for key, value in item.labels),
    )


def _number(item: int, sets: list[ObjectIds]) -> int:
    return sum(1 for ids in sets if item in ids)
