"""CSV that spreadsheets open as text: the findings of a scan, and the objects that it examined.

A cell that would be read as a formula gets a quote before it.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final, TextIO

from scanner.model.policy import PolicyKey
from scanner.model.population import EvaluatedObjects, ObjectIds, RecordedObject
from scanner.model.scans.stored_scan import StoredScan
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
    return lambda rows: writer.writerows([cell(text) for text in row] for row in rows)


def line(cells: Sequence[str]) -> str:
    """Cells as `write` writes them, without a line feed; cells and lines may be joined by commas."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([cell(text) for text in cells])
    return out.getvalue()[:-1]


def cell(text: str) -> str:
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
    rows = PopulationRows(document.stored)
    write(out, POPULATION_TITLES, map(rows.cells, document.stored.population()))


class PopulationRows:
    """Makes the lines of the objects of a scan."""

    def __init__(self, stored: StoredScan) -> None:
        """Read the numbers of findings and the sets of evaluated objects."""
        self._findings = stored.count_findings_by_object()
        self._checks: defaultdict[tuple[str, str], list[EvaluatedObjects]] = defaultdict(list)
        for each in stored.evaluated_objects():
            self._checks[each.api_version, each.kind].append(each)

    def cells(self, item: RecordedObject) -> tuple[str, ...]:
        """The cells of an object in the order of `POPULATION_TITLES`."""
        top, checks = item.workload, self._checks[item.api_version, item.kind]
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
            str(self._findings.get(item.id, 0)),
            ",".join(f"{key}={value}" for key, value in item.labels),
        )

    def matched(self, item: RecordedObject, policies: frozenset[PolicyKey] | None, *, evaluated: bool) -> bool:
        """Return whether a check of some policies, or of any, matched an object; with `evaluated` only if it was evaluated."""
        return any(
            item.id in each.evaluated or (not evaluated and any(item.id in ids for ids in each.not_evaluated.values()))
            for each in self._checks[item.api_version, item.kind]
            if policies is None or (each.language, each.policy) in policies
        )


def _number(item: int, sets: list[ObjectIds]) -> int:
    return sum(1 for ids in sets if item in ids)
