"""Notifies the routes of the configuration about what a scan changed, when its report is printed.

A receiver that fails is a warning on stderr, and never changes the exit code: the notification stays in the database, and the next
scan of the cluster sends it again.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from scanner.config.current import get_routes
from scanner.errors import AssayError, UsageError
from scanner.files import SECRET, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scanner.cli.flags.waivers import Posture
    from scanner.cli.scanning.interruption import Interruption
    from scanner.cli.scanning.metrics_push import MetricsPush
    from scanner.model.scans.notification import Notification
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.notify.webhook import Webhook
    from scanner.posture.notices import Notice
    from scanner.posture.routes import Route
    from scanner.store import SqlStore

SECONDS: Final = 30.0
"""The time limit of all notifications of a run."""


class Notifications:
    """A context around a scan: the routes are notified at its end, if the scan was stored."""

    def __init__(self, store: SqlStore, metrics: MetricsPush, interruption: Interruption) -> None:
        """Send nothing yet."""
        self._store = store
        self._metrics = metrics
        self._interruption = interruption
        self._routes: dict[str, Route] = {}
        self._scan_id = ""

    def __enter__(self) -> Self:
        """Send nothing yet."""
        return self

    def scanned(self, record: StoredScan, posture: Posture) -> None:
        """Record that the routes of the cluster are to be notified about a scan. Raises StoreError."""
        self._routes = {route.name: route for route in get_routes() if route.is_about(record.scan.cluster.name)}
        self._scan_id, self._posture = record.scan.id, posture
        if self._routes:
            self._store.plan_notifications(self._scan_id, self._routes)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Deliver the notifications of this scan, and those of earlier scans that were not delivered."""
        if not self._routes:
            return
        try:
            with self._interruption.interruptible():
                self._deliver(time.monotonic() + SECONDS)
        except KeyboardInterrupt:
            _warn("interrupted; the next scan sends the notifications that were not delivered")
        except AssayError as trouble:
            _warn(f"the notifications were not delivered: {trouble}")
        self._count()

    def _count(self) -> None:
        """Give the metrics the numbers of notifications."""
        try:
            self._metrics.notified(self._store.count_notifications(self._scan_id))
        except AssayError as trouble:
            _warn(f"the metrics have no notifications: {trouble}")

    def _deliver(self, end: float) -> None:
        """Deliver the oldest notification of every route at once, then the next ones of those whose receivers accept them."""
        accepting = dict(self._routes)
        while accepting and time.monotonic() < end:
            oldest = (self._store.find_next_notification(self._scan_id, route) for route in accepting)
            pending = [each for each in oldest if each is not None]
            failed = self._send(self._prepared(pending), end)
            accepting = {each.route: accepting[each.route] for each in pending if each.route not in failed}

    def _prepared(self, pending: Sequence[Notification]) -> dict[Notification, Notice]:
        """The notices of notifications. Those without a change, and those whose scans were pruned, are ended."""
        from scanner.model.scans.notification import NotificationState

        of_scans: defaultdict[tuple[str, str], list[Notification]] = defaultdict(list)
        for each in pending:
            of_scans[each.scan_id, each.before_id].append(each)
        prepared: dict[Notification, Notice] = {}
        for several in of_scans.values():
            try:
                found = self._notices(several)
            except UsageError as error:
                self._lose(several, error)
                continue
            for each in several:
                if found[each.route].has_changes:
                    prepared[each] = found[each.route]
                else:
                    self._store.end_notification(each, NotificationState.UNCHANGED)
        return prepared

    def _notices(self, several: Sequence[Notification]) -> Mapping[str, Notice]:
        """The notices of notifications that compare the same scans. Raises UsageError if one of the scans was pruned."""
        from scanner.posture.notices import make_notices
        from scanner.posture.problem_ids import problem_id

        first = several[0]
        before, now = self._store.read_scan(first.before_id), self._store.read_scan(first.scan_id)
        earlier, triage = (self._posture.triage_then(self._store, each) for each in (before, now))
        recorded = {used.policy.key for used in now.policies}
        return make_notices(
            self._store.compare_scans(first.before_id, first.scan_id, triage.owner_of),
            [self._routes[each.route] for each in several],
            lambda policy, expression: (triage if policy in recorded else earlier).severity(policy, expression),
            {problem_id(number) for number in triage.waived.by_problem},
            before.gaps,
            now.gaps,
        )

    def _lose(self, several: Sequence[Notification], error: UsageError) -> None:
        from scanner.model.scans.notification import NotificationState

        for each in several:
            self._store.end_notification(each, NotificationState.LOST)
            _warn(f"the notification of the route {each.route} about the scan {each.scan_id} is lost: {error}")

    def _send(self, prepared: Mapping[Notification, Notice], end: float) -> set[str]:
        """Send notifications, record those that were accepted, and return the routes of the others."""
        from scanner.model.scans.notification import NotificationState
        from scanner.notify.message import message_id, write_body
        from scanner.notify.webhook import SECONDS as LONGEST
        from scanner.notify.webhook import Delivery, deliver

        webhooks: dict[Notification, Webhook] = {}
        troubles: dict[Notification, str] = {}
        for each in prepared:
            try:
                webhooks[each] = _make_webhook(self._routes[each.route])
            except UsageError as error:
                troubles[each] = str(error)
        deliveries = [
            Delivery(webhook, message_id(each.scan_id, each.route), write_body(prepared[each]))
            for each, webhook in webhooks.items()
        ]
        results = deliver(deliveries, seconds=min(LONGEST, max(0.0, end - time.monotonic())))
        for (each, webhook), trouble in zip(webhooks.items(), results, strict=True):
            if trouble:
                troubles[each] = f"{webhook.origin}: {trouble}"
            else:
                self._store.end_notification(each, NotificationState.DELIVERED)
        for each, trouble in troubles.items():
            _warn(
                f"the notification of the route {each.route} was not delivered: {trouble}. The next scan sends it again"
            )
        return {each.route for each in troubles}


def _make_webhook(route: Route) -> Webhook:
    """The webhook of a route, with its key. Raises UsageError."""
    from scanner.notify.webhook import Webhook, key_of

    return Webhook(route.url, key_of(_read_key(route)))


def _read_key(route: Route) -> str:
    """The text of the key of a route. Raises UsageError."""
    if route.key_variable:
        if not os.environ.get(route.key_variable):
            raise UsageError(f"the variable {route.key_variable} with the key is not set")
        return os.environ[route.key_variable]
    try:
        return read_text(Path(route.key_file).expanduser(), SECRET)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"the key in {route.key_file} cannot be read ({why})") from error


def _warn(message: str) -> None:
    from scanner.cli.terminal.stdout import visible

    sys.stderr.write(f"assay: {visible(message)}\n")
