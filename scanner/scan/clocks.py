"""The clocks of a scan: that of its machine, of the API server, and of PostgreSQL. The latest of them dates the scan (ADR 44)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from scanner.model.scans.method import ClockDifferences
from scanner.scan.edges import Cluster, Store

Clock: TypeAlias = Callable[[], datetime]

_NONE = timedelta()


@dataclass(frozen=True, slots=True)
class ScanClock:
    """The clock that dates a scan. `started` is the beginning of the scan by this clock, `ahead` the time by which it is ahead of `own`."""

    started: datetime
    ahead: timedelta
    own: Clock
    differences: ClockDifferences

    def now(self) -> datetime:
        """The time since the beginning, by the clock of the machine, after the beginning. A clock that is set back stands still."""
        return max(self.started, self.own() + self.ahead)


def compare_clocks(cluster: Cluster, store: Store, clock: Clock) -> ScanClock:
    """Begin a scan: compare the clock of its machine with those of the API server and of the database.

    Raises ClusterError and StoreError if one of them does not answer.
    """
    began = clock()
    differences = [_measure_difference(other, clock) for other in (cluster.now, store.now)]
    ahead = max([_NONE, *(difference for difference in differences if difference is not None)])
    return ScanClock(began + ahead, ahead, clock, ClockDifferences(*map(_round_to_seconds, differences)))


def _measure_difference(other: Callable[[], datetime | None], clock: Clock) -> timedelta | None:
    """The time by which another clock is ahead, None without a clock. Its answer is compared with the moment of its arrival."""
    moment = other()
    return None if moment is None else moment - clock()


def _round_to_seconds(difference: timedelta | None) -> int | None:
    return None if difference is None else round(difference.total_seconds())
