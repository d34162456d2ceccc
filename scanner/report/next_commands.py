"""The commands that a summary recommends: they name missing rights, and lead to the worst problem, and to everything."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from scanner.report.commands import Command, command_line, print_commands
from scanner.report.document import Document
from scanner.report.missing_rights import missing_rights
from scanner.report.screen import Screen
from scanner.report.sentences import nothing_line


def next_commands(console: Console, document: Document, screen: Screen) -> None:
    """Print what to do after a scan."""
    missing = [*rights(document, screen)]
    begin = [] if missing and nothing_line(document) else [first(document, screen)]
    print_commands(console, [*missing, *begin, second(document, screen)], screen)


def rights(document: Document, screen: Screen) -> Iterator[Command]:
    """Name the rights that the scan lacked, and how to grant them."""
    missing = missing_rights(document)
    if missing and screen.rights:
        yield Command(f"{screen.command} {screen.rights}", "which rights are missing, and how to grant them")


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
        # The database does not know the baseline: its statuses are those of the history.
        by_status = document.problems.new and document.provenance.previous_scan_id and document.baseline is None
        new = " --status new" if by_status else ""
        problems = f"findings --problems --scan {document.provenance.scan_id}{new}"
        return Command(command_line(screen, problems, rules=True), f"all {'new ' if new else ''}problems")
    return Command(
        command_line(screen, f"report {document.provenance.scan_id} --html assay-report", rules=True),
        "every finding, as pages to browse",
    )
