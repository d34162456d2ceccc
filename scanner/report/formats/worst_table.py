"""The worst problems on a terminal: what admission would do, where, which rule, since when, and whose.

A wide console has a line for each problem, a narrow one two. A change by a mutating policy is no violation, and never red.
"""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from scanner.model.outcome import Errored, WouldChange
from scanner.posture.worst_problems import WorstProblem
from scanner.report.document.document import Document
from scanner.report.document.sentences import is_compared
from scanner.report.text.names import owner_title
from scanner.report.text.numbers import plural
from scanner.report.text.printing import LONGEST_CELL, print_hanging, print_line, print_table, print_unwrapped, text_of
from scanner.report.text.safe_text import visible
from scanner.report.text.times import age_text
from scanner.report.text.titles import message_of

_ONE_LINE: Final = 118
"""The least width of a console that shows a problem on one line."""
_ELLIPSIS: Final = "…"
_INDENT: Final = "    "
_LEAST: Final = 8
_EFFECTS: Final = {
    "Deny": "refused",
    "RefusePods": "pods refused",
    "Warn": "warned",
    "Audit": "audited",
    "": "recorded",
}
_STYLES: Final = {"refused": "bold red", "pods refused": "red", "warned": "yellow", "changed": "cyan"}
_OWNER: Final = 20
_FIXED: Final = 14 + 8 + 6 * 2
"""The cells of id and severity in the table, and those between all columns."""


def print_worst_problems(console: Console, document: Document) -> None:
    """Print the worst problems, and how many there are."""
    if not document.worst:
        return
    total, shown = document.problems.open, len(document.worst)
    number = plural(total, "problem") if shown == total else f"{shown} of {plural(total, 'problem')}"
    console.print()
    print_line(console, f"Worst problems ({number}, those that would be refused first)", style="bold")
    if console.width < _ONE_LINE:
        for worst in document.worst:
            _print_two_lines(console, document, worst)
    else:
        _print_rows(console, document)


def effect(worst: WorstProblem) -> str:
    """The effect on the object: `refused`, `pods refused`, `warned`, `audited`, `changed`, or `admitted` despite an error."""
    if worst.problem.denies:
        return "refused"
    match worst.example.finding.outcome:
        case WouldChange():
            return "changed"
        case Errored():
            return "admitted"
        case _:
            action = worst.problem.action
            return "admitted" if action == "Deny" else _EFFECTS[action]


def place(worst: WorstProblem) -> str:
    """`Deployment shop/web`: the workload of a problem."""
    workload = worst.problem.workload
    name = f"{workload.namespace}/{workload.name}" if workload.namespace else workload.name
    return visible(f"{workload.kind} {name}")


def rule(document: Document, worst: WorstProblem) -> str:
    """The policy, and its title or the message of a finding."""
    finding = worst.example.finding
    title = document.triage.description(finding.policy_key).title
    meaning = title if title != finding.policy else message_of(finding)
    return visible(f"{document.title(finding.policy_key)}: {' '.join(meaning.split())}")


def age(document: Document, worst: WorstProblem) -> str:
    """The time since a problem began, until the scan, or `new` or `reopened`; empty in the first scan of a cluster."""
    status = worst.problem.status
    if status == "new" and not is_compared(document):
        return ""
    if status in ("new", "reopened"):
        return status
    return age_text(worst.problem.opened_at, document.provenance.ended_at)


def _severity(document: Document, worst: WorstProblem) -> str:
    return str(document.triage.severity(*worst.severity_key))


def _width_of_effects(document: Document) -> int:
    return max(_LEAST, *(len(effect(worst)) for worst in document.worst))


def _print_two_lines(console: Console, document: Document, worst: WorstProblem) -> None:
    """The id and the object on the first line, the rule on the second."""
    would_be, width = effect(worst), _width_of_effects(document)
    begin = f"  {worst.problem.id}  "
    severity = _severity(document, worst)
    head = Text.assemble((would_be.ljust(width), _style(would_be)), "  ", severity.ljust(_LEAST), "  ")
    where = text_of(console, place(worst), LONGEST_CELL)
    if len(begin) + head.cell_len + where.cell_len > console.width:
        head.rstrip()
        print_unwrapped(console, Text.assemble(begin, head))
        print_hanging(console, _INDENT, where)
    else:
        print_unwrapped(console, Text.assemble(begin, head, where))
    owner = _shorten(visible(owner_title(document.triage.owner(worst.problem))), console.width // 3)
    end = f" ({', '.join(part for part in (age(document, worst), owner) if part)})"
    safe_end = text_of(console, end).plain
    room = max(console.width - len(_INDENT) - cell_len(safe_end), _LEAST)
    rule_text = _shorten(text_of(console, rule(document, worst)).plain, room)
    print_unwrapped(console, text_of(console, f"{_INDENT}{rule_text}{safe_end}"))


def _shorten(text: str, room: int) -> str:
    """Text cut to a number of cells; a wide character has two."""
    return text if cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}{_ELLIPSIS}"


def _print_rows(console: Console, document: Document) -> None:
    """A line for each problem; the texts of unbounded length share the room that the others leave."""
    places = [place(worst) for worst in document.worst]
    owners = [_shorten(visible(owner_title(document.triage.owner(worst.problem))), _OWNER) for worst in document.worst]
    ages = [age(document, worst) for worst in document.worst]
    room = console.width - _FIXED - _width_of_effects(document) - max(map(cell_len, owners)) - max(map(cell_len, ages))
    for_place = min(max(map(cell_len, places)), room // 2)
    columns = {
        "Problem": [worst.problem.id for worst in document.worst],
        "Would be": [effect(worst) for worst in document.worst],
        "Severity": [_severity(document, worst) for worst in document.worst],
        "Workload": [_shorten(where, for_place) for where in places],
        "Rule": [_shorten(rule(document, worst), room - for_place) for worst in document.worst],
        "Age": ages,
        "Owner": owners,
    }
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    rows = list(zip(*shown.values(), strict=True))
    print_table(console, list(shown), rows, numbers=("Age",), styles={"Would be": _style}, gap=False)


def _style(cell: str) -> str:
    return _STYLES.get(cell, "")
