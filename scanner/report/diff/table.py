"""The difference of two scans as text that keeps to the width of a terminal, and to 80 columns, apart from long names."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

from scanner.model.scans.cause import CauseKind
from scanner.posture.history.scan_diff import DifferingProblem, RuleDifference, ScanDiff
from scanner.posture.score import SeverityOf, default_severity
from scanner.posture.waivers.waiving import NO_WAIVER_CHANGES, WaiverChanges
from scanner.report.diff.words import (
    DIFF_CAUSES,
    EQUAL_TEXT,
    RULE_TITLES,
    also_words,
    change_words,
    circumstances,
    count_findings,
    count_problems,
    counts_line,
    counts_text,
    cut_lines,
    gap_words,
    incomparable_sentence,
    incomparable_values,
    message_lines,
    rule_change,
    rule_lines,
    rules_sentence,
    scan_title,
    state_words,
    waiver_rows,
    warnings,
    workload_words,
)
from scanner.report.text.numbers import plural
from scanner.report.text.safe_text import visible
from scanner.report.text.titles import CAUSES

WIDTH: Final = 80
"""The columns of text that readers still follow with ease."""
_LONGEST: Final = 300
_RULE_LINES: Final = 40
_GAPS: Final = 10
_ROW: Final = "      "
_BREAKS: Final = " ./,(:"


class _RuleLine(NamedTuple):
    """A line of the difference of a rule, whose spaces count."""

    text: str


def lines(
    diff: ScanDiff,
    limit: int | None,
    severity: SeverityOf = default_severity,
    waivers: WaiverChanges = NO_WAIVER_CHANGES,
    width: int = WIDTH,
) -> Iterator[str]:
    """The lines of a difference, with at most `limit` problems of each cause and as many rules; None is no limit."""
    for line in _lines(diff, limit, severity, waivers):
        yield from _fold(line.text, width) if isinstance(line, _RuleLine) else _wrap(line, width)


def _lines(
    diff: ScanDiff, limit: int | None, severity: SeverityOf, waivers: WaiverChanges
) -> Iterator[str | _RuleLine]:
    yield from _list_incomparable(diff)
    yield from _warnings(diff, limit)
    yield f"Earlier scan: {scan_title(diff.before)}"
    yield f"Later scan:   {scan_title(diff.now)}"
    yield f"Cluster:      {visible(diff.now.cluster.name)}"
    yield ""
    yield rules_sentence(diff) or "The rules are equal in both scans."
    yield f"Problems: {counts_line(count_problems(diff))}. Findings: {counts_line(count_findings(diff))}."
    if diff.unchecked:
        yield f"Not checked: {plural(diff.unchecked, 'finding')} that the later scan left open and did not check."
    for kind in diff.causes:
        yield ""
        yield from _cause(diff, kind, limit, severity)
    if waivers.waived or waivers.no_longer:
        yield ""
        yield from _waivers(waivers, limit)
    if diff.rules_changed:
        yield ""
        yield from _rules(diff, limit)


def _warnings(diff: ScanDiff, limit: int | None) -> Iterator[str]:
    for warning in warnings(diff):
        yield f"{warning.word}: {warning.sentence}"
        most = limit if limit is None else min(limit, _GAPS)
        for gap in warning.gaps[:most]:
            yield f"  {visible(gap_words(gap))}"
        if most is not None and len(warning.gaps) > most:
            yield f"  {plural(len(warning.gaps) - most, 'more item')}: print all with --limit 0"
        yield ""


def _list_incomparable(diff: ScanDiff) -> Iterator[str]:
    if not diff.incomparable:
        return
    yield incomparable_sentence(diff)
    for value in incomparable_values(diff):
        yield f"  {value.part}: {visible(value.before)}; now {visible(value.now)}"
    yield ""


def _cause(diff: ScanDiff, kind: CauseKind, limit: int | None, severity: SeverityOf) -> Iterator[str]:
    yield f"Cause: {DIFF_CAUSES[kind]}"
    yield f"  problems: {counts_line(count_problems(diff, kind))}"
    yield f"  findings: {counts_line(count_findings(diff, kind))}"
    shown = 0
    for problem in diff.list_problems(kind, limit):
        shown += 1
        yield from _problem(problem, severity)
    if more := diff.problems_of(kind) - shown:
        yield f"  {plural(more, 'more problem')}: print all with --limit 0"


def _problem(problem: DifferingProblem, severity: SeverityOf) -> Iterator[str]:
    """The change, the severity and the place of a problem, its workload, and its message."""
    how_bad = severity(*problem.severity_key)
    also = f" ({also_words(problem)})" if problem.cause.also else ""
    yield f"  {change_words(problem)}  {problem.id}  {how_bad}  {visible(problem.policy)}{also}"
    state = problem.now or problem.before
    states = f": {state_words(state)}" if state else ""
    yield f"{_ROW}{visible(workload_words(problem))}{states}"
    for mark, message in message_lines(problem):
        text = visible(message)
        short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        yield f"{_ROW}{f'{mark} {short}'.lstrip()}"


def _waivers(changes: WaiverChanges, limit: int | None) -> Iterator[str]:
    """The problems that are waived in one of the scans: open in both, with the same outcome."""
    yield f"Cause: {CAUSES[CauseKind.WAIVER]}"
    yield f"  problems: {counts_text(changes)}"
    rows = list(waiver_rows(changes))
    for row in rows[:limit]:
        yield f"  {row.change}  {row.id}  {visible(row.policy)}"
        yield f"{_ROW}{visible(row.workload)}: waiver {visible(row.waiver)}"
    if limit is not None and len(rows) > limit:
        yield f"  {plural(len(rows) - limit, 'more problem')}: print all with --limit 0"


def _rules(diff: ScanDiff, limit: int | None) -> Iterator[str | _RuleLine]:
    yield "Rules changed"
    for value in circumstances(diff):
        yield f"  changed  {value.part}: {visible(value.before)}; now {visible(value.now)}"
    for difference in diff.rules[:limit]:
        yield from _rule(difference)
    if limit is not None and len(diff.rules) > limit:
        yield f"  {plural(len(diff.rules) - limit, 'more rule')}: print all with --limit 0"


def _rule(difference: RuleDifference) -> Iterator[str | _RuleLine]:
    title = f"{RULE_TITLES[difference.kind]} {visible(difference.name)}"
    yield f"  {rule_change(difference):<8} {title}"
    shown, more = cut_lines(rule_lines(difference), _RULE_LINES)
    if not shown:
        yield f"{_ROW}{EQUAL_TEXT}"
    for line in shown:
        yield _RuleLine(visible(line))
    if more:
        yield f"{_ROW}{plural(more, 'more line')}: -o json has all"


def _fold(line: str, width: int) -> Iterator[str]:
    """A line of a diff; the rest of a long one follows below, further to the right."""
    indent, room = _ROW, width - len(_ROW)
    while True:
        end = _find_break(line, room)
        yield f"{indent}{line[:end]}".rstrip()
        line = line[end:]
        if not line:
            return
        indent, room = f"{_ROW}    ", width - len(_ROW) - 4


def _find_break(line: str, room: int) -> int:
    """The place at which a line of a program ends: after a space or a mark, unless that leaves half of the room empty."""
    if len(line) <= room:
        return len(line)
    end = max(line.rfind(each, 0, room) for each in _BREAKS) + 1
    return end if end > room // 2 else room


def _wrap(line: str, width: int) -> Iterator[str]:
    """A line, wrapped; what follows is indented by two more spaces."""
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    if not text:
        return iter([""])
    return iter(
        textwrap.wrap(
            text,
            width,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
