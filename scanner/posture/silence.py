"""When a cluster has gone silent: its last complete scan is older than one and a half times the interval between scans.

With a schedule, the interval is that between the two next expected times after the scan, so that a schedule without runs at weekends
calls no cluster silent on a Sunday. Without a schedule, scans are expected daily.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from scanner.model.schedule import Schedule

DAILY: Final = timedelta(days=1)
"""The expected interval between scans where no schedule is configured."""
FACTOR: Final = 1.5


def silent_from(started: datetime, schedule: Schedule | None) -> datetime | None:
    """The moment from which a cluster is silent whose last complete scan began at `started`; None if no further scan is expected."""
    if schedule is None:
        return started + FACTOR * DAILY
    expected = schedule.after(started)
    following = schedule.after(expected) if expected else None
    if expected is None or following is None:
        return None
    interval = following - expected
    return max(started + FACTOR * interval, expected + (FACTOR - 1) * interval)
