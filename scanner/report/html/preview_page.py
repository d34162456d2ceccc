"""A preview as one HTML page, complete without script and without any other file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from scanner.model.outcome import Finding
from scanner.preview.rule_preview import PreviewResult
from scanner.report.html.templates import content_hash, environment
from scanner.report.preview.document import (
    DIFFERENCE_TEXTS,
    NO_CONTROLLER,
    NOTHING_STORED,
    PreviewDocument,
    WorkloadGroup,
    describe_action,
    describe_answer,
    describe_cause,
    describe_request,
    group_objects,
    list_contested,
    list_decisions,
    list_values,
    name_object,
    name_policy,
    name_rule,
    name_workload,
    rank_workload,
)

_MOST_GROUPS: Final = 5_000


class _Side(NamedTuple):
    """The messages of one side, and the fields that decided; false without either."""

    messages: tuple[str, ...]
    fields: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.messages or self.fields)


class _Row(NamedTuple):
    """The difference that one policy makes, for all objects for which it is the same."""

    difference: str
    policy: str
    before: _Side
    after: _Side
    causes: tuple[str, ...]


def render(document: PreviewDocument) -> str:
    """The page."""
    templates = environment()
    style = templates.get_template("style.css").render(scan="", digest="", web=None, only="")
    result, groups = document.result, tuple(group_objects(document.result))
    heading, *sentences = document.sentences
    return templates.get_template("preview.html").render(
        title="Preview",
        style=style,
        style_hash=content_hash(style),
        web=None,
        heading=heading,
        sentences=sentences,
        result=result,
        cluster=result.cluster.name,
        workloads=sorted(result.workloads, key=rank_workload),
        rows=_fold_rows(result, groups[:_MOST_GROUPS]),
        left_out=max(0, len(groups) - _MOST_GROUPS),
        no_controller=NO_CONTROLLER,
        nothing_stored=NOTHING_STORED,
        describe_action=describe_action,
        describe_answer=describe_answer,
        describe_cause=describe_cause,
        describe_request=describe_request,
        list_decisions=list_decisions,
        list_contested=list_contested,
        name_object=name_object,
        name_rule=name_rule,
        name_workload=name_workload,
    )


def _fold_rows(result: PreviewResult, groups: Iterable[WorkloadGroup]) -> dict[_Row, list[str]]:
    """The rows of the objects, each with the names of those that it is about."""
    rows: dict[_Row, list[str]] = {}
    for group in groups:
        for each in group.first.difference.policies:
            causes = map(describe_cause, result.find_causes(each, group.first.object.namespace))
            before, after = _show_side(each.before), _show_side(each.after)
            row = _Row(DIFFERENCE_TEXTS[each.difference], name_policy(each), before, after, tuple(causes))
            rows.setdefault(row, []).append(_name_objects(group))
    return rows


def _show_side(findings: Sequence[Finding]) -> _Side:
    messages = dict.fromkeys(finding.outcome.message for finding in findings)
    return _Side(tuple(messages), tuple(list_values(findings)))


def _name_objects(group: WorkloadGroup) -> str:
    """`Pod shop/web-1 and 2 more of ReplicaSet shop/web`."""
    name, workload = name_object(group.first), name_workload(group.workload)
    more = f" and {len(group.objects) - 1:,} more" if len(group.objects) > 1 else ""
    return f"{name}{more}{f' of {workload}' if workload != name else ''}"
