"""A preview as text of at most 80 columns, apart from long names: the change, the objects by workload, and the sentence.

What is true of several workloads or objects alike stands once, below all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Final, NamedTuple

from scanner.model.outcome import Finding
from scanner.preview.differences import Difference, PolicyDifference
from scanner.preview.verdict import Decision
from scanner.preview.workload_risks import Risk, WorkloadRisks
from scanner.report.preview.document import (
    DIFFERENCE_TEXTS,
    NOTHING_STORED,
    PreviewDocument,
    WorkloadGroup,
    describe_action,
    describe_answer,
    describe_cause,
    describe_field,
    describe_request,
    describe_scale,
    group_objects,
    list_contested,
    list_values,
    name_object,
    name_policy,
    name_rule,
    name_workload,
    rank_workload,
)
from scanner.report.text.numbers import plural

_MOST_GROUPS: Final = 50
_MOST_FIELDS: Final = 5
_MOST_VALUES: Final = 2
_MARK: Final = "  [control plane]"
_NOTE: Final = "! "
"""The begin of a note about all mutating policies of an object, and of what follows it: each of the policies has it."""


class _Entry(NamedTuple):
    """A workload or an object: what happens to it, its name, and what is below the name."""

    title: str
    name: str
    details: tuple[str, ...]
    is_running: bool = False


def list_lines(document: PreviewDocument) -> Iterator[str]:
    """The lines about the change, single workloads and objects, gaps and notes, not wrapped."""
    yield from _list_changes(document)
    workloads = sorted(document.result.workloads, key=rank_workload)
    yield from _list_entries(map(_enter_workload, workloads[:_MOST_GROUPS]))
    if len(workloads) > _MOST_GROUPS:
        yield from (f"and {plural(len(workloads) - _MOST_GROUPS, 'workload')} more: -o json lists all", "")
    yield from _list_contested(document)
    groups = tuple(group_objects(document.result))
    yield from _list_entries(_enter_group(document, group) for group in groups[:_MOST_GROUPS])
    if len(groups) > _MOST_GROUPS:
        yield from (f"and {plural(len(groups) - _MOST_GROUPS, 'workload')} more: -o json lists all", "")
    remarks = [
        *(f"gap: {gap.where}: {gap.why}" for gap in document.result.gaps),
        *(f"note: {note}" for note in document.result.notes),
    ]
    yield from [*remarks, ""] if remarks else []


def list_sentences(document: PreviewDocument) -> Iterator[str]:
    """The sentences about all of it, the most important last."""
    user = f" as user {document.result.user}" if document.result.user else ""
    yield f"Previewed for {document.result.cluster.name}{user}. {document.verdict_sentence}"
    yield NOTHING_STORED
    yield from filter(None, [document.server_sentence, document.restart_sentence, document.starting_sentence])


def _list_changes(document: PreviewDocument) -> Iterator[str]:
    yield "The change:"
    for cause in document.result.causes:
        yield f"  {describe_cause(cause)}"
        yield from (f"    {describe_field(field)}" for field in cause.fields[:_MOST_FIELDS])
        if len(cause.fields) > _MOST_FIELDS:
            yield f"    and {plural(len(cause.fields) - _MOST_FIELDS, 'field')} more"
    if not document.result.causes:
        yield "  none: the rules are the same"
    yield ""


def _list_entries(entries: Iterable[_Entry]) -> Iterator[str]:
    """The entries in their order, a heading before those with one title; entries with the same details share them."""
    for title, titled in groupby(entries, key=lambda entry: entry.title):
        alike: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
        for entry in titled:
            alike.setdefault((entry.is_running, entry.details), []).append(entry.name)
        yield f"{title[:1].upper()}{title[1:]}:"
        for (_, details), names in alike.items():
            yield from (f"  {name}" for name in names)
            yield from (f"    {line}" for line in details)
        yield ""


def _list_contested(document: PreviewDocument) -> Iterator[str]:
    """The fields that two mutating policies set in turn."""
    found = tuple(list_contested(document.result))
    yield from ["Changed again by every apply:"] if found else []
    for sentence, objects in found:
        more = f" and {plural(len(objects) - 1, 'more object')}" if len(objects) > 1 else ""
        yield f"  {name_object(objects[0])}{more}"
        yield f"    {sentence}"
    yield from [""] if found else []


def _enter_workload(each: WorkloadRisks) -> _Entry:
    owner = f"owner {each.owner}" if each.owner else ""
    scale = ", ".join(filter(None, (owner, describe_scale(each))))
    name = f"{name_workload(each.workload)}{f'  {scale}' if scale else ''}{_MARK if each.is_control_plane else ''}"
    details = tuple(_describe_risks(each))
    return _Entry(describe_action(each.risks[0]), name, details, each.running > 0)


def _describe_risks(each: WorkloadRisks) -> Iterator[str]:
    known: set[str] = set()
    for number, risk in enumerate(each.risks):
        again = f"also {describe_action(risk)}: " if number else ""
        yield f"{again}{describe_request(each, risk)}"
        yield from _describe_decisions(risk, known)
        known.update(decision.message for decision in risk.decisions)


def _describe_decisions(risk: Risk, known: set[str]) -> Iterator[str]:
    for decision in risk.decisions:
        if decision.message not in known:
            yield from _describe_decision(decision)
    yield from filter(None, describe_answer(risk).split("\n"))


def _describe_decision(decision: Decision) -> Iterator[str]:
    first, *more = decision.message.split("\n")
    rule = name_rule(decision)
    yield f"{rule}: {first}" if rule else first
    yield from more


def _enter_group(document: PreviewDocument, group: WorkloadGroup) -> _Entry:
    first = group.first
    derived = "" if name_workload(group.workload) == name_object(first) else _describe_objects(group)
    name = f"{name_workload(group.workload)}{derived}{_MARK if first.is_control_plane else ''}"
    return _Entry(DIFFERENCE_TEXTS[group.difference], name, tuple(_describe_policies(document, group)))


def _describe_objects(group: WorkloadGroup) -> str:
    number, kind = len(group.objects), group.first.object.kind.kind
    return (
        f"  {plural(number, kind)}, such as {group.first.object.name}"
        if number > 1
        else f"  {name_object(group.first)}"
    )


def _describe_policies(document: PreviewDocument, group: WorkloadGroup) -> Iterator[str]:
    difference = group.first.difference
    notes: set[tuple[str, ...]] = set()
    for each in difference.policies:
        other = "" if each.difference is group.difference else f"{DIFFERENCE_TEXTS[each.difference]} "
        yield from _describe_policy(f"{other}by {name_policy(each)}", each, notes)
        causes = document.result.find_causes(each, group.first.object.namespace)
        yield from (f"because of {describe_cause(cause)}" for cause in causes)
    if difference.denied_by:
        yield f"denied before and after by {', '.join(difference.denied_by)}"


def _describe_policy(rule: str, each: PolicyDifference, notes: set[tuple[str, ...]]) -> Iterator[str]:
    """The messages of both sides, or of the only one beside the policy, and the fields that decided."""
    before, after = (_list_messages(findings, notes) for findings in (each.before, each.after))
    if before == after:
        before = []
    if not before and len(after) == 1 and each.difference is not Difference.MUTATED_OTHERWISE:
        yield f"{rule}: {after[0]}"
    else:
        yield rule
        yield from (f"  before: {line}" for line in before)
        yield from (f"  after: {line}" if before else f"  {line}" for line in after)
    yield from islice(list_values(each.after or each.before), _MOST_VALUES)


def _list_messages(findings: Iterable[Finding], notes: set[tuple[str, ...]]) -> list[str]:
    """The lines of the messages of findings, each once, without the notes that stand above."""
    shown: list[str] = []
    for message in dict.fromkeys(finding.outcome.message for finding in findings):
        lines = message.split("\n")
        start = next((number for number, line in enumerate(lines) if line.startswith(_NOTE)), len(lines))
        note = tuple(lines[start:])
        shown += lines[:start] if note in notes else lines
        notes.update([note] if note else [])
    return shown
