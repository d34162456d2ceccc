"""A preview as JSON: one document, described by `docs/preview.schema.json`."""

from __future__ import annotations

from collections.abc import Iterator
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


def render(document: PreviewDocument) -> Iterator[str]:
    """One line of JSON, with its line end, in parts: the values of thousands of objects would need more memory than the preview."""
    before = "{"
    for name, value in _list_fields(document):
        yield f'{before}"{name}":'
        yield from _render_items(value) if isinstance(value, Iterator) else (dump(value).decode(),)
        before = ","
    yield "}\n"


def _render_items(items: Iterator[JsonObject]) -> Iterator[str]:
    before = "["
    for item in items:
        yield before + dump(item).decode()
        before = ","
    yield "[]" if before == "[" else "]"


def _list_fields(document: PreviewDocument) -> Iterator[tuple[str, Json | Iterator[JsonObject]]]:
    """The fields of the document; long lists are made item by item."""
    result, counts = document.result, document.counts
    yield "schemaVersion", VERSION
    yield "cluster", result.cluster.name
    yield "serverVersion", result.cluster.server_version
    yield "user", result.user
    yield "complete", result.is_complete
    yield "examined", result.examined
    yield "counts", {each.value: counts[each] for each in Difference}
    yield "changes", [_make_cause(cause) for cause in result.causes]
    yield "policies", [{"language": language, "name": name} for language, name in result.policies]
    yield "workloads", map(_make_workload, result.workloads)
    yield "objects", (_make_object(result, each) for each in result.objects)
    yield "gaps", [gap_json(gap) for gap in result.gaps]
    yield "notes", list(result.notes)
    yield "asked", None if result.asked is None else {each: result.asked.get(each, 0) for each in ASKED_TEXTS}


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
