"""The rows of the list of clusters: those that have gone silent first, then those without a complete scan, then the worst."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scanner.model.scans.register import DayCounts
from scanner.model.scans.scan import ScanState
from scanner.posture.run_register import DAILY, FACTOR, ClusterState, cluster_states, write_duration
from scanner.posture.severity import Severity
from scanner.report.runs.document import RunExpectations
from scanner.report.runs.trend import TrendPicture, trend_of
from scanner.report.text.numbers import plural
from scanner.store.catalog.clusters import StoredCluster
from scanner.store.catalog.every_cluster import ClusterScans, NewestScan
from scanner.web.views.fleet_counts import Counted, NotCounted
from scanner.web.views.scan_counts import CountedScan

STATE_TITLES: Final = {
    ClusterState.SILENT: "Silent",
    ClusterState.NEVER_COMPLETE: "Never complete",
    ClusterState.LEFT: "Left the fleet",
}
TREND_DAYS: Final = 30
"""The days of the small trend of a cluster."""
_STATES: Final = {
    ScanState.COMPLETE: "Complete",
    ScanState.INCOMPLETE: "Incomplete",
    ScanState.FAILED: "Failed",
    ScanState.RUNNING: "Running",
}


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A cluster. `key` names it in paths.

    `state` is that of the newest scan, `states` are those of the cluster, each with the reason. `counts` are the numbers of the newest
    scan with findings; None if there is none, and then, or while they are not counted, `why_not` is the reason.
    """

    key: str
    cluster: StoredCluster
    newest: NewestScan | None
    usable: NewestScan | None
    complete: NewestScan | None
    age: timedelta | None
    last_run: datetime | None
    states: Mapping[ClusterState, str]
    counts: CountedScan | None
    why_not: str

    @property
    def state(self) -> str:
        """The state of the newest scan. A complete scan that missed something is incomplete, as in its report."""
        if self.newest is None:
            return "No scan"
        if self.newest == self.usable and self.counts is not None and not self.counts.complete:
            return "Incomplete"
        return _STATES[self.newest.state]

    @property
    def is_newest(self) -> bool:
        """Return whether the numbers are those of the newest scan."""
        return self.newest is not None and self.newest == self.usable

    @property
    def age_words(self) -> str:
        """The time since the end of the last complete scan: `2 d 3 h`."""
        return write_duration(self.age) if self.age is not None else ""

    @property
    def days(self) -> tuple[DayCounts, ...]:
        """The last recorded days."""
        return self.counts.days[-TREND_DAYS:] if self.counts else ()

    @property
    def trend(self) -> TrendPicture | None:
        """The picture of these days; None for fewer than two."""
        return trend_of(self.days)

    @property
    def order(self) -> tuple[object, ...]:
        """The place of the row: silent clusters, the longest silence first; never complete ones; those without numbers; then the worst.

        Clusters that left the fleet are the last.
        """
        if ClusterState.LEFT in self.states:
            return 4, self.cluster.name
        if ClusterState.SILENT in self.states:
            return 0, self.last_run.timestamp() if self.last_run else float("-inf"), self.cluster.name
        if ClusterState.NEVER_COMPLETE in self.states:
            return 1, self.cluster.name
        if self.counts is None:
            return 2, self.cluster.name
        worst = (-self.counts.severities[severity].problems for severity in Severity)
        return 3, -self.counts.totals.refused, *worst, self.cluster.name


def fleet_row(
    key: str, scans: ClusterScans, counted: Counted | None, now: datetime, expectations: RunExpectations
) -> FleetRow:
    """The row of a cluster with the numbers of its newest scan with findings; None if it has no such scan."""
    counts, why_not = _split_counted(counted)
    complete = scans.complete
    return FleetRow(
        key=key,
        cluster=scans.cluster,
        newest=scans.newest,
        usable=scans.usable,
        complete=complete,
        age=max(timedelta(), now - complete.ended) if complete else None,
        last_run=scans.last_run,
        states=states_of(scans, now, expectations),
        counts=counts,
        why_not=why_not,
    )


def _split_counted(counted: Counted | None) -> tuple[CountedScan | None, str]:
    if counted is None:
        return None, "no scan of this cluster has finished"
    if isinstance(counted, NotCounted):
        return None, counted.why
    return counted, ""


def states_of(scans: ClusterScans, now: datetime, expectations: RunExpectations) -> Mapping[ClusterState, str]:
    """The states of a cluster with their reasons."""
    if not expectations.includes(scans.cluster.name):
        return {ClusterState.LEFT: "the file of the fleet does not name the cluster"}
    last, schedule = scans.last_run, expectations.schedule_of(scans.cluster.name)
    reasons = {
        ClusterState.SILENT: f"the last run began {write_duration(now - last)} ago" if last else "no run is recorded",
        ClusterState.NEVER_COMPLETE: "no scan of this cluster has been complete",
    }
    states = cluster_states(last, now, schedule, has_complete_scan=scans.complete is not None)
    return {state: reasons[state] for state in states}


def silence_rule(expectations: RunExpectations) -> str:
    """The sentences that state when a cluster is silent, and when it is never complete."""
    return f"{_silence(expectations)} A cluster is never complete while none of its scans has been complete."


def _silence(expectations: RunExpectations) -> str:
    expectation, with_schedule = expectations.others, len(expectations.of_clusters)
    if with_schedule:
        others = f"others by {expectation.schedule} ({expectation.time_zone})" if expectation else "others daily"
        return (
            f"{plural(with_schedule, 'cluster')} {'has a schedule of its' if with_schedule == 1 else 'have schedules of their'} own, {others}: a cluster "
            f"is silent when its last run began more than {FACTOR:g} times the interval of its schedule ago."
        )
    if expectation is None:
        hours = int(DAILY.total_seconds() * FACTOR / 3600)
        return (
            f"No schedule is configured: a cluster is silent when its last run began more than {hours} hours ago, "
            f"{FACTOR:g} times a day."
        )
    return (
        f"Scans are expected by the schedule {expectation.schedule} ({expectation.time_zone}): a cluster is silent when its last "
        f"run began more than {FACTOR:g} times the interval of the schedule ago."
    )


def fleet_sentence(rows: Iterable[FleetRow]) -> str:
    """The numbers of clusters: how many are silent or never complete, how many have numbers, and the sums of these."""
    return "; ".join(_parts(list(rows)))


def _parts(rows: list[FleetRow]) -> Iterator[str]:
    number = len(rows)
    yield f"{number:,} cluster{'' if number == 1 else 's'}"
    silent, never, gone = (sum(state in row.states for row in rows) for state in ClusterState)
    yield f"{silent:,} silent" if silent else "none is silent"
    if never:
        yield f"{never:,} never complete"
    if gone:
        yield f"{gone:,} left the fleet"
    counted = [row.counts for row in rows if row.counts]
    left = number - len(counted)
    where = f" in {len(counted):,} of them" if left else " in all of them" if number > 1 else ""
    refused, opened = (sum(getattr(each.totals, name) for each in counted) for name in ("refused", "open"))
    yield f"{refused:,} of {opened:,} open problems would be refused{where}"
    if left:
        yield f"{left:,} without numbers"
