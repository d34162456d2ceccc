"""Drift in reports: counts and a page of its own, diffs, and no effect on the score."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from scanner.model.outcome import Change, Check, CheckKind, WouldChange
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.report.in_memory import ScanInMemory

from .pages import places_of
from .records import finding, small_record, with_findings

MUTATION = Check(CheckKind.MUTATION, 0, "Object{spec: Object.spec{replicas: 3}}")
PATCH = (Change("replace", "/spec/replicas", 3, was=1), Change("add", "/metadata/labels/<b>", "x"))
DRIFT = replace(
    finding("web", of="require-limits", checked=MUTATION, actions=()),
    finding=finding("web", of="require-limits", checked=MUTATION, actions=()).finding._replace(
        outcome=WouldChange(PATCH, converges=False, together=PATCH[:1], order_matters=True),
        denies=False,
    ),
)


def drifting() -> ScanInMemory:
    """A small scan with drift of one object."""
    small = small_record()
    key = TallyKey("require-limits", "b", "", "", MUTATION, "apps/v1", "Deployment", "shop", OutcomeName.WOULD_CHANGE)
    findings = sorted([*small.findings(), DRIFT], key=lambda stored: stored.finding.policy)
    return with_findings(replace(small, tallies={**small.tallies, key: 1}), findings)


def test_drift_has_counts_of_its_own_and_no_part_in_the_score() -> None:
    """Drift is neither a pass nor a failure."""
    before, after = document_of(small_record()), document_of(drifting())

    assert (before.score.value, before.totals.failing) == (after.score.value, after.totals.failing)
    assert (1, 1) == (after.totals.would_change, after.findings_total.drift)
    assert before.totals.total + 1 == after.totals.total


def test_the_pages_show_a_diff(tmp_path: Path) -> None:
    """The list has a row with the changes, and the place of the finding shows each change on a line, escaped."""
    FORMATS["html"].render(document_of(drifting()), tmp_path / "report")
    places = places_of(tmp_path / "report")

    assert '~ /spec/replicas: 1 → 3&#10;+ /metadata/labels/&lt;b&gt;: "x"&#10;' in places
    assert "A CREATE of this object would be changed by the policy" in places
    assert "not idempotent" in places
    assert "depends on their order" in places
    data = (tmp_path / "report" / "data" / "0000.js").read_text("utf-8")
    assert "~ /spec/replicas: 1 → 3; + /metadata/labels/<b>:" in data


def test_json_has_the_patch_as_rfc_6902() -> None:
    """A program can apply the patch."""
    out = BytesIO()
    FORMATS["json"].render(document_of(drifting()), out)
    (drift,) = (finding for finding in json.loads(out.getvalue())["findings"] if finding["outcome"] == "wouldChange")
    expected: Any = {
        "patch": [
            {"op": "replace", "path": "/spec/replicas", "value": 3},
            {"op": "add", "path": "/metadata/labels/<b>", "value": "x"},
        ],
        "converges": False,
        "together": [{"op": "replace", "path": "/spec/replicas", "value": 3}],
        "orderMatters": True,
        "undone": False,
        "refused": "",
    }

    assert expected == drift["drift"]


def test_the_table_counts_drift_apart() -> None:
    """The summary has a line for drift."""
    out = StringIO()
    FORMATS["table"].render(document_of(drifting()), out)

    assert "Drift     1 mutation would change an object" in out.getvalue()


def test_a_mutation_without_a_result_does_not_change_the_score() -> None:
    """Mutations are no part of the score."""
    small = small_record()
    key = TallyKey("require-limits", "b", "", "", MUTATION, "apps/v1", "Deployment", "shop", OutcomeName.NOT_AUDITABLE)

    assert document_of(small).score == document_of(replace(small, tallies={**small.tallies, key: 3})).score


def test_policy_reports_have_drift_as_a_warning() -> None:
    """Drift is no failed result."""
    out = BytesIO()
    FORMATS["policyreport"].render(document_of(drifting()), out)
    results = [result for report in json.loads(out.getvalue())["items"] for result in report.get("results", ())]

    assert ["warn"] == [
        result["result"] for result in results if result.get("message", "").startswith("~ /spec/replicas")
    ]
