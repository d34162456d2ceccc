"""The worst problems on a terminal: what admission would do, where, what is wrong, which rule, since when, and whose.

A wide console has a row for each problem, a narrow one some lines. A change by a mutating policy is no violation, and never red.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from scanner.posture.triage import Triage
from scanner.posture.worst_problems import WorstProblem
from scanner.report.document.document import Document
from scanner.report.document.sentences import is_compared
from scanner.report.lists.problem_facts import effect_of
from scanner.report.text.names import owner_title
from scanner.report.text.numbers import plural
from scanner.report.text.printing import LONGEST_CELL, print_hanging, print_line, print_table, print_unwrapped, text_of
from scanner.report.text.safe_text import visible
from scanner.report.text.times import age_text
from scanner.report.text.titles import sentence_of

_ONE_LINE: Final = 118
"""The least width of a console that shows problems as a table, if no workload is cut in it."""
_ELLIPSIS: Final = "…"
_INDENT: Final = "    "
_LEAST: Final = 8
_STYLES: Final = {"refused": "bold red", "pods refused": "red", "warned": "yellow", "changed": "cyan"}
_OWNER: Final = 20
_MESSAGE: Final = 160
_LEAST_MESSAGE: Final = 24
"""The least width of messages in the table, which are wrapped into three lines at most."""
_RULE: Final = 28
_FIXED: Final = 14 + 8 + 7 * 2
"""The cells of id and severity in the table, and those between all columns."""


def print_worst_problems(console: Console, document: Document) -> None:
    """Print the worst problems, and how many there are."""
    if not document.worst:
        return
    total, shown = document.problems.open, len(document.worst)
    number = plural(total, "problem") if shown == total else f"{shown} of {plural(total, 'problem')}"
    console.print()
    print_line(console, f"Worst problems ({number}, those that would be refused first)", style="bold")
    columns = _Columns.of(document)
    for_messages = console.width - columns.width
    if console.width >= _ONE_LINE and for_messages >= min(columns.longest_message, _LEAST_MESSAGE):
        _print_rows(console, document, columns, for_messages)
        return
    for worst in document.worst:
        _print_lines(console, document, worst)


def effect(worst: WorstProblem) -> str:
    """The effect on the worst object, as `effect_of` has it."""
    problem = worst.problem
    return effect_of(worst.example.finding.outcome, denies=problem.denies, action=problem.action)


def place(worst: WorstProblem) -> str:
    """`Deployment shop/web`: the workload of a problem."""
    workload = worst.problem.workload
    name = f"{workload.namespace}/{workload.name}" if workload.namespace else workload.name
    return visible(f"{workload.kind} {name}")


def problem_sentence(triage: Triage, worst: WorstProblem) -> str:
    """What is wrong with the worst object of a problem."""
    finding = worst.example.finding
    return visible(sentence_of(finding, triage.description(finding.policy_key).title))


def rule(document: Document, worst: WorstProblem) -> str:
    """The policy, and the check of it."""
    finding = worst.example.finding
    check = document.name_check(finding.policy_key, finding.check)
    return visible(f"{document.title(finding.policy_key)}{f' {check}' if check else ''}")


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


def _print_lines(console: Console, document: Document, worst: WorstProblem) -> None:
    """The id and the object on the first line, what is wrong and the rule below."""
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
    end = ", ".join(part for part in (rule(document, worst), age(document, worst), owner) if part)
    message = _shorten(problem_sentence(document.triage, worst), _MESSAGE)
    print_hanging(console, _INDENT, text_of(console, f"{message} ({end})", _MESSAGE + LONGEST_CELL))


def _shorten(text: str, room: int) -> str:
    """Text cut to a number of cells; a wide character has two."""
    return text if cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}{_ELLIPSIS}"


class _Columns(NamedTuple):
    """The cells whose lengths decide whether problems have room in a table."""

    places: list[str]
    messages: list[str]
    rules: list[str]
    ages: list[str]
    owners: list[str]
    effects: int

    @classmethod
    def of(cls, document: Document) -> _Columns:
        owners = [visible(owner_title(document.triage.owner(worst.problem))) for worst in document.worst]
        return cls(
            places=[place(worst) for worst in document.worst],
            messages=[problem_sentence(document.triage, worst) for worst in document.worst],
            rules=[_shorten(rule(document, worst), _RULE) for worst in document.worst],
            ages=[age(document, worst) for worst in document.worst],
            owners=[_shorten(owner, _OWNER) for owner in owners],
            effects=_width_of_effects(document),
        )

    @property
    def width(self) -> int:
        """The width of all columns but the messages."""
        cut_nowhere = self.places, self.rules, self.ages, self.owners
        return _FIXED + self.effects + sum(max(map(cell_len, cells)) for cells in cut_nowhere)

    @property
    def longest_message(self) -> int:
        return max(map(cell_len, self.messages))


def _print_rows(console: Console, document: Document, cells: _Columns, for_messages: int) -> None:
    """A row for each problem; messages are wrapped in the room that the other columns leave."""
    columns = {
        "Id": [worst.problem.id for worst in document.worst],
        "Would be": [effect(worst) for worst in document.worst],
        "Severity": [_severity(document, worst) for worst in document.worst],
        "Workload": cells.places,
        "Problem": [_shorten(message, 3 * for_messages) for message in cells.messages],
        "Rule": cells.rules,
        "Age": cells.ages,
        "Owner": cells.owners,
    }
    shown = {head: column for head, column in columns.items() if any(column)}
    rows = list(zip(*shown.values(), strict=True))
    print_table(console, list(shown), rows, numbers=("Age",), styles={"Would be": _style}, gap=False)


def _style(cell: str) -> str:
    return _STYLES.get(cell, "")
