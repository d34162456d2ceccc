"""The report as JUnit XML, as a library for such files and a parser of XML read it."""

from __future__ import annotations

import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from junitparser import JUnitXml
from syrupy.assertion import SnapshotAssertion

from scanner.model.outcome import WouldChange
from scanner.model.scan import ScanRecord, ScanState
from scanner.report import FORMATS
from scanner.report.document import document_of
from scanner.report.words import visible

from .records import HOSTILE, finding, hostile_record, partial_record, scan, small_record, tally
from .test_drift import PATCH

CASE = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def rendered(record: ScanRecord) -> str:
    """The report of a scan."""
    out = io.StringIO()
    FORMATS["junit"].render(document_of(record), out)
    return out.getvalue()


def test_report_of_a_small_scan(snapshot: SnapshotAssertion) -> None:
    """The report of a small scan equals the recorded one."""
    assert rendered(partial_record()) == snapshot


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_numbers_are_those_of_the_cases(record: ScanRecord) -> None:
    """Readers show the numbers of a suite without counting its cases."""
    for suite in JUnitXml.fromstring(rendered(record).encode()):
        kinds = [CASE[child.tag] for case in suite._elem.iter("testcase") for child in case]
        counted = {"failures": suite.failures, "errors": suite.errors, "skipped": suite.skipped}
        assert {name: kinds.count(name) for name in counted} == counted
        assert len(list(suite)) == suite.tests


def test_an_incomplete_scan_is_never_green() -> None:
    """A suite of errors has what was not examined, whatever the policies found."""
    record = replace(small_record(), scan=scan(ScanState.INCOMPLETE), findings=lambda: iter(()))
    suites = {suite.name: suite for suite in JUnitXml.fromstring(rendered(record).encode())}

    assert (1, 1) == (suites["Not examined"].tests, suites["Not examined"].errors)


def test_a_policy_without_findings_has_a_case_that_passes() -> None:
    """Otherwise a viewer would show fewer suites on better days."""
    suites = {suite.name: suite for suite in JUnitXml.fromstring(rendered(small_record()).encode())}

    assert (1, 0) == (suites["no-host-network"].tests, suites["no-host-network"].failures)


def test_drift_is_no_failure() -> None:
    """A mutation that would change an object is skipped, with its message."""
    drift = finding("web", outcome=WouldChange(PATCH))
    record = replace(small_record(), findings=lambda: iter([drift]), tallies=tally([drift], {}))
    suites = {suite.name: suite for suite in JUnitXml.fromstring(rendered(record).encode())}

    assert (0, 0, 1) == tuple(getattr(suites["require-limits"], name) for name in ("failures", "errors", "skipped"))


def test_every_text_is_text() -> None:
    """Elements, entities and control characters of names stay text, also the end of a CDATA section."""
    record = replace(hostile_record(), findings=lambda: iter([finding("]]>&lt;x/>", of=text) for text in HOSTILE]))
    root = ET.fromstring(rendered(record))  # noqa: S314 - written by the test

    assert {visible(text) for text in HOSTILE} <= {suite.get("name") for suite in root}
    assert 0 < sum("]]>&lt;x/>" in (case.get("name") or "") for case in root.iter("testcase"))
