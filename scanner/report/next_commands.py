"""The two commands that a summary recommends, which work as printed: they name the scan, the problem and the database."""

from __future__ import annotations

import shlex
from typing import Final, NamedTuple

from rich.console import Console
from rich.text import Text

from scanner.report.document import Document
from scanner.report.printing import line, one_line
from scanner.report.screen import Screen
from scanner.report.sentences import nothing_line

_CONTINUED: Final = " \\"


class Command(NamedTuple):
    """A command line, and what it does, as a clause."""

    text: str
    purpose: str


def next_commands(console: Console, document: Document, screen: Screen) -> None:
    """Print what to do next."""
    commands = [first(document, screen), second(document, screen)]
    longest = max(len(command.text) for command in commands)
    console.print()
    line(console, "Next:", style="bold")
    for command in commands:
        beside = f"  {command.text.ljust(longest)}   # {command.purpose}"
        if len(beside) <= console.width:
            one_line(console, Text(beside))
        else:
            line(console, f"  # {command.purpose}")
            _continued(console, command.text)
    if screen.note:
        line(console, screen.note)


def _continued(console: Console, command: str) -> None:
    """Print a command, which a shell reads across the ends of lines; only an argument that is wider than a line is wider."""
    current = " "
    for argument in shlex.split(command):
        quoted = shlex.quote(argument)
        if len(current) + len(quoted) + len(_CONTINUED) + 1 > console.width and current.strip():
            one_line(console, Text(f"{current}{_CONTINUED}"))
            current = "   "
        current = f"{current} {quoted}"
    one_line(console, Text(current))


def first(document: Document, screen: Screen) -> Command:
    """Explain the worst problem. Without problems, list previews or policies, or show how to scan something."""
    if document.worst:
        return Command(
            _line(screen, f"explain {document.worst[0].problem.id}"), "why the worst problem breaks its rule"
        )
    if document.changes.preview:
        scan = document.provenance.scan_id
        return Command(
            _line(screen, f"findings --scan {scan} --status preview", rules=True),
            "what the previewed policies would find",
        )
    if nothing_line(document):
        return Command(f"{screen.command} scan --help", "how to choose the cluster or files, and the policies")
    return Command(
        _line(screen, f"policies --scan {document.provenance.scan_id}"), "the policies, and what they matched"
    )


def second(document: Document, screen: Screen) -> Command:
    """Write the pages that show everything; where they are written already, list the problems."""
    if screen.pages:
        # The database does not know the baseline: its statuses are those of the history.
        by_status = document.problems.new and document.provenance.previous_scan_id and document.baseline is None
        new = " --status new" if by_status else ""
        problems = f"findings --problems --scan {document.provenance.scan_id}{new}"
        return Command(_line(screen, problems, rules=True), f"all {'new ' if new else ''}problems")
    return Command(
        _line(screen, f"report {document.provenance.scan_id} --html assay-report", rules=True),
        "every finding, as pages to browse",
    )


def _line(screen: Screen, arguments: str, *, rules: bool = False) -> str:
    """A command with the options that it needs; commands that print findings have those of `rules`, too."""
    parts = (screen.command, arguments, screen.rules if rules else "", screen.options)
    return " ".join(part for part in parts if part)
