"""Which scans are compared for a route, and that each is notified once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scanner.model.population import KeptOfObject
from scanner.model.scans.notification import Notification, NotificationState
from scanner.model.scans.scan import ClusterIdentity, ScanState, Scope
from scanner.posture.owners import Owners
from scanner.store import SqlStore, open_store
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.made import DAWN, Round, finding
from tests.store.test_scan_diff import problems

A = finding("a")
DELIVERED, LOST, UNCHANGED = NotificationState.DELIVERED, NotificationState.LOST, NotificationState.UNCHANGED
OTHER = ClusterIdentity("other", "77aa", "v1.36.0")


def record(store: SqlStore, number: int, scanned: Round | None = None, *routes: str) -> None:
    """A scan about which routes are to be notified, by default one."""
    (scanned or Round((A,))).record(store, number)
    store.plan_notifications(f"scan-{number}", routes or ("all",))


def pending(store: SqlStore, number: int = 1, route: str = "all") -> tuple[str, str] | None:
    """The scans of the oldest notification of a route about the cluster of a scan that is not delivered: the later one first."""
    found = store.find_next_notification(f"scan-{number}", route)
    return None if found is None else (found.scan_id, found.before_id)


def end(store: SqlStore, number: int, state: NotificationState = DELIVERED) -> None:
    """Record what became of the notification about a scan."""
    store.end_notification(Notification(f"scan-{number}", "", "all"), state)


def test_the_first_scan_is_silent(store: SqlStore) -> None:
    """Everything would be new."""
    record(store, 1)

    assert None is pending(store)
    assert {("all", "pending"): 0, ("all", "delivered"): 0, ("all", "lost"): 0} == store.count_notifications("scan-1")


def test_a_scan_is_compared_with_the_one_before(store: SqlStore) -> None:
    """Once: a second plan adds nothing."""
    record(store, 1)
    record(store, 2)
    store.plan_notifications("scan-2", ["all"])
    assert ("scan-2", "scan-1") == pending(store)

    end(store, 2)
    store.plan_notifications("scan-2", ["all"])
    assert None is pending(store)
    assert 1 == store.count_notifications("scan-2")["all", "delivered"]


def test_what_was_not_delivered_comes_first(store: SqlStore) -> None:
    """With the scans that it had, so that the receiver gets the same id."""
    for number in (1, 2, 3):
        record(store, number)
    assert ("scan-2", "scan-1") == pending(store, 3)

    end(store, 2)
    assert ("scan-3", "scan-2") == pending(store, 3)
    assert 1 == store.count_notifications("scan-1")["all", "pending"]


def test_a_scan_without_a_plan_is_in_the_next_notification(store: SqlStore) -> None:
    """Its process was killed between both."""
    record(store, 1)
    Round((A,)).record(store, 2)
    record(store, 3)

    assert ("scan-3", "scan-1") == pending(store, 3)


def test_a_new_route_begins_with_the_scan_before(store: SqlStore) -> None:
    """Not with the first scan of the cluster."""
    for number in (1, 2):
        record(store, number)
    record(store, 3, None, "all", "new")

    assert ("scan-3", "scan-2") == pending(store, 3, "new")


def test_only_comparable_scans_are_compared(store: SqlStore) -> None:
    """A scan of a namespace between two of the cluster is compared with none of them."""
    record(store, 1)
    record(store, 2, Round((A,), scope=Scope(namespaces=("shop",))))
    assert None is pending(store, 2)

    record(store, 3)
    assert ("scan-3", "scan-1") == pending(store, 3)


def test_an_incomplete_scan_is_compared_and_a_failed_one_is_not(store: SqlStore) -> None:
    """A failed scan has no findings."""
    record(store, 1)
    record(store, 2, Round((A,), state=ScanState.INCOMPLETE))
    record(store, 3, Round((A,), state=ScanState.FAILED))

    assert ("scan-2", "scan-1") == pending(store, 3)
    end(store, 2)
    assert None is pending(store, 3)


def test_clusters_are_apart(store: SqlStore) -> None:
    """Each has its own notifications and numbers."""
    record(store, 1)
    record(store, 2, Round((A,), cluster=OTHER))
    record(store, 3)

    assert ("scan-3", "scan-1") == pending(store, 1)
    assert None is pending(store, 2)
    assert (1, 0) == tuple(store.count_notifications(scan)["all", "pending"] for scan in ("scan-1", "scan-2"))


def test_a_notification_that_waits_for_a_week_is_lost(url: str) -> None:
    """It is counted, and the next ones are not held up."""
    moment = DAWN
    with open_store(url, lambda: moment) as later:
        record(later, 1)
        record(later, 2)
        moment = DAWN + timedelta(days=2 + 7, minutes=1)
        record(later, 3)

        assert ("scan-3", "scan-2") == pending(later, 3)
        assert 1 == later.count_notifications("scan-3")["all", "lost"]


@pytest.mark.parametrize("state", [LOST, UNCHANGED])
def test_what_has_ended_is_not_pending(store: SqlStore, state: NotificationState) -> None:
    """Only what was to be delivered is counted."""
    record(store, 1)
    record(store, 2)
    end(store, 2, state)

    assert None is pending(store)
    assert {"pending": 0, "delivered": 0, "lost": int(state is LOST)} == {
        name: number for (_, name), number in store.count_notifications("scan-2").items()
    }


def test_a_pruned_scan_keeps_its_notification(url: str, store: SqlStore) -> None:
    """So that it is known which of them are lost."""
    for number in (1, 2, 3):
        record(store, number)
    prune(url, RetentionRule(days=1), DAWN + timedelta(days=30))

    assert ("scan-2", "scan-1") == pending(store, 3)


def test_metrics_count_the_notifications_of_each_cluster(store: SqlStore) -> None:
    """By route and state."""
    record(store, 1)
    record(store, 2, None, "all", "team")
    record(store, 3, Round((A,), cluster=OTHER))
    numbers = {each.label: each.notifications for each in store.all_clusters().clusters}

    assert (1, 1) == tuple(numbers["prod"][route, "pending"] for route in ("all", "team"))
    assert {("all", "pending"): 0, ("all", "delivered"): 0, ("all", "lost"): 0} == numbers["other"]


class PlatformTeam(Owners):
    """Names a team as the owner of every object that has no owner."""

    def __call__(self, kept: KeptOfObject | None, /) -> str:
        """The owner of an object."""
        return Owners()(kept) or "platform"


def test_problems_of_a_difference_have_owners_on_request(store: SqlStore) -> None:
    """Those without labels have none."""
    Round((A,)).record(store, 1)
    Round().record(store, 2)

    assert [""] == [each.owner for each in problems(store.compare_scans("scan-1", "scan-2"))]
    assert ["platform"] == [each.owner for each in problems(store.compare_scans("scan-1", "scan-2", PlatformTeam()))]
