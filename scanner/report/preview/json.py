"""A preview as JSON: one document, described by `docs/preview.schema.json`."""

from __future__ import annotations

from typing import Final

from scanner.model.json import Json, JsonObject
from scanner.model.outcome import Finding
from scanner.preview.asked_requests import RequestAnswer
from scanner.preview.differences import ContestedField, Difference, PolicyDifference, find_effect
from scanner.preview.rule_change import Cause
from scanner.preview.rule_preview import PreviewedObject, PreviewResult
from scanner.preview.workload_risks import Risk, WorkloadRisks
from scanner.report.preview.document import ASKED_TEXTS, PreviewDocument, describe_cause
from scanner.report.text.json_text import dump, gap_json, values_json, workload_json

VERSION: Final = "1.0"


def render(document: PreviewDocument) -> str:
    """One line of JSON, with its line end."""
    return dump(make_document(document)).decode() + "\n"


def make_document(document: PreviewDocument) -> JsonObject:
    """The preview as a value."""
    result, counts = document.result, document.counts
    return {
        "schemaVersion": VERSION,
        "cluster": result.cluster.name,
        "serverVersion": result.cluster.server_version,
        "user": result.user,
        "complete": result.is_complete,
        "examined": result.examined,
        "counts": {each.value: counts[each] for each in Difference},
        "changes": [_make_cause(cause) for cause in result.causes],
        "policies": [{"language": language, "name": name} for language, name in result.policies],
        "workloads": [_make_workload(each) for each in result.workloads],
        "objects": [_make_object(result, each) for each in result.objects],
        "gaps": [gap_json(gap) for gap in result.gaps],
        "notes": list(result.notes),
        "asked": None if result.asked is None else {each: result.asked.get(each, 0) for each in ASKED_TEXTS},
    }


def _make_cause(cause: Cause) -> JsonObject:
    fields: list[Json] = [
        {"path": field.path, "before": field.before, "after": field.after, "line": field.line} for field in cause.fields
    ]
    return {"source": cause.source, "what": cause.what, "fields": fields}


def _make_workload(each: WorkloadRisks) -> JsonObject:
    return {
        "workload": workload_json(each.workload),
        "owner": each.owner,
        "controlPlane": each.is_control_plane,
        "replicas": each.replicas,
        "running": each.running,
        "hasController": each.has_controller,
        "risks": [_make_risk(risk) for risk in each.risks],
    }


def _make_risk(risk: Risk) -> JsonObject:
    decisions: list[Json] = [
        {
            "language": each.language,
            "policy": each.policy,
            "binding": each.binding,
            "param": each.param,
            "message": each.message,
        }
        for each in risk.decisions
    ]
    return {
        "action": risk.action.value,
        "refused": risk.is_refused,
        "certainty": risk.certainty.value,
        "kind": risk.object.kind.kind,
        "name": risk.object.name,
        "user": risk.user,
        "decisions": decisions,
        "server": _make_answer(risk.server) if risk.server else None,
    }


def _make_answer(server: RequestAnswer) -> JsonObject:
    return {"admitted": server.admitted, "compared": server.compared, "user": server.user, "text": server.why}


def _make_object(result: PreviewResult, each: PreviewedObject) -> JsonObject:
    return {
        "apiVersion": each.object.kind.api_version,
        "kind": each.object.kind.kind,
        "namespace": each.object.namespace,
        "name": each.object.name,
        "controlPlane": each.is_control_plane,
        "workload": workload_json(each.workload),
        "owner": each.owner,
        "difference": each.difference.worst.value,
        "deniedBeforeAndAfterBy": list(each.difference.denied_by),
        "restartsPods": each.restarts_pods,
        "replicas": each.replicas,
        "contested": [_make_contested(field) for field in each.difference.contested],
        "policies": [_make_policy(result, each, one) for one in each.difference.policies],
    }


def _make_contested(field: ContestedField) -> JsonObject:
    parts = ((field.one, field.value_of_one), (field.other, field.value_of_other))
    values: list[Json] = [{"language": language, "policy": name, "value": value} for (language, name), value in parts]
    return {"path": field.path, "values": values}


def _make_policy(result: PreviewResult, each: PreviewedObject, one: PolicyDifference) -> JsonObject:
    language, name = one.policy
    return {
        "language": language,
        "name": name,
        "difference": one.difference.value,
        "before": _make_side(one.before),
        "after": _make_side(one.after),
        "causes": [describe_cause(cause) for cause in result.find_causes(one, each.object.namespace)],
    }


def _make_side(findings: tuple[Finding, ...]) -> JsonObject:
    return {"effect": find_effect(findings).value, "findings": [_make_finding(finding) for finding in findings]}


def _make_finding(finding: Finding) -> JsonObject:
    return {
        "binding": finding.binding,
        "param": "/".join(filter(None, (finding.param_namespace, finding.param_name))),
        "check": finding.check.expression,
        "message": finding.outcome.message,
        "values": values_json(finding.evidence),
    }
