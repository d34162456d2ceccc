"""The answer as Markdown, for a comment on a pull request. Names and messages are text, never markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from scanner.preview.verdict import CheckedObject, Decision, Effect, Verdict
from scanner.report.check.document import (
    FIRST_NAMES,
    VERDICT_TEXTS,
    CheckDocument,
    describe_rule,
    group_equal_answers,
    name_object,
)
from scanner.report.text.comment import LONGEST_MESSAGE, fit, list_gaps
from scanner.report.text.safe_text import cut, escape_cell, escape_markdown, table_row

MARK: Final = "<!-- assay check -->"
"""The first line, by which a workflow finds its own comment."""
_MOST_CHANGES: Final = 10
_HEAD: Final = ("Object", "Verdict", "Why", "Where")
_SHOWN: Final = (Effect.REFUSES, Effect.REFUSES_PODS, Effect.UNDECIDED, Effect.WARNS)


def render(document: CheckDocument) -> str:
    """The lines, cut to the length of a comment."""
    head = [MARK, f"## {_write_title(document)}", "", escape_markdown(document.verdict_sentence), ""]
    tail = ["", escape_markdown(document.closing_sentence), ""]
    rows = [*_list_rows(document), *list_gaps("Not read", document.result.gaps)]
    return fit(head, rows, tail)


def _write_title(document: CheckDocument) -> str:
    result = document.result
    if result.is_refused:
        return "The cluster would refuse this"
    return "The cluster would admit this" if result.is_complete else "Not everything could be decided"


def _list_rows(document: CheckDocument) -> Iterator[str]:
    """The objects about which there is something to tell, as a table, and what would be changed below."""
    told = [each for each in document.result.objects if each.verdict is not Verdict.ADMITTED]
    if told:
        yield table_row(_HEAD)
        yield table_row(["---"] * len(_HEAD))
    for group in group_equal_answers(told, _SHOWN):
        for decision in group[0].select(*_SHOWN):
            yield table_row(_write_row(document, group, decision))
    for checked in document.result.objects:
        if checked.changes and checked.verdict is not Verdict.REFUSED:
            yield from _list_changes(checked)


def _write_row(document: CheckDocument, group: Sequence[CheckedObject], decision: Decision) -> list[str]:
    """The cells of a decision about objects with the same answer; the place is that of the first."""
    first = group[0]
    line = document.find_line(first, decision)
    place = f"{first.place.file}:{line}" if line else first.place.source
    names = ", ".join(map(name_object, group[:FIRST_NAMES]))
    more = f" and {len(group) - FIRST_NAMES:,} more" if len(group) > 1 else ""
    why = f"{describe_rule(decision)}: {cut(decision.message, LONGEST_MESSAGE)}"
    return [escape_cell(text) for text in (f"{names}{more}", VERDICT_TEXTS[first.verdict], why, place)]


def _list_changes(checked: CheckedObject) -> Iterator[str]:
    by = escape_markdown(", ".join(checked.changed_by) or "mutating policies")
    yield f"\n{escape_markdown(name_object(checked))} would be changed by {by}:\n"
    for change in checked.changes[:_MOST_CHANGES]:
        yield f"- {escape_markdown(cut(str(change), LONGEST_MESSAGE))}"
    if len(checked.changes) > _MOST_CHANGES:
        yield f"- and {len(checked.changes) - _MOST_CHANGES} more"
