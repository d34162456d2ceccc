"""The table of all metrics, and their text as `prometheus_client` writes it.

`METRICS` has name, unit, labels and help of each metric; `docs/metrics.md` shows it. Each is a gauge: the type `info` of OpenMetrics
is unknown to the text format of Prometheus, which the Pushgateway, the textfile collector and `promtool` read. The text is
OpenMetrics 1.0, which is valid in that format, too. The registry of the process, which has metrics of Python, is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from prometheus_client import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.openmetrics import exposition as openmetrics

Labels: TypeAlias = tuple[str, ...]
Samples: TypeAlias = Iterable[tuple[Labels, float]]
Lines: TypeAlias = Mapping[str, str]
"""The lines of samples, by the name of their metric."""

_END: Final = "# EOF\n"
_AT_ONCE: Final = 500
"""Samples that are written at once: the library keeps them and their text several times meanwhile."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. Every sample has the label `cluster`, unless it is `of_all` clusters, and these labels.

    `help` is one sentence without its full stop. Reports have no `live` metrics, which are no facts of a scan: a server and a push
    have them. `detailed` ones are in the format `openmetrics-detailed` alone.
    """

    name: str
    labels: Labels
    help: str
    unit: str = ""
    detailed: bool = False
    live: bool = False
    of_all: bool = False


METRICS: Final = (
    Metric("assay_build_info", ("version",), "The version of Assay that scanned"),
    Metric(
        "assay_clusters", ("state",), "Clusters in the database, by the state of their metrics", live=True, of_all=True
    ),
    Metric("assay_scans", ("state",), "Scans in the database, by state"),
    Metric("assay_scan_complete", (), "1 if the scan missed nothing within its scope, else 0"),
    Metric("assay_scan_limited", (), "1 if flags chose a part of the cluster or of the policies, else 0"),
    Metric("assay_scan_left_out", ("what",), "1 for what the user left out of all that a bound policy can match"),
    Metric("assay_scan_end_timestamp_seconds", (), "The end of the scan, in Unix time", "seconds"),
    Metric(
        "assay_last_complete_scan_timestamp_seconds", (), "The end of the newest complete scan, in Unix time", "seconds"
    ),
    Metric(
        "assay_last_whole_scan_timestamp_seconds",
        (),
        "The end of the newest complete scan that flags did not limit to a part, in Unix time",
        "seconds",
    ),
    Metric("assay_last_complete_scan_age_seconds", (), "The time since the end of the newest complete scan", "seconds"),
    Metric("assay_scan_duration_seconds", (), "The duration of the scan", "seconds"),
    Metric(
        "assay_scan_clock_difference_seconds",
        ("clock",),
        "The time by which a clock was ahead of that of the scan's machine when the scan began, negative if it was behind",
        "seconds",
    ),
    Metric(
        "assay_credentials_expiry_timestamp_seconds",
        (),
        "The end of the validity of the client certificate or the token in the kubeconfig, in Unix time",
        "seconds",
    ),
    Metric(
        "assay_token_expiry_timestamp_seconds",
        ("token",),
        "The end of the last day of an access token of the server, in Unix time",
        "seconds",
        live=True,
        of_all=True,
    ),
    Metric(
        "assay_run_recorded",
        (),
        "1 if a run of the cluster is recorded, 0 for a cluster of the fleet without one",
        live=True,
    ),
    Metric("assay_last_run_end_timestamp_seconds", (), "The end of the newest run, in Unix time", "seconds", live=True),
    Metric("assay_last_run_exit_code", (), "The exit code of the newest run, unless this run was killed", live=True),
    Metric("assay_last_run_killed", (), "1 if the process of the newest run ended without a result, else 0", live=True),
    Metric(
        "assay_expected_run_timestamp_seconds",
        (),
        "The last time at which the schedule expected a run, in Unix time",
        "seconds",
        live=True,
    ),
    Metric(
        "assay_schedule_interval_seconds",
        (),
        "The time between expected runs: the longer one of the times before and after the last expected run",
        "seconds",
        live=True,
    ),
    Metric(
        "assay_next_run_timestamp_seconds",
        (),
        "The first time after the begin of the newest run at which the schedule expects a run, in Unix time",
        "seconds",
        live=True,
    ),
    Metric("assay_coverage_ratio", (), "The share of the kinds in scope that were listed completely", "ratio"),
    Metric("assay_gaps", ("kind",), "What the scan could not examine, by kind of gap"),
    Metric("assay_objects", ("api_version", "kind"), "Objects listed"),
    Metric("assay_list_errors", ("api_version", "kind"), "1 for a kind that was not listed completely"),
    Metric("assay_checks", ("language", "policy", "outcome"), "Checks of objects, by policy and outcome"),
    Metric(
        "assay_problems",
        ("language", "policy", "severity", "action", "outcome"),
        "Open problems, by policy, strictest action and outcome",
    ),
    Metric("assay_problems_refused", ("language", "policy", "severity"), "Open problems that would be refused"),
    Metric(
        "assay_problems_pods_refused",
        ("language", "policy", "severity"),
        "Open problems of objects that would be admitted, and pods of which would be refused",
    ),
    Metric("assay_problems_new", ("language", "policy", "severity"), "Problems that began with the scan"),
    Metric("assay_findings_resolved", ("resolution",), "Findings that the scan resolved, by reason"),
    Metric("assay_waivers", ("state",), "Waivers, by state"),
    Metric(
        "assay_policy_matches_nothing",
        ("language", "policy"),
        "1 for a bound policy that matched no object, if each kind that it can match was listed",
    ),
    Metric("assay_database_size_bytes", (), "The size of the database", "bytes"),
    Metric(
        "assay_database_limit_bytes",
        (),
        "The size that the database can reach, where it is known",
        "bytes",
        live=True,
    ),
    Metric("assay_notifications", ("route", "state"), "Notifications about the cluster, by route and state", live=True),
    Metric("assay_namespace_findings", ("namespace",), "Open findings, by namespace", detailed=True),
    Metric("assay_owner_findings", ("owner",), "Open findings, by owner", detailed=True),
)
IN_REPORTS: Final = tuple(metric for metric in METRICS if not metric.live and not metric.detailed)
IN_DETAIL: Final = tuple(metric for metric in METRICS if not metric.live)
LIVE: Final = tuple(metric for metric in METRICS if not metric.detailed)
_BY_NAME: Final = {metric.name: metric for metric in METRICS}


@dataclass(frozen=True, slots=True)
class Families:
    """A collector of families that were made before."""

    families: Iterable[GaugeMetricFamily]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the families in their order."""
        return self.families


