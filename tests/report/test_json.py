"""The JSON report: its schema, its order, its bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from scanner.model.scans.stored_finding import StoredFinding
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats.json import SCHEMA_VERSION
from tests.report.in_memory import ScanInMemory

from .records import HOSTILE, finding, hostile_record, large_record, partial_record, small_record

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text("utf-8"))


def rendered(record: ScanInMemory) -> bytes:
    """The JSON report of a scan."""
    out = BytesIO()
    FORMATS["json"].render(document_of(record), out)
    return out.getvalue()


def strict(schema: Any) -> Any:
    """The schema, allowing no property that it does not describe."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(item) for key, item in schema.items()}
    return {**closed, "additionalProperties": False} if "properties" in schema else closed


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_report_follows_its_schema(record: ScanInMemory) -> None:
    """A report has every required property, and none that the schema does not describe."""
    validator = Draft202012Validator(strict(deepcopy(SCHEMA)), format_checker=Draft202012Validator.FORMAT_CHECKER)
    assert [] == [error.message for error in validator.iter_errors(json.loads(rendered(record)))]


def test_schema_is_a_schema() -> None:
    """The committed schema is valid, and has the version of the reports."""
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA_VERSION == SCHEMA["properties"]["schemaVersion"]["const"]


def test_report_of_a_small_scan(snapshot: SnapshotAssertion) -> None:
    """The report of a small scan equals the recorded one."""
    assert rendered(partial_record()).decode() == snapshot


def test_same_scan_same_bytes() -> None:
    """Rendering twice gives the same bytes."""
    assert rendered(small_record()) == rendered(small_record())


def test_findings_come_one_per_line() -> None:
    """Each finding is a line of its own, so that reports can be compared line by line."""
    lines = rendered(small_record()).splitlines()
    start = lines.index(b'"findings": [')
    assert [finding.id for finding in small_record().findings()] == [
        json.loads(line.rstrip(b","))["id"] for line in lines[start + 1 : start + 7]
    ]


def test_hostile_texts_come_back_whole() -> None:
    """JSON keeps every text unchanged, and prints no control character."""
    text = rendered(hostile_record())
    assert sorted(HOSTILE) == [finding["message"] for finding in json.loads(text)["findings"]]
    assert b"\x1b" not in text


def test_lone_surrogates_are_escaped() -> None:
    """UTF-8 cannot express a lone surrogate."""
    record = replace(small_record(), found=lambda: ([finding("web\ud800")]))
    text = rendered(record)
    assert b'"name":"web\\ud800"' in text


def test_findings_are_written_while_they_are_read() -> None:
    """The first finding is written before the last is created; the digests before them have read every finding once."""
    out = BytesIO()
    sizes = []
    record = large_record(2_000, policies=2, namespaces=2)

    def watched() -> Iterator[StoredFinding]:
        for stored in record.findings():
            sizes.append(out.tell())
            yield stored

    document = document_of(record)
    FORMATS["json"].render(replace(document, stored=replace(record, found=watched)), out)
    assert sizes[3_000] - sizes[2_001] > 100_000
