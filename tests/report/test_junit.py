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

_COUNTED = {"name", "tests", "failures", "errors"}
_RESULT = {"type", "message"}
ATTRIBUTES = {
    "testsuites": {*_COUNTED, "time"},
    "testsuite": {*_COUNTED, "skipped", "time", "timestamp", "hostname", "id", "package", "file"},
    "testcase": {"name", "classname", "time"},
    "failure": _RESULT,
    "error": _RESULT,
    "skipped": _RESULT,
}
"""The elements and attributes that the schema of Jenkins' xUnit plugin (junit-10) allows, of those that we write."""
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


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_no_element_or_attribute_is_unknown(record: ScanRecord) -> None:
    """CI servers that check files refuse others; the attributes that must be there are."""
    root = ET.fromstring(rendered(record))  # noqa: S314 - written by the test
    required = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}

    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        assert set(element.attrib) >= required.get(element.tag, set())


def test_each_param_has_a_case_of_its_own() -> None:
    """CI servers follow a case by its name."""
    params = (("shop", "limits"), ("shop", "quota"))
    record = replace(small_record(), findings=lambda: iter([finding("web", param=param) for param in params]))
    names = [case.name for suite in JUnitXml.fromstring(rendered(record).encode()) for case in suite]

    assert [
        "Deployment shop/web: validations[0] (require-limits-everywhere, shop/limits)",
        "Deployment shop/web: validations[0] (require-limits-everywhere, shop/quota)",
    ] == [name for name in names if "web" in str(name)]


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
