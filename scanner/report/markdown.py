"""The report as Markdown, for the summary of a job or a comment on a pull request. Names and messages are text, never markup.

GitHub takes at most 65,536 characters in a comment. Lines that do not fit are left out, and the last line counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from scanner.posture.worst_problems import WorstProblem
from scanner.report.by_policy import PolicySection
from scanner.report.document import Document
from scanner.report.markdown_text import escaped, table_row
from scanner.report.sentences import (
    changes_line,
    coverage_line,
    headline_of,
    namespace_title,
    nothing_line,
    rules_line,
    score_line,
    verdict_line,
    waived_line,
    when_of,
    worst_namespaces,
    worst_owners,
    worst_policies,
)
from scanner.report.words import cut, message_of, owner_title, plural
from scanner.report.worst_table import age, effect, place

LONGEST: Final = 65_536
"""The most characters of a comment on GitHub; a job summary may have 1 MiB."""
_MESSAGE: Final = 300
_NOTE: Final = 100
_WORST: Final = ("Problem", "Would be", "Severity", "Workload", "Rule", "Message", "Age", "Owner", "Waiver")
_POLICIES: Final = ("Policy", "Severity", "Action", "Violated", "Errored", "Would change", "Passed", "New findings")
_COUNTS: Final = ("Findings", "New", "Would be refused")


def render(document: Document, out: TextIO) -> None:
    """Write the report, at most `LONGEST` characters."""
    room = LONGEST - _NOTE
    left_out = 0
    for line in _lines(document):
        if left_out or len(line) + 1 > room:
            left_out += 1
            continue
        room -= len(line) + 1
        out.write(f"{line}\n")
    if left_out:
        out.write(f"\n{plural(left_out, 'line')} left out: GitHub takes at most {LONGEST:,} characters.\n")


def _lines(document: Document) -> Iterator[str]:
    provenance = document.provenance
    yield f"# {headline_of(document)}: {escaped(' · '.join(verdict_line(document)))}"
    yield ""
    yield f"Cluster {escaped(provenance.cluster.name)}, scan `{provenance.scan_id}`, {escaped(when_of(document))}."
    yield from _missed(document)
    yield from _paragraph(rules_line(document))
    yield from _worst(document)
    yield from _policies(document)
    yield from _sections(document)
    yield ""
    yield f"- Score: {escaped(score_line(document))}"
    yield f"- Coverage: {escaped(coverage_line(document))}"
    yield f"- Changes: {escaped(changes_line(document))}"
    if waived := waived_line(document):
        yield f"- Waivers: {escaped(waived)}"


def _missed(document: Document) -> Iterator[str]:
    """What the scan could not examine: an incomplete report must not look clean."""
    yield from _paragraph(nothing_line(document))
    if document.complete:
        return
    yield ""
    yield f"**Not examined ({plural(len(document.coverage.unseen), 'item')}):**"
    yield ""
    for text in document.coverage.unseen:
        yield f"- {escaped(cut(text, _MESSAGE))}"


def _paragraph(text: str) -> Iterator[str]:
    if text:
        yield ""
        yield escaped(text)


def _worst(document: Document) -> Iterator[str]:
    if not document.worst:
        return
    shown, total = len(document.worst), document.problems.open
    number = plural(total, "problem") if shown == total else f"{shown} of {plural(total, 'problem')}"
    yield from _heading(f"Worst problems ({number})")
    yield from _table(_WORST, [_problem(document, worst) for worst in document.worst])


def _problem(document: Document, worst: WorstProblem) -> tuple[str, ...]:
    finding = worst.example.finding
    waiver = worst.problem.waiver
    return (
        worst.problem.id,
        effect(worst),
        str(document.triage.severity(finding.policy_key)),
        place(worst),
        _rule(document, worst),
        cut(message_of(finding), _MESSAGE),
        age(document, worst),
        owner_title(document.triage.owner(worst.problem)),
        waiver.name if waiver else "",
    )


def _rule(document: Document, worst: WorstProblem) -> str:
    """The policy, and its title if it has one."""
    finding = worst.example.finding
    title = document.triage.description(finding.policy_key).title
    return document.title(finding.policy_key) + (f": {title}" if title != finding.policy else "")


def _policies(document: Document) -> Iterator[str]:
    sections = [section for section in worst_policies(document.policies) if _needs_attention(section)]
    if sections:
        yield from _heading("Policies, in checks")
        yield from _table(_POLICIES, [_policy(document, section) for section in sections])
    if others := len(document.policies) - len(sections):
        yield ""
        yield f"{plural(others, 'policy', 'policies')} without a failing check."


def _needs_attention(section: PolicySection) -> bool:
    return bool(section.counts.failing or section.counts.would_change)


def _policy(document: Document, section: PolicySection) -> tuple[str, ...]:
    counts = section.counts
    numbers = counts.violated, counts.errored, counts.would_change, counts.passed, section.findings.new
    return (
        document.title(section.key),
        str(section.severity),
        ", ".join(section.actions),
        *(f"{number:,}" for number in numbers),
    )


def _sections(document: Document) -> Iterator[str]:
    if document.namespaces:
        yield from _heading("Namespaces")
        yield from _table(
            ("Namespace", *_COUNTS),
            [
                (
                    namespace_title(each.namespace),
                    *_numbers(each.findings.total, each.findings.new, each.findings.would_deny),
                )
                for each in worst_namespaces(document.namespaces)
                if each.findings.total
            ],
        )
    if document.owners:
        yield from _heading("Owners")
        yield from _table(
            ("Owner", *_COUNTS),
            [
                (owner_title(each.owner), *_numbers(each.findings.total, each.findings.new, each.findings.would_deny))
                for each in worst_owners(document.owners)
            ],
        )


def _numbers(*numbers: int) -> tuple[str, ...]:
    return tuple(f"{number:,}" for number in numbers)


def _heading(text: str) -> Iterator[str]:
    yield ""
    yield f"## {text}"
    yield ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield table_row(head)
    yield table_row(("---",) * len(head))
    for cells in rows:
        yield table_row([escaped(cell) for cell in cells])
