"""Findings in files as SARIF, for code scanning: each is shown at the line of the field that decided it.

A report of a live cluster has no files, and GitHub refuses results without a location in a file, so that such a report is an
error. Source of truth: SARIF 2.1.0 of OASIS, and what GitHub reads of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import BinaryIO, Final
from urllib.parse import quote

from scanner.errors import UsageError
from scanner.model.json import Json, JsonObject
from scanner.model.outcome import Errored, Finding, Violated, WouldChange
from scanner.model.policy import PolicyKey
from scanner.model.scans.place import Place, Places
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES, StoredFinding
from scanner.posture.deciding_fields import find_deciding_fields, object_of
from scanner.posture.severity import Severity
from scanner.posture.triage import BelowSeverity
from scanner.report.document.below_severity import find_below, findings_left_out, left_out_line
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.document import Document
from scanner.report.document.notes import list_missed
from scanner.report.document.sentences import verdict_of
from scanner.report.document.waivers import waiver_text
from scanner.report.text.evidence import evidence_lines
from scanner.report.text.json_text import dump
from scanner.report.text.names import object_name, param_name, workload_name
from scanner.report.text.numbers import plural
from scanner.report.text.safe_text import visible
from scanner.report.text.times import iso
from scanner.report.text.titles import cause_text, check_title, message_of, result_word

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NO_FILES: Final = (
    "SARIF needs the file and the line of each finding, and the objects {of} have none: GitHub refuses such a file. "
    "Scan manifests with --from {files}, or choose another format."
)
NO_FILES: Final = _NO_FILES.format(of="of a live cluster", files="PATH")
STDIN_ALONE: Final = _NO_FILES.format(of="from standard input", files="PATH instead of -")
_BASE: Final = "%SRCROOT%"
"""The root of the checkout, as GitHub names it."""
_SECURITY: Final = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.5",
    Severity.LOW: "2.0",
    Severity.INFO: "0.0",
}
"""The number of each severity: GitHub shows 9 and more as critical, 7 as high, 4 as medium, less as low."""
_BASELINE: Final = {"new": "new", "reopened": "new", "open": "unchanged"}


def render(document: Document, out: BinaryIO) -> None:
    """Write one run with a result for each finding in a file. Raises UsageError for a scan without files."""
    places = document.stored.places()
    if places is None:
        raise UsageError(NO_FILES)
    if not places and document.findings_total.total:
        raise UsageError(STDIN_ALONE)
    out.write(b'{"$schema": ' + dump(SCHEMA) + b', "version": "2.1.0", "runs": [{\n"tool": ' + dump(_tool(document)))
    out.write(b',\n"automationDetails": ' + dump({"id": f"assay/{visible(document.provenance.cluster.name)}/"}))
    out.write(b',\n"columnKind": "unicodeCodePoints",\n"results": [')
    separator, elsewhere, below = b"\n", 0, find_below(document)
    for stored in document.findings():
        if below(*stored.finding.severity_key):
            continue
        if (place := _place(stored.finding, places)) is None:
            elsewhere += 1
            continue
        out.write(separator + dump(_item(document, stored, place)))
        separator = b",\n"
    out.write(b'\n],\n"invocations": [' + dump(_invocation(document, elsewhere)) + b"]\n}]}\n")


def _place(finding: Finding, places: Places) -> Place | None:
    named = object_of(finding)
    fields = (place for path in find_deciding_fields(finding) if (place := places.find(*named, path)))
    return next(fields, None) or places.find(*named)


def _tool(document: Document) -> JsonObject:
    below = find_below(document)
    rules: list[Json] = [
        rule
        for section in document.policies
        if not below.has_policy(section.key)
        for rule in (_rule(document, section), *_rules_of_checks(document, section, below))
    ]
    return {"driver": {"name": "Assay", "version": document.provenance.tool_version, "rules": rules}}


def _rules_of_checks(document: Document, section: PolicySection, below: BelowSeverity) -> Iterator[JsonObject]:
    """A rule for each check with a severity of its own: the severity of a result is that of its rule."""
    described = document.triage.description(section.key).checks
    for check in section.checks:
        expression = check.check.expression
        if expression in described and not below(section.key, expression):
            rule = _rule(document, replace(section, severity=check.severity, remediation=check.remediation))
            yield {**rule, "id": _rule_id(document, section.key, expression)}


def _rule_id(document: Document, policy: PolicyKey, expression: str) -> str:
    """The title of the policy, and the name of the check if it has a rule of its own."""
    title = document.title(policy)
    return visible(f"{title}/{expression}" if expression in document.triage.description(policy).checks else title)


def _rule(document: Document, section: PolicySection) -> JsonObject:
    title, name = visible(section.title), visible(document.title(section.key))
    text = visible(section.description, lines=True) or title or name
    remediation = visible(section.remediation, lines=True)
    return {
        "id": name,
        "shortDescription": {"text": title or name or "policy"},
        "fullDescription": {"text": text or "policy"},
        "help": {"text": "\n\n".join(part for part in (text, remediation) if part) or "policy"},
        "properties": {
            "tags": ["security", *([visible(section.category)] if section.category else ())],
            "security-severity": _SECURITY[section.severity],
            "severity": str(section.severity),
            "language": section.language,
        },
    }


def _invocation(document: Document, elsewhere: int) -> JsonObject:
    """The run of Assay: a scan that missed something was not successful."""
    provenance = document.provenance
    texts = [f"{part.title}: {part.text}" for part in list_missed(document)]
    if not texts and not document.complete:
        texts = [verdict_of(document)]
    if elsewhere:
        verb = "is" if elsewhere == 1 else "are"
        texts.append(f"{plural(elsewhere, 'finding')} of objects from standard input {verb} not in this report")
    notes: list[Json] = [{"level": "error", "message": {"text": visible(text)}} for text in texts]
    if left_out := left_out_line(document, findings_left_out(document), "finding"):
        notes.append({"level": "note", "message": {"text": left_out}})
    return {
        "executionSuccessful": document.complete,
        "startTimeUtc": iso(provenance.started_at),
        "endTimeUtc": iso(provenance.ended_at),
        "toolExecutionNotifications": notes,
    }


def _item(document: Document, stored: StoredFinding, place: Place) -> JsonObject:
    finding = stored.finding
    kind, level = _level(stored)
    baseline = _BASELINE.get(stored.status)
    return {
        "ruleId": _rule_id(document, *finding.severity_key),
        "kind": kind,
        "level": level,
        "message": {"text": _message(finding)},
        "locations": [_location(finding, place)],
        "partialFingerprints": {"assayFinding/v1": finding.fingerprint},
        **({"baselineState": baseline} if baseline else {}),
        "suppressions": _suppressions(document, stored),
        "properties": _properties(document, stored),
    }


def _level(stored: StoredFinding) -> tuple[str, str]:
    """The kind and the level of a result. Drift and previews are no failures, and have no level."""
    finding = stored.finding
    if stored.status in SINGLE_SCAN_STATUSES:
        return "review", "none"
    match finding.outcome:
        case Violated():
            is_error = finding.denies or "RefusePods" in finding.actions
            return "fail", "error" if is_error else "warning" if "Warn" in finding.actions else "note"
        case Errored():
            return "fail", "error" if finding.denies else "warning"
        case WouldChange():
            return "review", "none"


def _message(finding: Finding) -> str:
    lines = [f"{finding.kind} {object_name(finding)}: {message_of(finding)}", *evidence_lines(finding.evidence)]
    return "\n".join(visible(line, lines=True) for line in lines)


def _location(finding: Finding, place: Place) -> JsonObject:
    name = visible(f"{finding.kind}/{object_name(finding)}")
    return {
        "physicalLocation": {"artifactLocation": _artifact(place.path), "region": {"startLine": place.line}},
        "logicalLocations": [{"fullyQualifiedName": name, "kind": "resource"}],
    }


def _artifact(path: str) -> JsonObject:
    """The URI of a file: relative to the checkout, or absolute for a file outside it."""
    if PurePosixPath(path).is_absolute():
        return {"uri": f"file://{quote(path)}"}
    return {"uri": quote(path), "uriBaseId": _BASE}


def _suppressions(document: Document, stored: StoredFinding) -> list[Json]:
    """The waiver and the exception of a finding. An empty list states that there is none."""
    texts = waiver_text(document.triage.waiver(stored)), stored.finding.excepted_by
    return [{"kind": "external", "justification": visible(text)} for text in texts if text]


def _properties(document: Document, stored: StoredFinding) -> dict[str, Json]:
    finding, triage = stored.finding, document.triage
    facts = {
        "id": stored.id,
        "problem": stored.problem,
        "outcome": result_word(finding.outcome),
        "severity": str(triage.severity(*finding.severity_key)),
        "owner": triage.owner(stored),
        "status": stored.status,
        "cause": cause_text(stored.cause) if stored.cause else "",
        "workload": workload_name(stored),
        "binding": finding.binding,
        "param": param_name(finding.param_namespace, finding.param_name),
        "check": check_title(finding.check),
        "actions": ",".join(finding.actions),
        "wouldBeRefused": "true" if finding.denies else "false",
        "controls": ",".join(triage.controls(*finding.severity_key)),
        "firstSeen": iso(stored.first_seen),
    }
    return {name: visible(text) for name, text in facts.items() if text}
