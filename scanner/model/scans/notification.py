"""A notification of a route about a scan, as the database has it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class NotificationState(StrEnum):
    """The state of a notification.

    A `pending` one was not delivered yet, and a `lost` one never will be: it waited too long, or one of its scans was pruned.
    Nothing was to be delivered for the `first` scan of a cluster, nor for an `unchanged` one.
    """

    PENDING = "pending"
    DELIVERED = "delivered"
    LOST = "lost"
    FIRST = "first"
    UNCHANGED = "unchanged"


COUNTED: Final = (NotificationState.PENDING, NotificationState.DELIVERED, NotificationState.LOST)
"""The states of notifications that were to be delivered."""


class Notification(NamedTuple):
    """The changes from the scan `before_id` to the scan `scan_id`, for a route."""

    scan_id: str
    before_id: str
    route: str
