"""The two commands that a summary recommends: they lead to the worst problem, and to everything."""

from __future__ import annotations

from rich.console import Console

from scanner.report.commands import Command, command_line, print_commands
from scanner.report.document import Document
from scanner.report.screen import Screen
from scanner.report.sentences import nothing_line


def next_commands(console: Console, document: Document, screen: Screen) -> None:
    """Print what to do after a scan."""
    print_commands(console, [first(document, screen), second(document, screen)], screen)


def first(document: Document, screen: Screen) -> Command:
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


def second(document: Document, screen: Screen) -> Command:
    """Write the pages that show everything; where they are written already, list the problems."""
    if screen.pages:
        new = " --status new" if document.problems.new and document.provenance.previous_scan_id else ""
        problems = f"findings --problems --scan {document.provenance.scan_id}{new}"
        return Command(command_line(screen, problems, rules=True), f"all {'new ' if new else ''}problems")
    return Command(
        command_line(screen, f"report {document.provenance.scan_id} --html assay-report", rules=True),
        "every finding, as pages to browse",
    )
