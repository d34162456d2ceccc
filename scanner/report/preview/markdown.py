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
    describe_starting,
    group_objects,
    list_contested,
    list_decisions,
    name_object,
    name_policy,
    name_rule,
    name_workload,
    rank_workload,
)
from scanner.report.text.comment import LONGEST_MESSAGE, fit, list_gaps
from scanner.report.text.numbers import plural
from scanner.report.text.safe_text import cut, escape_cell, escape_markdown, table_row

MARK: Final = "<!-- assay preview -->"
"""The first line, by which a workflow finds its own comment."""
_OWNER: Final = "Owner"
_HEAD_OF_WORKLOADS: Final = ("Workload", _OWNER, "Scale", "After the change", "Why")
_MOST_NAMES: Final = 5
_MOST_REASONS: Final = 5
_HEAD: Final = ("Workload", "Objects", "Difference", "Policy", "Why")


def render(document: PreviewDocument) -> str:
    """The lines, cut to the length of a comment."""
    answer = " ".join(document.sentences)
    head = [MARK, f"## {_write_title(document)}", "", escape_markdown(answer), ""]
    tail = ["", NOTHING_STORED, ""]
    workloads = (
        _list_owners(document) if document.by_owner else _list_workloads(document.result.workloads, with_owner=True)
    )
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


def _list_workloads(workloads: Sequence[WorkloadRisks], *, with_owner: bool) -> Iterator[str]:
    if workloads:
        head = [each for each in _HEAD_OF_WORKLOADS if with_owner or each != _OWNER]
        yield table_row(head)
        yield table_row(["---"] * len(head))
    for each in sorted(workloads, key=rank_workload):
        mark = " (control plane)" if each.is_control_plane else ""
        owner = [each.owner] if with_owner else []
        actions = "\n".join(map(_describe_risk, each.risks))
        why = "\n".join(_list_reasons(each))
        yield table_row(
            [*map(escape_cell, (f"{name_workload(each.workload)}{mark}", *owner, describe_scale(each), actions, why))]
        )
    if workloads:
        yield ""


def _list_reasons(each: WorkloadRisks) -> Iterator[str]:
    """The policies with their messages, a line for each."""
    decisions = list_decisions(each)
    for decision in decisions[:_MOST_REASONS]:
        rule = name_rule(decision)
        message = cut(decision.message.replace("\n", " "), LONGEST_MESSAGE)
        yield f"{rule}: {message}" if rule else message
    if len(decisions) > _MOST_REASONS:
        yield f"and {plural(len(decisions) - _MOST_REASONS, 'more message')}"


def _describe_risk(risk: Risk) -> str:
    answer = describe_answer(risk)
    asked = f"; {cut(answer, LONGEST_MESSAGE)}" if answer else ""
    return f"{describe_action(risk)} ({CERTAINTY_TEXTS[risk.certainty]}{asked})"


def _list_owners(document: PreviewDocument) -> Iterator[str]:
    """A text for each owner, which stands alone as a ticket."""
    owners = sorted({each.owner for each in document.result.workloads}, key=lambda owner: (not owner, owner))
    for owner in owners:
        own = [each for each in document.result.workloads if each.owner == owner]
        yield f"### {escape_markdown(owner) if owner else 'Without an owner'}\n"
        if starting := describe_starting(own):
            yield f"{starting} Change the templates before the rule changes.\n"
        yield from _list_workloads(own, with_owner=False)


def _list_contested(document: PreviewDocument) -> Iterator[str]:
    """The fields that two mutating policies set in turn."""
    found = tuple(list_contested(document.result))
    for sentence, objects in found:
        text = f"{plural(len(objects), 'object')}, such as {name_object(objects[0])}: {sentence}"
        yield f"- Changed again by every apply: {escape_markdown(cut(text, LONGEST_MESSAGE))}"
    yield from [""] if found else []


def _list_rows(document: PreviewDocument) -> Iterator[str]:
    """The objects whose difference has one policy, one difference and one message share a row."""
    rows: dict[tuple[str, ...], list[WorkloadGroup]] = {}
    for group in group_objects(document.result):
        for row in _describe_policies(group):
            rows.setdefault(row, []).append(group)
    if rows:
        yield table_row(_HEAD)
        yield table_row(["---"] * len(_HEAD))
    for (kind, *texts), groups in rows.items():
        objects = plural(sum(len(group.objects) for group in groups), kind)
        yield table_row([*map(escape_cell, (_name_workloads(groups), objects, *texts))])


def _name_workloads(groups: Sequence[WorkloadGroup]) -> str:
    names = list(dict.fromkeys(name_workload(group.workload) for group in groups))
    more = [f"and {len(names) - _MOST_NAMES:,} more"] if len(names) > _MOST_NAMES else []
    return "\n".join([*names[:_MOST_NAMES], *more])


def _describe_policies(group: WorkloadGroup) -> Iterator[tuple[str, ...]]:
    """For each policy: the kind of the objects, the difference, the policy and the message."""
    for each in group.first.difference.policies:
        findings = each.after or each.before
        why = cut(findings[0].outcome.message if findings else "", LONGEST_MESSAGE)
        yield group.first.object.kind.kind, DIFFERENCE_TEXTS[each.difference], name_policy(each), why
