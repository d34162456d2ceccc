"""A preview as one HTML page, complete without script and without any other file."""

from __future__ import annotations

from typing import Final

from scanner.report.html.templates import content_hash, environment
from scanner.report.preview.document import (
    CERTAINTY_TEXTS,
    DIFFERENCE_TEXTS,
    NO_CONTROLLER,
    NOTHING_STORED,
    PreviewDocument,
    describe_action,
    describe_answer,
    describe_cause,
    group_objects,
    list_contested,
    list_decisions,
    list_values,
    name_object,
    name_policy,
    name_rule,
    name_workload,
)

_MOST_GROUPS: Final = 5_000


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
        groups=groups[:_MOST_GROUPS],
        left_out=max(0, len(groups) - _MOST_GROUPS),
        certainties=CERTAINTY_TEXTS,
        differences=DIFFERENCE_TEXTS,
        no_controller=NO_CONTROLLER,
        nothing_stored=NOTHING_STORED,
        describe_action=describe_action,
        describe_answer=describe_answer,
        describe_cause=describe_cause,
        list_decisions=list_decisions,
        list_contested=list_contested,
        list_values=list_values,
        name_object=name_object,
        name_policy=name_policy,
        name_rule=name_rule,
        name_workload=name_workload,
    )
