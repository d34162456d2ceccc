"""The report as a summary for a terminal, which ends with what to do next.

The verdict comes first, then what is incomplete, the worst problems, the policies and two commands. A wide summary also has the
namespaces, controls, owners and policy health. Names are text, never markup: control characters, and characters that the
terminal's encoding lacks, are printed as escapes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TextIO

from rich.console import Console
from rich.text import Text

from scanner.model.scans.health import Health
from scanner.model.scans.opinion import Opinion
from scanner.model.scans.problem_numbers import GroupedProblems
from scanner.posture.severity import Severity
from scanner.posture.waivers.waivers import WaiverState
from scanner.report.document.counts import CheckCounts
from scanner.report.document.document import Document
from scanner.report.document.notes import manifest_notes, missing_rights, rights_heading
from scanner.report.document.sentences import (
    changes_line,
    clocks_line,
    controls_line,
    coverage_line,
    drift_line,
    excepted_line,
    findings_line,
    headline_of,
    health_line,
    kyverno_of,
    list_out_of_scope,
    namespace_title,
    nothing_line,
    opinion_line,
    preview_line,
    requester_line,
    rules_line,
    score_line,
    score_with_waivers_line,
    severities_line,
    sources_line,
    sums_note,
    vendors_line,
    verdict_line,
    verdict_of,
    waived_line,
    weighted_line,
    when_of,
    whole_policies_note,
    worst_controls,
    worst_namespaces,
    worst_owners,
)
from scanner.report.document.waivers import STATE_WORDS, WaiverLine
from scanner.report.formats.policy_table import print_policies
from scanner.report.formats.worst_table import print_worst_problems
from scanner.report.text import printing
from scanner.report.text.names import owner_title
from scanner.report.text.numbers import join_texts
from scanner.report.text.printing import (
    ROWS,
    Command,
    command_line,
    console_of,
    print_commands,
    print_cut_note,
    print_items,
    print_line,
    text_of,
)
from scanner.report.text.screen import Screen
from scanner.report.text.titles import CONTROL_STATES, HEALTH_TITLES

_STYLES: Final = {"Complete": "bold green", "Incomplete": "bold black on yellow"}
_BAD: Final = "bold white on red"
_NUMBERS: Final = ("Checks\npassed", "Violated", "Errored", "Would\nchange", "Skipped")
_REFUSED: Final = "Refused\nproblems"
_SEVERITIES: Final = tuple(severity.capitalize() for severity in Severity)
_COUNTED: Final = (*_NUMBERS, *_SEVERITIES, _REFUSED, "Objects", "Findings", "Findings\nnew", "New", "Evaluations")
_TITLE: Final = 10
"""The width of the titles of the facts at the end, with a space."""
_LONGEST_BANNER: Final = 1_000
_PLAIN: Final = Screen()


def render(
    document: Document, out: TextIO, *, environ: Mapping[str, str] = os.environ, screen: Screen = _PLAIN
) -> None:
    """Write the summary to `out`: as wide as COLUMNS, else as the terminal; otherwise no line is wrapped."""
    console = console_of(out, environ, screen.color)
    _print_heading(console, document)
    _print_incomplete(console, document)
    print_worst_problems(console, document)
    print_policies(console, document, wide=screen.wide)
    if screen.wide:
        _print_namespaces(console, document)
        _print_controls(console, document)
        _print_owners(console, document)
        _print_health(console, document)
    _print_closing(console, document, wide=screen.wide)
    print_next_commands(console, document, screen)


def _print_heading(console: Console, document: Document) -> None:
    """The scan, its state and the numbers of problems, and a banner for what makes them differ from an earlier scan's."""
    provenance = document.provenance
    releases = join_texts(filter(None, (provenance.cluster.server_version, kyverno_of(document))))
    scan = f"Scan {provenance.scan_id} of {provenance.cluster.name}{f' ({releases})' if releases else ''}"
    printing.print_parts(console, Text(), [scan, *when_of(document).split(", ")])
    kyverno_note = document.method.kyverno_note if document.method else ""
    for note in filter(None, (provenance.cluster.release.note, kyverno_note, clocks_line(document))):
        print_line(console, note)
    headline = headline_of(document)
    state = Text(f" {headline.upper()} ", _STYLES.get(headline, _BAD))
    printing.print_parts(console, Text.assemble(state), verdict_line(document))
    if rules := rules_line(document):
        _print_banner(console, "RULES CHANGED", rules, "bold black on cyan")
    for manifest in manifest_notes(document):
        _print_banner(console, manifest.title.upper(), f"{manifest.text}.", "bold black on yellow")
    if previews := preview_line(document):
        _print_banner(console, "PREVIEW", previews, "bold black on magenta")


