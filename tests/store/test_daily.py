"""Daily tallies: the last complete scan of the whole cluster counts for its day, and stays counted when it is pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from scanner.errors import UsageError
from scanner.model.outcome import Change, WouldChange
from scanner.model.policy import VALIDATING
from scanner.model.scans.scan import ClusterIdentity, ScanState, Scope
from scanner.model.scans.tally import OutcomeName
from scanner.posture.history.daily import DailyKey, Day
from scanner.store import SqlStore, prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.databases import count as rows_of
from tests.store.made import Round, binding, ended, finding, tally

FIRST = date(2026, 3, 2)
A, B = finding("a"), finding("b")
IN_BANK = finding("c", namespace="bank", policy="labels")


Recorded = tuple[Day, list[tuple[DailyKey, int]]]


def days(store: SqlStore, since: date = FIRST, cluster: str | None = None) -> list[Recorded]:
    """The days of a cluster with their tallies."""
    return days_of(store, store.cluster(cluster).id, since)


def days_of(store: SqlStore, cluster: int, since: date, policies: str = "") -> list[Recorded]:
    """The days of a cluster, by its id, with the tallies of all policies, or of those that begin with a text."""
    with store.trend(cluster, since, (lambda name: name.startswith(policies)) if policies else None) as trend:
        assert trend.days == store.days(cluster, since)
        return [
            (day, [(trend.keys[place], count) for place, count in tallies])
            for day, tallies in zip(trend.days, trend.tallies, strict=True)
        ]


def scan(store: SqlStore, number: int, each: Round, finished_at: datetime) -> None:
    """Store a scan that ends at a moment."""
    store.begin(each.start(number))
    for page in each.pages():
        store.write_page(f"scan-{number}", page)
    store.finish(f"scan-{number}", replace(each.end(number), finished_at=finished_at))


def violated(policy: str, namespace: str, count: int) -> tuple[DailyKey, int]:
    """A tally of violations."""
    return DailyKey(VALIDATING, policy, namespace, "violated", requester=False), count


def test_each_day_has_the_counts_of_its_scan(store: SqlStore) -> None:
    """By policy, namespace and outcome; with the numbers of findings."""
    Round((A, B, IN_BANK)).record(store, 1)
    Round((A, B)).record(store, 2)
    first, second = days(store)

    assert (FIRST, "scan-1", 3, 3, 0, None) == first[0]
    assert [violated("labels", "bank", 1), violated("replicas", "shop", 2)] == first[1]
    assert (date(2026, 3, 3), "scan-2", 2, 0, 1, None) == second[0]
    assert [violated("replicas", "shop", 2)] == second[1]
    assert [second] == days(store, date(2026, 3, 3))


def test_sums_are_those_of_the_tallies(store: SqlStore) -> None:
    """Of each policy on each day, and of each outcome; a policy without a failure has 0, and one without an outcome nothing."""
    other = ClusterIdentity("depot")
    dry = A._replace(policy="dry", outcome=WouldChange((Change("replace", "/spec/replicas", 3, 7),)), actions=())
    Round((A, B, dry), cluster=other).record(store, 1)
    for number, findings in enumerate(([A, B, IN_BANK], [A, B], [dry, IN_BANK]), 2):
        passing = {tally(IN_BANK)._replace(outcome=OutcomeName.PASSED): 7, tally(A)._replace(requester=True): 1}
        each = Round(tuple(findings))
        store.begin(each.start(number))
        for page in each.pages():
            store.write_page(f"scan-{number}", replace(page, tallies=page.tallies | passing))
        store.finish(f"scan-{number}", each.end(number))
    cluster, since = store.cluster("prod").id, date(2026, 3, 4)
    by_policy = store.trend_of_policies(cluster, since, {"violated"})
    by_day = store.trend_of_days(cluster, since, lambda name: name in {"replicas", "labels"})

    recorded = days_of(store, cluster, since)
    assert 2 == len(recorded)
    assert store.days(cluster, since) == by_policy.days == by_day.days
    failing: dict[str, dict[date, int]] = {}
    outcomes: dict[date, dict[tuple[str, bool], int]] = {}
    for day, tallies in recorded:
        for key, count in tallies:
            of_policy = failing.setdefault(key.policy, {})
            of_policy[day.day] = of_policy.get(day.day, 0) + count * (key.outcome == "violated")
            if key.policy in {"replicas", "labels"}:
                of_day = outcomes.setdefault(day.day, {})
                of_day[key.outcome, key.requester] = of_day.get((key.outcome, key.requester), 0) + count
    assert failing == by_policy.failing
    assert sorted(failing) == list(by_policy.failing)
    assert outcomes == by_day.outcomes
    assert {"dry", "labels", "replicas"} == failing.keys()


def test_tallies_are_those_of_chosen_policies(store: SqlStore) -> None:
    """Days without one stay."""
    Round((A, IN_BANK)).record(store, 1)
    Round((A,)).record(store, 2)

    found = days_of(store, store.cluster().id, FIRST, policies="lab")
    assert [[violated("labels", "bank", 1)], []] == [tallies for _, tallies in found]


def test_the_last_complete_scan_of_a_day_counts(store: SqlStore) -> None:
    """In UTC; new findings of all scans of the day are added up."""
    morning = datetime(2026, 3, 2, 6, tzinfo=UTC)
    scan(store, 1, Round((A,)), morning)
    scan(store, 2, Round((A, B)), datetime(2026, 3, 3, 1, tzinfo=timezone(timedelta(hours=2))))
    scan(store, 3, Round(state=ScanState.INCOMPLETE), morning + timedelta(hours=17, minutes=30))

    [(day, tallies)] = days(store)
    assert (FIRST, "scan-2", 2, 2, 2) == day[:5]
    assert [2] == [count for _, count in tallies]


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

    assert ["scan-1"] == [day.scan for day, _ in days(store)]


def test_a_standing_exclusion_is_a_day(store: SqlStore) -> None:
    """A scan without some namespaces or kinds is complete."""
    Round((A,), scope=Scope(exclude_namespaces=("kube-*",), skip_kinds=("events",))).record(store, 1)

    assert ["scan-1"] == [day.scan for day, _ in days(store)]


def test_previews_are_not_counted(store: SqlStore) -> None:
    """What an assumed binding finds is not in force."""
    each = Round((A, IN_BANK))
    store.begin(replace(each.start(1), bindings=(binding("replicas"), binding("labels", assumed=True))))
    for page in each.pages():
        store.write_page("scan-1", page)
    store.finish("scan-1", each.end(1))

    assert ["replicas"] == [key.policy for _, tallies in days(store) for key, _ in tallies]


def test_each_cluster_has_its_own_days(store: SqlStore) -> None:
    """The newest scan chooses the cluster if no name does."""
    Round((A,)).record(store, 1)
    Round((A, B), cluster=ClusterIdentity("depot")).record(store, 2)

    assert (["scan-2"], ["scan-1"]) == tuple(
        [day.scan for day, _ in days(store, cluster=name)] for name in (None, "prod")
    )
    with pytest.raises(UsageError, match="There is no cluster 'shop' in this database"):
        store.cluster("shop")


def test_days_survive_pruning_for_400_days(store: SqlStore, url: str) -> None:
    """Older days go with their scans; the days of kept scans stay."""
    numbers: Sequence[int] = (1, 2, 3, 40, 420, 430)
    for number in numbers:
        Round((finding(f"a-{number}"),)).record(store, number)
    everything = days(store)
    prune(url, RetentionRule(1), ended(430))

    assert 6 == len(everything)
    assert everything[3:] == days(store)
    assert (3, 1, 1) == tuple(rows_of(url, table) for table in ("days", "daily_sets", "daily_lists"))


def test_kept_scans_keep_their_day(store: SqlStore, url: str) -> None:
    """Also after 400 days."""
    for number in (1, 2, 3, 500):
        Round((A,)).record(store, number)
    prune(url, RetentionRule(1, 1), ended(501))

    assert ["scan-3", "scan-500"] == [day.scan for day, _ in days(store)]
