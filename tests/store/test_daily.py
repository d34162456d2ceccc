"""Daily tallies: the last complete scan of the whole cluster counts for its day, and stays counted when it is pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from scanner.errors import UsageError
from scanner.model.scan import ClusterIdentity, ScanState, Scope
from scanner.store import SqlStore, prune
from scanner.store.daily import DailyTally, Day
from scanner.store.retention_plan import Rule
from tests.store.databases import count as rows_of
from tests.store.made import Round, binding, ended, finding

FIRST = date(2026, 3, 2)
A, B = finding("a"), finding("b")
IN_BANK = finding("c", namespace="bank", policy="labels")


def days(store: SqlStore, since: date = FIRST, cluster: str | None = None) -> list[Day]:
    """The days of a cluster."""
    return list(store.days(store.cluster(cluster).id, since))


def scan(store: SqlStore, number: int, each: Round, finished_at: datetime) -> None:
    """Store a scan that ends at a moment."""
    store.begin(each.start(number))
    for page in each.pages():
        store.page(f"scan-{number}", page)
    store.finish(f"scan-{number}", replace(each.end(number), finished_at=finished_at))


def violated(policy: str, namespace: str, count: int) -> DailyTally:
    """A tally of violations."""
    return DailyTally("validating", policy, namespace, "violated", requester=False, count=count)


def test_each_day_has_the_counts_of_its_scan(store: SqlStore) -> None:
    """By policy, namespace and outcome; with the numbers of findings."""
    Round((A, B, IN_BANK)).record(store, 1)
    Round((A, B)).record(store, 2)
    first, second = days(store)

    assert Day(FIRST, "scan-1", 3, 3, 0, (violated("labels", "bank", 1), violated("replicas", "shop", 2))) == replaced(
        first
    )
    assert Day(date(2026, 3, 3), "scan-2", 2, 0, 1, (violated("replicas", "shop", 2),)) == replaced(second)
    assert [second] == days(store, date(2026, 3, 3))


def replaced(day: Day) -> Day:
    """The day with the short name of the language."""
    return day._replace(tallies=tuple(each._replace(language="validating") for each in day.tallies))


def test_the_last_complete_scan_of_a_day_counts(store: SqlStore) -> None:
    """In UTC; new findings of all scans of the day are added up."""
    morning = datetime(2026, 3, 2, 6, tzinfo=UTC)
    scan(store, 1, Round((A,)), morning)
    scan(store, 2, Round((A, B)), datetime(2026, 3, 3, 1, tzinfo=timezone(timedelta(hours=2))))
    scan(store, 3, Round(state=ScanState.PARTIAL), morning + timedelta(hours=17, minutes=30))

    [day] = days(store)
    assert (FIRST, "scan-2", 2, 2, 2) == day[:5]
    assert [2] == [each.count for each in day.tallies]


@pytest.mark.parametrize(
    "scope",
    [
        Scope(namespaces=("shop",)),
        Scope(kinds=("pods",)),
        Scope(policies=("replicas",)),
        Scope(bindings=("b",)),
        Scope(selector="app=web"),
    ],
)
def test_a_narrowed_scan_is_no_day_of_its_cluster(store: SqlStore, scope: Scope) -> None:
    """Its counts would look like progress."""
    Round((A, B)).record(store, 1)
    scan(store, 2, Round((A,), scope=scope), ended(1) + timedelta(hours=1))

    assert ["scan-1"] == [day.scan for day in days(store)]


def test_a_standing_exclusion_is_a_day(store: SqlStore) -> None:
    """A scan without some namespaces or kinds is complete."""
    Round((A,), scope=Scope(exclude_namespaces=("kube-*",), skip_kinds=("events",))).record(store, 1)

    assert ["scan-1"] == [day.scan for day in days(store)]


def test_previews_are_not_counted(store: SqlStore) -> None:
    """What an assumed binding finds is not in force."""
    each = Round((A, IN_BANK))
    store.begin(replace(each.start(1), bindings=(binding("replicas"), binding("labels", assumed=True))))
    for page in each.pages():
        store.page("scan-1", page)
    store.finish("scan-1", each.end(1))

    assert ["replicas"] == [tally.policy for day in days(store) for tally in day.tallies]


def test_each_cluster_has_its_own_days(store: SqlStore) -> None:
    """The newest scan chooses the cluster if no name does."""
    Round((A,)).record(store, 1)
    Round((A, B), cluster=ClusterIdentity("depot")).record(store, 2)

    assert (["scan-2"], ["scan-1"]) == tuple([day.scan for day in days(store, cluster=name)] for name in (None, "prod"))
    with pytest.raises(UsageError, match="There is no cluster 'shop' in this database"):
        store.cluster("shop")


def test_days_survive_pruning_for_400_days(store: SqlStore, url: str) -> None:
    """Older days go with their scans; the days of kept scans stay."""
    numbers: Sequence[int] = (1, 2, 3, 40, 420, 430)
    for number in numbers:
        Round((finding(f"a-{number}"),)).record(store, number)
    everything = days(store)
    prune(url, Rule(1), ended(430))

    assert 6 == len(everything)
    assert everything[3:] == days(store)
    assert (3, 3) == (rows_of(url, "daily"), rows_of(url, "days"))


def test_kept_scans_keep_their_day(store: SqlStore, url: str) -> None:
    """Also after 400 days."""
    for number in (1, 2, 3, 500):
        Round((A,)).record(store, number)
    prune(url, Rule(1, 1), ended(501))

    assert ["scan-3", "scan-500"] == [day.scan for day in days(store)]
