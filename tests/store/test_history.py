"""The status of findings from scan to scan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Errored, Gap, GapKind, Violated
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.scan import ClusterIdentity, ScanState, Scope
from scanner.store import SqlStore
from tests.store.databases import count
from tests.store.made import Round, began, binding, clock, ended, finding, listed, policy, snapshot, statuses, tally

A, B, C = finding("a"), finding("b"), finding("c")


def test_the_findings_of_the_first_scan_are_new(store: SqlStore) -> None:
    """No earlier scan has these findings."""
    Round((A, B)).record(store, 1)

    assert {"a": "new", "b": "new"} == statuses(store.read_scan("scan-1").findings())


def test_a_finding_of_two_scans_is_open(store: SqlStore) -> None:
    """A finding of the second scan alone is new."""
    Round((A,)).record(store, 1)
    Round((A, B)).record(store, 2)

    assert {"a": "open", "b": "new"} == statuses(store.read_scan("scan-2").findings())


def test_a_missing_finding_is_resolved(store: SqlStore) -> None:
    """The complete scan that no longer has a finding resolves it, and no later scan does."""
    Round((A, B)).record(store, 1)
    Round((A,)).record(store, 2)
    Round((A,)).record(store, 3)

    assert {"b": "resolved"} == statuses(store.read_scan("scan-2").resolved_findings())
    assert {} == statuses(store.read_scan("scan-3").resolved_findings())


def test_a_resolved_finding_that_returns_is_reopened(store: SqlStore) -> None:
    """The finding keeps the time at which it was first seen."""
    Round((A,)).record(store, 1)
    Round(()).record(store, 2)
    Round((A,)).record(store, 3)
    Round((A,)).record(store, 4)

    assert {"a": "reopened"} == statuses(store.read_scan("scan-3").findings())
    assert {"a": "open"} == statuses(store.read_scan("scan-4").findings())
    assert {ended(1)} == {item.first_seen for item in store.read_scan("scan-4").findings()}


def test_the_scan_counts_its_changes(store: SqlStore) -> None:
    """`new` counts findings that were not open before, reopened ones included; `resolved` counts fixed findings."""
    Round((A, B)).record(store, 1)
    Round((B,)).record(store, 2)
    scan = Round((A, C)).record(store, 3)

    assert (2, 2, 1) == (scan.findings, scan.new, scan.resolved)


def test_a_resolved_finding_has_its_dates(store: SqlStore) -> None:
    """First seen, last seen and resolved are the ends of the scans concerned."""
    Round((A,)).record(store, 1)
    Round((A,)).record(store, 2)
    Round(()).record(store, 3)
    [fixed] = store.read_scan("scan-3").resolved_findings()

    assert (ended(1), ended(2), ended(3)) == (fixed.first_seen, fixed.last_seen, fixed.resolved_at)


def test_last_seen_skips_scans_of_another_scope(store: SqlStore) -> None:
    """A scan of another namespace does not see the finding."""
    Round((A,)).record(store, 1)
    Round((), scope=Scope(namespaces=("other",))).record(store, 2)
    Round(()).record(store, 3)
    [fixed] = store.read_scan("scan-3").resolved_findings()

    assert ended(1) == fixed.last_seen


def test_a_scan_does_not_list_unchecked_findings(store: SqlStore) -> None:
    """Findings that stay open unchecked are counted."""
    Round((A, B)).record(store, 1)
    Round((finding("z", namespace="other"),), scope=Scope(namespaces=("other",))).record(store, 2)
    record = store.read_scan("scan-2")

    assert {"z": "new"} == statuses(record.findings())
    assert 2 == record.unchecked


def test_an_unchecked_finding_is_open_in_the_next_scan(store: SqlStore) -> None:
    """A scan that does not check a finding does not close it."""
    Round((A,)).record(store, 1)
    Round((), scope=Scope(namespaces=("other",))).record(store, 2)
    scan = Round((A,)).record(store, 3)

    assert {"a": "open"} == statuses(store.read_scan("scan-3").findings())
    assert 0 == scan.new


def test_a_finding_with_a_new_message_is_the_same_finding(store: SqlStore) -> None:
    """Its status is open, and its first time is kept."""
    Round((A,)).record(store, 1)
    scan = Round((A._replace(outcome=Violated("7 replicas"), resource_version="2"),)).record(store, 2)
    [seen] = store.read_scan("scan-2").findings()

    assert ("open", ended(1), Violated("7 replicas")) == (seen.status, seen.first_seen, seen.finding.outcome)
    assert 0 == scan.new


def test_a_rescan_with_nothing_changed_writes_no_findings(store: SqlStore, url: str) -> None:
    """The tables of findings, texts and policies keep their rows; only the scan's own rows are added."""
    tables = ("findings", "verdicts", "checks", "kinds", "policies", "bindings", "unchecked", "staged_pages")
    Round((A, B, C)).record(store, 1)
    before = {table: count(url, table) for table in tables}
    Round((A, B, C)).record(store, 2)

    assert before == {table: count(url, table) for table in tables}


