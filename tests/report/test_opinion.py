"""A second opinion in reports."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path

from jsonschema import Draft202012Validator

from scanner.model.scans.opinion import Disagreement, Limitation, Opinion
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats.table import render

from .pages import main_of
from .records import HOSTILE, small_record
from .test_json import SCHEMA, strict

OPINION = Opinion(
    "cel-python 0.5.0",
    1.0,
    objects=8,
    evaluations=20,
    agreed=10,
    expressions=3,
    limits=(Limitation("optionals", "Its grammar has no optional selection.", 7, 2),),
    disagreements=tuple(Disagreement(text, text, text, text, 1, text, "an error", "true") for text in HOSTILE[:3]),
    left_out=4,
)
RECORD = replace(small_record(), opinion=OPINION)


def test_json_has_the_complete_opinion() -> None:
    """The fields and the sums are those of the schema."""
    out = BytesIO()
    FORMATS["json"].render(document_of(RECORD), out)
    report = json.loads(out.getvalue())
    opinion = report["secondOpinion"]
    assert (20, 10, 7, 3, 4) == tuple(
        opinion[name] for name in ("evaluations", "agreed", "limited", "disagreed", "leftOut")
    )
    assert [] == [error.message for error in Draft202012Validator(strict(SCHEMA)).iter_errors(report)]


def test_the_table_ends_with_the_opinion() -> None:
    """It states the agreement, the limits and the differences of the other engine."""
    out = StringIO()
    render(document_of(RECORD), out, environ={"COLUMNS": "200"})
    shown = out.getvalue()
    line = "cel-python 0.5.0 agrees in 10 of 20 evaluations of 3 expressions (sample: 1 %, 8 objects), does not support 7, and"
    assert line in shown
    assert "Its grammar has no optional selection." in shown
    assert "\x1b" not in shown


def test_an_empty_sample_is_no_agreement() -> None:
    """The table states that nothing was evaluated."""
    out = StringIO()
    render(document_of(replace(RECORD, opinion=Opinion("cel-python 0.5.0", 1.0))), out, environ={"COLUMNS": "200"})
    assert "cel-python 0.5.0 evaluated nothing: the sample (1 %, 0 objects) is too small" in out.getvalue()


def test_the_method_has_the_opinion(tmp_path: Path) -> None:
    """It is a section of the page, and hostile texts are escaped."""
    FORMATS["html"].render(document_of(RECORD), tmp_path / "report")
    page = (tmp_path / "report" / "method.html").read_text("utf-8")
    assert '<h2 id="opinion">' in page
    assert "Its grammar has no optional selection." in page
    assert "3 of 7 expressions shown" in page
    assert "<script" not in page


def test_a_scan_without_an_opinion_has_no_section(tmp_path: Path) -> None:
    """The page of the method has nothing about another engine."""
    FORMATS["html"].render(document_of(small_record()), tmp_path / "report")
    assert "Second opinion" not in main_of(tmp_path / "report" / "method.html")
