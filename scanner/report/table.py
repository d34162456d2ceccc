"""The report as a summary for a terminal: gaps first, then policies, namespaces, changes and the score.

Colours only on a terminal and without NO_COLOR (https://no-color.org); otherwise plain text. Names are text, never
markup: control characters, and characters that the terminal's encoding lacks, are printed as escapes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TextIO

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from scanner.model.opinion import Opinion
from scanner.posture.severity import Severity
from scanner.posture.waivers import WaiverState
from scanner.report.counts import Counts
from scanner.report.document import Document
from scanner.report.sentences import (
    changes_line,
    coverage_line,
    drift_line,
    excepted_line,
    findings_line,
    headline_of,
    namespace_title,
    nothing_line,
    opinion_line,
    outside_line,
    requester_line,
    rules_line,
    score_line,
    score_with_waivers_line,
    severities_line,
    verdict_of,
    waived_line,
    weighted_line,
    when_of,
    worst_namespaces,
    worst_owners,
    worst_policies,
)
from scanner.report.waivers import STATE_WORDS, WaiverLine
from scanner.report.words import HEALTH_TITLES, auditability, listed, owner_title, visible

_ROWS = 25
_LONGEST = 300
_LONGEST_CELL = 120
_PLAIN_WIDTH = 120
_ANY_WIDTH = 10_000
_NARROW = 12
_STYLES = {"Complete": "bold green", "Incomplete": "bold black on yellow"}
_BAD = "bold white on red"
_NUMBERS = ("Passed", "Violated", "Errored", "Skipped")
_SEVERITIES = tuple(severity.capitalize() for severity in Severity)
_SHORT = ("Severity",)
_COUNTED = (*_NUMBERS, *_SEVERITIES, "Objects", "Findings", "New", "Evaluations")


def render(document: Document, out: TextIO, *, environ: Mapping[str, str] = os.environ) -> None:
    """Write the summary to `out`, as wide as COLUMNS, else as the terminal, else 120 characters."""
    console = _console(out, environ)
    _heading(console, document)
    _policies(console, document)
    _namespaces(console, document)
    _owners(console, document)
    _health(console, document)
    _closing(console, document)


def _console(out: TextIO, environ: Mapping[str, str]) -> Console:
    columns = environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else None
    return Console(
        file=out,
        width=width or (None if out.isatty() else _PLAIN_WIDTH),
        no_color=bool(environ.get("NO_COLOR")),
        force_terminal=out.isatty(),
        highlight=False,
        markup=False,
        emoji=False,
    )


def _heading(console: Console, document: Document) -> None:
    provenance = document.provenance
    server = f" ({provenance.cluster.server_version})" if provenance.cluster.server_version else ""
    _print(console, f"Scan {provenance.scan_id} of {provenance.cluster.name}{server}, {when_of(document)}")
    if note := provenance.cluster.release.note:
        _print(console, note)
    headline = headline_of(document)
    state = Text(f" {headline.upper()} ", _STYLES.get(headline, _BAD))
    console.print(Text.assemble(state, " ", _text(console, verdict_of(document))))
    _items(console, document.coverage.unseen)
    _items(console, [f"excluded on request: {exclusion}" for exclusion in provenance.exclusions])
    if advice := nothing_line(document):
        _print(console, advice)


def _items(console: Console, items: Sequence[str]) -> None:
    for item in items[:_ROWS]:
        _print(console, f"  - {item}")
    if len(items) > _ROWS:
        _print(console, f"  {_ROWS} of {len(items):,} shown")


def _policies(console: Console, document: Document) -> None:
    rows = [
        (
            document.title(section.key),
            str(section.severity),
            listed(section.actions) or ("bound" if section.bindings else "not bound"),
            auditability(section.auditability),
            f"{section.matched:,}",
            *_numbers(section.counts),
            f"{section.findings.new:,}",
        )
        for section in worst_policies(document.policies)[:_ROWS]
    ]
    _show(console, ("Policy", "Severity", "Actions", "Auditability", "Objects", *_NUMBERS, "New"), rows)
    _cut(console, len(document.policies), "policies")


def _namespaces(console: Console, document: Document) -> None:
    rows = [
        (namespace_title(section.namespace), *_numbers(section.counts), f"{section.findings.new:,}")
        for section in worst_namespaces(document.namespaces)[:_ROWS]
    ]
    _show(console, ("Namespace", *_NUMBERS, "New"), rows)
    _cut(console, len(document.namespaces), "namespaces")


def _owners(console: Console, document: Document) -> None:
    rows = [
        (
            owner_title(section.owner),
            *(f"{section.of(severity):,}" for severity in Severity),
            f"{section.findings.total:,}",
            f"{section.findings.new:,}",
        )
        for section in worst_owners(document.owners)[:_ROWS]
    ]
    _show(console, ("Owner", *_SEVERITIES, "Findings", "New"), rows)
    _cut(console, len(document.owners), "owners")


def _health(console: Console, document: Document) -> None:
    rows = [
        (HEALTH_TITLES[problem.kind], document.title(problem.policy_key), problem.binding, problem.detail)
        for problem in document.health[:_ROWS]
    ]
    _show(console, ("Policy health", "Policy", "Binding", "Detail"), rows)
    _cut(console, len(document.health), "policy health entries")


def _closing(console: Console, document: Document) -> None:
    console.print()
    _print(console, f"Findings  {findings_line(document)}")
    _print(console, f"Severity  {severities_line(document)}")
    _print(console, f"Changes   {changes_line(document)}")
    if rules := rules_line(document):
        _print(console, f"Rules     {rules}")
    _print(console, f"Coverage  {coverage_line(document)}")
    _print(console, f"Score     {score_line(document)}")
    _print(console, f"Weighted  {weighted_line(document)}")
    if with_waivers := score_with_waivers_line(document):
        _print(console, f"          {with_waivers}")
    if waived := waived_line(document):
        _print(console, f"Waived    {waived}")
    _items(console, _waiver_troubles(document))
    if excepted := excepted_line(document):
        _print(console, f"Excepted  {excepted}")
    if drift := drift_line(document):
        _print(console, f"Drift     {drift}: drift is no violation, and not part of the score")
    if requester := requester_line(document):
        _print(console, f"Requester {requester}")
    if document.second_opinion:
        _opinion(console, document.second_opinion)
    if outside := outside_line(document):
        _print(console, f"Outside   {outside}: these also decide about requests, but are not evaluated")


def _waiver_troubles(document: Document) -> list[str]:
    """The waivers that waive nothing or end soon, and what was left out, a sentence for each."""
    section = document.waivers
    if section is None:
        return []
    lines = [line for line in section.lines if line.state is not WaiverState.ACTIVE]
    return [
        *(f"waiver {line.name} is {STATE_WORDS[line.state]}{_ending(line)}" for line in lines),
        *(f"no waiver: {fault}" for fault in section.faults),
        *section.notes,
    ]


def _ending(line: WaiverLine) -> str:
    """The end or the reason of a waiver's state, after the state."""
    if line.state in (WaiverState.EXPIRED, WaiverState.EXPIRING):
        return f": its last day is {line.until}"
    return f": {line.why}" if line.why else ""


