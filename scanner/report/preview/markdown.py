"""A preview as Markdown, for a comment on a pull request that changes policies. Names and messages are text, never markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from scanner.preview.workload_risks import Risk, WorkloadRisks
from scanner.report.preview.document import (
    CERTAINTY_TEXTS,
    DENIED,
    DIFFERENCE_TEXTS,
    NOTHING_STORED,
    PreviewDocument,
    WorkloadGroup,
    describe_action,
    describe_answer,
    describe_cause,
    describe_field,
    describe_scale,
    group_objects,
    list_contested,
    name_object,
    name_policy,
    name_rule,
    name_workload,
)
from scanner.report.text.comment import LONGEST_MESSAGE, fit, list_gaps
from scanner.report.text.numbers import plural
from scanner.report.text.safe_text import cut, escape_markdown, table_row

MARK: Final = "<!-- assay preview -->"
"""The first line, by which a workflow finds its own comment."""
_HEAD_OF_WORKLOADS: Final = ("Workload", "Scale", "After the change", "Policy", "Why")
_HEAD: Final = ("Workload", "Objects", "Difference", "Policy", "Why")


def render(document: PreviewDocument) -> str:
    """The lines, cut to the length of a comment."""
    answer = " ".join(document.sentences)
    head = [MARK, f"## {_write_title(document)}", "", escape_markdown(answer), ""]
    tail = ["", NOTHING_STORED, ""]
    workloads = _list_owners(document) if document.by_owner else _list_workloads(document.result.workloads)
    of_objects = [] if document.by_owner else _list_rows(document)
    contested = _list_contested(document)
    gaps = list_gaps("Not compared", document.result.gaps)
    rows = [*_list_changes(document), *workloads, *contested, *of_objects, *gaps]
    return fit(head, rows, tail)


def _write_title(document: PreviewDocument) -> str:
    counts = document.counts
    if denied := sum(counts[each] for each in DENIED):
        return f"{plural(denied, 'object')} would be newly denied"
    return "Nothing would be newly denied" if document.result.is_complete else "Not everything could be decided"


def _list_changes(document: PreviewDocument) -> Iterator[str]:
    yield "The change:\n"
    for cause in document.result.causes:
        yield f"- {escape_markdown(describe_cause(cause))}"
        yield from (f"  - {escape_markdown(cut(describe_field(field), LONGEST_MESSAGE))}" for field in cause.fields)
    yield ""


def _list_workloads(workloads: Sequence[WorkloadRisks]) -> Iterator[str]:
    if workloads:
        yield table_row(_HEAD_OF_WORKLOADS)
        yield table_row(["---"] * len(_HEAD_OF_WORKLOADS))
    for each in workloads:
        mark = " (control plane)" if each.is_control_plane else ""
        actions = "; ".join(map(_describe_risk, each.risks))
        decision = each.risks[0].decisions[0]
        row = (f"{name_workload(each.workload)}{mark}", describe_scale(each), actions)
        yield table_row(
            [escape_markdown(text) for text in (*row, name_rule(decision), cut(decision.message, LONGEST_MESSAGE))]
        )
    if workloads:
        yield ""


def _describe_risk(risk: Risk) -> str:
    answer = describe_answer(risk)
    asked = f"; {cut(answer, LONGEST_MESSAGE)}" if answer else ""
    return f"{describe_action(risk)} ({CERTAINTY_TEXTS[risk.certainty]}{asked})"


def _list_owners(document: PreviewDocument) -> Iterator[str]:
    """A text for each owner, which stands alone as a ticket."""
    owners = sorted({each.owner for each in document.result.workloads}, key=lambda owner: (not owner, owner))
    for owner in owners:
        own = [each for each in document.result.workloads if each.owner == owner]
        broken = sum(each.cannot_start for each in own)
        running = sum(each.cannot_start and each.running > 0 for each in own)
        yield f"### {escape_markdown(f'Team {owner}' if owner else 'Without an owner')}\n"
        numbers = f"{plural(broken, 'workload')} could not start again; running today: {running:,}."
        yield f"{numbers} Change the templates before the rule changes.\n"
        yield from _list_workloads(own)


def _list_contested(document: PreviewDocument) -> Iterator[str]:
    """The fields that two mutating policies set in turn."""
    found = tuple(list_contested(document.result))
    for sentence, objects in found:
        text = f"{plural(len(objects), 'object')}, such as {name_object(objects[0])}: {sentence}"
        yield f"- Changed again by every apply: {escape_markdown(cut(text, LONGEST_MESSAGE))}"
    yield from [""] if found else []


def _list_rows(document: PreviewDocument) -> Iterator[str]:
    groups = tuple(group_objects(document.result))
    if groups:
        yield table_row(_HEAD)
        yield table_row(["---"] * len(_HEAD))
    for group in groups:
        yield from (table_row(row) for row in _write_rows(group))


def _write_rows(group: WorkloadGroup) -> Iterator[list[str]]:
    objects = plural(len(group.objects), group.first.object.kind.kind)
    for each in group.first.difference.policies:
        findings = each.after or each.before
        why = findings[0].outcome.message if findings else ""
        row = (name_workload(group.workload), objects, DIFFERENCE_TEXTS[each.difference], name_policy(each))
        yield [escape_markdown(text) for text in (*row, cut(why, LONGEST_MESSAGE))]