def test_a_rescan_writes_a_row_for_what_changed(store: SqlStore, url: str) -> None:
    """One finding of three has another message: one row more."""
    Round((A, B, C)).record(store, 1)
    Round((A, B, C._replace(outcome=Violated("other")))).record(store, 2)

    assert 4 == count(url, "findings")


def test_another_resource_version_alone_writes_no_row(store: SqlStore, url: str) -> None:
    """A status write changes no finding: the row keeps the resource version with which it was opened."""
    Round((A,)).record(store, 1)
    Round((A._replace(resource_version="2"),)).record(store, 2)
    [seen] = store.read_scan("scan-2").findings()

    assert (1, "1") == (count(url, "findings"), seen.finding.resource_version)


def test_messages_that_differ_by_the_object_alone_are_stored_once(store: SqlStore, url: str) -> None:
    """Each finding shows the name and the namespace of its object."""
    pairs = [("web", "shop"), ("api", "shop"), ("web", "team")]
    made = [
        finding(name, namespace=namespace, outcome=Violated(f"{name} in {namespace} is wrong"))
        for name, namespace in pairs
    ]
    Round(tuple(made)).record(store, 1)
    messages = {stored.finding.outcome.message for stored in store.read_scan("scan-1").findings()}

    assert {"web in shop is wrong", "api in shop is wrong", "web in team is wrong"} == messages
    assert 1 == count(url, "verdicts")


def test_the_record_of_an_old_scan_never_changes(store: SqlStore) -> None:
    """Its messages, statuses, gaps and counts are the same after later scans changed, fixed and reopened findings."""
    rounds = (
        Round((A, B), gaps=(Gap(GapKind.LIST, "v1/Secret", "forbidden"),), state=ScanState.INCOMPLETE),
        Round((A._replace(outcome=Errored("no such key", would_deny=True)), C)),
        Round((A, B), scope=Scope(exclude_namespaces=("kube-*",))),
        Round(()),
    )
    on_the_day = []
    for number, each in enumerate(rounds):
        each.record(store, number)
        on_the_day.append(snapshot(store, number))

    assert on_the_day == [snapshot(store, number) for number in range(len(rounds))]


def test_an_object_that_is_back_leaves_the_records_of_old_scans(store: SqlStore) -> None:
    """The scan between could not resolve the finding of the policy that it left out."""
    labels = finding("a", policy="labels")
    Round((A, labels)).record(store, 1)
    on_the_day = snapshot(store, 1)
    Round((), scope=Scope(policies=("replicas",))).record(store, 2)
    Round((A, labels)).record(store, 3)

    assert on_the_day == snapshot(store, 1)
    assert {"reopened", "open"} == {item.status for item in store.read_scan("scan-3").findings()}


def test_findings_come_in_the_order_of_a_report(store: SqlStore) -> None:
    """The order is policy, binding, param, check, kind, namespace and name, by code point in any locale."""
    ordered = (
        finding("z", policy="Labels"),
        finding("B"),
        finding("a"),
        finding("a", namespace="shop-2"),
        finding("ä", namespace="shop-2"),
        finding("a", kind="Pod"),
    )
    Round(tuple(reversed(ordered))).record(store, 1)

    assert list(ordered) == [item.finding for item in store.read_scan("scan-1").findings()]


def test_clusters_do_not_share_findings(store: SqlStore) -> None:
    """The same fingerprint in two clusters is two findings; a scan of one cluster resolves no finding of the other."""
    Round((A,)).record(store, 1)
    elsewhere = Round((A,), cluster=ClusterIdentity("test", "77aa")).record(store, 2)
    Round((), cluster=ClusterIdentity("test", "77aa")).record(store, 3)
    Round((A,)).record(store, 4)

    assert 1 == elsewhere.new
    assert {"a": "open"} == statuses(store.read_scan("scan-4").findings())


def test_a_cluster_is_known_by_its_uid(store: SqlStore) -> None:
    """A cluster with another name and the same UID is the same cluster."""
    Round((A,)).record(store, 1)
    Round((A,), cluster=ClusterIdentity("production", "6d1c")).record(store, 2)

    assert {"a": "open"} == statuses(store.read_scan("scan-2").findings())


