"""The columns of a problem: one check of one policy that one workload breaks."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from scanner.model.policy import ACTIONS
from scanner.posture.problem_rows import Problem
from scanner.report.lists.columns import (
    BOOLEAN,
    NUMBER,
    SEVERITY,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    TIME,
    TIME_OR_NULL,
    Cell,
    Column,
    Columns,
    RowContext,
    choice,
    refer_to,
    refer_to_or_null,
)
from scanner.report.lists.problem_facts import effect_of
from scanner.report.text.json_text import Plain, cause_json, check_json, waiver_json, workload_json
from scanner.report.text.times import iso
from scanner.report.text.titles import check_title, sentence_of


def _second(moment: datetime) -> str:
    """RFC 3339 in UTC without fractions of a second, as CSV has the times of problems."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _check(problem: Problem, context: RowContext) -> Plain:
    return check_json(problem.check, context.check_ids.get((problem.policy_key, problem.check)))


PROBLEMS: Final = Columns[Problem](
    "A problem: one check of one policy that one workload breaks.",
    [
        Column(
            "id",
            "1.2",
            TEXT,
            "The id, the same in every database; for rows of older versions, that of a finding.",
            lambda problem, _: problem.id,
            (Cell(1),),
        ),
        Column(
            "status",
            "1.2",
            choice("new", "open", "reopened", "resolved", "preview", "outdated", "unchecked"),
            "Status of the problem in the scan.",
            lambda problem, _: problem.status,
            (Cell(2),),
        ),
        Column(
            "firstSeen",
            "1.2",
            TIME,
            "End of the first scan with the problem. RFC 3339, UTC.",
            lambda problem, _: iso(problem.first_seen),
            (Cell(3, text=lambda problem, _: _second(problem.first_seen)),),
        ),
        Column(
            "lastSeen",
            "1.2",
            TIME,
            "End of the latest scan with the problem.",
            lambda problem, _: iso(problem.last_seen),
        ),
        Column(
            "openedAt",
            "1.2",
            TIME,
            "Beginning of the latest episode.",
            lambda problem, _: iso(problem.opened_at),
            (Cell(4, text=lambda problem, _: _second(problem.opened_at)),),
        ),
        Column(
            "resolvedAt",
            "1.2",
            TIME_OR_NULL,
            "End of the scan that resolved it; null while it is open.",
            lambda problem, _: iso(problem.resolved_at) if problem.resolved_at else None,
            (Cell(5, text=lambda problem, _: _second(problem.resolved_at) if problem.resolved_at else ""),),
        ),
        Column(
            "resolution",
            "1.2",
            choice("fixed", "moved", "noObjects", "objectGone", "rulesChanged", "unbound", "notMatched", None),
            "Why it was resolved; null while it is open, and if it is not known.",
            lambda problem, _: problem.resolution or None,
            (Cell(6),),
        ),
        Column(
            "movedTo",
            "1.2",
            TEXTS,
            "The ids of the problems in which its findings go on, if it was resolved as moved.",
            lambda problem, _: [*problem.moved_to],
        ),
        Column(
            "cause",
            "1.2",
            refer_to_or_null("cause"),
            "What changed, if the scan found it changed; else null.",
            lambda problem, _: cause_json(problem.cause),
            (Cell(7, text=lambda problem, _: str(problem.cause.kind) if problem.cause else ""),),
        ),
        Column("policy", "1.2", TEXT, "Name of the policy.", lambda problem, _: problem.policy, (Cell(10),)),
        Column(
            "title",
            "1.2",
            TEXT,
            "Title of the policy.",
            lambda problem, context: context.triage.description(problem.policy_key).title,
            (Cell(17),),
            in_json=False,
        ),
        Column(
            "category",
            "1.2",
            TEXT,
            "Category of the policy.",
            lambda problem, context: context.triage.description(problem.policy_key).category,
            (Cell(18),),
            in_json=False,
        ),
        Column("language", "1.2", TEXT, "Kind of the policy.", lambda problem, _: problem.language, (Cell(9),)),
        Column(
            "severity",
            "1.2",
            SEVERITY,
            "Severity of the check, as of the report.",
            lambda problem, context: str(context.triage.severity(*problem.severity_key)),
            (Cell(16),),
        ),
        Column(
            "owner",
            "1.2",
            TEXT_OR_NULL,
            "The team that owns the object; null for an unowned object.",
            lambda problem, context: context.triage.owner(problem) or None,
            (Cell(19),),
        ),
        Column(
            "controls",
            "1.2",
            TEXTS,
            "The controls to which the check belongs, as framework/id.",
            lambda problem, context: [*context.triage.controls(*problem.severity_key)],
        ),
        Column(
            "check",
            "1.2",
            refer_to("identifiedCheck"),
            "A part of the policy that has an outcome, with its id; in CSV its name, or its place in the policy.",
            _check,
            (Cell(11, text=lambda problem, _: check_title(problem.check)),),
        ),
        Column(
            "summary",
            "1.2",
            TEXT,
            "The message of one of its findings on one line, without an expression: for a policy without messages, its title.",
            lambda problem, context: sentence_of(problem.example, context.triage.description(problem.policy_key).title),
            (Cell(21),),
            in_json=False,
        ),
        Column(
            "wouldBe",
            "1.2",
            TEXT,
            "What its worst object would be: refused, pods refused, warned, audited, recorded, changed or admitted.",
            lambda problem, _: effect_of(problem.example.outcome, denies=problem.denies, action=problem.action),
            (Cell(22),),
            in_json=False,
        ),
        Column(
            "workload",
            "1.2",
            refer_to("workload"),
            "The workload.",
            lambda problem, _: workload_json(problem.workload),
            (
                Cell(13, "kind", lambda problem, _: problem.workload.kind),
                Cell(14, "namespace", lambda problem, _: problem.workload.namespace),
                Cell(15, "name", lambda problem, _: problem.workload.name),
            ),
        ),
        Column(
            "action",
            "1.2",
            choice(*ACTIONS, None),
            "The strictest action of the bindings; null for none.",
            lambda problem, _: problem.action or None,
            (Cell(12),),
        ),
        Column(
            "wouldDeny",
            "1.2",
            BOOLEAN,
            "Whether admission would deny one of the objects today.",
            lambda problem, _: problem.denies,
        ),
        Column(
            "waiver",
            "1.2",
            refer_to("appliedWaiver"),
            "The waiver that ends first, if all open findings are waived; else null.",
            lambda problem, _: waiver_json(problem.waiver),
            (Cell(20, text=lambda problem, _: problem.waiver.name if problem.waiver else ""),),
        ),
        Column(
            "findings", "1.2", NUMBER, "Number of its open findings.", lambda problem, _: problem.findings, (Cell(8),)
        ),
        Column(
            "unchecked",
            "1.2",
            NUMBER,
            "Number of its findings that the scan did not check.",
            lambda problem, _: problem.unchecked,
        ),
    ],
)
"""A problem: its columns in the order of JSON."""
