"""What people type to name a scan or a finding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.errors import UsageError
from scanner.model.outcome import Violated
from scanner.model.scan import ClusterIdentity, ScanState, Scope
from scanner.store import SqlStore
from tests.store.made import Round, ended, finding, policy

TEST = ClusterIdentity("test", "77aa")


def scan(store: SqlStore, scan_id: str, number: int, each: Round | None = None) -> None:
    """A scan under a given id."""
    chosen = each or Round()
    store.begin(replace(chosen.start(number), id=scan_id))
    store.page(scan_id, chosen.page())
    store.finish(scan_id, chosen.end(number))


@pytest.fixture
def several(store: SqlStore) -> SqlStore:
    """Four scans: two of one cluster, one of another, and a failed one."""
    scan(store, "3f2a", 1)
    scan(store, "3f9b", 2, Round(cluster=TEST))
    scan(store, "c001", 3, Round(state=ScanState.PARTIAL))
    scan(store, "dead", 4, Round(state=ScanState.FAILED))
    return store


def test_the_last_scan_is_the_last_of_history(store: SqlStore) -> None:
    """Clocks may be set back: the order is that in which scans became part of history."""
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
    """By id, by the beginning of it, or counted back from the last one that did not fail."""
    assert meant == several.find_scan(typed).id


@pytest.mark.parametrize(
    ("typed", "said"),
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
def test_a_scan_that_cannot_be_told_is_asked_back(several: SqlStore, typed: str, said: str) -> None:
    """The message says what there is."""
    with pytest.raises(UsageError, match=said):
        several.find_scan(typed)


def test_a_whole_id_wins_over_longer_ones(store: SqlStore) -> None:
    """An id that begins another one can still be named."""
    scan(store, "ab", 1)
    scan(store, "abc", 2)

    assert "ab" == store.find_scan("ab").id


def test_without_any_scan_the_message_tells_how_to_make_one(store: SqlStore) -> None:
    """An empty database says so."""
    with pytest.raises(UsageError, match=r"has no scans\. Run: assay scan\."):
        store.find_scan("last")


@pytest.mark.parametrize(("cluster", "meant"), [(None, "c001"), ("prod", "c001"), ("77aa", "3f9b"), ("test", "3f9b")])
def test_the_latest_scan_of_a_cluster(several: SqlStore, cluster: str | None, meant: str) -> None:
    """A cluster is named by its name or its UID; failed scans do not count."""
    latest = several.latest(cluster)

    assert latest is not None
    assert meant == latest.id


def test_an_unknown_cluster_has_no_latest_scan(several: SqlStore) -> None:
    """None, and no error: a cluster may well have had no scan yet."""
    assert several.latest("staging") is None


def test_scans_are_listed_newest_first(several: SqlStore) -> None:
    """All states, and no more than asked for."""
    assert ["dead", "c001", "3f9b"] == [item.id for item in several.scans(3)]


def test_a_finding_is_found_by_its_short_id(store: SqlStore) -> None:
    """With the policy as the last scan that saw it used it."""
    Round((finding("a"), finding("b"))).record(store, 1)
    [shown] = [item for item in store.record("scan-1").findings() if item.finding == finding("a")]
    explained = store.finding(shown.id)

    assert (12, shown) == (len(shown.id), explained.stored)
    assert (policy("replicas"), "scan-1") == (explained.policy, explained.scan.id)


def test_a_finding_is_told_as_it_stands_now(store: SqlStore) -> None:
    """The newest look; last seen by the last scan that looked."""
    worse = replace(finding("a"), outcome=Violated("much worse"))
    Round((finding("a"),)).record(store, 1)
    Round((worse,)).record(store, 2)
    Round((), scope=Scope(namespaces=("bank",))).record(store, 3)
    stored = store.finding(worse.fingerprint).stored

    assert (worse, "open", ended(1), ended(2)) == (stored.finding, stored.status, stored.first_seen, stored.last_seen)


def test_a_resolved_finding_is_still_found(store: SqlStore) -> None:
    """With the day of its fix."""
    Round((finding("a"),)).record(store, 1)
    Round(()).record(store, 2)
    stored = store.finding(finding("a").fingerprint).stored

    assert ("resolved", ended(2)) == (stored.status, stored.resolved_at)


def test_a_finding_of_two_clusters_is_told_where_it_was_seen_last(store: SqlStore) -> None:
    """The same object in two saved clusters has the same fingerprint."""
    Round((finding("a"),)).record(store, 1)
    Round((finding("a"),), cluster=TEST).record(store, 2)

    assert TEST == store.finding(finding("a").fingerprint).scan.cluster


@pytest.mark.parametrize("typed", ["", "xyz", "0000000000000", "f" * 65, "'; DROP TABLE findings; --"])
def test_what_is_no_finding_is_refused(store: SqlStore, typed: str) -> None:
    """Neither nonsense nor a wrong id finds anything."""
    Round((finding("a"),)).record(store, 1)

    with pytest.raises(UsageError, match="There is no finding"):
        store.finding(typed)


def test_an_ambiguous_finding_is_asked_back(store: SqlStore) -> None:
    """The message shows the ids that it could be."""
    twins = [replace(finding(name), fingerprint="ab" * 5 + f"{digit}" * 54) for name, digit in (("a", 1), ("b", 2))]
    Round(tuple(twins)).record(store, 1)

    with pytest.raises(UsageError, match=r"Finding 'ab' is ambiguous: ababababab11, ababababab22\. Give more digits"):
        store.finding("ab")
    assert twins[0] == store.finding("ABABABABAB1").stored.finding


def test_an_unknown_scan_has_no_record(store: SqlStore) -> None:
    """The message says where to look."""
    with pytest.raises(UsageError, match="There is no scan nothing in this database"):
        store.record("nothing")
