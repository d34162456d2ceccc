"""A second opinion, in reports."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path

from jsonschema import Draft202012Validator

from scanner.model.opinion import Disagreement, Limited, Opinion
from scanner.report import FORMATS
from scanner.report.document import document_of
from scanner.report.table import render

from .records import HOSTILE, small_record
from .test_json import SCHEMA, strict

SAID = Opinion(
    "cel-python 0.5.0",
    1.0,
    objects=8,
    evaluations=20,
    agreed=10,
    expressions=3,
    limits=(Limited("optionals", "Its grammar has no optional selection.", 7, 2),),
    disagreements=tuple(Disagreement(text, text, text, text, 1, text, "an error", "true") for text in HOSTILE[:3]),
    left_out=4,
)
RECORD = replace(small_record(), opinion=SAID)


def test_json_says_all_of_it() -> None:
    """With the sums, as the schema has it."""
    out = BytesIO()
    FORMATS["json"].render(document_of(RECORD), out)
    report = json.loads(out.getvalue())
    opinion = report["secondOpinion"]
    assert (20, 10, 7, 3, 4) == tuple(
        opinion[name] for name in ("evaluations", "agreed", "limited", "disagreed", "leftOut")
    )
    assert [] == [error.message for error in Draft202012Validator(strict(SCHEMA)).iter_errors(report)]


def test_the_table_says_it_last() -> None:
    """How far the other engine agrees, what it cannot do, where it differs."""
    out = StringIO()
    render(document_of(RECORD), out, environ={"COLUMNS": "200"})
    shown = out.getvalue()
    line = "cel-python 0.5.0 agrees in 10 of 20 evaluations of 3 expressions (sample: 1 %, 8 objects), does not support 7, and"
    assert line in shown
    assert "Its grammar has no optional selection." in shown
    assert "\x1b" not in shown


def test_a_sample_of_nothing_says_so() -> None:
    """Silence is no agreement."""
    out = StringIO()
    render(document_of(replace(RECORD, opinion=Opinion("cel-python 0.5.0", 1.0))), out, environ={"COLUMNS": "200"})
    assert "cel-python 0.5.0 evaluated nothing: the sample (1 %, 0 objects) is too small" in out.getvalue()


def test_a_page_of_its_own(tmp_path: Path) -> None:
    """Linked from the page about the report; hostile texts are texts."""
    FORMATS["html"].render(document_of(RECORD), tmp_path / "report")
    page = (tmp_path / "report" / "opinion.html").read_text("utf-8")
    assert 'href="opinion.html"' in (tmp_path / "report" / "about.html").read_text("utf-8")
    assert "Its grammar has no optional selection." in page
    assert "3 of 7 expressions shown" in page
    assert "<script" not in page


def test_no_page_when_nobody_was_asked(tmp_path: Path) -> None:
    """And no link to one."""
    FORMATS["html"].render(document_of(small_record()), tmp_path / "report")
    assert not (tmp_path / "report" / "opinion.html").exists()
    assert "opinion.html" not in (tmp_path / "report" / "about.html").read_text("utf-8")
