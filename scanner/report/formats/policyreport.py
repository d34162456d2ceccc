"""Findings as policy reports, which the dashboards of the policy working group and of OpenReports read.

One report for each namespace and one for cluster-scoped objects, and several of at most `MOST_BYTES` for many findings: a cluster
stores no object above 1.5 MB. Source of truth: the definitions of `wgpolicyk8s.io/v1alpha2` and `openreports.io/v1alpha1`, whose
results are equal, and the fields that Kyverno sets. The summary counts passes, but no result lists them: a scan stores no row for a
pass. A waived result is a skip, and so are excepted and previewed ones: dashboards alert on the others. The properties `waiver`,
`exceptions` and `status` say why.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from scanner.model.json import JsonObject, dig, text_map
from scanner.model.outcome import CheckKind, Errored, Finding, WouldChange
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES, StoredFinding
from scanner.policies.language import LANGUAGES, Language, find_report_source
from scanner.posture.severity import Severity
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.counts import NOTHING, CheckCounts
from scanner.report.document.document import Document
from scanner.report.document.waivers import waiver_text
from scanner.report.group_files import GroupReader, GroupWriter, file_name
from scanner.report.text.evidence import evidence_lines
from scanner.report.text.json_text import dump
from scanner.report.text.names import workload_name
from scanner.report.text.times import iso
from scanner.report.text.titles import cause_text, check_title

_SKIP = "skip"
_ASIDE = "aside"
"""What is counted as a skip although its check was not skipped: waived and previewed results."""
_ANNOTATION = "policies.kyverno.io/"
MOST_BYTES: Final = 1_000_000
"""The most bytes of the results in one report."""
_MANAGED = {"app.kubernetes.io/managed-by": "assay"}


@dataclass(frozen=True, slots=True)
class Shape:
    """The API of the reports. `sourced` reports have a source of their own besides that of each result."""

    api_version: str
    namespaced: str
    cluster_wide: str
    sourced: bool = False


def write_reports(document: Document, out: BinaryIO, shape: Shape, languages: Iterable[Language] = LANGUAGES) -> None:
    """Write a List of reports as JSON, one line for each result. `shape` is the API of the reports."""
    sources = {policy.key: find_report_source(policy.language, languages) for policy in document.policies}
    policies = {policy.key: policy for policy in document.policies}
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        writer = GroupWriter(results)
        for stored in document.findings():
            waiver = waiver_text(document.triage.waiver(stored))
            key = stored.finding.policy_key
            severity = document.triage.severity(*stored.finding.severity_key)
            result = _result(stored, policies[key], severity, sources[key], document.triage.owner(stored), waiver)
            aside = (waiver or stored.status in SINGLE_SCAN_STATUSES) and not stored.finding.excepted_by
            counted = _ASIDE if aside else str(result["result"])
            writer.add(file_name(stored.finding.namespace), f"{counted} {dump(result).decode()}")
        writer.flush()
        reader = GroupReader([results])
        out.write(b'{"apiVersion": "v1", "kind": "List", "items": [')
        separator = b"\n"
        for section in document.namespaces:
            counts = document.count_in_namespace(section)
            for number, part in enumerate(_parts(reader.rows(file_name(section.namespace))), 1):
                head = _head(shape, section.namespace, number, _summary(counts, part.listed))
                out.write(separator)
                _write(out, head, part.rows)
                separator = b",\n"
                counts = NOTHING
        out.write(b"\n]}\n")


@dataclass(slots=True)
class _ReportPart:
    """The results of one report, and their numbers by result."""

    rows: list[str] = field(default_factory=list)
    listed: Counter[str] = field(default_factory=Counter)
    size: int = 0

    def add(self, counted: str, row: str) -> None:
        self.rows.append(row)
        self.listed[counted] += 1
        self.size += len(row.encode()) + len(",\n")


def _parts(rows: Iterator[str]) -> Iterator[_ReportPart]:
    """The results of a namespace in parts of at most `MOST_BYTES`, one for a namespace without results."""
    part = _ReportPart()
    for text in rows:
        counted, _, row = text.partition(" ")
        if part.rows and part.size + len(row.encode()) > MOST_BYTES:
            yield part
            part = _ReportPart()
        part.add(counted, row)
    yield part


def _write(out: BinaryIO, head: JsonObject, rows: Iterable[str]) -> None:
    out.write(dump(head)[:-1] + b', "results": [')
    separator = b"\n"
    for row in rows:
        out.write(separator + row.encode())
        separator = b",\n"
    out.write(b"\n]}")


def _head(shape: Shape, namespace: str, number: int, summary: Mapping[str, int]) -> JsonObject:
    """The fields of a report but its results. The first report of a namespace is called `assay`, the second `assay-2`."""
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": shape.api_version,
        "kind": shape.namespaced if namespace else shape.cluster_wide,
        "metadata": {"name": f"assay-{number}" if number > 1 else "assay", **place, "labels": _MANAGED},
        **({"source": "assay"} if shape.sourced else {}),
        "summary": summary,
    }


def _summary(counts: CheckCounts, listed: Mapping[str, int]) -> dict[str, int]:
    """All five numbers: fail, warn, error, waived and previewed results as listed, pass and other skips as counted."""
    shown = {name: listed.get(name, 0) for name in ("fail", "warn", "error")}
    return {"pass": counts.passed, **shown, "skip": counts.unanswered + counts.excepted + listed.get(_ASIDE, 0)}


def _result(
    stored: StoredFinding, policy: PolicySection, severity: Severity, source: str, owner: str, waiver: str
) -> dict[str, object]:
    finding = stored.finding
    annotations = text_map(dig(policy.manifest, "metadata", "annotations"))
    scored = annotations.get(f"{_ANNOTATION}scored") != "false"
    texts = {"category": policy.category, "severity": str(severity), "message": finding.outcome.message}
    return {
        "source": source or policy.language or "assay",
        "policy": finding.policy,
        **({} if source else {"rule": finding.policy}),
        **{key: text for key, text in texts.items() if text},
        "timestamp": {"seconds": int(stored.last_seen.timestamp()), "nanos": 0},
        "result": _SKIP if waiver or stored.status in SINGLE_SCAN_STATUSES else _status(finding, scored=scored),
        **({"scored": True} if scored else {}),
        "resources": [_reference(finding)],
        "properties": _properties(stored, owner, waiver),
    }


def _status(finding: Finding, *, scored: bool) -> str:
    if finding.excepted_by:
        return _SKIP
    if isinstance(finding.outcome, Errored):
        return "error"
    # Drift is no violation, so dashboards must not count it as a failure.
    return "fail" if scored and not isinstance(finding.outcome, WouldChange) else "warn"


def _reference(finding: Finding) -> dict[str, str]:
    reference = {
        "apiVersion": finding.api_version,
        "kind": finding.kind,
        "name": finding.name,
        "namespace": finding.namespace,
        "uid": finding.uid,
        "resourceVersion": finding.resource_version,
    }
    return {key: text for key, text in reference.items() if text}


def _properties(stored: StoredFinding, owner: str, waiver: str) -> dict[str, str]:
    finding = stored.finding
    param = f"{finding.param_namespace}/{finding.param_name}" if finding.param_name else ""
    texts = {
        "id": stored.id,
        "problem": stored.problem,
        "binding": finding.binding,
        "param": param,
        "workload": workload_name(stored),
        "owner": owner,
        "check": check_title(finding.check),
        "exceptions": finding.excepted_by,
        "waiver": waiver,
        "evidence": "; ".join(evidence_lines(finding.evidence)),
        "status": stored.status,
        "cause": cause_text(stored.cause) if stored.cause else "",
        "firstSeen": iso(stored.first_seen),
        "actions": ",".join(finding.actions),
        "wouldDeny": "true" if finding.denies else "false",
        "process": "background scan",
    }
    index = {"cel.validationIndex": str(finding.check.index)} if finding.check.kind is CheckKind.VALIDATION else {}
    return {**index, **{key: text for key, text in texts.items() if text}}


_POLICY_REPORTS = Shape("wgpolicyk8s.io/v1alpha2", "PolicyReport", "ClusterPolicyReport")


def render(document: Document, out: BinaryIO) -> None:
    """Write a List of PolicyReport and ClusterPolicyReport."""
    write_reports(document, out, _POLICY_REPORTS)


_OPEN_REPORTS = Shape("openreports.io/v1alpha1", "Report", "ClusterReport", sourced=True)


def render_openreports(document: Document, out: BinaryIO) -> None:
    """Write a List of Report and ClusterReport."""
    write_reports(document, out, _OPEN_REPORTS)
