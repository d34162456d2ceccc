"""Refused problems have one unit: the numbers of every grouping add up to the verdict's, or the reason is given."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from io import BytesIO, StringIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.audit import population
from scanner.model.outcome import Errored, Finding
from scanner.model.population import Controller, PopulationMember
from scanner.model.resource import Kind
from scanner.model.scans.census import Bucket, OwnedCensus
from scanner.model.scans.problem_numbers import GroupedProblems, OpenProblems
from scanner.model.scans.scan import ClusterIdentity, ScanState
from scanner.model.waiver import WaiverSet
from scanner.posture.control_checks import Control, Framework, PolicySelector, SelectorKind
from scanner.posture.grouped_problems import group_problems, problems_by_namespace, problems_by_owner
from scanner.posture.settings import DEFAULT_SETTINGS, Settings
from scanner.posture.triage import Triage
from scanner.report import FORMATS
from scanner.report.document.document import Document, document_of
from scanner.report.document.sentences import sums_note
from scanner.report.formats.table import render as render_table
from scanner.report.text.screen import Screen
from scanner.store import SqlStore
from scanner.store.read.stored_scan import SqlScan
from tests.posture.waivers import waiver
from tests.report.pages import main_of
from tests.store.made import PROD, Round, finding, listed, page_of
from tests.store.test_owned_tallies import summed
from tests.store.test_population import SETTINGS

pytestmark = pytest.mark.long

NUMBERS = count(1)
PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
TENANT = Controller("tenants.dev/v1", "Tenant", "one", "uid-one")
"""A cluster-scoped controller, whose objects are in several namespaces: they are one workload."""
POLICIES = ("replicas", "labels")


@dataclass(frozen=True)
class Pod:
    """A Pod, with the result of each policy: denied, warned, errored, excepted, preview or passed."""

    namespace: str
    name: str
    team: str
    controlled: bool
    results: tuple[str, str]

    @property
    def examined(self) -> PopulationMember:
        """The record of the object."""
        labels = (("team", self.team),) if self.team else ()
        controller = TENANT if self.controlled else None
        return PopulationMember(
            PODS, self.namespace, self.name, f"uid-{self.namespace}-{self.name}", controller, labels
        )

    def findings(self) -> list[Finding]:
        """The findings of the policies."""
        changes: dict[str, dict[str, Any]] = {
            "denied": {},
            "warned": {"actions": ("Warn",), "denies": False},
            "errored": {"outcome": Errored("no such key", would_deny=True)},
            "excepted": {"excepted_by": "trusted"},
        }
        return [
            finding(self.name, kind="Pod", namespace=self.namespace, policy=policy, **changes[result])
            for policy, result in zip(POLICIES, self.results, strict=True)
            if result != "passed"
        ]


results = st.sampled_from(["denied", "denied", "warned", "errored", "excepted", "passed"])
pods = st.lists(
    st.builds(
        Pod,
        st.sampled_from(["shop", "pay", "ops"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["", "red", "blue"]),
        st.booleans(),
        st.tuples(results, results),
    ),
    max_size=8,
    unique_by=lambda pod: (pod.namespace, pod.name),
)


def scanned(store: SqlStore, *scans: list[Pod]) -> SqlScan:
    """The record of the last of some scans of a cluster; one of no pods is incomplete, and leaves all findings unchecked."""
    cluster = ClusterIdentity(f"cluster-{next(NUMBERS)}", source=PROD.source)
    for each in scans:
        number = next(NUMBERS)
        with_findings = [pod for pod in each if pod.findings()]
        found = tuple(finding for pod in with_findings for finding in pod.findings())
        state = ScanState.COMPLETE if each else ScanState.INCOMPLETE
        made = Round(found, coverage=(listed("Pod"),), cluster=cluster, state=state)
        store.begin(made.start(number))
        page = page_of(found, "v1", "Pod")
        store.write_page(
            f"scan-{number}", replace(page, examined=population.pack([pod.examined for pod in with_findings]))
        )
        store.finish(f"scan-{number}", replace(made.end(number), controllers={("tenants.dev", "Tenant"): False}))
    return store.read_scan(f"scan-{number}")


def controls(*served: tuple[str, ...]) -> Framework:
    """A framework whose controls are served by these policies."""
    made = (
        Control(str(number), "", tuple(PolicySelector(SelectorKind.NAME, policy) for policy in policies))
        for number, policies in enumerate(served)
    )
    return Framework("house", "House", "1", tuple(made))


frameworks = st.lists(st.lists(st.sampled_from(POLICIES), max_size=2).map(tuple), max_size=3).map(
    lambda served: controls(*served)
)
waivers = st.sampled_from([None, WaiverSet((waiver(),)), WaiverSet((waiver(namespace=""),))])


def total(groups: list[OpenProblems]) -> OpenProblems:
    """The sums of all numbers."""
    sums = OpenProblems()
    for each in groups:
        sums = sums.add(each)
    return sums


def of_verdict(document: Document) -> OpenProblems:
    """The numbers of the verdict."""
    return OpenProblems(document.problems.open, document.problems.refused, document.problems.new)


def explained(document: Document, problems: GroupedProblems) -> OpenProblems:
    """The sums of a grouping as its note explains them: those of the verdict, and those in several groups, without those in none."""
    verdict, repeated, outside = of_verdict(document), problems.repeated, problems.outside
    return OpenProblems(*(own + more - less for own, more, less in zip(verdict, repeated, outside, strict=True)))


@given(scans=st.lists(pods, min_size=1, max_size=3), framework=frameworks, given_waivers=waivers)
@SETTINGS
def test_every_grouping_adds_up_to_the_verdict(
    store: SqlStore, scans: list[list[Pod]], framework: Framework, given_waivers: WaiverSet | None
) -> None:
    """By policy, namespace, owner, control, and by policy, action and outcome, as metrics have them."""
    settings = replace(DEFAULT_SETTINGS, frameworks=(framework,), waivers=given_waivers)
    document = document_of(scanned(store, *scans), settings)
    by_policy = [document.open_problems(section.key) for section in document.policies]
    groups = [OpenProblems(group.number, group.refused, group.new) for group in document.groups]

    assert of_verdict(document) == total(by_policy) == total(groups)
    for problems in (
        document.problems_by_namespace,
        document.problems_by_owner,
        document.problems_by_control(document.controls[0]),
    ):
        assert explained(document, problems) == total([*problems.groups.values()])
        assert bool(problems.several.open) is bool(problems.repeated.open)


@given(scans=st.lists(pods, min_size=1, max_size=3), given_waivers=waivers)
@SETTINGS
def test_the_database_groups_the_problems_of_the_stream(
    store: SqlStore, scans: list[list[Pod]], given_waivers: WaiverSet | None
) -> None:
    """Waived, excepted and unchecked findings belong to no problem."""
    record = scanned(store, *scans)
    triage = Triage(replace(DEFAULT_SETTINGS, waivers=given_waivers), record)

    by_namespace = group_problems(record.findings_by_problem(), triage.waives, lambda stored: stored.finding.namespace)
    assert by_namespace == problems_by_namespace(record, triage)
    assert group_problems(record.findings_by_problem(), triage.waives, triage.owner) == problems_by_owner(
        record, triage
    )


@given(scans=st.lists(pods, min_size=1, max_size=3), given_waivers=waivers)
@SETTINGS
def test_all_numbers_at_once_are_those_of_single_questions(
    store: SqlStore, scans: list[list[Pod]], given_waivers: WaiverSet | None
) -> None:
    """As `serve` reads them, in fewer queries: with problems of several namespaces and owners, waived and unchecked findings."""
    record = scanned(store, *scans)
    triage = Triage(replace(DEFAULT_SETTINGS, waivers=given_waivers), record)
    owner_of, ranks, waived = triage.owner_of, triage.ranks, triage.waived.rows

    numbers = record.all_numbers(owner_of, ranks, waived, 3)
    assert record.census() == numbers.census
    assert sorted_census(record.census_by_owner(owner_of)) == sorted_census(numbers.census_by_owner)
    assert summed(record.tallies_by_owner(owner_of)) == summed(numbers.tallies_by_owner)
    assert record.problem_totals(ranks, waived, 3) == numbers.problem_totals
    assert record.problem_groups(ranks, waived) == numbers.problem_groups
    assert record.problems_by_namespace(waived) == numbers.problems_by_namespace
    assert record.problems_by_owner(owner_of, waived) == numbers.problems_by_owner


def sorted_census(counted: Iterable[OwnedCensus]) -> dict[str, list[tuple[Bucket, int]]]:
    """The census of each owner."""
    return {owned.owner: sorted(owned.census.items()) for owned in counted}


@pytest.fixture
def document(store: SqlStore) -> Document:
    """A scan with a refused problem of two namespaces and two owners, and one of one namespace. `replicas` serves two controls, `labels` none."""
    two = [Pod(name, "a", team, True, ("denied", "passed")) for name, team in (("shop", "red"), ("pay", "blue"))]  # noqa: FBT003
    one = Pod("shop", "b", "red", False, ("passed", "errored"))  # noqa: FBT003
    settings: Settings = replace(DEFAULT_SETTINGS, frameworks=(controls(("replicas",), ("replicas",)),))
    return document_of(scanned(store, [*two, one]), settings)


def rendered(document: Document, name: str) -> str:
    """The report in a format of text."""
    out = StringIO()
    FORMATS[name].render(document, out)
    return out.getvalue()


def test_a_problem_in_two_groups_counts_in_each_and_the_reason_is_given(document: Document) -> None:
    """Two problems would be refused, and the namespaces have three of them."""
    by_namespace = document.problems_by_namespace

    assert 2 == document.problems.refused
    assert {"pay": 1, "shop": 2} == {name: numbers.refused for name, numbers in by_namespace.groups.items()}
    assert "1 refused problem is in several namespaces and counts in each" == sums_note(by_namespace, "namespace")
    assert "1 refused problem is in several owners and counts in each" == sums_note(document.problems_by_owner, "owner")
    assert (
        "1 refused problem is in several controls and counts in each; 1 refused problem is in no control"
        == sums_note(document.problems_by_control(document.controls[0]), "control")
    )


def test_the_json_report_has_the_sums_and_what_they_count_too_often(document: Document) -> None:
    """The numbers of all policies are those of the verdict."""
    out = BytesIO()
    FORMATS["json"].render(document, out)
    verdict = json.loads(out.getvalue())["verdict"]
    by = verdict["problemsBy"]
    [framework] = by["controls"]

    assert 2 == verdict["problems"]["refused"]
    assert [("labels", 1), ("replicas", 1)] == [(each["policy"], each["refused"]) for each in by["policies"]]
    assert [("pay", 1), ("shop", 2)] == [(each["namespace"], each["refused"]) for each in by["namespaces"]["groups"]]
    assert [("blue", 1), ("red", 2)] == [(each["owner"], each["refused"]) for each in by["owners"]["groups"]]
    assert [("0", 1), ("1", 1)] == [(each["control"], each["refused"]) for each in framework["groups"]]
    for grouped in (by["namespaces"], by["owners"]):
        assert (1, 1, 0) == tuple(grouped[name]["refused"] for name in ("several", "repeated", "outside"))
    assert (1, 1, 1) == tuple(framework[name]["refused"] for name in ("several", "repeated", "outside"))


def test_a_markdown_report_has_refused_problems_and_the_reason(document: Document) -> None:
    """The tables of policies, namespaces and owners."""
    text = rendered(document, "markdown")

    assert "2 problems would be refused" in text
    for note in ("namespaces", "owners"):
        assert f"1 refused problem is in several {note} and counts in each." in text
    assert 3 == text.count("Refused problems")
    assert {"| pay | 1 | 1 | 1 |", "| shop | 2 | 2 | 2 |"} <= set(text.splitlines())


def test_a_wide_summary_has_refused_problems_and_the_reason(document: Document) -> None:
    """The tables of namespaces, owners and controls."""
    out = StringIO()
    render_table(document, out, environ={}, screen=Screen(wide=True))
    text = out.getvalue()

    for noun in ("namespaces", "owners", "controls"):
        assert f"1 refused problem is in several {noun} and counts in each" in text
    assert re.search(r"^ *shop +2 +0 +1 +1 ", text, re.MULTILINE)


REFUSED = {
    "index": [1, 1, 1, 1, 1, 1, 2, 2],
    "policies": [1, 1],
    "namespaces": [1, 2],
    "owners": [1, 2],
    "controls": [1, 1],
}
"""The numbers in the columns *Refused* of each page, sorted."""


def test_the_pages_have_refused_problems_and_the_reason(document: Document, tmp_path: Path) -> None:
    """Every column *Refused* counts problems; three findings would be refused, which no page and no summary counts."""
    FORMATS["html"].render(document, tmp_path / "report")
    mains = {page: main_of(tmp_path / "report" / f"{page}.html") for page in REFUSED}
    shown = {page: re.findall(r'data-label="Refused">(?:<a [^>]*>)?(\d+)<', main) for page, main in mains.items()}
    texts = [path.read_text("utf-8") for path in (tmp_path / "report").rglob("*.html")]

    assert REFUSED == {page: sorted(map(int, numbers)) for page, numbers in shown.items()}
    assert {*REFUSED} - {"policies"} == {page for page in mains if "1 refused problem is in several" in mains[page]}
    assert 3 == document.findings_total.would_deny
    for text in (*texts, rendered(document, "markdown"), rendered(document, "table")):
        assert "3 of them would be refused" not in text
