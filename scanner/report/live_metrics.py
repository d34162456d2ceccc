"""Metrics that are no facts of a scan: the newest run, the schedule, notifications, and the size that the database can reach.

A server has them for each cluster, a push for the cluster that was scanned. A report does not: the same scan gives the same report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from scanner.posture.expected_run import ExpectedRun
from scanner.report.metric_families import LIVE, Families, Samples, family_of
from scanner.report.openmetrics import unix


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run of `assay scan`."""

    at: datetime
    exit_code: int


def run_samples(run: RunEnd | None) -> dict[str, Samples]:
    """The samples about the newest run; none without a run that has ended."""
    if run is None:
        return {}
    return {
        "assay_last_run_end_timestamp_seconds": [((), unix(run.at))],
        "assay_last_run_exit_code": [((), run.exit_code)],
    }


def database_samples(*limits: int | None) -> dict[str, Samples]:
    """The sample about the size that the database can reach: the smallest limit that is known; none without one."""
    known = [limit for limit in limits if limit is not None]
    return {"assay_database_limit_bytes": [((), min(known))]} if known else {}


def notification_samples(notifications: Mapping[tuple[str, str], int]) -> dict[str, Samples]:
    """The samples about the notifications of a cluster, whose numbers are by route and state."""
    return {"assay_notifications": sorted(notifications.items())}


def expected_samples(expected: ExpectedRun | None) -> dict[str, Samples]:
    """The samples about expected runs; none without a schedule."""
    if expected is None:
        return {}
    interval = expected.interval
    return {
        "assay_expected_run_timestamp_seconds": [((), unix(expected.at))],
        "assay_schedule_interval_seconds": [((), interval.total_seconds())] if interval else [],
    }


def families_of_run(
    run: RunEnd, expected: ExpectedRun | None, cluster: str, samples: Mapping[str, Samples] | None = None
) -> Families:
    """The metrics of a run, and those of its scan if it made one; without metrics that have no sample."""
    own = {**(samples or {}), **run_samples(run), **expected_samples(expected)}
    every = (family_of(metric, own.get(metric.name, ()), cluster) for metric in LIVE)
    return Families([family for family in every if family.samples])
