"""What became of findings during a period, read from the intervals of a history."""

from __future__ import annotations

from collections import Counter

from scanner.model.outcome import Violated
from scanner.model.scans.finding_period import FindingOfPeriod, PeriodChange
from scanner.model.scans.scan import ScanState
from scanner.store import SqlStore
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.made import Round, ended, finding, listed

WEB, API, DB, OLD = (finding(name) for name in ("web", "api", "db", "old"))
OTHER = finding("other", policy="labels")
HISTORY = (
    (OLD, WEB),
    (WEB, API, OTHER),  # old is fixed, api and other are new
    (WEB._replace(outcome=Violated("far too many")), DB),  # api is fixed, web changed, db is new
    (API, DB),  # web is fixed, api is back
)


def record(store: SqlStore) -> None:
    """Record a scan each day."""
    for number, findings in enumerate(HISTORY):
        Round(findings).record(store, number)


def read(store: SqlStore, before: int | None, last: int, *policies: str) -> dict[str, FindingOfPeriod]:
    """The findings by the name of their object."""
    earlier = None if before is None else f"scan-{before}"
    found = store.read_findings_of_period(earlier, f"scan-{last}", policies or ("replicas", "labels"))
    assert len({each.id for each in found}) == len(found)
    return {each.finding.name: each for each in found}


def changes(each: FindingOfPeriod) -> list[str]:
    """The changes of a finding."""
    return [event.change.value for event in each.events]


def test_a_finding_has_every_change_of_the_period(store: SqlStore) -> None:
    """In their order, with the end of the scan and the reason; others than those of the policies are left out."""
    record(store)
    found = read(store, 0, 3, "replicas")

    assert {
        "old": (True, ["resolved"], False),
        "web": (True, ["resolved"], False),
        "api": (False, ["new", "resolved", "reopened"], True),
        "db": (False, ["new"], True),
    } == {name: (each.open_at_begin, changes(each), each.open_at_end) for name, each in found.items()}
    assert (ended(2), PeriodChange.RESOLVED, "objectGone") == found["api"].events[1]
    assert "far too many" == found["web"].finding.outcome.message
    assert ended(1) == found["api"].first_seen


def test_without_an_earlier_scan_nothing_was_open(store: SqlStore) -> None:
    """The history begins in the period; the other policy is there, too."""
    record(store)
    found = read(store, None, 1)

    assert {"old": ["new", "resolved"], "web": ["new"], "api": ["new"], "other": ["new"]} == {
        name: changes(each) for name, each in found.items()
    }
    assert {False} == {each.open_at_begin for each in found.values()}


def test_the_numbers_are_those_of_the_scans(store: SqlStore) -> None:
    """Open findings are those of the reports of both scans, new and resolved ones the sums of all scans between."""
    record(store)
    for before, last in ((0, 2), (1, 3), (0, 3), (2, 2)):
        found = read(store, before, last).values()
        scans = [store.find_scan(f"scan-{number}") for number in range(before + 1, last + 1)]
        counted = Counter(change for each in found for change in changes(each))

        assert store.find_scan(f"scan-{before}").findings == sum(each.open_at_begin for each in found)
        assert store.find_scan(f"scan-{last}").findings == sum(each.open_at_end for each in found)
        assert sum(scan.resolved for scan in scans) == counted["resolved"]
        assert sum(scan.new for scan in scans) == counted["new"] + counted["reopened"]


def test_a_finding_that_the_last_scan_did_not_check_is_open_and_named(store: SqlStore) -> None:
    """An incomplete scan resolves nothing."""
    record(store)
    Round(coverage=(listed("Pod"),), state=ScanState.INCOMPLETE).record(store, 4)
    found = read(store, 3, 4)

    assert {("api", True, False), ("db", True, False)} == {
        (name, each.open_at_end, each.checked) for name, each in found.items()
    }


def test_a_prune_keeps_the_ends_of_a_period(store: SqlStore, url: str) -> None:
    """Findings that came and went between may be gone; the numbers still add up."""
    record(store)
    prune(url, RetentionRule(1), ended(4))
    found = read(store, 0, 3)
    counted = Counter(change for each in found.values() for change in changes(each))

    assert {"api", "db"} == {name for name, each in found.items() if each.open_at_end}
    begins = sum(each.open_at_begin for each in found.values()) + counted["new"] + counted["reopened"]
    assert 2 == begins - counted["resolved"] - counted["replaced"]
