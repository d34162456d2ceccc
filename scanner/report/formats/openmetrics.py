"""The numbers of a scan as OpenMetrics text, for a textfile collector, a Pushgateway and `assay serve`.

Numbers come from counts of the database, never from the stream of findings. Namespaces and owners are in a format of their own,
`openmetrics-detailed`, because a cluster can have thousands of them. `metric_families` has the table of the metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final, TextIO

from scanner.model.access_token import AccessToken
from scanner.model.scans.method import ClockDifferences
from scanner.model.scans.register import Register
from scanner.model.scans.scan import CoverageState, ScanState
from scanner.posture.run_register import ExpectedRun
from scanner.posture.severity import Severity
from scanner.posture.waivers.waivers import WaiverState
from scanner.report.document.counts import FindingCounts
from scanner.report.document.document import Document
from scanner.report.document.scan_numbers import ScanNumbers, numbers_in
from scanner.report.formats.metric_families import (
    IN_DETAIL,
    IN_REPORTS,
    LIVE,
    Families,
    Labels,
    Metric,
    Samples,
    family_of,
    lines,
    text,
)
from scanner.report.text.json_text import camel
from scanner.report.text.names import owner_title
from scanner.report.text.times import utc

_UNKNOWN: Final = "unknown"
"""The resolution of a finding that an older version of Assay resolved."""


def render(document: Document, out: TextIO) -> None:
    """Write the metrics whose number of samples does not grow with namespaces or owners."""
    _render(document, out, IN_REPORTS)


def render_detailed(document: Document, out: TextIO) -> None:
    """Write all metrics of a report."""
    _render(document, out, IN_DETAIL)


def _render(document: Document, out: TextIO, metrics: tuple[Metric, ...]) -> None:
    lines_of_scan = lines({**document_samples(document), **_make_detailed(document)}, document.provenance.cluster.name)
    out.writelines(text(metrics, lambda name: (lines_of_scan[name],)))


def document_samples(document: Document) -> dict[str, Samples]:
    """The samples of a report, without those about namespaces and owners."""
    numbers = numbers_in(document)
    return {**scan_samples(numbers), **register_samples(document.stored.register(), numbers.ended_at)}


def register_samples(register: Register, moment: datetime) -> dict[str, Samples]:
    """The samples about the scans of a cluster and about the database, as of a moment."""
    complete, size = register.last_complete, register.database_bytes
    return {
        "assay_scans": [((str(state),), register.scans.get(state, 0)) for state in ScanState],
        "assay_last_complete_scan_timestamp_seconds": [((), unix(complete))] if complete else [],
        "assay_last_whole_scan_timestamp_seconds": [((), unix(register.last_whole))] if register.last_whole else [],
        "assay_last_complete_scan_age_seconds": [((), max(round(unix(moment) - unix(complete), 3), 0))]
        if complete
        else [],
        "assay_database_size_bytes": [((), size)] if size else [],
    }


def scan_samples(numbers: ScanNumbers) -> dict[str, Samples]:
    """The samples about a scan alone."""
    coverage = numbers.coverage
    return {
        "assay_build_info": [((numbers.tool_version,), 1)],
        "assay_scan_complete": [((), int(numbers.complete))],
        "assay_scan_limited": [((), int(numbers.limited))],
        "assay_scan_left_out": [((part,), 1) for part in numbers.left_out],
        "assay_scan_end_timestamp_seconds": [((), unix(numbers.ended_at))],
        "assay_scan_duration_seconds": [((), round(unix(numbers.ended_at) - unix(numbers.started_at), 3))],
        "assay_scan_clock_difference_seconds": _clocks(numbers.clocks),
        "assay_credentials_expiry_timestamp_seconds": [((), numbers.credentials_until)]
        if numbers.credentials_until is not None
        else [],
        "assay_coverage_ratio": _ratio(coverage.states),
        "assay_gaps": [
            ((kind,), number) for kind, number in sorted(Counter(str(gap.kind) for gap in numbers.gaps).items())
        ],
        "assay_objects": [((line.api_version, line.kind), line.objects) for line in coverage.kinds],
        "assay_list_errors": [
            ((line.api_version, line.kind), 1)
            for line in coverage.kinds
            if line.state not in (CoverageState.LISTED, CoverageState.SKIPPED)
        ],
        "assay_checks": list(_checks(numbers)),
        **_problems(numbers),
        "assay_findings_resolved": [
            ((name or _UNKNOWN,), number) for name, number in sorted(numbers.resolutions.items())
        ],
        "assay_waivers": _waivers(numbers),
        "assay_policy_matches_nothing": [(key, 1) for key in sorted(numbers.unmatched)],
    }


def _make_detailed(document: Document) -> dict[str, Samples]:
    return {
        "assay_namespace_findings": [
            ((each.namespace,), _count_in_force(each.findings)) for each in document.namespaces
        ],
        "assay_owner_findings": [
            ((owner_title(each.owner),), _count_in_force(each.findings)) for each in document.owners
        ],
    }


def _count_in_force(findings: FindingCounts) -> int:
    """The number of findings without previews."""
    return findings.total - findings.preview


def unix(moment: datetime) -> float:
    """A moment in Unix time."""
    return utc(moment).timestamp()


def _clocks(clocks: ClockDifferences) -> Samples:
    """The differences of the clocks that the scan had besides that of its machine."""
    named = (("apiServer", clocks.api_server), ("database", clocks.database))
    return [((name,), seconds) for name, seconds in named if seconds is not None]


def _ratio(states: Mapping[str, int]) -> Samples:
    """The share of listed kinds; none without kinds, because 1 would look like a scan of everything."""
    in_scope = sum(states.values()) - states["skipped"]
    return [((), states["listed"] / in_scope)] if in_scope else []


def _checks(numbers: ScanNumbers) -> Iterator[tuple[Labels, float]]:
    """The counts of outcomes that occur, without previews."""
    for (language, policy), counts in sorted(numbers.counts.items(), key=lambda item: item[0][::-1]):
        for field in fields(counts):
            if number := getattr(counts, field.name):
                yield (language, policy, camel(field.name)), number


def _problems(numbers: ScanNumbers) -> dict[str, Samples]:
    problems: list[tuple[Labels, float]] = []
    refused, pods, new = Counter[Labels](), Counter[Labels](), Counter[Labels]()
    for group in numbers.groups:
        labels = group.language, group.policy, str(Severity.of_rank(group.rank))
        problems.append(((*labels, group.action, group.outcome), group.number))
        refused[labels] += group.refused
        pods[labels] += group.pods_refused
        new[labels] += group.new
    return {
        "assay_problems": problems,
        "assay_problems_refused": sorted(refused.items()),
        "assay_problems_pods_refused": sorted(pods.items()),
        "assay_problems_new": sorted(new.items()),
    }


def _waivers(numbers: ScanNumbers) -> Samples:
    """Every state, once waivers are given: an absent metric is not the same as 0."""
    section = numbers.waivers
    if section is None or not section.given:
        return []
    return [((str(state),), section.states[state]) for state in WaiverState]


# Metrics that are no facts of a scan: the newest run, the schedule, notifications, and the size that the database can
# reach.
#
# A server has them for each cluster, a push for the cluster that was scanned. A report does not: the same scan gives
# the same report.


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run of `assay scan`, without an exit code if its process was killed."""

    at: datetime
    exit_code: int | None


