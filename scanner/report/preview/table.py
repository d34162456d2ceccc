"""A preview as text of at most 80 columns, apart from long names: the change, the objects by workload, and the sentence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from scanner.preview.differences import PolicyDifference
from scanner.preview.workload_risks import WorkloadRisks
from scanner.report.preview.document import (
    CERTAINTY_TEXTS,
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
    list_values,
    name_object,
    name_policy,
    name_rule,
    name_workload,
)
from scanner.report.text.numbers import plural

_MOST_GROUPS: Final = 50
_MOST_FIELDS: Final = 5
_MOST_VALUES: Final = 2


def list_lines(document: PreviewDocument) -> Iterator[str]:
    """The lines, not wrapped."""
    yield from _list_changes(document)
    yield from _list_workloads(document)
    yield from _list_contested(document)
    groups = tuple(group_objects(document.result))
    for group in groups[:_MOST_GROUPS]:
        yield from _describe_group(document, group)
    if len(groups) > _MOST_GROUPS:
        yield f"and {len(groups) - _MOST_GROUPS:,} more: -o json lists all"
    yield from [""] if groups else []
    for gap in document.result.gaps:
        yield f"gap: {gap.where}: {gap.why}"
    for note in document.result.notes:
        yield f"note: {note}"
    user = f" as {document.result.user}" if document.result.user else ""
    yield f"{document.result.cluster.name}{user}. {document.verdict_sentence}"
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


def _list_workloads(document: PreviewDocument) -> Iterator[str]:
    """The workloads that could not start again, be deleted, updated or edited: what runs today first."""
    workloads = document.result.workloads
    for each in workloads[:_MOST_GROUPS]:
        yield from _describe_workload(each)
    if len(workloads) > _MOST_GROUPS:
        yield f"and {plural(len(workloads) - _MOST_GROUPS, 'workload')} more: -o json lists all"
    yield from [""] if workloads else []


def _list_contested(document: PreviewDocument) -> Iterator[str]:
    """The fields that two mutating policies set in turn."""
    for sentence, objects in list_contested(document.result):
        yield f"changed again by every apply: {plural(len(objects), 'object')}, such as {name_object(objects[0])}"
        yield f"  {sentence}"


def _describe_workload(each: WorkloadRisks) -> Iterator[str]:
    mark = "  [control plane]" if each.is_control_plane else ""
    scale = describe_scale(each)
    yield f"{describe_action(each.risks[0])}: {name_workload(each.workload)}{f'  {scale}' if scale else ''}{mark}"
    for number, risk in enumerate(each.risks):
        certainty = CERTAINTY_TEXTS[risk.certainty]
        again = f"also {describe_action(risk)}, " if number else ""
        yield f"  {again}{certainty}: {risk.object.kind.kind} {risk.object.name} as {risk.user or 'the user'}"
        known = {decision.message for earlier in each.risks[:number] for decision in earlier.decisions}
        for decision in risk.decisions:
            if decision.message not in known:
                first, *more = decision.message.split("\n")
                yield f"    {name_rule(decision)}: {first}"
                yield from (f"    {line}" for line in more)
        yield from (f"    {line}" for line in describe_answer(risk).split("\n") if line)


def _describe_group(document: PreviewDocument, group: WorkloadGroup) -> Iterator[str]:
    first = group.first
    mark = "  [control plane]" if first.is_control_plane else ""
    derived = "" if name_workload(group.workload) == name_object(first) else _describe_objects(group)
    yield f"{DIFFERENCE_TEXTS[group.difference]}: {name_workload(group.workload)}{derived}{mark}"
    for each in first.difference.policies:
        yield from _describe_policy(document, group, each)
    if first.difference.denied_by:
        yield f"  denied before and after by {', '.join(first.difference.denied_by)}"


def _describe_objects(group: WorkloadGroup) -> str:
    number, kind = len(group.objects), group.first.object.kind.kind
    return (
        f"  {plural(number, kind)}, such as {group.first.object.name}"
        if number > 1
        else f"  {name_object(group.first)}"
    )


def _describe_policy(document: PreviewDocument, group: WorkloadGroup, each: PolicyDifference) -> Iterator[str]:
    yield f"  {DIFFERENCE_TEXTS[each.difference]} by {name_policy(each)}"
    before = dict.fromkeys(finding.outcome.message for finding in each.before)
    after = dict.fromkeys(finding.outcome.message for finding in each.after)
    if before != after:
        yield from (f"    before: {line}" for message in before for line in message.split("\n"))
    yield from (f"    after: {line}" for message in after for line in message.split("\n"))
    yield from (f"    {value}" for value in islice(list_values(each.after or each.before), _MOST_VALUES))
    causes = document.result.find_causes(each, group.first.object.namespace)
    yield from (f"    because of {describe_cause(cause)}" for cause in causes)
