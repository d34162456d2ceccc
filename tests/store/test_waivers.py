"""The waivers of scans are stored, and the findings that they concern are read."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.problem_numbers import ProblemCounts
from scanner.model.scans.scan import ScanState
from scanner.model.selector import Requirement, Selector
from scanner.model.waiver import Waiver, WaiverSet
from scanner.posture.settings import Settings
from scanner.posture.triage import Triage
from scanner.report.document.waivers import waivers_of
from scanner.store import SqlStore
from scanner.store.upkeep.integrity import check_database
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.posture.waivers import waiver
from tests.store.databases import count, execute
from tests.store.made import Round, began, ended, finding

FULL = waiver(
    "full",
    check="c-1",
    selector=Selector((Requirement("app", "In", ("web", "api")),)),
    since=date(2026, 1, 1),
    ticket="OPS-1",
    control="checked by hand",
    source="w.yaml",
)
A, B, C = finding("a"), finding("b"), finding("c", namespace="other")


def record(store: SqlStore, number: int, waivers: WaiverSet | None, made: Round | None = None) -> None:
    """Store a scan that read these waivers."""
    made = made or Round((A, B, C))
    store.begin(replace(made.start(number), waivers=waivers))
    for page in made.pages():
        store.write_page(f"scan-{number}", page)
    store.finish(f"scan-{number}", made.end(number))


def names(store: SqlStore, number: int, days: int = 0) -> list[str] | None:
    """The names of the waivers at the end of a scan, or some days later."""
    waivers = store.find_waivers_at(f"scan-{number}", ended(number) + timedelta(days=days))
    return None if waivers is None else [each.name for each in waivers.waivers]


def test_every_field_of_a_waiver_is_stored(store: SqlStore) -> None:
    """And what was left out."""
    waivers = WaiverSet((FULL, waiver("other")), ("a fault",), ("a note",))
    record(store, 1, waivers)
    assert waivers == store.find_waivers_at("scan-1", ended(1))


def test_a_report_has_the_newest_waivers_by_its_date(store: SqlStore) -> None:
    """A scan that read none leaves those of the scan before; an empty set replaces them."""
    record(store, 1, None)
    record(store, 2, WaiverSet((waiver("a"),)))
    record(store, 3, None)
    record(store, 4, WaiverSet())
    record(store, 5, WaiverSet((waiver("b"),)))
    assert [None, ["a"], ["a"], [], ["b"]] == [names(store, number) for number in range(1, 6)]
    assert ["b"] == names(store, 1, days=30)


def test_a_failed_scan_leaves_no_waivers(store: SqlStore) -> None:
    """No report was made with them."""
    record(store, 1, WaiverSet((waiver("a"),)), Round(state=ScanState.FAILED))
    record(store, 2, None)
    assert names(store, 2) is None


def test_equal_waivers_are_stored_once(store: SqlStore, url: str) -> None:
    """Two scans with the same set, and a set with one new body."""
    record(store, 1, WaiverSet((waiver("a"), waiver("b"))))
    record(store, 2, WaiverSet((waiver("a"), waiver("b"))))
    record(store, 3, WaiverSet((waiver("a"), waiver("b", reason="another"))))
    assert (3, 2, 3) == tuple(count(url, table) for table in ("waivers", "waiver_sets", "scan_waivers"))


def test_a_prune_keeps_the_waivers_that_later_reports_need(store: SqlStore, url: str) -> None:
    """The set of a pruned scan is that of a kept one, and the database is whole."""
    record(store, 1, WaiverSet((waiver("a"),)))
    record(store, 2, None)
    prune(url, RetentionRule(days=0), began(9))
    assert store.find_pruned_scans([store.find_scan("scan-1")])
    assert ["a"] == names(store, 2)
    assert [] == check_database(url, all_words=True)


def test_a_lost_body_is_a_problem_of_the_database(store: SqlStore, url: str) -> None:
    """The check names the set, and the scan that read it."""
    record(store, 1, WaiverSet((waiver("a"),)))
    execute(url, "DELETE FROM waivers")
    places = {problem.where for problem in check_database(url)}
    assert {"waiver_sets 1", "scan_waivers of scan scan-1"} == places


CASES: list[tuple[Waiver, set[str]]] = [
    (waiver(), {"a", "b"}),
    (waiver(namespace="", object="Deployment/a"), {"a"}),
    (waiver(namespace="", object="Pod/a"), set()),
    (waiver(namespace="", workload="c"), {"c"}),
    (waiver(namespace="", selector=Selector((Requirement("app", "DoesNotExist"),))), {"a", "b", "c"}),
    (waiver(namespace="", selector=Selector((Requirement("app", "In", ("x",)),))), set()),
    (waiver(check="object.spec.replicas <= 5", namespace="other"), {"c"}),
    (waiver(policy="labels"), set()),
]


@pytest.mark.parametrize(("own", "expected"), CASES)
def test_findings_are_counted_as_they_are_shown(store: SqlStore, own: Waiver, expected: set[str]) -> None:
    """The numbers in the database and the marks of the findings agree."""
    record(store, 1, WaiverSet((own,)))
    scan = store.read_scan("scan-1")
    triage = Triage(Settings(waivers=WaiverSet((own,))), scan)
    waived = triage.waived

    assert expected == {stored.finding.name for stored in scan.findings() if triage.waiver(stored)}
    assert (len(expected),) * 4 == (waived.findings, waived.problems, len(waived.rows), sum(waived.tallies.values()))
    counts = store.count_problems("scan-1", waived={"scan-1": waived.rows})
    assert ProblemCounts(*(3 - len(expected),) * 3, new=3 - len(expected)) == counts


def test_a_problem_is_waived_only_if_all_its_findings_are(store: SqlStore) -> None:
    """Two bindings find the same problem, and one finding has an exception of its own."""
    audited = finding(
        "a", binding="audits", denies=False, actions=("Audit",), check=replace(A.check, expression="true")
    )
    record(store, 1, None, Round((A, A._replace(excepted_by="x", fingerprint="0" * 64), B, audited)))
    triage = Triage(
        Settings(waivers=WaiverSet((waiver(namespace="", object="a", check=A.check.expression),))),
        store.read_scan("scan-1"),
    )

    assert (1, 1) == (triage.waived.findings, triage.waived.problems)


def test_an_unchecked_finding_is_used_by_a_waiver_but_not_counted(store: SqlStore) -> None:
    """A scan of another namespace says nothing about it."""
    record(store, 1, None)
    narrowed = Round((C,), scope=replace(Round().scope, namespaces=("other",)))
    record(store, 2, None, narrowed)
    triage = Triage(Settings(waivers=WaiverSet((waiver(),))), store.read_scan("scan-2"))
    [use] = triage.waived.uses

    assert ("active", 0, 0) == (use.state.value, use.findings, triage.waived.findings)


def test_policy_exceptions_are_listed_with_the_findings_that_they_except(store: SqlStore) -> None:
    """They are no waivers: their findings are excepted with or without waivers."""
    names = "shop/allowed", "shop/unused"
    rules = tuple(RuleObject(RuleType.EXCEPTION, name, name, {}) for name in names)
    made = Round((A._replace(excepted_by="shop/allowed, the filter"), B))
    store.begin(replace(made.start(1), rules=rules))
    store.write_page("scan-1", made.page())
    store.finish("scan-1", made.end(1))
    section = waivers_of(Triage(Settings(), store.read_scan("scan-1")))

    assert [("shop/allowed", "excepted", 1), ("shop/unused", "excepted", 0)] == [
        (line.name, line.state, line.findings) for line in section.exceptions
    ]