def family_of(metric: Metric, samples: Samples = (), cluster: str = "") -> GaugeMetricFamily:
    """A metric with its samples of a cluster; those of all clusters have no name of one."""
    common = {} if metric.of_all else {"cluster": cluster}
    family = GaugeMetricFamily(metric.name, f"{metric.help}.", labels=(*common, *metric.labels), unit=metric.unit)
    for values, number in samples:
        family.add_metric([printable(value) for value in (*common.values(), *values)], number)
    return family


def text(metrics: Iterable[Metric], lines_of: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """The text of some metrics, each once, with the lines of its samples; `lines_of` has them by the name of the metric."""
    for metric in metrics:
        heading: bytes = openmetrics.generate_latest(Families((family_of(metric),)))  # type: ignore[no-untyped-call] # has no types
        yield heading.decode().removesuffix(_END)
        yield from lines_of(metric.name)
    yield _END


def lines(samples: Mapping[str, Samples], cluster: str) -> Lines:
    """The lines of the samples of a cluster, which are the same in both formats."""
    return {name: "".join(_lines(_BY_NAME[name], own, cluster)) for name, own in samples.items()}


def _lines(metric: Metric, samples: Samples, cluster: str) -> Iterator[str]:
    remaining = iter(samples)
    while some := list(islice(remaining, _AT_ONCE)):
        written = generate_latest(Families((family_of(metric, some, cluster),)))
        yield written.split(b"\n", 2)[-1].decode()  # behind HELP and TYPE


def printable(text: str) -> str:
    """The value of a label: a text whose control characters, except line ends, are escapes."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == "\n" else f"\\u{ord(character):04x}" for character in text
    )
