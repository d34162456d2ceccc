"""The report as Markdown, for the summary of a job or a comment on a pull request. Names and messages are text, never markup.

GitHub takes at most 65,536 characters in a comment. Lists that would be longer are cut, and each one counts its rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TextIO

from scanner.model.scans.problem_numbers import GroupedProblems, OpenProblems
from scanner.posture.waivers.waivers import WaiverState
from scanner.posture.worst_problems import WorstProblem
from scanner.report.document.below_severity import SummaryContent, summarize
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.counts import NOTHING, FindingCounts
from scanner.report.document.document import Document
from scanner.report.document.notes import manifest_notes
from scanner.report.document.sentences import (
    changes_line,
    coverage_line,
    gaps_of,
    headline_of,
    namespace_title,
    nothing_line,
    preview_line,
    rules_line,
    score_line,
    sums_note,
    verdict_line,
    verdict_of,
    waived_line,
    when_of,
    worst_owners,
    worst_policies,
)
from scanner.report.document.waivers import STATE_WORDS, WaiverLine
from scanner.report.formats.worst_table import age, effect, place, rule
from scanner.report.text.names import owner_title
from scanner.report.text.numbers import plural
from scanner.report.text.safe_text import cut, escape_markdown, table_row
from scanner.report.text.titles import cause_text, name_actions, sentence_of

LONGEST: Final = 65_536
"""The most characters of a comment on GitHub; a job summary may have 1 MiB."""
_MESSAGE: Final = 300
_NOTE: Final = 120
"""The most characters of the note below a list that is cut."""
_WORST: Final = ("Problem", "Would be", "Severity", "Workload", "Rule", "Message", "Status", "Owner")
_REFUSED: Final = "Refused problems"
_POLICIES: Final = (
    *("Policy", "Severity", "Action", _REFUSED, "Violated", "Errored", "Would change", "Preview", "Passed"),
    "New findings",
)
_COUNTS: Final = (_REFUSED, "Findings", "New findings")
_WAIVERS: Final = ("Waiver", "State", "Last day", "Findings", "Problems")


class _MarkdownList(NamedTuple):
    """A list or a table: the lines before it, and a line for each item. `total` items are counted by `nouns`, one and several."""

    heading: tuple[str, ...]
    lines: Sequence[str]
    nouns: tuple[str, str]
    total: int
    after: str = ""


def render(document: Document, out: TextIO) -> None:
    """Write the report, at most `LONGEST` characters. Long lists share the room that the others leave."""
    shown = summarize(document)
    first = [*_write_beginning(document, shown.left_out)]
    lists = [each for each in _lists(document, shown) if each.lines or each.after]
    out.writelines(f"{line}\n" for line in first)
    room = LONGEST - sum(len(line) + 1 for line in first)
    for number, each in enumerate(lists):
        for line in _fit(each, room // (len(lists) - number)):
            out.write(f"{line}\n")
            room -= len(line) + 1


def _fit(each: _MarkdownList, room: int) -> Iterator[str]:
    """The lines of a list that have room, and below them the number of all, if some are left out."""
    room -= sum(len(line) + 1 for line in each.heading) + len(each.after) + 2 + _NOTE
    if room < 0:
        return
    yield from each.heading
    shown = 0
    for line in each.lines:
        room -= len(line) + 1
        if room < 0:
            break
        yield line
        shown += 1
    if shown < len(each.lines):
        yield ""
        number = plural(each.total, *each.nouns)
        yield f"{shown:,} of {number} shown: GitHub takes at most {LONGEST:,} characters."
    if each.after:
        yield ""
        yield each.after


def _write_beginning(document: Document, left_out: str) -> Iterator[str]:
    """The verdict and the facts, which no list displaces."""
    provenance = document.provenance
    yield f"# {headline_of(document)}: {escape_markdown(' · '.join(verdict_line(document)))}"
    yield ""
    name = escape_markdown(cut(provenance.cluster.name, _MESSAGE))
    yield f"Cluster {name}, scan `{provenance.scan_id}`, {escape_markdown(when_of(document))}."
    notes = (cut(f"{note.title}: {note.text}.", _MESSAGE) for note in manifest_notes(document))
    for text in (
        verdict_of(document),
        nothing_line(document),
        rules_line(document),
        *notes,
        preview_line(document),
        f"{left_out}." if left_out else "",
    ):
        if text:
            yield ""
            yield escape_markdown(text)
    yield ""
    facts = {
        "Score": score_line(document),
        "Coverage": coverage_line(document),
        "Changes": changes_line(document),
        "Waivers": waived_line(document),
    }
    yield from (f"- {title}: {escape_markdown(cut(text, _MESSAGE))}" for title, text in facts.items() if text)


def _lists(document: Document, shown: SummaryContent) -> Iterator[_MarkdownList]:
    yield _list_missed(document)
    yield _list_new(document, shown)
    yield _list_worst(document, shown)
    yield _policies(document, shown)
    yield _namespaces(shown)
    yield _owners(shown)
    yield _waivers(document)


def _list_missed(document: Document) -> _MarkdownList:
    """The parts that the scan could not examine: an incomplete report must not look clean."""
    number = gaps_of(document)
    items = (
        [] if document.complete else [f"- {escape_markdown(cut(text, _MESSAGE))}" for text in document.coverage.unseen]
    )
    heading = ("", f"**Not examined ({plural(number, 'item')}):**", "")
    return _MarkdownList(heading, items, ("line", "lines"), len(items))


def _list_new(document: Document, shown: SummaryContent) -> _MarkdownList:
    """The problems that are new since the baseline, however many worse ones there are."""
    baseline = document.baseline
    rows = [_problem(document, worst) for worst in shown.new]
    title = f"New since {escape_markdown(baseline.title)} ({_number(len(rows), shown.total_new)})" if baseline else ""
    return _table(title, _WORST, rows, ("problem", "problems"), shown.total_new)


def _list_worst(document: Document, shown: SummaryContent) -> _MarkdownList:
    total = shown.total
    rows = [_problem(document, worst) for worst in shown.worst]
    return _table(f"Worst problems ({_number(len(rows), total)})", _WORST, rows, ("problem", "problems"), total)


def _number(some: int, total: int) -> str:
    return plural(total, "problem") if some == total else f"{some} of {plural(total, 'problem')}"


def _problem(document: Document, worst: WorstProblem) -> tuple[str, ...]:
    finding = worst.example.finding
    return (
        worst.problem.id,
        effect(worst),
        str(document.triage.severity(*finding.severity_key)),
        place(worst),
        _rule(document, worst),
        sentence_of(finding, document.triage.description(finding.policy_key).title),
        _status(document, worst),
        owner_title(document.triage.owner(worst.problem)),
    )


def _status(document: Document, worst: WorstProblem) -> str:
    """`new: the policy changed`, `open, 12 d`: the status, and the cause or the age of the problem."""
    status, cause = worst.problem.status, worst.problem.cause
    if status == "open":
        status = f"open, {age(document, worst)}"
    return f"{status}: {cause_text(cause)}" if cause else status


def _rule(document: Document, worst: WorstProblem) -> str:
    """The policy, and its title if it has one."""
    finding = worst.example.finding
    title = document.triage.description(finding.policy_key).title
    return rule(document, worst) + (f": {title}" if title != finding.policy else "")


def _policies(document: Document, shown: SummaryContent) -> _MarkdownList:
    sections = [section for section in worst_policies(shown.policies) if _needs_attention(section)]
    others = len(shown.policies) - len(sections)
    rows = [_policy(document, section) for section in sections]
    head, *columns = _drop_zeros([_POLICIES, *rows])
    table = _table("Policies", head, columns, ("policy", "policies"))
    other = "other " if rows else ""
    after = f"{plural(others, f'{other}policy', f'{other}policies')} without a failing check." if others else ""
    return table._replace(after=after)


def _drop_zeros(lines: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """A heading and rows without the columns in which every row has 0."""
    columns = [column for column in zip(*lines, strict=True) if set(column[1:]) != {"0"}]
    return list(zip(*columns, strict=True))


def _needs_attention(section: PolicySection) -> bool:
    return bool(section.counts.failing or section.counts.would_change)


def _policy(document: Document, section: PolicySection) -> tuple[str, ...]:
    counts, findings = document.count_in_force(section), section.findings
    preview = document.previews.get(section.key, NOTHING)
    numbers = (
        *(document.open_problems(section.key).refused, counts.violated, counts.errored, counts.would_change),
        *(preview.failing + preview.would_change, counts.passed, findings.new),
    )
    return (
        document.title(section.key),
        str(section.severity),
        ", ".join(name_actions(section.actions)),
        *_numbers(*numbers),
    )


def _namespaces(shown: SummaryContent) -> _MarkdownList:
    problems = shown.by_namespace
    rows = [
        (namespace_title(namespace), *_counts(problems.numbers_of(namespace), findings))
        for namespace, findings in sorted(shown.namespaces.items(), key=lambda each: (-each[1].total, each[0]))
        if findings.total > findings.preview
    ]
    table = _table("Namespaces", ("Namespace", *_COUNTS), rows, ("namespace", "namespaces"))
    return table._replace(after=_sums(problems, "namespace"))


def _owners(shown: SummaryContent) -> _MarkdownList:
    problems = shown.by_owner
    rows = [
        (owner_title(each.owner), *_counts(problems.numbers_of(each.owner), each.findings))
        for each in worst_owners(shown.owners)
        if each.findings.total > each.findings.preview
    ]
    table = _table("Owners", ("Owner", *_COUNTS), rows, ("owner", "owners"))
    return table._replace(after=_sums(problems, "owner"))


def _waivers(document: Document) -> _MarkdownList:
    """The waivers of the report: those that end or waive nothing first."""
    waivers = document.waivers.lines if document.waivers else ()
    rows = [_waiver(line) for line in sorted(waivers, key=lambda line: (line.state is WaiverState.ACTIVE, line.until))]
    return _table("Waivers", _WAIVERS, rows, ("waiver", "waivers"))


def _waiver(line: WaiverLine) -> tuple[str, ...]:
    return line.name, STATE_WORDS[line.state], f"{line.until}", *_numbers(line.findings, line.problems)


def _counts(problems: OpenProblems, findings: FindingCounts) -> tuple[str, ...]:
    """The number of refused problems, and those of findings and of new ones, without previews."""
    return _numbers(problems.refused, findings.total - findings.preview, findings.new)


def _sums(problems: GroupedProblems, noun: str) -> str:
    """The reason why the refused problems of a table add up to another number than the verdict's, as a sentence; else empty."""
    note = sums_note(problems, noun)
    return f"{note}." if note else ""


def _numbers(*numbers: int) -> tuple[str, ...]:
    return tuple(f"{number:,}" for number in numbers)


def _table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], nouns: tuple[str, str], total: int | None = None
) -> _MarkdownList:
    lines = [table_row([escape_markdown(cut(cell, _MESSAGE)) for cell in cells]) for cells in rows]
    heading = ("", f"## {title}", "", table_row(head), table_row(("---",) * len(head))) if rows else ()
    return _MarkdownList(heading, lines, nouns, len(rows) if total is None else total)
