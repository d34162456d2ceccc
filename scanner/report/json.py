"""The report as JSON: one document, the same bytes for the same scan, written while findings are read.

Shape: `docs/report.schema.json`, whose version is `schemaVersion`. A minor version only adds fields. Findings come one
per line, so that the file can be read by line and compared by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO, TypeAlias, Union

from scanner.model.evidence import Evidence
from scanner.model.json import Json
from scanner.model.opinion import Opinion
from scanner.model.outcome import Check, Errored, WouldChange
from scanner.model.policy import PolicyKey
from scanner.model.scan import StoredFinding
from scanner.report.document import Document
from scanner.report.escaped import dump
from scanner.report.score import Score
from scanner.report.words import iso

SCHEMA_VERSION = "1.1"

_SECTIONS = (
    "provenance",
    "complete",
    "totals",
    "requester",
    "check_kinds",
    "findings_total",
    "changes",
    "score",
    "coverage",
    "policies",
    "namespaces",
    "gaps",
    "health",
    "outside",
    "second_opinion",
)

Plain: TypeAlias = Union[Json, "dict[str, Plain]", "list[Plain]"]


def render(document: Document, out: BinaryIO) -> None:
    """Write the report as UTF-8 JSON, ending with a line end."""
    out.write(b'{\n"schemaVersion": ' + dump(SCHEMA_VERSION))
    for name in _SECTIONS:
        value = _section(document, name)
        out.write(b",\n" + dump(_camel(name)) + b": " + dump(value))
    _stream(out, "findings", document.findings(), document.requester_checks)
    _stream(out, "resolved", document.resolved(), document.requester_checks)
    out.write(b"\n}\n")


def _stream(
    out: BinaryIO, name: str, findings: Iterator[StoredFinding], requester: frozenset[tuple[PolicyKey, Check]]
) -> None:
    out.write(b",\n" + dump(name) + b": [")
    separator = b"\n"
    for stored in findings:
        depends = (stored.finding.policy_key, stored.finding.check) in requester
        out.write(separator + dump(finding_json(stored, depends_on_requester=depends)))
        separator = b",\n"
    out.write(b"\n]")


def finding_json(stored: StoredFinding, *, depends_on_requester: bool) -> dict[str, Plain]:
    """A finding as the report says it."""
    it = stored.finding
    return {
        "id": stored.id,
        "fingerprint": it.fingerprint,
        "status": stored.status,
        "firstSeen": iso(stored.first_seen),
        "lastSeen": iso(stored.last_seen),
        "resolvedAt": iso(stored.resolved_at) if stored.resolved_at else None,
        "policy": it.policy,
        "language": it.language,
        "binding": it.binding,
        "param": {"namespace": it.param_namespace, "name": it.param_name} if it.param_name else None,
        "check": {"kind": str(it.check.kind), "index": it.check.index, "expression": it.check.expression},
        **_outcome(stored),
        "object": {
            "apiVersion": it.api_version,
            "kind": it.kind,
            "namespace": it.namespace,
            "name": it.name,
            "uid": it.uid,
            "resourceVersion": it.resource_version,
        },
        "operation": it.operation,
        "actions": list(it.actions),
        "wouldDeny": it.denies,
        "exceptedBy": it.excepted_by.split(", ") if it.excepted_by else [],
        "dependsOnRequester": depends_on_requester,
        "evidence": _evidence(it.evidence),
    }


def _evidence(evidence: Evidence) -> Plain:
    """The values that decided, null where a scan has kept none."""
    if not evidence:
        return None
    reasons: list[Plain] = [
        {
            "expression": it.expression,
            "value": None if it.erred else it.value,
            "error": it.value if it.erred else None,
            "path": it.path,
            "variable": it.variable,
        }
        for it in evidence.reasons
    ]
    return {"reasons": reasons, "leftOut": evidence.left_out}


def _outcome(stored: StoredFinding) -> dict[str, Plain]:
    outcome = stored.finding.outcome
    if isinstance(outcome, WouldChange):
        return {"outcome": "wouldChange", "message": outcome.message, "reason": "", "code": 0, "drift": _drift(outcome)}
    errored = isinstance(outcome, Errored)
    return {
        "outcome": "errored" if errored else "violated",
        "message": outcome.message,
        "reason": outcome.reason,
        "code": outcome.code,
    }


def _drift(outcome: WouldChange) -> dict[str, Plain]:
    """The patches as RFC 6902 writes them."""
    return {
        "patch": [change.json() for change in outcome.patch],
        "converges": outcome.converges,
        "together": [change.json() for change in outcome.together],
        "orderMatters": outcome.order_matters,
        "undone": outcome.undone,
        "refused": outcome.refused,
    }


def _section(document: Document, name: str) -> Plain:
    match name:
        case "score":
            return _score(document.score)
        case "second_opinion":
            return _opinion(document.second_opinion)
        case _:
            return _plain(getattr(document, name))


def _opinion(opinion: Opinion | None) -> Plain:
    """What the other engine said, with the sums; null when it was not asked."""
    if opinion is None:
        return None
    sums = {"limited": opinion.limited, "disagreed": opinion.disagreed}
    return {**{_camel(it.name): _plain(getattr(opinion, it.name)) for it in fields(opinion)}, **sums}


def _score(score: Score) -> Plain:
    return {
        "value": score.value,
        "low": score.low,
        "high": score.high,
        "passed": score.passed,
        "decided": score.decided,
        "undecided": score.undecided,
        "whyNot": score.why_not,
    }


def _plain(value: object) -> Plain:
    """A section's records as JSON values: fields in their order, names as Kubernetes spells them."""
    match value:
        case StrEnum():
            return str(value)
        case datetime():
            return iso(value)
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _ if is_dataclass(value):
            return {_camel(it.name): _plain(getattr(value, it.name)) for it in fields(value)}
    raise TypeError(f"a report cannot hold {type(value).__name__}")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
