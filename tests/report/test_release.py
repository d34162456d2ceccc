"""Reports name the release whose rules were applied if it is not the server's."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path

import orjson
import pytest

from scanner.model.scans.method import Method
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats.json import render as render_json
from scanner.report.formats.table import render as render_table
from tests.report.in_memory import ScanInMemory

from .pages import read
from .records import scan, small_record

NOTE = "The server is Kubernetes 1.41, which is newer than Assay supports. Assay applied the rules of Kubernetes 1.37."


def record_of(version: str) -> ScanInMemory:
    """The small record, of a server with some version."""
    recorded = scan()
    return replace(small_record(), scan=replace(recorded, cluster=replace(recorded.cluster, server_version=version)))


def table(record: ScanInMemory) -> str:
    """The table, wide enough that no sentence is broken."""
    out = StringIO()
    render_table(document_of(record), out, environ={"COLUMNS": "200"})
    return out.getvalue()


def first_page(record: ScanInMemory, tmp_path: Path) -> str:
    """The text of the first page of the HTML report."""
    FORMATS["html"].render(document_of(record), tmp_path / "report")
    return read(tmp_path / "report" / "index.html").text


def test_a_newer_server_is_named_on_the_first_page(tmp_path: Path) -> None:
    """The summary states that the rules are those of an older release."""
    assert NOTE in first_page(record_of("v1.41.0"), tmp_path)


def test_a_newer_server_is_named_in_the_table() -> None:
    """The note is the second line."""
    assert NOTE == table(record_of("v1.41.0")).splitlines()[1]


@pytest.mark.parametrize(
    ("version", "rules", "notes"),
    [("v1.41.0", "1.37", [NOTE]), ("v1.37.0", "1.37", []), ("v1.33.4", "1.33", [])],
)
def test_the_json_report_names_the_rules(version: str, rules: str, notes: list[str]) -> None:
    """It has a note if they are not the server's."""
    out = BytesIO()
    render_json(document_of(record_of(version)), out)
    provenance = orjson.loads(out.getvalue())["provenance"]

    assert (rules, notes) == (provenance["rules"], [note for note in provenance["notes"] if "rules" in note])


def test_a_server_with_known_rules_has_no_note(tmp_path: Path) -> None:
    """No report has a sentence about the rules."""
    assert "rules" not in table(record_of("v1.36.0"))
    assert "Assay applied the rules" not in first_page(record_of("v1.36.0"), tmp_path)


def of_kyverno(release: str, note: str = "") -> ScanInMemory:
    """The small record, of a scan with policies of Kyverno."""
    record = small_record()
    return replace(record, method=replace(record.method or Method(), kyverno_release=release, kyverno_note=note))


def test_the_release_of_kyverno_is_in_every_report(tmp_path: Path) -> None:
    """The JSON report and the page *Method* have it, and the first line of the table."""
    record, out = of_kyverno("1.18"), BytesIO()
    render_json(document_of(record), out)
    FORMATS["html"].render(document_of(record), tmp_path / "report")

    assert "1.18" == orjson.loads(out.getvalue())["method"]["kyvernoRelease"]
    assert "rules of release 1.18" in read(tmp_path / "report" / "method.html").text
    assert "(v1.36.0, Kyverno 1.18)" in table(record).splitlines()[0]


def test_a_release_of_kyverno_that_is_not_known_is_named(tmp_path: Path) -> None:
    """The note is the second line of the table, and a note of the JSON report and of the first page."""
    record, out = of_kyverno("1.19", NOTE), BytesIO()
    render_json(document_of(record), out)

    assert NOTE == table(record).splitlines()[1]
    assert NOTE in orjson.loads(out.getvalue())["provenance"]["notes"]
    assert NOTE in first_page(record, tmp_path)
