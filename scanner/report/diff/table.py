"""The difference of two scans as text of at most 80 columns, apart from long names."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from scanner.model.scans.cause import CauseKind
from scanner.posture.history.scan_diff import DifferingProblem, RuleDifference, ScanDiff
from scanner.posture.score import SeverityOf, default_severity
from scanner.posture.waivers.waiving import NO_WAIVER_CHANGES, WaiverChanges
from scanner.report.diff.words import (
    DIFF_CAUSES,
    EQUAL_TEXT,
    RULE_TITLES,
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
from scanner.report.text.numbers import join_texts, plural
from scanner.report.text.safe_text import visible
from scanner.report.text.titles import CAUSES

_WIDTH: Final = 80
_LONGEST: Final = 300
_RULE_LINES: Final = 40
_GAPS: Final = 10
_ROW: Final = "      "


def lines(
    diff: ScanDiff,
    limit: int | None,
    severity: SeverityOf = default_severity,
    waivers: WaiverChanges = NO_WAIVER_CHANGES,
) -> Iterator[str]:
    """The lines of a difference, with at most `limit` problems of each cause and as many rules; None is no limit."""
    yield from _list_incomparable(diff)
    yield from _warnings(diff, limit)
    yield from _wrap(f"Earlier scan: {scan_title(diff.before)}")
    yield from _wrap(f"Later scan:   {scan_title(diff.now)}")
    yield from _wrap(f"Cluster:      {visible(diff.now.cluster.name)}")
    yield ""
    yield from _wrap(rules_sentence(diff) or "The rules are equal in both scans.")
    yield from _wrap(f"Problems: {counts_line(count_problems(diff))}. Findings: {counts_line(count_findings(diff))}.")
    if diff.unchecked:
        yield from _wrap(
            f"Not checked: {plural(diff.unchecked, 'finding')} that the later scan left open and did not check."
        )
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
        yield from _wrap(f"{warning.word}: {warning.sentence}")
        most = limit if limit is None else min(limit, _GAPS)
        for gap in warning.gaps[:most]:
            yield from _wrap(visible(gap_words(gap)), "  ")
        if most is not None and len(warning.gaps) > most:
            yield f"  {plural(len(warning.gaps) - most, 'more item')}: print all with --limit 0"
        yield ""


def _list_incomparable(diff: ScanDiff) -> Iterator[str]:
    if not diff.incomparable:
        return
    yield from _wrap(incomparable_sentence(diff))
    for value in incomparable_values(diff):
        yield from _wrap(f"{value.part}: {visible(value.before)}; now {visible(value.now)}", "  ")
    yield ""


def _cause(diff: ScanDiff, kind: CauseKind, limit: int | None, severity: SeverityOf) -> Iterator[str]:
    yield f"Cause {kind}: {DIFF_CAUSES[kind]}"
    yield from _wrap(f"problems: {counts_line(count_problems(diff, kind))}", "  ")
    yield from _wrap(f"findings: {counts_line(count_findings(diff, kind))}", "  ")
    shown = 0
    for problem in diff.list_problems(kind, limit):
        shown += 1
        yield from _problem(problem, severity)
    if more := diff.problems_of(kind) - shown:
        yield f"  {plural(more, 'more problem')}: print all with --limit 0"


def _problem(problem: DifferingProblem, severity: SeverityOf) -> Iterator[str]:
    """The change, the severity and the place of a problem, its workload, and its message."""
    how_bad = severity(*problem.severity_key)
    also = f" (also {join_texts(problem.cause.also)})" if problem.cause.also else ""
    yield from _wrap(f"{change_words(problem)}  {problem.id}  {how_bad}  {visible(problem.policy)}{also}", "  ")
    state = problem.now or problem.before
    states = f": {state_words(state)}" if state else ""
    yield from _wrap(f"{visible(workload_words(problem))}{states}", _ROW)
    for mark, message in message_lines(problem):
        text = visible(message)
        short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        yield from _wrap(f"{mark} {short}".lstrip(), _ROW)


def _waivers(changes: WaiverChanges, limit: int | None) -> Iterator[str]:
    """The problems that are waived in one of the scans: open in both, with the same outcome."""
    yield f"Cause {CauseKind.WAIVER}: {CAUSES[CauseKind.WAIVER]}"
    yield from _wrap(f"problems: {counts_text(changes)}", "  ")
    rows = list(waiver_rows(changes))
    for row in rows[:limit]:
        yield from _wrap(f"{row.change}  {row.id}  {visible(row.policy)}", "  ")
        yield from _wrap(f"{visible(row.workload)}: waiver {visible(row.waiver)}", _ROW)
    if limit is not None and len(rows) > limit:
        yield f"  {plural(len(rows) - limit, 'more problem')}: print all with --limit 0"


def _rules(diff: ScanDiff, limit: int | None) -> Iterator[str]:
    yield "Rules changed"
    for value in circumstances(diff):
        yield from _wrap(f"changed  {value.part}: {visible(value.before)}; now {visible(value.now)}", "  ")
    for difference in diff.rules[:limit]:
        yield from _rule(difference)
    if limit is not None and len(diff.rules) > limit:
        yield f"  {plural(len(diff.rules) - limit, 'more rule')}: print all with --limit 0"


def _rule(difference: RuleDifference) -> Iterator[str]:
    title = f"{RULE_TITLES[difference.kind]} {visible(difference.name)}"
    yield from _wrap(f"{rule_change(difference):<8} {title}", "  ")
    shown, more = cut_lines(rule_lines(difference), _RULE_LINES)
    if not shown:
        yield f"{_ROW}{EQUAL_TEXT}"
    for line in shown:
        yield from _fold(visible(line))
    if more:
        yield f"{_ROW}{plural(more, 'more line')}: -o json has all"


def _fold(line: str) -> Iterator[str]:
    """A line of a diff; the rest of a long one follows below, further to the right."""
    room = _WIDTH - len(_ROW)
    yield f"{_ROW}{line[:room]}".rstrip()
    rest = line[room:]
    while rest:
        yield f"{_ROW}    {rest[: room - 4]}".rstrip()
        rest = rest[room - 4 :]


def _wrap(text: str, indent: str = "") -> Iterator[str]:
    following = f"{indent}  "
    return iter(
        textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=following,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
