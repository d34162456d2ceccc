"""Findings as policy reports: the fields that the definitions of both APIs require, and those that Kyverno sets."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from scanner.model.outcome import Errored
from scanner.model.population import KeptMetadata, KeptOfObject
from scanner.model.scans.cause import Cause, CauseKind
from scanner.model.scans.scan import PolicyRecord
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.report.in_memory import ScanInMemory

from .records import (
    STARTED,
    finding,
    hostile_record,
    large_record,
    partial_record,
    policy,
    previewed,
    small_record,
    tally,
)

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
REFERENCE = {
    "type": "object",
    "additionalProperties": False,
    "properties": dict.fromkeys(("apiVersion", "kind", "name", "namespace", "uid", "resourceVersion"), TEXT),
}
RESULT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["policy"],
    "properties": {
        **dict.fromkeys(("source", "policy", "rule", "category", "message"), TEXT),
        "severity": {"enum": ["critical", "high", "medium", "low", "info"]},
        "timestamp": {
            "type": "object",
            "required": ["seconds", "nanos"],
            "properties": {"seconds": WHOLE, "nanos": WHOLE},
        },
        "result": {"enum": ["pass", "fail", "warn", "error", "skip"]},
        "scored": {"type": "boolean"},
        "resources": {"type": "array", "items": REFERENCE},
        "properties": {"type": "object", "additionalProperties": TEXT},
    },
}
REPORT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata", "summary", "results"],
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "source"), TEXT),
        "metadata": {"type": "object"},
        "summary": {
            "type": "object",
            "additionalProperties": False,
            "required": ["pass", "fail", "warn", "error", "skip"],
            "properties": dict.fromkeys(("pass", "fail", "warn", "error", "skip"), WHOLE),
        },
        "results": {"type": "array", "items": RESULT},
    },
}


def rendered(record: ScanInMemory, name: str = "policyreport") -> list[Any]:
    """The reports of a scan."""
    out = BytesIO()
    FORMATS[name].render(document_of(record), out)
    document = json.loads(out.getvalue())
    assert ("v1", "List") == (document["apiVersion"], document["kind"])
    return list(document["items"])


@pytest.mark.parametrize("name", ["policyreport", "openreports"])
def test_reports_of_a_small_scan(name: str, snapshot: SnapshotAssertion) -> None:
    """The reports of a small scan equal the recorded ones."""
    out = BytesIO()
    FORMATS[name].render(document_of(partial_record()), out)

    assert out.getvalue().decode() == snapshot


@pytest.mark.parametrize("name", ["policyreport", "openreports"])
@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_reports_have_the_shape_of_their_definitions(record: ScanInMemory, name: str) -> None:
    """No field is unknown, and no required field is missing."""
    validator = Draft202012Validator(REPORT)
    assert [] == [error.message for report in rendered(record, name) for error in validator.iter_errors(report)]


@pytest.mark.parametrize(
    ("kinds", "api_version", "name"),
    [
        ({"PolicyReport", "ClusterPolicyReport"}, "wgpolicyk8s.io/v1alpha2", "policyreport"),
        ({"Report", "ClusterReport"}, "openreports.io/v1alpha1", "openreports"),
    ],
)
def test_each_namespace_has_its_report(kinds: set[str], api_version: str, name: str) -> None:
    """Findings of cluster-scoped objects are in a cluster-wide report."""
    record = _record(finding("a", namespace="shop"), finding("b", namespace=""))
    reports = rendered(record, name)
    assert {api_version} == {report["apiVersion"] for report in reports}
    assert kinds == {report["kind"] for report in reports}
    assert {"shop": ["a"], "": ["b"]} == {
        report["metadata"].get("namespace", ""): [result["resources"][0]["name"] for result in report["results"]]
        for report in reports
        if report["results"]
    }


def _record(*findings: Any, language: str = "ValidatingAdmissionPolicy", annotations: Any = None) -> ScanInMemory:
    small = small_record()
    of = findings[0].finding.policy
    theirs = [replace(stored, finding=stored.finding._replace(language=language)) for stored in findings]
    manifest = {"metadata": {"name": of, "annotations": annotations or {}}}
    made = replace(policy(of, "true"), language=language, manifest=manifest)
    tallies = {key: number for key, number in small.tallies.items() if not key.namespace}
    return replace(
        small,
        policies=(PolicyRecord(made, (), 1),),
        tallies={**tallies, **tally(theirs, {})},
        found=lambda: theirs,
    )


def _result(*findings: Any, **policy_facts: Any) -> Any:
    (report,) = (report for report in rendered(_record(*findings, **policy_facts)) if report["results"])
    return report["results"][0]


KYVERNO = "ValidatingPolicy"
UNSCORED = {"policies.kyverno.io/scored": "false"}
FINDING = finding("a")


@pytest.mark.parametrize(
    ("expected", "stored", "annotations"),
    [
        ("fail", FINDING, {}),
        ("warn", FINDING, UNSCORED),
        ("error", finding("a", outcome=Errored("no such key", would_deny=True)), UNSCORED),
        ("skip", replace(FINDING, finding=FINDING.finding._replace(excepted_by="team/let-be", denies=False)), {}),
    ],
)
def test_the_result_is_one_of_five(expected: str, stored: Any, annotations: Any) -> None:
    """A failure of an unscored policy is a warning; an exempted finding is skipped."""
    assert expected == _result(stored, language=KYVERNO, annotations=annotations)["result"]


def test_a_result_has_the_fields_that_kyverno_sets() -> None:
    """Source, category, severity, index and time have the names that dashboards read."""
    result = _result(
        FINDING,
        language=KYVERNO,
        annotations={"policies.kyverno.io/category": "Pods", "policies.kyverno.io/severity": "high"},
    )
    assert ("KyvernoValidatingPolicy", "Pods", "high", True) == tuple(
        result[key] for key in ("source", "category", "severity", "scored")
    )
    assert {"seconds": int(STARTED.timestamp()), "nanos": 0} == result["timestamp"]
    assert "0" == result["properties"]["cel.validationIndex"]
    assert "rule" not in result


@pytest.mark.parametrize(("written", "severity"), [("Low", "low"), ("urgent", "medium"), ("", "medium")])
def test_a_severity_is_one_of_five_words(written: str, severity: str) -> None:
    """The definitions allow them in lower case; an unknown severity counts as medium."""
    assert severity == _result(FINDING, annotations={"policies.kyverno.io/severity": written})["severity"]


def test_the_owner_is_a_property() -> None:
    """An unowned object has none."""
    blue = replace(FINDING, kept=KeptOfObject(KeptMetadata((("team", "blue"),))))

    assert ["blue", None] == [_result(each)["properties"].get("owner") for each in (blue, FINDING)]


def test_a_result_says_what_the_findings_of_other_formats_say() -> None:
    """Ids, cause, status, actions and effect are properties, which dashboards show as they are."""
    changed = replace(FINDING, problem="p-00c0ffee0001", status="new", cause=Cause(CauseKind.OBJECT_CHANGED))
    properties = _result(changed)["properties"]

    assert {
        "id": changed.id,
        "problem": "p-00c0ffee0001",
        "status": "new",
        "cause": "the object changed",
        "actions": "Deny",
        "wouldDeny": "true",
        "firstSeen": "2026-03-01T14:00:00Z",
    }.items() <= properties.items()


@pytest.mark.parametrize("name", ["policyreport", "openreports"])
def test_previews_are_skips(name: str) -> None:
    """Dashboards alert on failures, and no binding is in force; passes of previews are not counted either."""
    sums = Counter[str]()
    reports = rendered(previewed(), name)
    for report in reports:
        sums.update(report["summary"])

    assert {"skip"} == {result["result"] for report in reports for result in report["results"]}
    assert {"pass": 0, "fail": 0, "warn": 0, "error": 0, "skip": 6} == sums


def test_the_rule_of_an_admission_policy_is_its_name() -> None:
    """Kyverno reports the same rule."""
    result = _result(FINDING)
    assert (result["policy"], "ValidatingAdmissionPolicy") == (result["rule"], result["source"])


def test_the_summary_counts_passes() -> None:
    """Passes are counted and not listed."""
    reports = rendered(small_record())
    totals = document_of(small_record()).totals
    assert totals.passed == sum(report["summary"]["pass"] for report in reports)
    assert totals.violated + totals.errored == sum(len(report["results"]) for report in reports)


@pytest.mark.parametrize("name", ["policyreport", "openreports"])
def test_a_report_of_many_findings_is_split(name: str) -> None:
    """No object is larger than a cluster stores, all have other names, and together they have every result and pass once."""
    out = BytesIO()
    FORMATS[name].render(document_of(large_record(6_000, policies=2, namespaces=1)), out)
    reports = json.loads(out.getvalue())["items"]
    sums = Counter[str]()
    for report in reports:
        sums.update(report["summary"])

    assert [f"assay-{number}" if number > 1 else "assay" for number in range(1, len(reports) + 1)] == [
        report["metadata"]["name"] for report in reports
    ]
    assert 2 < len(reports)
    assert 1_100_000 > max(len(json.dumps(report)) for report in reports)
    assert 6_000 == sum(len(report["results"]) for report in reports) == sums["fail"] + sums["error"] + sums["warn"]
    assert [0] * (len(reports) - 1) == [report["summary"]["pass"] for report in reports[1:]]
