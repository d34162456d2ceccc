"""The report as JUnit XML, as a library for such files and a parser of XML read it."""

from __future__ import annotations

import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from junitparser import JUnitXml
from syrupy.assertion import SnapshotAssertion

from scanner.model.gate import Gate
from scanner.model.outcome import Errored, Violated, WouldChange
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.scan import ScanState
from scanner.report import FORMATS
from scanner.report.document.document import ReportOptions, document_of
from scanner.report.text.safe_text import visible
from tests.report.in_memory import ScanInMemory

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


ALL = ReportOptions(fail_all=True)


def rendered(record: ScanInMemory, options: ReportOptions = ALL) -> str:
    """The report of a scan."""
    out = io.StringIO()
    FORMATS["junit"].render(document_of(record, options=options), out)
    return out.getvalue()


def test_report_of_a_small_scan(snapshot: SnapshotAssertion) -> None:
    """The report of a small scan equals the recorded one."""
    assert rendered(partial_record()) == snapshot


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_numbers_are_those_of_the_cases(record: ScanInMemory) -> None:
    """Readers show the numbers of a suite without counting its cases."""
    for suite in JUnitXml.fromstring(rendered(record).encode()):
        kinds = [CASE[child.tag] for case in suite._elem.iter("testcase") for child in case]
        counted = {"failures": suite.failures, "errors": suite.errors, "skipped": suite.skipped}
        assert {name: kinds.count(name) for name in counted} == counted
        assert len(list(suite)) == suite.tests


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_no_element_or_attribute_is_unknown(record: ScanInMemory) -> None:
    """CI servers that check files refuse others; the attributes that must be there are."""
    root = ET.fromstring(rendered(record))  # noqa: S314 - written by the test
    required = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}

    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        assert set(element.attrib) >= required.get(element.tag, set())


def test_each_param_has_a_case_of_its_own() -> None:
    """CI servers follow a case by its name."""
    params = (("shop", "limits"), ("shop", "quota"))
    record = replace(small_record(), found=lambda: ([finding("web", param=param) for param in params]))
    names = [case.name for suite in JUnitXml.fromstring(rendered(record).encode()) for case in suite]

    assert [
        "Deployment shop/web: validations[0] (require-limits-everywhere, shop/limits)",
        "Deployment shop/web: validations[0] (require-limits-everywhere, shop/quota)",
    ] == [name for name in names if "web" in str(name)]


def test_an_incomplete_scan_is_never_green() -> None:
    """A suite of errors has what was not examined, with any findings of the policies."""
    record = replace(small_record(), scan=scan(ScanState.INCOMPLETE), found=lambda: (()))
    suites = {suite.name: suite for suite in JUnitXml.fromstring(rendered(record).encode())}

    assert (1, 1) == (suites["Not examined"].tests, suites["Not examined"].errors)


def test_a_policy_without_findings_has_a_case_that_passes() -> None:
    """Otherwise a viewer would show fewer suites on better days."""
    suites = {suite.name: suite for suite in JUnitXml.fromstring(rendered(small_record()).encode())}

    assert (1, 0) == (suites["no-host-network"].tests, suites["no-host-network"].failures)


def test_drift_is_no_failure() -> None:
    """A mutation that would change an object is skipped, with its message."""
    drift = finding("web", outcome=WouldChange(PATCH))
    record = replace(small_record(), found=lambda: ([drift]), tallies=tally([drift], {}))
    suites = {suite.name: suite for suite in JUnitXml.fromstring(rendered(record).encode())}

    assert (0, 0, 1) == tuple(getattr(suites["require-limits"], name) for name in ("failures", "errors", "skipped"))


def test_without_a_gate_nothing_fails() -> None:
    """A test view is as green as the exit code; what was not examined stays an error."""
    suites = JUnitXml.fromstring(rendered(partial_record(), ReportOptions()).encode())

    assert 0 == sum(suite.failures for suite in suites)
    assert ["Not examined"] == [suite.name for suite in suites if suite.errors]


@pytest.mark.parametrize(
    ("gate", "failing"),
    [
        (Gate.VIOLATED, {"violated"}),
        (Gate.ERRORED, {"errored"}),
        (Gate.DENY, {"violated"}),
        (Gate.DRIFT, {"drift"}),
    ],
)
def test_a_gate_names_the_cases_that_fail(gate: Gate, failing: set[str]) -> None:
    """Findings that no gate names are skipped."""
    outcomes = {
        "violated": finding("violated", outcome=Violated("too many")),
        "errored": finding("errored", outcome=Errored("no such key", would_deny=False), actions=("Warn",)),
        "drift": finding("drift", outcome=WouldChange(PATCH), actions=()),
    }
    record = replace(small_record(), found=outcomes.values)
    root = ET.fromstring(rendered(record, ReportOptions(frozenset({gate}))))  # noqa: S314 - written by the test
    cases = [
        case for case in root.iter("testcase") if case.find("failure") is not None or case.find("error") is not None
    ]

    assert failing == {str(case.get("name")).split("/")[1].split(":")[0] for case in cases}


def test_the_gate_health_fails_for_its_entries() -> None:
    """A note is none of them."""
    record = replace(
        small_record(),
        health=(Health(HealthKind.UNBOUND, "p", "", "no binding"), Health(HealthKind.NOTE, "q", "", "a note")),
    )
    suites = {
        suite.name: suite
        for suite in JUnitXml.fromstring(rendered(record, ReportOptions(frozenset({Gate.HEALTH}))).encode())
    }

    assert (1, 1) == (suites["Policy health"].tests, suites["Policy health"].failures)


def test_every_text_is_text() -> None:
    """Elements, entities and control characters of names stay text, also the end of a CDATA section."""
    record = replace(hostile_record(), found=lambda: ([finding("]]>&lt;x/>", of=text) for text in HOSTILE]))
    root = ET.fromstring(rendered(record))  # noqa: S314 - written by the test

    assert {visible(text) for text in HOSTILE} <= {suite.get("name") for suite in root}
    assert 0 < sum("]]>&lt;x/>" in (case.get("name") or "") for case in root.iter("testcase"))
