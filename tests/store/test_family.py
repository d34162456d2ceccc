"""Findings of two languages of one family in a database, and in the reports that are made of it."""

from __future__ import annotations

import csv
import json
from io import BytesIO, TextIOWrapper

import pytest

from scanner.model.scans.stored_scan import StoredScan
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats import policyreport
from scanner.store import SqlStore
from tests.documents import KINDS, namespace, pod
from tests.policies.required_label import ANNOTATED, ANNOTATION, KIND, LABELLED, OWN_KINDS, with_requirements
from tests.store.scanned import Story

SHAPE = policyreport.Shape("wgpolicyk8s.io/v1alpha2", "PolicyReport", "ClusterPolicyReport")
POLICIES = (namespace("default"), LABELLED, ANNOTATED)


@pytest.fixture
def story(store: SqlStore) -> Story:
    """Scans with both languages."""
    return Story(store, languages=with_requirements(), kinds=(*KINDS, *OWN_KINDS))


@pytest.fixture
def record(story: Story) -> StoredScan:
    """A scan of an object that passes no policy of either language."""
    return story.scan((*POLICIES, pod("bare")))


def test_json_names_the_language_of_each_finding(record: StoredScan) -> None:
    """Each finding has its policy."""
    out = BytesIO()
    FORMATS["json"].render(document_of(record), out)

    findings = json.loads(out.getvalue())["findings"]
    assert {(KIND, "labelled"), (ANNOTATION, "annotated")} == {(each["language"], each["policy"]) for each in findings}


def test_csv_names_the_language_of_each_finding(record: StoredScan) -> None:
    """Each row has its policy."""
    out = TextIOWrapper(BytesIO(), encoding="utf-8", newline="")
    FORMATS["csv"].render(document_of(record), out)

    out.seek(0)
    rows = csv.DictReader(out)
    assert {(KIND, "labelled"), (ANNOTATION, "annotated")} == {(row["language"], row["policy"]) for row in rows}


def test_each_language_of_a_family_has_its_own_source_in_policy_reports(record: StoredScan) -> None:
    """Dashboards know the results by the source."""
    out = BytesIO()
    policyreport.write_reports(document_of(record), out, SHAPE, with_requirements())

    sources = {
        result["policy"]: result["source"]
        for report in json.loads(out.getvalue())["items"]
        for result in report["results"]
    }
    assert {"labelled": "LabelChecker", "annotated": "AnnotationChecker"} == sources


def test_findings_of_one_language_end_without_those_of_the_other(story: Story, record: StoredScan) -> None:
    """The object passes the policy of one language in a later scan."""
    later = story.scan((*POLICIES, pod("bare", labels={"team": "a"})))

    ended = [(stored.finding.language, stored.resolution) for stored in later.resolved_findings()]
    assert ([(KIND, "fixed")], [ANNOTATION]) == (ended, [stored.finding.language for stored in later.findings()])
