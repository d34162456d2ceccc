"""The texts with which users name a scan or a finding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from scanner.errors import UsageError
from scanner.model.outcome import Violated
from scanner.model.scans.scan import ClusterIdentity, ScanState, Scope
from scanner.store import SqlStore
from tests.store.conftest import Original
from tests.store.databases import kept_store, refill
from tests.store.made import Round, clock, ended, finding, policy

TEST = ClusterIdentity("test", "77aa")


def scan(store: SqlStore, scan_id: str, number: int, each: Round | None = None) -> None:
    """A scan with a given id."""
    chosen = each or Round()
    store.begin(replace(chosen.start(number), id=scan_id))
    store.write_page(scan_id, chosen.page())
    store.finish(scan_id, chosen.end(number))


@pytest.fixture
def several(url: str, original: Original) -> Iterator[SqlStore]:
    """Four scans: two of one cluster, one of another, and a failed one."""
    refill(url, original(url, record_several))
    with kept_store(url, clock) as store:
        yield store


def record_several(store: SqlStore) -> None:
    """Record the four scans."""
    scan(store, "3f2a", 1)
    scan(store, "3f9b", 2, Round(cluster=TEST))
    scan(store, "c001", 3, Round(state=ScanState.INCOMPLETE))
    scan(store, "dead", 4, Round(state=ScanState.FAILED))


def test_the_last_scan_is_the_last_of_history(store: SqlStore) -> None:
    """The order is that of history, because clocks may be set back."""
    scan(store, "first", 9)
    scan(store, "second", 1)

    assert ("second", "first") == (store.find_scan("last").id, store.find_scan("last~1", "prod").id)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("last", "c001"),
        ("last~0", "c001"),
        ("last~1", "3f9b"),
        ("last~2", "3f2a"),
        ("3f2a", "3f2a"),
        ("3f2", "3f2a"),
        ("c", "c001"),
        ("dead", "dead"),
    ],
)
def test_a_scan_is_found(several: SqlStore, typed: str, meant: str) -> None:
    """It is named by its id, by the beginning of its id, or counted back from the last scan that did not fail."""
    assert meant == several.find_scan(typed).id


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("3f", r"Scan '3f' is ambiguous: 3f9b, 3f2a\. Give more characters of the id\."),
        ("zzz", r"There is no scan 'zzz': the newest are dead, c001, 3f9b, 3f2a\..*assay scans"),
        ("last~9", r"There is no scan 'last~9': the newest are"),
        ("", r"There is no scan ''"),
        ("%", r"There is no scan '%'"),
        ("3F", r"There is no scan '3F'"),
        ("\0\ud800", r"There is no scan"),
    ],
)
def test_an_ambiguous_scan_is_rejected(several: SqlStore, typed: str, message: str) -> None:
    """The message lists the scans."""
    with pytest.raises(UsageError, match=message):
        several.find_scan(typed)


def test_a_whole_id_wins_over_longer_ones(store: SqlStore) -> None:
    """An id that begins another id names its own scan."""
    scan(store, "ab", 1)
    scan(store, "abc", 2)

    assert "ab" == store.find_scan("ab").id


def test_an_empty_database_is_reported_with_the_remedy(store: SqlStore) -> None:
    """The message names the command that makes a scan."""
    with pytest.raises(UsageError, match=r"has no scans\. Run: assay scan\."):
        store.find_scan("last")


@pytest.mark.parametrize(("cluster", "meant"), [(None, "c001"), ("prod", "c001"), ("77aa", "3f9b"), ("test", "3f9b")])
def test_a_cluster_is_named_by_its_name_or_its_uid(several: SqlStore, cluster: str | None, meant: str) -> None:
    """Failed scans do not count as the latest."""
    latest = several.latest_scan(cluster)

    assert latest is not None
    assert meant == latest.id


def test_an_unknown_cluster_has_no_latest_scan(several: SqlStore) -> None:
    """The result is None and no error, because a cluster may have no scan yet."""
    assert several.latest_scan("staging") is None


def test_scans_are_listed_newest_first(several: SqlStore) -> None:
    """Scans in all states are listed, up to the limit."""
    assert ["dead", "c001", "3f9b"] == [item.id for item in several.scans(3)]


def test_a_finding_is_found_by_its_short_id(store: SqlStore) -> None:
    """The result has the policy as the last scan with the finding used it."""
    Round((finding("a"), finding("b"))).record(store, 1)
    [shown] = [item for item in store.read_scan("scan-1").findings() if item.finding == finding("a")]
    explained = store.find_finding(shown.id)

    assert (12, shown) == (len(shown.id), explained.stored)
    assert (policy("replicas"), "scan-1") == (explained.policy, explained.scan.id)


def test_a_finding_is_shown_in_its_current_state(store: SqlStore) -> None:
    """Its message is the newest one, and last seen is the last scan that checked it."""
    worse = finding("a")._replace(outcome=Violated("much worse"))
    Round((finding("a"),)).record(store, 1)
    Round((worse,)).record(store, 2)
    Round((), scope=Scope(namespaces=("bank",))).record(store, 3)
    stored = store.find_finding(worse.fingerprint).stored

    assert (worse, "open", ended(1), ended(2)) == (stored.finding, stored.status, stored.first_seen, stored.last_seen)


def test_a_resolved_finding_is_still_found(store: SqlStore) -> None:
    """The result has the time at which it was resolved."""
    Round((finding("a"),)).record(store, 1)
    Round(()).record(store, 2)
    stored = store.find_finding(finding("a").fingerprint).stored

    assert ("resolved", ended(2)) == (stored.status, stored.resolved_at)


def test_a_finding_of_two_clusters_is_shown_for_the_latest_scan(store: SqlStore) -> None:
    """The same object in two saved clusters has the same fingerprint."""
    Round((finding("a"),)).record(store, 1)
    Round((finding("a"),), cluster=TEST).record(store, 2)

    assert TEST == store.find_finding(finding("a").fingerprint).scan.cluster


@pytest.mark.parametrize("typed", ["", "xyz", "0000000000000", "f" * 65, "'; DROP TABLE findings; --"])
def test_an_unknown_finding_is_rejected(store: SqlStore, typed: str) -> None:
    """Neither other text nor a wrong id finds anything."""
    Round((finding("a"),)).record(store, 1)

    with pytest.raises(UsageError, match="There is no finding"):
        store.find_finding(typed)


def test_an_ambiguous_finding_is_rejected(store: SqlStore) -> None:
    """The message lists the possible ids."""
    twins = [finding(name)._replace(fingerprint="ab" * 5 + f"{digit}" * 54) for name, digit in (("a", 1), ("b", 2))]
    Round(tuple(twins)).record(store, 1)

    with pytest.raises(UsageError, match=r"Finding 'ab' is ambiguous: ababababab11, ababababab22\. Give more digits"):
        store.find_finding("ab")
    assert twins[0] == store.find_finding("ABABABABAB1").stored.finding


def test_an_unknown_scan_has_no_record(store: SqlStore) -> None:
    """The message names the command that lists scans."""
    with pytest.raises(UsageError, match="There is no scan nothing in this database"):
        store.read_scan("nothing")


def test_a_problem_is_found_by_the_beginning_of_its_id(store: SqlStore) -> None:
    """It has its open finding first, and the numbers of all."""
    Round((finding("a"),)).record(store, 1)
    [shown] = store.read_scan("scan-1").findings()

    problem = store.find_problem(shown.problem[:5].upper().replace("P-", "p-"))

    assert (shown.problem, 1, 0) == (problem.id, problem.open, problem.resolved)
    assert [shown] == [each.stored for each in problem.findings]


def test_a_resolved_problem_stays_known(store: SqlStore) -> None:
    """Its findings have the time of the resolution."""
    Round((finding("a"),)).record(store, 1)
    [shown] = store.read_scan("scan-1").findings()
    Round(()).record(store, 2)

    problem = store.find_problem(shown.problem)

    assert (0, 1) == (problem.open, problem.resolved)
    assert [ended(2)] == [each.stored.resolved_at for each in problem.findings]


@pytest.mark.parametrize("typed", ["p-", "p-g", "a1", "p-0123456789abc", "p-ffffffffffff"])
def test_no_other_text_is_a_problem(store: SqlStore, typed: str) -> None:
    """Neither an id of another form nor an unknown one."""
    Round((finding("a"),)).record(store, 1)

    with pytest.raises(UsageError, match=r"is not the id of a problem|There is no problem"):
        store.find_problem(typed)


def test_a_problem_belongs_to_a_cluster(store: SqlStore) -> None:
    """The same problem of two clusters is that of the newest scan, or of the cluster that is named."""
    Round((finding("a"),)).record(store, 1)
    Round((finding("a"),), cluster=TEST).record(store, 2)
    [shown] = store.read_scan("scan-2").findings()

    assert ["scan-2"] == [each.scan.id for each in store.find_problem(shown.problem).findings]
    assert ["scan-1"] == [each.scan.id for each in store.find_problem(shown.problem, "prod").findings]
    with pytest.raises(UsageError, match="has no problem"):
        store.find_problem(shown.problem, "staging")