_RECORDED: Final = "assay_run_recorded"


def run_samples(run: RunEnd | None) -> dict[str, Samples]:
    """The samples about the newest run, None if no run has ended."""
    if run is None:
        return {_RECORDED: [((), 1)]}
    return {
        _RECORDED: [((), 1)],
        "assay_last_run_end_timestamp_seconds": [((), unix(run.at))],
        "assay_last_run_exit_code": [] if run.exit_code is None else [((), run.exit_code)],
        "assay_last_run_killed": [((), int(run.exit_code is None))],
    }


def unrecorded_samples() -> dict[str, Samples]:
    """The samples about a cluster of a fleet without any run."""
    return {_RECORDED: [((), 0)]}


def token_samples(tokens: Iterable[AccessToken]) -> dict[str, Samples]:
    """The samples about the access tokens of a server."""
    return {
        "assay_token_expiry_timestamp_seconds": [((token.name,), unix(end)) for token in tokens if (end := token.end)]
    }


def database_samples(*limits: int | None) -> dict[str, Samples]:
    """The sample about the size that the database can reach: the smallest limit that is known; none without one."""
    known = [limit for limit in limits if limit is not None]
    return {"assay_database_limit_bytes": [((), min(known))]} if known else {}


def notification_samples(notifications: Mapping[tuple[str, str], int]) -> dict[str, Samples]:
    """The samples about the notifications of a cluster, whose numbers are by route and state."""
    return {"assay_notifications": sorted(notifications.items())}


def expected_samples(expected: ExpectedRun | None, following: datetime | None = None) -> dict[str, Samples]:
    """The samples about expected runs; none without a schedule. `following` is the first time after the newest run."""
    interval = expected.interval if expected else None
    return {
        "assay_expected_run_timestamp_seconds": [((), unix(expected.at))] if expected else [],
        "assay_schedule_interval_seconds": [((), interval.total_seconds())] if interval else [],
        "assay_next_run_timestamp_seconds": [((), unix(following))] if following else [],
    }


def families_of_run(
    run: RunEnd, expected: Mapping[str, Samples], cluster: str, samples: Mapping[str, Samples] | None = None
) -> Families:
    """The metrics of a run, of `expected` runs, and of its scan if it made one; without metrics that have no sample."""
    samples_by_name = {**(samples or {}), **run_samples(run), **expected}
    every = (family_of(metric, samples_by_name.get(metric.name, ()), cluster) for metric in LIVE)
    return Families([family for family in every if family.samples])
