"""The notifications of scans that were sent to each route, so that each is sent once, also if a process is killed.

A row is `pending` before anything is sent, and has the scan that the notification compares with. So a later run sends the same
notification again if it does not know that the receiver accepted it, and what changed in between is in the next notification.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, func, insert, select, update

from scanner.model.scans.notification import COUNTED, Notification, NotificationState
from scanner.store.catalog.scans import find_newest_comparable
from scanner.store.rows.tables import NOTIFICATIONS, SCANS

LONGEST_WAIT: Final = timedelta(days=7)
"""The age of its scan at which a notification that was not delivered is given up."""
_MOST_BACK: Final = 20
"""How many comparable scans back a scan is searched about which a route was notified."""
_PENDING: Final = NotificationState.PENDING.value

NotificationCounts: TypeAlias = Mapping[tuple[str, str], int]
"""The numbers of notifications by route and state."""


class _NotifiedScan(NamedTuple):
    number: int
    cluster: int
    revision: int | None


def plan_notifications(connection: Connection, scan_id: str, routes: Collection[str], now: datetime) -> None:
    """Add a row for each route that has none about this scan, and give up what has waited too long. A failed scan gets no row."""
    scan = _read_scan(connection, scan_id)
    if scan.revision is None:
        return
    notification = NOTIFICATIONS.c
    known = set(connection.execute(select(notification.route).where(notification.scan == scan.number)).scalars())
    for route in sorted(set(routes) - known):
        before = _find_earlier_scan(connection, scan, scan.revision, route)
        state = NotificationState.FIRST.value if before is None else _PENDING
        row = {"scan": scan.number, "route": route, "before": before, "state": state}
        connection.execute(insert(NOTIFICATIONS).values(row))
    old = select(SCANS.c.number).where(SCANS.c.cluster == scan.cluster, SCANS.c.started_at < now - LONGEST_WAIT)
    given_up = notification.state == _PENDING, notification.scan.in_(old), notification.scan != scan.number
    connection.execute(update(NOTIFICATIONS).where(*given_up).values(state=NotificationState.LOST.value))


def end_notification(connection: Connection, notification: Notification, state: NotificationState) -> None:
    """Record what became of a notification."""
    scan = select(SCANS.c.number).where(SCANS.c.id == notification.scan_id).scalar_subquery()
    chosen = NOTIFICATIONS.c.scan == scan, NOTIFICATIONS.c.route == notification.route
    connection.execute(update(NOTIFICATIONS).where(*chosen).values(state=state.value))


def find_oldest_pending(connection: Connection, scan_id: str, route: str) -> Notification | None:
    """The oldest notification of a route about the cluster of a scan that is not delivered, None without one."""
    notification, before = NOTIFICATIONS.c, SCANS.alias()
    wanted = (
        select(SCANS.c.id, before.c.id, notification.route)
        .select_from(
            NOTIFICATIONS.join(SCANS, SCANS.c.number == notification.scan).join(
                before, before.c.number == notification.before
            )
        )
        .where(
            SCANS.c.cluster == _read_scan(connection, scan_id).cluster,
            notification.route == route,
            notification.state == _PENDING,
        )
        .order_by(SCANS.c.revision)
        .limit(1)
    )
    row = connection.execute(wanted).one_or_none()
    return None if row is None else Notification(*row)


def count_of_cluster(connection: Connection, scan_id: str) -> NotificationCounts:
    """The numbers of notifications about the cluster of a scan."""
    return count_notifications(connection).get(_read_scan(connection, scan_id).cluster, {})


def count_notifications(connection: Connection) -> Mapping[int, NotificationCounts]:
    """The numbers of notifications that were to be delivered, by cluster. Each route of a cluster has every state."""
    notification = NOTIFICATIONS.c
    wanted = (
        select(SCANS.c.cluster, notification.route, notification.state, func.count())
        .join(SCANS, SCANS.c.number == notification.scan)
        .group_by(SCANS.c.cluster, notification.route, notification.state)
    )
    numbers: defaultdict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for cluster, route, state, number in connection.execute(wanted):
        of_cluster = numbers[cluster]
        for each in COUNTED:
            of_cluster.setdefault((route, each.value), 0)
        if state in COUNTED:
            of_cluster[route, state] = number
    return numbers


def _read_scan(connection: Connection, scan_id: str) -> _NotifiedScan:
    columns = (SCANS.c[name] for name in _NotifiedScan._fields)
    return _NotifiedScan(*connection.execute(select(*columns).where(SCANS.c.id == scan_id)).one())


def _find_earlier_scan(connection: Connection, scan: _NotifiedScan, revision: int, route: str) -> int | None:
    """The number of the scan to compare with: the newest comparable one about which the route was notified, else the newest.

    A run that was killed before it planned its notifications leaves a scan out, whose changes are in the next notification.
    """
    notification = NOTIFICATIONS.c
    newest: int | None = None
    for _ in range(_MOST_BACK):
        # A preview counts here: its route was notified about the problems that are in force.
        earlier = find_newest_comparable(connection, scan.number, revision, with_report=True, previews=True)
        if earlier is None:
            break
        revision, number = earlier, _find_number(connection, scan.cluster, earlier)
        newest = number if newest is None else newest
        if connection.execute(
            select(notification.scan).where(notification.scan == number, notification.route == route)
        ).first():
            return number
    return newest


def _find_number(connection: Connection, cluster: int, revision: int) -> int:
    at = SCANS.c.cluster == cluster, SCANS.c.revision == revision
    return int(connection.execute(select(SCANS.c.number).where(*at)).scalar_one())
