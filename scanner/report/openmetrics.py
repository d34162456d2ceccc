"""The numbers of a scan as OpenMetrics text, for a textfile collector or a push gateway.

Both read the older text format of Prometheus, which has no types `info` and `stateset`: all metrics are gauges. What that format
does not know, units and the end of the file, is in lines that it takes for comments.
`METRICS` is the table of all metrics: name, type, unit, labels and help; `docs/formats.md` shows it. Numbers come from counts of
the database, never from the stream of open findings. Namespaces and owners are in a format of their own, `openmetrics-detailed`,
because a cluster can have thousands of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final, TextIO, TypeAlias

from scanner.model.scan import CoverageState, HealthKind, ScanState
from scanner.posture.waivers import WaiverState
from scanner.report.counts import FindingCounts
from scanner.report.document import Document
from scanner.report.words import owner_title, utc

Labels: TypeAlias = tuple[str, ...]
Samples: TypeAlias = Iterable[tuple[Labels, float]]

_UNKNOWN: Final = "unknown"
"""The resolution of a finding that an older version of Assay resolved."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. Every sample has the label `cluster` and these labels; `help` is one sentence without its full stop."""

    name: str
    type: str
    labels: Labels
    help: str
    unit: str = ""
    detailed: bool = False


METRICS: Final = (
    Metric("assay_build_info", "gauge", ("version",), "1 for the version of Assay that scanned"),
    Metric("assay_scans", "gauge", ("state",), "Scans in the database, by state"),
    Metric("assay_scan_complete", "gauge", (), "1 if the scan missed nothing, else 0"),
    Metric("assay_scan_end_timestamp_seconds", "gauge", (), "The end of the scan, in Unix time", "seconds"),
    Metric(
        "assay_last_complete_scan_timestamp_seconds",
        "gauge",
        (),
        "The end of the newest complete scan, in Unix time",
        "seconds",
    ),
    Metric(
        "assay_last_complete_scan_age_seconds",
        "gauge",
        (),
        "The time between the newest complete scan and the end of this one",
        "seconds",
    ),
    Metric("assay_scan_duration_seconds", "gauge", (), "The duration of the scan", "seconds"),
    Metric("assay_coverage_ratio", "gauge", (), "The share of the kinds in scope that were listed completely", "ratio"),
    Metric("assay_gaps", "gauge", ("kind",), "What the scan could not examine, by kind of gap"),
    Metric("assay_objects", "gauge", ("api_version", "kind"), "Objects listed"),
    Metric("assay_list_errors", "gauge", ("api_version", "kind"), "1 for a kind that was not listed completely"),
    Metric("assay_checks", "gauge", ("language", "policy", "outcome"), "Checks of objects, by policy and outcome"),
    Metric(
        "assay_problems",
        "gauge",
        ("language", "policy", "severity", "action", "outcome"),
        "Open problems, by policy, strictest action and outcome",
    ),
    Metric(
        "assay_problems_refused", "gauge", ("language", "policy", "severity"), "Open problems that would be refused"
    ),
    Metric("assay_problems_new", "gauge", ("language", "policy", "severity"), "Problems that began with the scan"),
    Metric("assay_findings_resolved", "gauge", ("resolution",), "Findings that the scan resolved, by reason"),
    Metric("assay_waivers", "gauge", ("state",), "Waivers, by state"),
    Metric(
        "assay_policy_matches_nothing", "gauge", ("language", "policy"), "1 for a bound policy that matched no object"
    ),
    Metric("assay_database_size_bytes", "gauge", (), "The size of the database", "bytes"),
    Metric("assay_namespace_findings", "gauge", ("namespace",), "Open findings, by namespace", detailed=True),
    Metric("assay_owner_findings", "gauge", ("owner",), "Open findings, by owner", detailed=True),
)


def render(document: Document, out: TextIO) -> None:
    """Write the metrics whose number of samples does not grow with namespaces or owners."""
    _render(document, out, detailed=False)


def render_detailed(document: Document, out: TextIO) -> None:
    """Write all metrics."""
    _render(document, out, detailed=True)


def _render(document: Document, out: TextIO, *, detailed: bool) -> None:
    samples = _samples(document)
    for metric in METRICS:
        if metric.detailed and not detailed:
            continue
        out.writelines(_lines(metric, samples[metric.name], document.provenance.cluster.name))
    out.write("# EOF\n")