def _opinion(console: Console, opinion: Opinion) -> None:
    """The second opinion, which decides nothing, at the end."""
    _print(console, f"Opinion   {opinion_line(opinion)}")
    _show(
        console, ("Known limit", "Evaluations"), [(limit.reason, f"{limit.evaluations:,}") for limit in opinion.limits]
    )
    rows = [
        (f"{differs.policy} {differs.place}", differs.object, differs.ours, differs.theirs)
        for differs in opinion.disagreements[:_ROWS]
    ]
    _show(console, ("Disagreement", "First object", "Verdict", opinion.engine), rows)
    _cut(console, len(opinion.disagreements) + opinion.left_out, "disagreements")


def _numbers(counts: Counts) -> tuple[str, ...]:
    return tuple(f"{number:,}" for number in (counts.passed, counts.violated, counts.errored, counts.unanswered))


def _show(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows as a table, or each as a line where a table is too wide."""
    if not rows:
        return
    table = _table(console, heads, rows)
    console.print()
    if Measurement.get(console, console.options.update(width=_ANY_WIDTH), table).minimum <= console.width:
        console.print(table)
        return
    for row in rows:
        _print(console, "; ".join(f"{head}: {cell}" for head, cell in zip(heads, row, strict=True) if cell))


def _table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for head in heads:
        number = head in _COUNTED
        table.add_column(
            head,
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=number,
            min_width=None if number or head in _SHORT else _NARROW,
        )
    for row in rows:
        table.add_row(*(_text(console, cell, _LONGEST_CELL) for cell in row))
    return table


def _cut(console: Console, total: int, noun: str) -> None:
    if total > _ROWS:
        _print(console, f"{_ROWS} of {total:,} {noun} shown; the HTML and JSON reports show all")


def _print(console: Console, sentence: str) -> None:
    console.print(_text(console, sentence))


def _text(console: Console, text: str, longest: int = _LONGEST) -> Text:
    """Text that is safe to print, cut to the length that a summary has room for."""
    shown = visible(text if len(text) <= longest else f"{text[: longest - 1]}…")
    return Text(shown.encode(console.encoding, "backslashreplace").decode(console.encoding))
