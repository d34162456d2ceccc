"""The report as OSCAL assessment results, against the schema of that model (see `schemas/README.md`)."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from syrupy.assertion import SnapshotAssertion

from scanner.model.scans.tally import OutcomeName
from scanner.posture.settings import DEFAULT_SETTINGS, Settings
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.report.in_memory import ScanInMemory

from .records import hostile_record, partial_record, previewed, small_record
from .test_controls import FRAMEWORK

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "oscal-assessment-results-1.2.1.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
ALL_PASS = {key._replace(outcome=OutcomeName.PASSED): number for key, number in small_record().tallies.items()}
CLEAN = replace(small_record(), policies=(), tallies={}, found=lambda: (()))


def rendered(record: ScanInMemory, settings: Settings = DEFAULT_SETTINGS) -> str:
    """The report of a scan."""
    out = BytesIO()
    FORMATS["oscal"].render(document_of(record, settings), out)
    return out.getvalue().decode()


def result_of(text: str) -> Any:
    """The only result of a report."""
    [result] = json.loads(text)["assessment-results"]["results"]
    return result


def states(text: str) -> dict[str, tuple[str, str]]:
    """The state of each target, and its reason."""
    targets = [finding["target"] for finding in result_of(text)["findings"]]
    return {each["target-id"]: (each["status"]["state"], each["status"]["reason"]) for each in targets}


def test_report_of_an_incomplete_scan(snapshot: SnapshotAssertion) -> None:
    """The report equals the recorded one."""
    assert rendered(partial_record()) == snapshot


@pytest.mark.parametrize("settings", [DEFAULT_SETTINGS, Settings(frameworks=(FRAMEWORK,))])
@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record(), CLEAN])
def test_a_report_follows_the_schema(record: ScanInMemory, settings: Settings) -> None:
    """No field is unknown, none is missing, and no list is empty."""
    assert [] == [error.message for error in VALIDATOR.iter_errors(json.loads(rendered(record, settings)))]


def test_a_policy_is_satisfied_only_if_the_scan_shows_it() -> None:
    """A policy that matched nothing is not, and none is after an incomplete scan."""
    passing = replace(small_record(), found=lambda: (()), tallies=ALL_PASS)

    assert {
        "ValidatingAdmissionPolicy_max-replicas": ("satisfied", "pass"),
        "ValidatingAdmissionPolicy_require-limits": ("satisfied", "pass"),
        "ValidatingAdmissionPolicy_require-owner": ("satisfied", "pass"),
        "ValidatingAdmissionPolicy_no-host-network": ("not-satisfied", "other"),
    } == states(rendered(passing))
    assert {("not-satisfied", "fail"), ("not-satisfied", "other")} == set(states(rendered(partial_record())).values())


def test_a_preview_decides_about_no_policy() -> None:
    """Its bindings are not in force: nothing failed, and nothing shows that the policy is met."""
    assert {("not-satisfied", "other")} == set(states(rendered(previewed())).values())


def test_controls_are_the_targets_where_mappings_are_given() -> None:
    """A control of two frameworks has two targets, because the name of the framework is a part of the id."""
    assert {
        "house_1": ("not-satisfied", "fail"),
        "house_2": ("not-satisfied", "fail"),
        "house_3": ("not-satisfied", "other"),
        "house_4": ("not-satisfied", "fail"),
        "house_5": ("not-satisfied", "other"),
    } == states(rendered(small_record(), Settings(frameworks=(FRAMEWORK,))))


def test_findings_name_the_observations_of_their_policies() -> None:
    """Each observation belongs to the one policy that it is about."""
    result = result_of(rendered(small_record()))
    related = {
        finding["title"]: {each["observation-uuid"] for each in finding.get("related-observations", ())}
        for finding in result["findings"]
    }

    assert 6 == len(result["observations"])
    for observation in result["observations"]:
        policy = observation["title"].partition(":")[0]
        assert [policy] == [title for title, numbers in related.items() if observation["uuid"] in numbers]


def test_the_same_scan_gives_the_same_document() -> None:
    """Identifiers are derived, not random."""
    assert rendered(small_record()) == rendered(small_record())
