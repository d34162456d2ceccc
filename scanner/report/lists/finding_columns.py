"""The columns of a finding. A new one takes the next place of CSV and the version of the JSON report that begins to have it."""

from __future__ import annotations

from typing import Final

from scanner.model.json import JsonObject
from scanner.model.outcome import Errored, WouldChange
from scanner.model.scans.stored_finding import StoredFinding
from scanner.report.lists.columns import (
    BOOLEAN,
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
from scanner.report.lists.problem_facts import effect_of_finding
from scanner.report.text.evidence import evidence_lines
from scanner.report.text.json_text import (
    Plain,
    cause_json,
    check_json,
    drift_json,
    error_json,
    evidence_json,
    waiver_json,
    workload_json,
)
from scanner.report.text.names import param_name, workload_name
from scanner.report.text.times import iso
from scanner.report.text.titles import check_title, result_word, sentence_of

_PARAM: Final[JsonObject] = {
    "type": ["object", "null"],
    "properties": {
        "namespace": {**TEXT, "description": "Empty for a cluster-scoped param."},
        "name": {**TEXT, "description": "Name of the param."},
    },
    "required": ["namespace", "name"],
}
_ERROR: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "denies": {**BOOLEAN, "description": "Whether failurePolicy denies the object."},
        "always": {**BOOLEAN, "description": "Whether the error denies with any actions of the binding."},
    },
    "required": ["denies", "always"],
}
_OBJECT: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "apiVersion": {**TEXT, "description": "Such as apps/v1."},
        "kind": {**TEXT, "description": "Such as Deployment."},
        "namespace": {**TEXT, "description": "Empty for a cluster-scoped object."},
        "name": {**TEXT, "description": "Name of the object."},
        "uid": {**TEXT, "description": "Empty for an object from a file."},
        "resourceVersion": {
            **TEXT,
            "description": "That of the first scan that found the finding as it is; a later write that changes nothing about the finding does not change it. Empty for an object from a file.",
        },
    },
    "required": ["apiVersion", "kind", "namespace", "name", "uid", "resourceVersion"],
}


def _check(stored: StoredFinding, context: RowContext) -> Plain:
    finding = stored.finding
    return check_json(finding.check, context.check_ids.get((finding.policy_key, finding.check)))


def _param(stored: StoredFinding, _: RowContext) -> Plain:
    finding = stored.finding
    return {"namespace": finding.param_namespace, "name": finding.param_name} if finding.param_name else None


def _outcome(stored: StoredFinding, _: RowContext) -> Plain:
    outcome = stored.finding.outcome
    if isinstance(outcome, WouldChange):
        return "wouldChange"
    return "errored" if isinstance(outcome, Errored) else "violated"


def _reason(stored: StoredFinding, _: RowContext) -> Plain:
    outcome = stored.finding.outcome
    return "" if isinstance(outcome, WouldChange) else outcome.reason


def _code(stored: StoredFinding, _: RowContext) -> Plain:
    outcome = stored.finding.outcome
    return 0 if isinstance(outcome, WouldChange) else outcome.code


def _drift(stored: StoredFinding, _: RowContext) -> Plain:
    outcome = stored.finding.outcome
    return drift_json(outcome) if isinstance(outcome, WouldChange) else None


def _object(stored: StoredFinding, _: RowContext) -> Plain:
    finding = stored.finding
    return {
        "apiVersion": finding.api_version,
        "kind": finding.kind,
        "namespace": finding.namespace,
        "name": finding.name,
        "uid": finding.uid,
        "resourceVersion": finding.resource_version,
    }


def _excepted_by(stored: StoredFinding, _: RowContext) -> Plain:
    return [*stored.finding.excepted_by.split(", ")] if stored.finding.excepted_by else []


def _depends(stored: StoredFinding, context: RowContext) -> Plain:
    return (stored.finding.policy_key, stored.finding.check) in context.requester_checks


def _waiver_name(stored: StoredFinding, context: RowContext) -> str:
    waiver = context.triage.waiver(stored)
    return waiver.name if waiver else ""


