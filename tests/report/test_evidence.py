"""Evidence in reports."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

from scanner.model.outcome import NO_EVIDENCE, Evidence, Reason
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.text.evidence import evidence_lines, lines_with_excerpt

from .pages import places_of
from .records import hostile_record, large_record, small_record


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (NO_EVIDENCE, []),
        (
            Evidence((Reason("c.image", '"nginx"', "spec.containers[0].image"),)),
            ['c.image is "nginx" (spec.containers[0].image)'],
        ),
        (Evidence((Reason("object.spec.a", "1", "spec.a"),)), ["object.spec.a is 1"]),
        (Evidence((Reason("params.data.a", '"1"', "params.data.a"),)), ['params.data.a is "1"']),
        (Evidence((Reason("variables.v", "false", "variables.v"),)), ["variables.v is false"]),
        (Evidence((Reason("x.y", "1", "spec.y", "v"),)), ["in variables.v: x.y is 1 (spec.y)"]),
        (
            Evidence((Reason("object.a", "no such key: a", "a", erred=True),), 3),
            ["object.a failed: no such key: a", "and 3 more reasons"],
        ),
        (Evidence((Reason("", "it could not be explained", erred=True),)), ["it could not be explained"]),
    ],
)
def test_lines(evidence: Evidence, expected: list[str]) -> None:
    """A path that the expression states itself is not repeated."""
    assert expected == list(evidence_lines(evidence))


def test_the_excerpt_has_a_line_of_its_own() -> None:
    """It follows the reasons."""
    evidence = Evidence((Reason("object.spec.a", "1", "spec.a"),), excerpt='spec: {"a": 1, "b": 2}')
    assert ["object.spec.a is 1", 'excerpt: spec: {"a": 1, "b": 2}'] == list(lines_with_excerpt(evidence))


def test_json_has_the_evidence() -> None:
    """Values and errors have fields of their own."""
    out = BytesIO()
    FORMATS["json"].render(document_of(large_record(1)), out)
    [finding] = json.loads(out.getvalue())["findings"]
    expected = {
        "reasons": [
            {
                "expression": "has(c.resources.limits)",
                "value": "false",
                "error": None,
                "path": "spec.template.spec.containers[0].resources.limits",
                "variable": "",
            }
        ],
        "leftOut": 0,
        "excerpt": None,
    }
    assert expected == finding["evidence"]


def test_json_has_null_without_evidence() -> None:
    """Findings of older versions have no evidence."""
    out = BytesIO()
    FORMATS["json"].render(document_of(small_record()), out)
    assert {None} == {finding["evidence"] for finding in json.loads(out.getvalue())["findings"]}


def test_pages_show_the_evidence_and_run_nothing_of_it(tmp_path: Path) -> None:
    """Each reason is a line of escaped text."""
    FORMATS["html"].render(document_of(hostile_record()), tmp_path / "report")
    html = places_of(tmp_path / "report")
    assert 'class="why">in variables.&lt;script&gt;alert(1)&lt;/script&gt;: &lt;script&gt;' in html
    assert 'class="why">and 1 more reason' in html
    assert "<script" not in html


def test_a_page_without_evidence_has_no_empty_lines(tmp_path: Path) -> None:
    """Findings of older versions have no values that decided."""
    FORMATS["html"].render(document_of(small_record()), tmp_path / "report")
    assert 0 == places_of(tmp_path / "report").count('class="why"')


def test_policy_reports_have_the_evidence() -> None:
    """It is a property, which dashboards show unchanged."""
    out = BytesIO()
    FORMATS["policyreport"].render(document_of(large_record(1)), out)
    [result] = json.loads(out.getvalue())["items"][0]["results"]
    expected = "has(c.resources.limits) is false (spec.template.spec.containers[0].resources.limits)"
    assert expected == result["properties"]["evidence"]
