"""The workload of a finding's object in every format that has findings."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from scanner.model.population import Workload
from scanner.model.scans.stored_finding import StoredFinding
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.text.names import workload_name
from tests.report.in_memory import ScanInMemory
from tests.report.records import finding, small_record, with_findings

OF_POD = Workload("apps/v1", "Deployment", "shop", "web")
DERIVED = replace(OF_POD, derived=True)


def about(workload: Workload | None, kind: str = "Pod", name: str = "web-6b7f9c-x2x4z") -> StoredFinding:
    """A finding about an object with this workload."""
    return replace(finding(name, kind=kind), workload=workload)


def record(*findings: StoredFinding) -> ScanInMemory:
    """A scan with these findings."""
    return with_findings(small_record(), findings)


def rendered(name: str, *findings: StoredFinding) -> Any:
    """The report in a format of JSON."""
    out = BytesIO()
    FORMATS[name].render(document_of(record(*findings)), out)
    return json.loads(out.getvalue())


def pages(folder: Path, *findings: StoredFinding) -> str:
    """The HTML of the page of the policy, of the new findings and of the namespace."""
    FORMATS["html"].render(document_of(record(*findings)), folder)
    return "".join(path.read_text() for path in sorted(folder.rglob("*.html")))


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (OF_POD, "Deployment web"),
        (DERIVED, "Deployment web (derived)"),
        (Workload("v1", "Node", "", "node-1"), "Node node-1"),
        (Workload("apps/v1", "Pod", "shop", "web-6b7f9c-x2x4z", derived=True), ""),
        (None, ""),
    ],
)
def test_a_workload_in_words(workload: Workload | None, expected: str) -> None:
    """Nothing where it is not known, or repeats the object."""
    assert expected == workload_name(about(workload))


def test_json_has_the_workload() -> None:
    """All of it, also where it is the object itself; null where it is not known."""
    own = Workload("apps/v1", "Deployment", "shop", "api")
    findings = rendered("json", about(DERIVED), about(own, "Deployment", "api"), about(None))["findings"]
    fields = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop"}
    expected = [{**fields, "name": "web", "derived": True}, {**fields, "name": "api", "derived": False}, None]
    assert expected == [item["workload"] for item in findings]


@pytest.mark.parametrize("name", ["policyreport", "openreports"])
def test_policy_reports_have_the_workload_as_a_property(name: str) -> None:
    """Where it is known, and another object."""
    results = [
        result
        for report in rendered(name, about(OF_POD), about(None, name="other"))["items"]
        for result in report.get("results", ())
    ]
    assert ["Deployment web", None] == [result["properties"].get("workload") for result in results]


def test_pages_show_the_workload_below_the_object(tmp_path: Path) -> None:
    """In the place of a finding; the list has a row of the workload, in which the object is folded."""
    html = pages(tmp_path, about(OF_POD))
    assert 1 == html.count("<dt>Workload<dd><bdi>Deployment web</bdi>")
    assert '<span class="quiet">Deployment </span><bdi>shop/web</bdi>' in html
    assert "<summary>1 object</summary>" in html


def test_pages_do_not_repeat_the_object(tmp_path: Path) -> None:
    """An object that is its own workload, or has none that is known."""
    own = Workload("apps/v1", "Deployment", "shop", "api")
    assert 0 == pages(tmp_path, about(own, "Deployment", "api"), about(None)).count("<dt>Workload<")


def test_the_name_of_a_workload_is_text(tmp_path: Path) -> None:
    """Names in files have not been validated."""
    html = pages(tmp_path, about(replace(OF_POD, name="<script>\x1b[2J{0}")))
    assert ("<script>\\x1b" in html, "\x1b" in html, True) == (
        False,
        False,
        "&lt;script&gt;\\x1b[2J{0}</bdi>" in html,
    )