def _print_banner(console: Console, word: str, sentence: str, style: str) -> None:
    for number, wrapped in enumerate(
        Text.assemble((f" {word} ", style), " ", text_of(console, sentence, _LONGEST_BANNER)).wrap(
            console, console.width
        )
    ):
        wrapped.rstrip()
        printing.print_unwrapped(console, Text.assemble(" " if number else "", wrapped))


def _print_incomplete(console: Console, document: Document) -> None:
    """The parts that the scan missed, and those that the user left out."""
    if not document.complete or document.left_out:
        console.print()
        print_line(console, verdict_of(document), style="" if document.complete else "bold")
    print_items(console, document.coverage.unseen)
    if rights := missing_rights(document):
        print_line(console, rights_heading(rights))
        print_items(console, [right.right for right in rights[:ROWS]])
        print_cut_note(console, len(rights), "missing rights")
    elif advice := nothing_line(document):
        print_line(console, advice)


def _print_namespaces(console: Console, document: Document) -> None:
    problems = document.problems_by_namespace
    rows = [
        (
            namespace_title(section.namespace),
            f"{problems.numbers_of(section.namespace).refused:,}",
            *_numbers(document.count_in_namespace(section)),
            f"{section.findings.new:,}",
        )
        for section in worst_namespaces(document.namespaces)[:ROWS]
    ]
    _print_rows(console, ("Namespace", _REFUSED, *_NUMBERS, "Findings\nnew"), rows)
    print_cut_note(console, len(document.namespaces), "namespaces")
    _print_sums(console, problems, "namespace")


def _print_sums(console: Console, problems: GroupedProblems, noun: str) -> None:
    """The reason why the refused problems of a table add up to another number than the verdict's, if they do."""
    if note := sums_note(problems, noun):
        print_line(console, f"  {note}")


def _print_controls(console: Console, document: Document) -> None:
    """A line for each framework, and the controls that are violated or errored."""
    for framework in document.controls:
        problems = document.problems_by_control(framework)
        console.print()
        print_line(console, f"{framework.heading}: {controls_line(framework)}")
        note = whole_policies_note(framework)
        print_items(
            console,
            [
                *([note] if note else []),
                *(
                    f"control {control.id}: no policy has the {selector}"
                    for control in framework.controls
                    for selector in control.unmatched
                ),
            ],
        )
        rows = [
            (
                control.id,
                control.title,
                CONTROL_STATES[control.state],
                "not known" if control.objects is None else f"{control.objects:,}",
                f"{problems.numbers_of(control.id).refused:,}",
                f"{control.findings.total:,}",
                f"{control.findings.new:,}",
            )
            for control in worst_controls(framework)
        ]
        _print_rows(console, ("Control", "Title", "State", "Objects", _REFUSED, "Findings", "New"), rows[:ROWS])
        print_cut_note(console, len(rows), "controls")
        _print_sums(console, problems, "control")


def _print_owners(console: Console, document: Document) -> None:
    problems = document.problems_by_owner
    rows = [
        (
            owner_title(section.owner),
            f"{problems.numbers_of(section.owner).refused:,}",
            *(f"{section.of(severity):,}" for severity in Severity),
            f"{section.findings.total:,}",
            f"{section.findings.new:,}",
        )
        for section in worst_owners(document.owners)[:ROWS]
    ]
    _print_rows(console, ("Owner", _REFUSED, *_SEVERITIES, "Findings", "New"), rows)
    print_cut_note(console, len(document.owners), "owners")
    _print_sums(console, problems, "owner")


def _print_health(console: Console, document: Document) -> None:
    if document.health:
        console.print()
        print_line(console, "Policy health", style="bold")
    print_items(console, [_health_text(document, problem) for problem in document.health[:ROWS]])
    print_cut_note(console, len(document.health), "policy health entries")


def _health_text(document: Document, problem: Health) -> str:
    binding = f", binding {problem.binding}" if problem.binding else ""
    return f"{HEALTH_TITLES[problem.kind]}: {document.title(problem.policy_key)}{binding}: {problem.detail}"


def _print_closing(console: Console, document: Document, *, wide: bool) -> None:
    console.print()
    if wide:
        _print_fact(console, "Findings", findings_line(document))
        _print_fact(console, "Severity", severities_line(document))
        _print_fact(console, "Changes", changes_line(document))
        _print_fact(console, "Weighted", weighted_line(document))
    _print_fact(console, "Score", score_line(document))
    _print_fact(console, "", score_with_waivers_line(document))
    _print_fact(console, "Coverage", coverage_line(document))
    _print_fact(console, "Waived", waived_line(document))
    print_items(console, _waiver_troubles(document))
    _print_fact(console, "Excepted", excepted_line(document))
    if drift := drift_line(document):
        _print_fact(console, "Drift", f"{drift}: drift is no violation, and not part of the score")
    if not wide:
        for framework in document.controls:
            _print_fact(console, "Controls", f"{framework.heading}: {controls_line(framework)}")
        _print_fact(console, "Health", health_line(document))
    _print_fact(console, "Requester", requester_line(document))
    if document.second_opinion:
        _print_opinion(console, document.second_opinion)
    _print_fact(console, "Sources", sources_line(document))
    _print_fact(console, "Vendors", vendors_line(document))
    for note in document.notes:
        _print_fact(console, "Note", note)
    for unneeded in filter(None, list_out_of_scope(document)):
        _print_fact(console, "Scope", f"out of scope: {unneeded}")
    if not wide:
        _print_fact(console, "More", "--wide also prints namespaces, owners, controls and policy health")