FINDINGS: Final = Columns[StoredFinding](
    "A violation, an error or drift.",
    [
        Column(
            "id",
            "1.0",
            TEXT,
            "Short id, the same in every scan with the finding.",
            lambda stored, _: stored.id,
            (Cell(1),),
        ),
        Column(
            "fingerprint",
            "1.0",
            {**TEXT, "pattern": "^[0-9a-f]{64}$"},
            "Identity of the finding across scans.",
            lambda stored, _: stored.finding.fingerprint,
        ),
        Column(
            "problem",
            "1.2",
            {**TEXT_OR_NULL, "pattern": "^p-[0-9a-f]{12}$"},
            "Id of the problem: the check, and the workload of the object. Findings of one problem share it, in every database. Null if it is not known, as for findings that an older version resolved.",
            lambda stored, _: stored.problem or None,
            (Cell(2),),
        ),
        Column(
            "status",
            "1.0",
            choice("new", "open", "reopened", "resolved", "preview", "outdated"),
            "Status relative to the baseline, or to the previous scan if there is none. An outdated finding is that of a scan which began before another one and ended after it: the later scan shows that it is not open.",
            lambda stored, _: stored.status,
            (Cell(3),),
        ),
        Column(
            "firstSeen",
            "1.0",
            TIME,
            "End of the first scan with the finding. RFC 3339, UTC.",
            lambda stored, _: iso(stored.first_seen),
            (Cell(4),),
        ),
        Column(
            "openedAt",
            "1.2",
            TIME_OR_NULL,
            "Beginning of the latest episode: it moves when a resolved finding is reopened. Null if it is not known. RFC 3339, UTC.",
            lambda stored, _: iso(stored.opened_at) if stored.opened_at else None,
            (Cell(23),),
        ),
        Column(
            "lastSeen",
            "1.0",
            TIME,
            "End of the latest scan with the finding. RFC 3339, UTC.",
            lambda stored, _: iso(stored.last_seen),
            (Cell(24),),
        ),
        Column(
            "resolvedAt",
            "1.0",
            TIME_OR_NULL,
            "When it was resolved; null for an open finding. RFC 3339, UTC.",
            lambda stored, _: iso(stored.resolved_at) if stored.resolved_at else None,
            (Cell(5),),
        ),
        Column(
            "resolution",
            "1.2",
            choice("fixed", "noObjects", "objectGone", "rulesChanged", "unbound", "notMatched", None),
            "Why it was resolved: fixed only if nothing that decides about it changed but its object; unbound if its policy or binding is gone. Null for an open finding, and if an older version resolved it.",
            lambda stored, _: stored.resolution or None,
            (Cell(6),),
        ),
        Column(
            "cause",
            "1.2",
            refer_to_or_null("cause"),
            "What changed, if this scan found the finding new, reopened, changed or resolved; else null.",
            lambda stored, _: cause_json(stored.cause),
            (Cell(7, text=lambda stored, _: str(stored.cause.kind) if stored.cause else ""),),
        ),
        Column(
            "continues",
            "1.2",
            {**TEXT_OR_NULL, "pattern": "^[0-9a-f]{12}$"},
            "The id of the finding that this one continues since this scan, because its check was re-worded, its object recreated, or its binding or param renamed; else null.",
            lambda stored, _: stored.continues or None,
        ),
        Column(
            "policy",
            "1.0",
            TEXT,
            "Name of the policy.",
            lambda stored, _: stored.finding.policy,
            (Cell(9),),
        ),
        Column(
            "title",
            "1.2",
            TEXT,
            "Title of the policy.",
            lambda stored, context: context.triage.description(stored.finding.policy_key).title,
            (Cell(19),),
            in_json=False,
        ),
        Column(
            "category",
            "1.2",
            TEXT,
            "Category of the policy.",
            lambda stored, context: context.triage.description(stored.finding.policy_key).category,
            (Cell(20),),
            in_json=False,
        ),
        Column(
            "language",
            "1.1",
            TEXT,
            "Kind of the policy; policies of two kinds may have one name.",
            lambda stored, _: stored.finding.language,
            (Cell(8),),
        ),
        Column(
            "severity",
            "1.2",
            SEVERITY,
            "Severity of the check, as of the report.",
            lambda stored, context: str(context.triage.severity(*stored.finding.severity_key)),
            (Cell(18),),
        ),
        Column(
            "owner",
            "1.2",
            TEXT_OR_NULL,
            "The team that owns the object; null for an unowned object, and if its labels are not known, as for scans of older versions.",
            lambda stored, context: context.triage.owner(stored) or None,
            (Cell(21),),
        ),
        Column(
            "controls",
            "1.2",
            TEXTS,
            "The controls to which the check belongs, as framework/id.",
            lambda stored, context: [*context.triage.controls(*stored.finding.severity_key)],
            (Cell(28),),
        ),
        Column(
            "binding",
            "1.0",
            TEXT,
            "Name of the binding.",
            lambda stored, _: stored.finding.binding,
            (Cell(10),),
        ),
        Column(
            "param",
            "1.0",
            _PARAM,
            "The param object; null without one.",
            _param,
            (
                Cell(
                    26,
                    text=lambda stored, _: param_name(stored.finding.param_namespace, stored.finding.param_name),
                ),
            ),
        ),
        Column(
            "check",
            "1.0",
            refer_to("identifiedCheck"),
            "A part of the policy that has an outcome, with its id; in CSV its name, or its place in the policy.",
            _check,
            (Cell(27, text=lambda stored, _: check_title(stored.finding.check)),),
        ),
        Column(
            "outcome",
            "1.0",
            choice("violated", "errored", "wouldChange"),
            "The outcome.",
            _outcome,
            (Cell(11, text=lambda stored, _: result_word(stored.finding.outcome)),),
        ),
        Column(
            "message",
            "1.0",
            TEXT,
            "The message of the API server; for drift, the patch as a diff.",
            lambda stored, _: stored.finding.outcome.message,
            (Cell(17),),
        ),
        Column(
            "summary",
            "1.0",
            TEXT,
            "The message on one line, without an expression: for a policy without messages, its title.",
            lambda stored, context: sentence_of(
                stored.finding, context.triage.description(stored.finding.policy_key).title
            ),
            (Cell(31),),
            in_json=False,
        ),
        Column(
            "wouldBe",
            "1.0",
            TEXT,
            "What an object would be: refused, pods refused, warned, audited, recorded, changed, admitted or excepted.",
            lambda stored, _: effect_of_finding(stored.finding),
            (Cell(32),),
            in_json=False,
        ),
        Column("reason", "1.0", TEXT, "Reason of the API's denial.", _reason),
        Column("code", "1.0", {"type": "integer"}, "HTTP status of the API's denial.", _code),
        Column(
            "drift", "1.1", refer_to("drift"), "For wouldChange alone: the change of the object.", _drift, optional=True
        ),
        Column(
            "error",
            "1.3",
            _ERROR,
            "For errored alone: the effect of the error.",
            lambda stored, _: (
                error_json(stored.finding.outcome) if isinstance(stored.finding.outcome, Errored) else None
            ),
            optional=True,
        ),
        Column(
            "object",
            "1.0",
            _OBJECT,
            "The object, in the evaluated version.",
            _object,
            (
                Cell(13, "kind", lambda stored, _: stored.finding.kind),
                Cell(14, "namespace", lambda stored, _: stored.finding.namespace),
                Cell(15, "name", lambda stored, _: stored.finding.name),
            ),
        ),
        Column(
            "workload",
            "1.2",
            refer_to("workload"),
            "The workload of the object, such as the Deployment of a Pod, or the object itself; null if the scan did not record it. In CSV and on pages empty for the object itself.",
            lambda stored, _: workload_json(stored.workload) if stored.workload else None,
            (Cell(16, text=lambda stored, _: workload_name(stored)),),
            fact="Workload",
        ),
        Column(
            "operation",
            "1.0",
            choice("CREATE", "UPDATE", "DELETE", "CONNECT"),
            "The simulated operation.",
            lambda stored, _: stored.finding.operation,
        ),
        Column(
            "actions",
            "1.0",
            {"type": "array", "items": refer_to("action")},
            "The binding's validation actions.",
            lambda stored, _: [*stored.finding.actions],
            (Cell(12),),
        ),
        Column(
            "wouldDeny",
            "1.0",
            BOOLEAN,
            "Whether admission would deny the object.",
            lambda stored, _: stored.finding.denies,
            (Cell(25),),
        ),
        Column(
            "exceptedBy",
            "1.1",
            TEXTS,
            "The exemptions that keep this finding from having any effect: policy exceptions (namespace/name), and filters in Kyverno's configuration (\"Kyverno's resourceFilters [ReplicaSet,*,*]\", or a selector of the webhooks).",
            _excepted_by,
            (Cell(29, "exceptions", lambda stored, _: stored.finding.excepted_by),),
        ),
        Column(
            "waiver",
            "1.2",
            refer_to("appliedWaiver"),
            "The waiver that applies to the finding, of several the one that applies longest; null without one.",
            lambda stored, context: waiver_json(context.triage.waiver(stored)),
            (Cell(22, text=_waiver_name),),
        ),
        Column("dependsOnRequester", "1.1", BOOLEAN, "Whether its outcome may differ for another user.", _depends),
        Column(
            "evidence",
            "1.1",
            refer_to("evidence"),
            "The values that decided, in the order of evaluation; null if nothing was evaluated, and for findings of older versions.",
            lambda stored, _: evidence_json(stored.finding.evidence),
            (Cell(30, text=lambda stored, _: "; ".join(evidence_lines(stored.finding.evidence))),),
        ),
    ],
)
"""A finding: its columns in the order of JSON."""
