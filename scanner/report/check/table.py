"""The table for a terminal: a line for each manifest, its reasons below, and one sentence about all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Final

from scanner.preview.verdict import AGREES, CheckedObject, Decision, Effect, Verdict
from scanner.report.check.document import (
    FIRST_NAMES,
    VERDICT_TEXTS,
    CheckDocument,
    describe_rule,
    group_equal_answers,
    name_object,
)
from scanner.report.text.evidence import describe_value

_MOST_CHANGES: Final = 20
_SHOWN: Final = (Effect.REFUSES, Effect.REFUSES_PODS, Effect.WARNS, Effect.UNDECIDED)


def list_lines(document: CheckDocument) -> list[str]:
    """The lines about single manifests, gaps and notes, not wrapped, and an empty one."""
    lines = list(_list_all(document))
    return [*lines, ""] if lines and lines[-1] else lines


def _list_all(document: CheckDocument) -> Iterator[str]:
    """An empty line follows a manifest with reasons."""
    result = document.result
    for first, *others in group_equal_answers(result.objects, _SHOWN):
        own = tuple(_describe_equal(document, (first, *others)) if others else _describe(document, first))
        yield from own
        yield from [""] if len(own) > 1 else []
    yield from (f"gap: {gap.where}: {gap.why}" for gap in result.gaps)
    yield from (f"note: {note}" for note in result.notes)


def list_sentences(document: CheckDocument) -> Iterator[str]:
    """The sentences about all manifests."""
    user = f" as user {document.result.user}" if document.result.user else ""
    yield f"Checked against {document.result.cluster.name}{user}. {document.verdict_sentence}"
    yield document.closing_sentence


def _describe_equal(document: CheckDocument, group: Sequence[CheckedObject]) -> Iterator[str]:
    """Many objects with the same answer: the number, the first names, each with the line that decided, and the answer once."""
    first = group[0]
    operation = f" ({first.operation})" if first.operation else ""
    yield f"{VERDICT_TEXTS[first.verdict]}: {len(group):,} objects with the same answer{operation}"
    yield from (f"  {name_object(each)}  {_name_place(document, each)}" for each in group[:FIRST_NAMES])
    yield f"  and {len(group) - FIRST_NAMES:,} more: -o json lists each"
    for decision in first.select(*_SHOWN):
        message, *more = decision.message.split("\n")
        yield f"  {describe_rule(decision)}: {message}"
        yield from (f"    {text}" for text in more)


def _name_place(document: CheckDocument, checked: CheckedObject) -> str:
    line = document.find_line(checked, checked.select(*_SHOWN)[0])
    return f"{checked.place.file}:{line}" if line else checked.place.source


def _describe(document: CheckDocument, checked: CheckedObject) -> Iterator[str]:
    operation = f" ({checked.operation})" if checked.operation else ""
    verdict = VERDICT_TEXTS[checked.verdict]
    yield f"{verdict}: {name_object(checked)}{operation}  {checked.place.source}"
    shown = (decision for decision in checked.decisions if decision.effect in _SHOWN)
    for rule, decisions in groupby(shown, describe_rule):
        yield from _describe_decisions(document, checked, rule, tuple(decisions))
    if checked.changes and checked.verdict is not Verdict.REFUSED:
        yield f"  changed by {', '.join(checked.changed_by) or 'mutating policies'}:"
        yield from (f"    {change}" for change in checked.changes[:_MOST_CHANGES])
        if len(checked.changes) > _MOST_CHANGES:
            yield f"    and {len(checked.changes) - _MOST_CHANGES} more"
    yield from _describe_answer(checked)


def _describe_answer(checked: CheckedObject) -> Iterator[str]:
    """The answer of the API server, if it is another one, or its reason, unless a decision has it."""
    server = checked.server
    if server is None or server.compared == AGREES:
        return
    if server.verdict is None and any(decision.message.endswith(server.why) for decision in checked.decisions):
        return
    verdict = VERDICT_TEXTS[server.verdict] if server.verdict else "not compared"
    yield f"  the API server: {'DIFFERENT: ' if server.differs else ''}{verdict}{f': {server.why}' if server.why else ''}"


def _describe_decisions(
    document: CheckDocument, checked: CheckedObject, rule: str, decisions: tuple[Decision, ...]
) -> Iterator[str]:
    """The decisions of one rule: each message with the line and the value of the field that decided."""
    begin = f"  {rule}: "
    if len(decisions) > 1:
        yield f"  {rule}:"
        begin = "    - "
    for decision in decisions:
        message, *more = decision.message.split("\n")
        yield f"{begin}{message}"
        indent = "    " if len(decisions) == 1 else "      "
        yield from (f"{indent}{text}" for text in (*more, *_list_places(document, checked, decision)))


def _list_places(document: CheckDocument, checked: CheckedObject, decision: Decision) -> Iterator[str]:
    """The line of the field that decided, and its value, as far as they are known."""
    line = document.find_line(checked, decision)
    at = f"{checked.place.file}:{line}" if line and decision.fields else ""
    reasons = (each for each in decision.evidence.reasons if each.path in decision.fields and not each.erred)
    shown = (each for each in islice(reasons, 1) if not each.path.startswith("variables."))
    value = next(map(describe_value, shown), "")
    yield from filter(None, ["  ".join(filter(None, (at, value)))])