def _print_fact(console: Console, title: str, sentence: str) -> None:
    """A title and a sentence, nothing without a sentence."""
    if sentence:
        printing.print_hanging(console, title.ljust(_TITLE), text_of(console, sentence))


def _waiver_troubles(document: Document) -> list[str]:
    """The waivers that waive nothing or end soon, and what was left out, a sentence for each."""
    section = document.waivers
    if section is None:
        return []
    lines = [line for line in section.lines if line.state is not WaiverState.ACTIVE]
    return [
        *(f"waiver {line.name} is {STATE_WORDS[line.state]}{_explain_state(line)}" for line in lines),
        *(f"no waiver: {fault}" for fault in section.faults),
        *section.notes,
    ]


def _explain_state(line: WaiverLine) -> str:
    """The end or the reason of a waiver's state, after the state."""
    if line.state in (WaiverState.EXPIRED, WaiverState.EXPIRING):
        return f": its last day is {line.until}"
    return f": {line.why}" if line.why else ""


def _print_opinion(console: Console, opinion: Opinion) -> None:
    """The second opinion, which decides nothing, at the end."""
    _print_fact(console, "Opinion", opinion_line(opinion))
    _print_rows(
        console, ("Known limit", "Evaluations"), [(limit.reason, f"{limit.evaluations:,}") for limit in opinion.limits]
    )
    rows = [
        (f"{differs.policy} {differs.place}", differs.object, differs.ours, differs.theirs)
        for differs in opinion.disagreements[:ROWS]
    ]
    _print_rows(console, ("Disagreement", "First object", "Verdict", opinion.engine), rows)
    print_cut_note(console, len(opinion.disagreements) + opinion.left_out, "disagreements")


def _numbers(counts: CheckCounts) -> tuple[str, ...]:
    return tuple(
        f"{number:,}"
        for number in (counts.passed, counts.violated, counts.errored, counts.would_change, counts.unanswered)
    )


def _print_rows(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    printing.print_table(console, heads, rows, numbers=_COUNTED)


# The commands that a summary recommends: they name missing rights, and lead to the worst problem, and to everything.


def print_next_commands(console: Console, document: Document, screen: Screen) -> None:
    """Print what to do after a scan."""
    if screen.replayed:
        keep = f"{screen.command} scan --from {screen.replayed} --record-as NAME"
        print_commands(console, [Command(keep, "keep the replay in a history, and explain its problems")], screen)
        return
    missing = [*_recommend_rights(document, screen)]
    begin = [] if missing and nothing_line(document) else [_first_command(document, screen)]
    print_commands(console, [*missing, *begin, _second_command(document, screen)], screen)


def _recommend_rights(document: Document, screen: Screen) -> Iterator[Command]:
    """Name the rights that the scan lacked, and how to grant them."""
    missing = missing_rights(document)
    if missing and screen.rights:
        yield Command(f"{screen.command} {screen.rights}", "which rights are missing, and how to grant them")


def _first_command(document: Document, screen: Screen) -> Command:
    """Explain the worst problem. Without problems, list previews or policies, or show how to scan something."""
    if document.worst:
        return Command(
            command_line(screen, f"explain {document.worst[0].problem.id}"), "why the worst problem breaks its rule"
        )
    if document.changes.preview:
        scan = document.provenance.scan_id
        return Command(
            command_line(screen, f"findings --scan {scan} --status preview", rules=True),
            "what the previewed policies would find",
        )
    if nothing_line(document):
        return Command(f"{screen.command} scan --help", "how to choose the cluster or files, and the policies")
    return Command(
        command_line(screen, f"policies --scan {document.provenance.scan_id}"), "the policies, and what they matched"
    )


def _second_command(document: Document, screen: Screen) -> Command:
    """Write the pages that show everything; where they are written already, list the problems."""
    if screen.pages:
        # The database does not know the baseline: its statuses are those of the history.
        by_status = document.problems.new and document.provenance.previous_scan_id and document.baseline is None
        new = " --status new" if by_status else ""
        problems = f"findings --problems --scan {document.provenance.scan_id}{new}"
        return Command(command_line(screen, problems, rules=True), f"all {'new ' if new else ''}problems")
    return Command(
        command_line(screen, f"report {document.provenance.scan_id} --html assay-report", rules=True),
        "every finding, as pages to browse",
    )