def test_a_fingerprint_seen_twice_counts_once(store: SqlStore) -> None:
    """An object on two pages is one finding, with the content of the first page."""
    store.begin(Round().start(1))
    store.write_page("scan-1", Round((A, B)).page())
    store.write_page("scan-1", Round((A._replace(outcome=Violated("again")), C)).page())
    scan = store.finish("scan-1", Round().end(1))

    assert [A, B, C] == [item.finding for item in store.read_scan("scan-1").findings()]
    assert 3 == scan.findings


def test_pages_add_up(store: SqlStore) -> None:
    """Tallies and matched objects of pages are summed; the gaps of pages and of the end are joined."""
    lost = Gap(GapKind.OBJECT, "v1/Pod shop/x", "its namespace is gone")
    late = Gap(GapKind.DISCOVERY, "metrics.k8s.io/v1beta1", "does not answer")
    store.begin(Round().start(1))
    store.write_page("scan-1", replace(Round((A, B)).page(), gaps=(lost,)))
    store.write_page("scan-1", replace(Round((C,)).page(), gaps=(lost,)))
    store.finish("scan-1", Round(gaps=(late,)).end(1))
    record = store.read_scan("scan-1")

    assert {tally(A): 3} == record.tallies
    assert (late, lost) == record.gaps
    assert {"replicas": 18, "labels": 0} == {item.policy.name: item.matched for item in record.policies}


def test_a_record_has_the_policies_of_the_scan(store: SqlStore) -> None:
    """Policies, their bindings, coverage and health are read as they were written."""
    health = Health(HealthKind.UNBOUND, "lonely", "", "nothing binds it")
    store.begin(
        replace(Round().start(1), policies=(policy("lonely"), policy("replicas")), bindings=(binding("replicas"),))
    )
    store.finish("scan-1", replace(Round().end(1), health=(health,), coverage=(listed("Pod"), listed("Deployment"))))
    record = store.read_scan("scan-1")

    assert [(policy("lonely"), ()), (policy("replicas"), (binding("replicas"),))] == [
        (item.policy, item.bindings) for item in record.policies
    ]
    assert (("Deny", "Audit"), ()) == (record.policies[1].actions, record.policies[0].actions)
    assert ((health,), (listed("Pod"), listed("Deployment"))) == (record.health, record.coverage)


def test_the_previous_scan_is_the_one_before_in_the_same_cluster(store: SqlStore) -> None:
    """Scans of other clusters and failed scans are skipped."""
    Round().record(store, 1)
    Round(cluster=ClusterIdentity("test")).record(store, 2)
    Round(state=ScanState.FAILED).record(store, 3)
    Round().record(store, 4)
    previous = store.read_scan("scan-4").previous

    assert previous is not None
    assert "scan-1" == previous.id
    assert store.read_scan("scan-1").previous is None


def test_a_failed_scan_is_kept_apart_from_history(store: SqlStore) -> None:
    """It resolves and opens nothing: its findings are new in the next scan. Its counts and gaps are kept."""
    Round((A,)).record(store, 1)
    failed = Round((B,), state=ScanState.FAILED, gaps=(Gap(GapKind.LIST, "v1/Pod", "401"),)).record(store, 2)
    Round((A, B)).record(store, 3)
    record = store.read_scan("scan-2")

    assert (0, 0, 0) == (failed.findings, failed.new, failed.resolved)
    assert ([], 1, {tally(B): 1}, 1) == (list(record.findings()), record.unchecked, record.tallies, len(record.gaps))
    assert {"a": "open", "b": "new"} == statuses(store.read_scan("scan-3").findings())


def test_times_are_read_in_utc(store: SqlStore) -> None:
    """Start and end are the moments that were written."""
    scan = Round().record(store, 1)

    assert (began(1), ended(1)) == (scan.started_at, scan.finished_at)
    assert 0 == sum(abs(time.utcoffset().total_seconds()) for time in (scan.started_at, clock()))  # type: ignore[union-attr]


@pytest.mark.long
@pytest.mark.parametrize("size", [999, 1000, 1001, 2500])
def test_a_page_may_hold_any_number_of_findings(store: SqlStore, size: int) -> None:
    """No finding is lost between the portions in which rows are written and read."""
    many = tuple(finding(f"pod-{number}", outcome=Violated(f"message {number}")) for number in range(size))
    Round(many).record(store, 1)
    scan = Round(many[1:]).record(store, 2)
    record = store.read_scan("scan-2")

    assert (size - 1, 0, 1) == (scan.findings, scan.new, scan.resolved)
    assert {item.fingerprint: item for item in many[1:]} == {
        item.finding.fingerprint: item.finding for item in record.findings()
    }
