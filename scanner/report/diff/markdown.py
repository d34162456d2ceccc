"""The difference of two scans as Markdown, for a merge request or an issue. Names and messages are text, never markup."""

from __future__ import annotations

import re
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
from scanner.report.text.safe_text import cut, escape_markdown, table_row, visible
from scanner.report.text.titles import CAUSES

_RULE_LINES: Final = 200
_LONGEST: Final = 1000
_HEAD: Final = ("Change", "Problem", "Severity", "Policy", "Workload", "Findings", "Also", "Message")
_WAIVER_HEAD: Final = ("Change", "Problem", "Policy", "Workload", "Waiver")
_FENCE: Final = re.compile("`+")


def lines(
    diff: ScanDiff,
    limit: int | None,
    severity: SeverityOf = default_severity,
    waivers: WaiverChanges = NO_WAIVER_CHANGES,
) -> Iterator[str]:
    """The lines of a difference, with at most `limit` problems of each cause and as many rules; None is no limit."""
    yield f"# Changes in {escape_markdown(diff.now.cluster.name)}"
    yield ""
    yield from _list_incomparable(diff)
    yield from _warnings(diff, limit)
    yield f"- Earlier scan: {escape_markdown(scan_title(diff.before))}"
    yield f"- Later scan: {escape_markdown(scan_title(diff.now))}"
    yield ""
    yield rules_sentence(diff) or "The rules are equal in both scans."
    yield ""
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
        yield f"**{warning.word}**: {warning.sentence}"
        yield ""
        if not warning.gaps:
            continue
        yield from (f"- {escape_markdown(gap_words(gap))}" for gap in warning.gaps[:limit])
        if limit is not None and len(warning.gaps) > limit:
            yield f"- {plural(len(warning.gaps) - limit, 'more item')}: print all with `--limit 0`."
        yield ""


def _list_incomparable(diff: ScanDiff) -> Iterator[str]:
    if not diff.incomparable:
        return
    yield f"**{incomparable_sentence(diff)}**"
    yield ""
    for value in incomparable_values(diff):
        yield f"- {value.part}: {escape_markdown(value.before)}; now {escape_markdown(value.now)}"
    yield ""


def _cause(diff: ScanDiff, kind: CauseKind, limit: int | None, severity: SeverityOf) -> Iterator[str]:
    yield f"## Cause: {DIFF_CAUSES[kind]}"
    yield ""
    problems, findings = count_problems(diff, kind), count_findings(diff, kind)
    yield f"Problems: {counts_line(problems)}. Findings: {counts_line(findings)}."
    shown = 0
    for problem in diff.list_problems(kind, limit):
        if not shown:
            yield ""
            yield table_row(_HEAD)
            yield table_row(("---",) * len(_HEAD))
        shown += 1
        yield table_row(tuple(map(escape_markdown, _cells(problem, severity))))
    if more := diff.problems_of(kind) - shown:
        yield ""
        yield f"{plural(more, 'more problem')}: print all with `--limit 0`."


def _cells(problem: DifferingProblem, severity: SeverityOf) -> tuple[str, ...]:
    state = problem.now or problem.before
    messages = (cut(message, _LONGEST) for _, message in message_lines(problem))
    return (
        change_words(problem),
        problem.id,
        str(severity(*problem.severity_key)),
        problem.policy,
        workload_words(problem),
        state_words(state) if state else "",
        join_texts(problem.cause.also),
        " → ".join(messages),
    )


def _waivers(changes: WaiverChanges, limit: int | None) -> Iterator[str]:
    """The problems that are waived in one of the scans: open in both, with the same outcome."""
    yield f"## Cause: {CAUSES[CauseKind.WAIVER]}"
    yield ""
    yield f"Problems: {counts_text(changes)}."
    yield ""
    yield table_row(_WAIVER_HEAD)
    yield table_row(("---",) * len(_WAIVER_HEAD))
    rows = list(waiver_rows(changes))
    yield from (table_row(tuple(map(escape_markdown, row))) for row in rows[:limit])
    if limit is not None and len(rows) > limit:
        yield ""
        yield f"{plural(len(rows) - limit, 'more problem')}: print all with `--limit 0`."


def _rules(diff: ScanDiff, limit: int | None) -> Iterator[str]:
    yield "## Rules changed"
    for value in circumstances(diff):
        yield ""
        yield f"{value.part} changed: {escape_markdown(value.before)}; now {escape_markdown(value.now)}"
    for difference in diff.rules[:limit]:
        yield ""
        yield from _rule(difference)
    if limit is not None and len(diff.rules) > limit:
        yield ""
        yield f"{plural(len(diff.rules) - limit, 'more rule')}: print all with `--limit 0`."


def _rule(difference: RuleDifference) -> Iterator[str]:
    """The title of a rule, and the difference of its text as a block."""
    shown, more = cut_lines(map(visible, rule_lines(difference)), _RULE_LINES)
    equal = "" if shown else f" {EQUAL_TEXT}"
    yield f"{rule_change(difference)}: {RULE_TITLES[difference.kind]} {escape_markdown(difference.name)}{equal}"
    # A fence that is longer than any in the text ends the block, and nothing within does.
    fence = "`" * max(3, 1 + max((len(match) for line in shown for match in _FENCE.findall(line)), default=0))
    if shown:
        yield ""
        yield f"{fence}diff"
        yield from shown
        yield fence
    if more:
        yield ""
        yield f"{plural(more, 'more line')}: `-o json` has all."
