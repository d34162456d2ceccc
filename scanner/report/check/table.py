"""The table for a terminal: a line for each manifest, its reasons below, and one sentence about all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from scanner.preview.verdict import CheckedObject, Decision, Effect, Verdict
from scanner.report.check.document import (
    EFFECT_TEXTS,
    FIRST_NAMES,
    NOT_EVALUATED,
    VERDICT_TEXTS,
    CheckDocument,
    group_equal_answers,
    name_object,
    name_rule,
)

_MOST_CHANGES: Final = 20
_SHOWN: Final = (Effect.REFUSES, Effect.REFUSES_PODS, Effect.WARNS, Effect.UNDECIDED)


def list_lines(document: CheckDocument) -> Iterator[str]:
    """The lines, not wrapped."""
    result = document.result
    for first, *others in group_equal_answers(result.objects, _SHOWN):
        yield from _describe_equal([first, *others]) if others else _describe(document, first)
    for gap in result.gaps:
        yield f"gap: {gap.where}: {gap.why}"
    for note in result.notes:
        yield f"note: {note}"
    yield from [""] if result.objects or result.gaps or result.notes else []
    user = f" as {result.user}" if result.user else ""
    yield f"{result.cluster.name}{user}. {document.verdict_sentence}"
    yield NOT_EVALUATED


def _describe(document: CheckDocument, checked: CheckedObject) -> Iterator[str]:
    operation = f" ({checked.operation})" if checked.operation else ""
    verdict = VERDICT_TEXTS[checked.verdict]
    yield f"{verdict}: {name_object(checked)}{operation}  {checked.place.source}"
    for decision in checked.decisions:
        if decision.effect in _SHOWN:
            yield from _describe_decision(document, checked, decision)
    if checked.changes and checked.verdict is not Verdict.REFUSED:
        yield f"  changed by {', '.join(checked.changed_by) or 'mutating policies'}:"
        yield from (f"    {change}" for change in checked.changes[:_MOST_CHANGES])
        if len(checked.changes) > _MOST_CHANGES:
            yield f"    and {len(checked.changes) - _MOST_CHANGES} more"
    if checked.server and (checked.server.differs or checked.server.why):
        yield f"  the API server: {_describe_answer(checked)}"


def _describe_equal(group: Sequence[CheckedObject]) -> Iterator[str]:
    """The first names, and the answer once. Values and lines of fields differ, so they are left out."""
    first = group[0]
    operation = f" ({first.operation})" if first.operation else ""
    yield f"{VERDICT_TEXTS[first.verdict]}: {len(group):,} objects with the same answer{operation}"
    yield from (f"  {name_object(checked)}  {checked.place.source}" for checked in group[:FIRST_NAMES])
    if len(group) > FIRST_NAMES:
        yield f"  and {len(group) - FIRST_NAMES:,} more"
    for decision in first.select(*_SHOWN):
        yield from _describe_reason(decision, "")


def _describe_answer(checked: CheckedObject) -> str:
    server = checked.server
    if server is None:
        return ""
    verdict = VERDICT_TEXTS[server.verdict] if server.verdict else "not compared"
    return f"{'DIFFERENT: ' if server.differs else ''}{verdict}{f': {server.why}' if server.why else ''}"


def _describe_decision(document: CheckDocument, checked: CheckedObject, decision: Decision) -> Iterator[str]:
    line = document.find_line(checked, decision)
    yield from _describe_reason(decision, f"  {checked.place.file}:{line}" if line and decision.fields else "")
    values = (each for each in decision.evidence.reasons if each.path in decision.fields and not each.erred)
    yield from (
        f"    {each.path}: {each.value}" for each in islice(values, 1) if not each.path.startswith("variables.")
    )


def _describe_reason(decision: Decision, place: str) -> Iterator[str]:
    message, *more = decision.message.split("\n")
    yield f"  {EFFECT_TEXTS[decision.effect]} {name_rule(decision)}: {message}{place}"
    yield from (f"    {text}" for text in more)
