"""Policies on a terminal: the numbers of their checks, without rows and columns that have only zeros.

Where a console is too narrow for the table, each policy has its name and the numbers that are not 0.

A check is one rule evaluated for one object, so its numbers are no numbers of objects; only a wide summary has both, with the
unit in each heading. What admission would refuse is counted in problems, as in the verdict. Changes by mutating policies and previews have columns of their own, because neither is a violation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from scanner.report.document.by_policy import PolicySection
from scanner.report.document.counts import NOTHING, CheckCounts
from scanner.report.document.document import Document
from scanner.report.document.sentences import worst_policies
from scanner.report.text.numbers import join_texts, plural
from scanner.report.text.printing import (
    ROWS,
    Style,
    fits,
    print_cut_note,
    print_hanging,
    print_line,
    print_parts,
    print_table,
    text_of,
)
from scanner.report.text.titles import auditability, name_actions

_LEAST_NAME: Final = 24


class _PolicyRow(NamedTuple):
    """A policy with the counts of its bindings in force, of those that `--assume-bound` added, and its problems that are refused, or whose pods are."""

    section: PolicySection
    bound: CheckCounts
    preview: CheckCounts
    refused: int
    pods: int


Cell: TypeAlias = Callable[[_PolicyRow], str]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column. Those of the highest `rank` are left out first where a console is narrow; `rank` 0 always stays.

    `word` follows a number where there is no table.
    """

    head: str
    cell: Cell
    word: str = ""
    rank: int = 0
    number: bool = True
    wide: bool = False
    style: str = ""


def _count(number_of: Callable[[_PolicyRow], int]) -> Cell:
    return lambda row: f"{number_of(row):,}"


_COLUMNS: Final = (
    _Column("Severity", lambda row: str(row.section.severity), rank=2, number=False),
    _Column("Action", lambda row: _action(row.section), rank=1, number=False),
    _Column("Auditability", lambda row: auditability(row.section.auditability), number=False, wide=True),
    _Column("Objects\nmatched", _count(lambda row: row.section.matched), "objects matched", wide=True),
    _Column("Checks\npassed", _count(lambda row: row.bound.passed), "passed", wide=True),
    _Column(
        "Refused",
        _count(lambda row: row.refused),
        "refused",
        style="bold red",
    ),
    _Column("Pods\nrefused", _count(lambda row: row.pods), "with refused pods", style="red"),
    _Column("Violated", _count(lambda row: row.bound.violated), "violated"),
    _Column("Errored", _count(lambda row: row.bound.errored), "errored"),
    _Column("Would\nchange", _count(lambda row: row.bound.would_change), "would change", style="cyan"),
    _Column(
        "Preview",
        _count(lambda row: row.preview.failing + row.preview.would_change),
        "previewed",
        style="magenta",
    ),
    _Column("Skipped", _count(lambda row: row.section.counts.unanswered), "skipped", wide=True),
    _Column("Excepted", _count(lambda row: row.section.counts.excepted), "excepted", wide=True),
    _Column("New", _count(lambda row: row.section.findings.new), "new", rank=3),
)


def print_policies(console: Console, document: Document, *, wide: bool) -> None:
    """Print the policies with results that need attention, worst first, and how many others there are."""
    sections = worst_policies(document.policies)
    if not sections:
        return
    rows = [_row(document, section) for section in sections if wide or _needs_attention(section)]
    if rows:
        console.print()
        print_line(console, f"Policies ({_unit(rows, wide=wide)})", style="bold")
        _print_rows(console, document, rows, wide=wide)
        print_cut_note(console, len(rows), "policies")
    if len(rows) < len(sections):
        if not rows:
            console.print()
        _print_others(console, [section for section in sections if not _needs_attention(section)], some=bool(rows))


def _unit(rows: Sequence[_PolicyRow], *, wide: bool) -> str:
    """The units of the numbers of the table."""
    others = [
        *(["Refused in problems"] if any(row.refused or row.pods for row in rows) else []),
        *(["matched in objects"] if wide else []),
    ]
    if not others:
        return "in checks; a check is one rule evaluated for one object"
    return f"{join_texts(others)}, the rest in checks: one rule for one object"


def _print_rows(console: Console, document: Document, rows: Sequence[_PolicyRow], *, wide: bool) -> None:
    columns = _columns(console, [_title(document, row) for row in rows], rows, wide=wide)
    heads = ("Policy", *(column.head for column in columns))
    shown = [(_title(document, row), *(column.cell(row) for column in columns)) for row in rows[:ROWS]]
    numbers = [column.head for column in columns if column.number]
    if not fits(console, heads, shown, numbers):
        for row in rows[:ROWS]:
            _print_row(console, document, row, wide=wide)
        return
    styles = {column.head: _style_unless_zero(column.style) for column in columns if column.style}
    print_table(console, heads, shown, numbers=numbers, styles=styles, gap=False)


def _print_row(console: Console, document: Document, row: _PolicyRow, *, wide: bool) -> None:
    """A policy without a table: its name, severity and actions, and below them the numbers that are not 0."""
    columns = [column for column in _COLUMNS if wide or not column.wide]
    texts = join_texts(column.cell(row) for column in columns if not column.number)
    print_hanging(console, "  ", text_of(console, f"{_title(document, row)}: {texts}"))
    cells = [(column, column.cell(row)) for column in columns if column.number]
    words = [f"{cell} {column.word}" for column, cell in cells if cell != "0"]
    print_parts(console, Text("   "), words or [_reason(row.section)])


def _columns(console: Console, names: Sequence[str], rows: Sequence[_PolicyRow], *, wide: bool) -> list[_Column]:
    """The columns with a number, as many as a console has room for."""
    columns = [
        column
        for column in _COLUMNS
        if (wide or not column.wide) and not (column.number and all(column.cell(row) == "0" for row in rows))
    ]
    room = console.width - min(max(map(cell_len, names)), _LEAST_NAME)
    for rank in (3, 2, 1):
        if not wide and sum(_width(column, rows) + 2 for column in columns) > room:
            columns = [column for column in columns if column.rank != rank]
    return columns


def _width(column: _Column, rows: Sequence[_PolicyRow]) -> int:
    return max(*map(len, column.head.split("\n")), *(len(column.cell(row)) for row in rows))


def _style_unless_zero(style: str) -> Style:
    return lambda cell: "" if cell == "0" else style


def _title(document: Document, row: _PolicyRow) -> str:
    return document.title(row.section.key)


def _row(document: Document, section: PolicySection) -> _PolicyRow:
    preview, problems = document.previews.get(section.key, NOTHING), document.open_problems(section.key)
    return _PolicyRow(section, document.count_in_force(section), preview, problems.refused, problems.pods_refused)


def _needs_attention(section: PolicySection) -> bool:
    counts = section.counts
    return bool(counts.failing or counts.would_change or section.findings.total)


def _action(section: PolicySection) -> str:
    if not section.bindings:
        return "not bound"
    return join_texts(name_actions(section.actions)) or "bound"


def _print_others(console: Console, sections: Sequence[PolicySection], *, some: bool) -> None:
    """The policies without a row, by the reason."""
    numbers = Counter(map(_reason, sections))
    reasons = join_texts(f"{number:,} {reason}" for reason, number in numbers.most_common())
    other = "other " if some else ""
    print_line(console, f"{plural(len(sections), f'{other}policy', f'{other}policies')}: {reasons}")


def _reason(section: PolicySection) -> str:
    if not section.bindings:
        return "not bound"
    if not section.matched:
        return "matched no object"
    return "passed every check" if not section.counts.unanswered else "passed, or skipped, every check"
