"""The report as SARIF, against the schema of OASIS (see `schemas/README.md`)."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator
from syrupy.assertion import SnapshotAssertion

from scanner.errors import UsageError
from scanner.model.outcome import WouldChange
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.report.in_memory import ScanInMemory

from .records import EVERYWHERE, HOSTILE, finding, hostile_record, partial_record, small_record
from .test_drift import PATCH

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text("utf-8"))
VALIDATOR = Draft4Validator(SCHEMA)


def rendered(record: ScanInMemory) -> str:
    """The report of a scan whose objects have files."""
    out = BytesIO()
    FORMATS["sarif"].render(document_of(replace(record, files=EVERYWHERE)), out)
    return out.getvalue().decode()


def run_of(record: ScanInMemory) -> Any:
    """The only run of a report."""
    [run] = json.loads(rendered(record))["runs"]
    return run


def test_report_of_an_incomplete_scan(snapshot: SnapshotAssertion) -> None:
    """The report equals the recorded one."""
    assert rendered(partial_record()) == snapshot


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_a_report_follows_the_schema(record: ScanInMemory) -> None:
    """No field is unknown, and none is missing."""
    assert [] == [error.message for error in VALIDATOR.iter_errors(json.loads(rendered(record)))]


def test_every_result_has_a_file_and_a_line() -> None:
    """GitHub refuses a file with one result that has none."""
    results = run_of(small_record())["results"]
    places = [location["physicalLocation"] for result in results for location in result["locations"]]

    assert len(results) == len(places) == 6
    assert {"api", "web", "ledger", "shop"} == {place["artifactLocation"]["uri"] for place in places}
    assert all(0 < place["region"]["startLine"] for place in places)


def test_a_scan_of_a_cluster_has_no_report() -> None:
    """Nothing is written, and the message names a way out."""
    out = BytesIO()
    with pytest.raises(UsageError, match="Scan manifests with --from"):
        FORMATS["sarif"].render(document_of(small_record()), out)
    assert b"" == out.getvalue()


def test_every_result_has_its_rule() -> None:
    """Viewers take title and severity from the rule."""
    run = run_of(hostile_record())
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]

    assert len(HOSTILE) == len(set(rules)) == len(run["results"])
    assert {result["ruleId"] for result in run["results"]} == set(rules)


def test_drift_is_no_failure() -> None:
    """A mutation that would change an object is a review without a level."""
    drift = finding("web", outcome=WouldChange(PATCH))
    [result] = run_of(replace(small_record(), found=lambda: ([drift])))["results"]

    assert ("review", "none") == (result["kind"], result["level"])


def test_a_path_is_a_uri() -> None:
    """Spaces and other characters are encoded; a file outside the checkout has an absolute URI."""
    paths = ("a b/ü.yaml", "/etc/x.yaml")
    results = run_of(replace(small_record(), found=lambda: ([finding(path) for path in paths])))["results"]

    assert [{"uri": "a%20b/%C3%BC.yaml", "uriBaseId": "%SRCROOT%"}, {"uri": "file:///etc/x.yaml"}] == [
        result["locations"][0]["physicalLocation"]["artifactLocation"] for result in results
    ]
