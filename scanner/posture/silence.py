"""When a cluster has gone silent: its last run began longer ago than one and a half times the interval between runs.

With a schedule, the interval is that between the two next expected times after the run, so that a schedule without runs at weekends
calls no cluster silent on a Sunday. Without a schedule, runs are expected daily. A cluster that is scanned again and again, and
never completely, is not silent: it is *never complete*.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from scanner.model.schedule import Schedule

DAILY: Final = timedelta(days=1)
"""The expected interval between runs where no schedule is configured."""
FACTOR: Final = 1.5


class ClusterState(StrEnum):
    """What is wrong with the runs of a cluster, whatever they found. A cluster may have both states."""

    SILENT = "silent"
    NEVER_COMPLETE = "neverComplete"


def cluster_states(
    last_run: datetime | None, now: datetime, schedule: Schedule | None, *, has_complete_scan: bool
) -> Iterator[ClusterState]:
    """The states of a cluster whose last run began at a moment; None if no run of it is recorded."""
    if last_run is None or _has_passed(silent_from(last_run, schedule), now):
        yield ClusterState.SILENT
    if not has_complete_scan:
        yield ClusterState.NEVER_COMPLETE


def _has_passed(limit: datetime | None, now: datetime) -> bool:
    return limit is not None and now > limit


def silent_from(started: datetime, schedule: Schedule | None) -> datetime | None:
    """The moment from which a cluster is silent whose last run began at `started`; None if no further run is expected."""
    if schedule is None:
        return started + FACTOR * DAILY
    expected = schedule.after(started)
    following = schedule.after(expected) if expected else None
    if expected is None or following is None:
        return None
    interval = following - expected
    return max(started + FACTOR * interval, expected + (FACTOR - 1) * interval)