def _lines(metric: Metric, samples: Samples, cluster: str) -> Iterator[str]:
    yield f"# TYPE {metric.name} {metric.type}\n"
    if metric.unit:
        yield f"# UNIT {metric.name} {metric.unit}\n"
    yield f"# HELP {metric.name} {metric.help}.\n"
    for values, number in samples:
        pairs = zip(("cluster", *metric.labels), (cluster, *values), strict=True)
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
        yield f"{metric.name}{{{labels}}} {_number(number)}\n"


def _escaped(value: str) -> str:
    return "".join(
        character if character.isprintable() or character == "\n" else f"\\u{ord(character):04x}" for character in value
    ).translate(_ESCAPES)


def _number(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)


def _samples(document: Document) -> Mapping[str, Samples]:
    provenance, register, coverage = document.provenance, document.register(), document.coverage
    end = provenance.finished_at or provenance.started_at
    complete = register.last_complete
    return {
        "assay_build_info": [((provenance.tool_version,), 1)],
        "assay_scans": [((str(state),), register.scans.get(state, 0)) for state in ScanState],
        "assay_scan_complete": [((), int(document.complete))],
        "assay_scan_end_timestamp_seconds": [((), _unix(end))],
        "assay_last_complete_scan_timestamp_seconds": [((), _unix(complete))] if complete else [],
        "assay_last_complete_scan_age_seconds": [((), max(round(_unix(end) - _unix(complete), 3), 0))]
        if complete
        else [],
        "assay_scan_duration_seconds": [((), round(_unix(end) - _unix(provenance.started_at), 3))],
        "assay_coverage_ratio": _ratio(coverage.states),
        "assay_gaps": _counted(str(gap.kind) for gap in document.gaps),
        "assay_objects": [((line.api_version, line.kind), line.objects) for line in coverage.kinds],
        "assay_list_errors": [
            ((line.api_version, line.kind), 1)
            for line in coverage.kinds
            if line.state not in (CoverageState.LISTED, CoverageState.SKIPPED)
        ],
        "assay_checks": list(_checks(document)),
        **_problems(document),
        "assay_findings_resolved": _counted(stored.resolution or _UNKNOWN for stored in document.resolved()),
        "assay_waivers": _waivers(document),
        "assay_policy_matches_nothing": [(key, 1) for key in _unmatched(document)],
        "assay_database_size_bytes": [((), register.database_bytes)] if register.database_bytes else [],
        "assay_namespace_findings": [((each.namespace,), _in_force(each.findings)) for each in document.namespaces],
        "assay_owner_findings": [((owner_title(each.owner),), _in_force(each.findings)) for each in document.owners],
    }


def _in_force(findings: FindingCounts) -> int:
    """The number of findings without previews."""
    return findings.total - findings.preview


def _unix(moment: datetime) -> float:
    return utc(moment).timestamp()


def _ratio(states: Mapping[str, int]) -> Samples:
    """The share of listed kinds; none without kinds, because 1 would look like a scan of everything."""
    asked = sum(states.values()) - states["skipped"]
    return [((), states["listed"] / asked)] if asked else []


def _counted(names: Iterable[str]) -> Samples:
    return [((name,), number) for name, number in sorted(Counter(names).items())]


def _checks(document: Document) -> Iterator[tuple[Labels, float]]:
    """The counts of outcomes that occur, without previews."""
    for section in document.policies:
        counts = document.in_force(section)
        for field in fields(counts):
            if number := getattr(counts, field.name):
                yield (*section.key, _camel(field.name)), number


def _camel(name: str) -> str:
    """The name of an outcome as in JSON."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _problems(document: Document) -> dict[str, Samples]:
    triage, groups = document.triage, document.groups()
    refused, new = Counter[Labels](), Counter[Labels]()
    for group in groups:
        policy = group.language, group.policy
        refused[(*policy, str(triage.severity(policy)))] += group.refused
        new[(*policy, str(triage.severity(policy)))] += group.new
    return {
        "assay_problems": [
            (
                (
                    group.language,
                    group.policy,
                    str(triage.severity((group.language, group.policy))),
                    group.action,
                    group.outcome,
                ),
                group.number,
            )
            for group in groups
        ],
        "assay_problems_refused": sorted(refused.items()),
        "assay_problems_new": sorted(new.items()),
    }


def _waivers(document: Document) -> Samples:
    """Every state, once waivers are given: an absent metric is not the same as 0."""
    section = document.waivers
    if section is None or not section.given:
        return []
    return [((str(state),), section.states[state]) for state in WaiverState]


def _unmatched(document: Document) -> list[Labels]:
    kinds = (HealthKind.NO_KIND, HealthKind.NO_OBJECT)
    return sorted({note.policy_key for note in document.health if note.kind in kinds})
