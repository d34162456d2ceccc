"""The answer as JSON: one document, described by `docs/check.schema.json`."""

from __future__ import annotations

from typing import Final

from scanner.model.json import Json, JsonObject
from scanner.preview.verdict import CheckedObject, Decision, ServerAnswer, Verdict
from scanner.report.check.document import CheckDocument
from scanner.report.text.json_text import dump, gap_json, values_json

VERSION: Final = "1.0"


def render(document: CheckDocument) -> str:
    """One line of JSON, with its line end."""
    return dump(make_document(document)).decode() + "\n"


def make_document(document: CheckDocument) -> JsonObject:
    """The answer as a value."""
    result, counts = document.result, document.counts
    return {
        "schemaVersion": VERSION,
        "cluster": result.cluster.name,
        "serverVersion": result.cluster.server_version,
        "user": result.user,
        "complete": result.is_complete,
        "refused": result.is_refused,
        "counts": {verdict.value: counts[verdict] for verdict in Verdict},
        "objects": [_make_object(document, checked) for checked in result.objects],
        "gaps": [gap_json(gap) for gap in result.gaps],
        "notes": list(result.notes),
    }


def _make_object(document: CheckDocument, checked: CheckedObject) -> JsonObject:
    changes: list[Json] = [{**change.to_json(), "was": change.was} for change in checked.changes]
    return {
        "source": checked.place.source,
        "file": checked.place.file,
        "line": checked.place.line,
        "apiVersion": checked.api_version,
        "kind": checked.kind,
        "namespace": checked.namespace,
        "name": checked.name,
        "operation": checked.operation,
        "verdict": checked.verdict.value,
        "decisions": [_make_decision(document, checked, decision) for decision in checked.decisions],
        "changes": changes,
        "changedBy": list(checked.changed_by),
        "server": _make_answer(checked.server) if checked.server else None,
    }


def _make_decision(document: CheckDocument, checked: CheckedObject, decision: Decision) -> JsonObject:
    return {
        "effect": decision.effect.value,
        "by": decision.policy,
        "language": decision.language,
        "binding": decision.binding,
        "param": decision.param,
        "message": decision.message,
        "fields": list(decision.fields),
        "line": document.find_line(checked, decision),
        "values": values_json(decision.evidence),
    }


def _make_answer(server: ServerAnswer) -> JsonObject:
    return {
        "verdict": server.verdict.value if server.verdict else None,
        "compared": server.compared,
        "text": server.why,
    }
