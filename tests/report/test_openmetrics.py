"""The numbers of a scan as OpenMetrics, as Prometheus' parser reads them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import Metric as MetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as text_families
from syrupy.assertion import SnapshotAssertion

from scanner.model.scans.register import Register
from scanner.model.scans.scan import ScanState, Scope
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats.metric_families import IN_DETAIL, METRICS, Metric
from tests.report.in_memory import ScanInMemory

from .records import FINISHED, hostile_record, large_record, partial_record, previewed, scan, small_record

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def rendered(record: ScanInMemory, name: str = "openmetrics") -> str:
    """The metrics of a scan."""
    out = io.StringIO()
    FORMATS[name].render(document_of(record), out)
    return out.getvalue()


def parsed(text: str) -> Iterator[MetricFamily]:
    """The metrics of a text."""
    families: Iterator[MetricFamily] = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return families


def text_format(text: str) -> Iterator[MetricFamily]:
    """The metrics of a text, read as the older format of Prometheus."""
    yield from text_families(text)


def samples(text: str, name: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric by the values of its labels, without that of the cluster."""
    [metric] = (metric for metric in METRICS if metric.name == name)
    [family] = (family for family in parsed(text) if family.name == name)
    return {tuple(sample.labels[label] for label in metric.labels): sample.value for sample in family.samples}


def test_metrics_of_a_small_scan(snapshot: SnapshotAssertion) -> None:
    """The metrics of a small scan equal the recorded ones."""
    assert rendered(partial_record(), "openmetrics-detailed") == snapshot


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_every_metric_is_read_with_its_type_and_labels(record: ScanInMemory) -> None:
    """The table of metrics tells the truth about what is written."""
    families = list(parsed(rendered(record, "openmetrics-detailed")))

    assert [(metric.name, "gauge") for metric in IN_DETAIL] == [(family.name, family.type) for family in families]
    for metric, family in zip(IN_DETAIL, families, strict=True):
        assert [] == [sample for sample in family.samples if {"cluster", *metric.labels} != sample.labels.keys()]


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_collectors_of_text_files_read_every_metric(record: ScanInMemory) -> None:
    """The node exporter and push gateways know the older text format alone, and refuse a file with a type that it lacks."""
    text = rendered(record, "openmetrics-detailed")
    families = {family.name: family for family in text_format(text)}

    assert {family.name: len(family.samples) for family in parsed(text) if family.samples} == {
        name: len(family.samples) for name, family in families.items() if family.samples
    }


def test_the_documentation_has_every_metric() -> None:
    """Name, type, labels and meaning of each stand in one table."""
    shown = re.findall(r"^\| `(assay_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", PAGE.read_text("utf-8"), re.MULTILINE)

    assert [
        (metric.name, "gauge", ", ".join(f"`{label}`" for label in metric.labels), metric.help) for metric in METRICS
    ] == shown


@pytest.mark.parametrize("name", ["openmetrics", "openmetrics-detailed"])
def test_a_report_has_no_live_metrics(name: str) -> None:
    """The same scan gives the same report: the end of its run and the schedule are no part of it."""
    text = rendered(small_record(), name)

    assert [] == [metric.name for metric in METRICS if metric.live and f" {metric.name} " in text]


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric.detailed], ids=lambda metric: metric.name)
def test_names_of_namespaces_and_owners_are_for_those_who_ask(metric: Metric) -> None:
    """Their number has no limit."""
    assert f"# TYPE {metric.name} " not in rendered(small_record())
    assert f"# TYPE {metric.name} " in rendered(small_record(), "openmetrics-detailed")


def test_the_number_of_lines_does_not_grow_with_findings() -> None:
    """Ten times as many findings of the same policies give as many samples."""
    few, many = (rendered(large_record(number, policies=4, namespaces=3)) for number in (40, 400))

    assert few.count("\n") == many.count("\n")


def test_problems_are_counted_by_action_and_outcome() -> None:
    """Every open problem is in one sample."""
    found = samples(rendered(small_record()), "assay_problems")

    assert {
        ("ValidatingAdmissionPolicy", "max-replicas", "medium", "Warn", "errored"): 1,
        ("ValidatingAdmissionPolicy", "max-replicas", "medium", "Warn", "violated"): 1,
        ("ValidatingAdmissionPolicy", "require-limits", "medium", "Deny", "violated"): 3,
        ("ValidatingAdmissionPolicy", "require-owner", "medium", "Audit", "violated"): 1,
    } == found


def test_the_age_of_the_last_complete_scan_is_that_at_the_end_of_this_one() -> None:
    """An incomplete scan does not make a cluster look fresh."""
    register = Register({"complete": 3, "incomplete": 1}, FINISHED - timedelta(hours=2), None, 4096)
    text = rendered(replace(partial_record(), history=register))

    assert {(): 7200} == samples(text, "assay_last_complete_scan_age_seconds")
    assert {("running",): 0, ("complete",): 3, ("incomplete",): 1, ("failed",): 0} == samples(text, "assay_scans")


def test_resolved_findings_are_counted_by_reason() -> None:
    """By the database, where there is one, else from the stream."""
    counted = replace(small_record(), reasons={"fixed": 7, "objectGone": 2})

    assert {("fixed",): 7, ("objectGone",): 2} == samples(rendered(counted), "assay_findings_resolved")
    assert {("unknown",): 2} == samples(rendered(small_record()), "assay_findings_resolved")


@pytest.mark.parametrize(
    ("scope", "limited"),
    [
        (Scope(), 0),
        (Scope(namespaces=("shop",)), 1),
        (Scope(kinds=("Pod",)), 1),
        (Scope(skip_kinds=("secrets",)), 0),
        (Scope(exclude_namespaces=("kube-*",)), 0),
    ],
)
def test_a_limited_scan_is_marked(scope: Scope, limited: int) -> None:
    """Its numbers are those of a part of the cluster. The chart leaves out Secrets in each scan: that limits none."""
    record = small_record()
    text = rendered(replace(record, scan=replace(record.scan, scope=scope)))

    assert {(): limited} == samples(text, "assay_scan_limited")


def test_a_cluster_without_a_complete_scan_has_no_age() -> None:
    """0 would be an alert that never fires."""
    text = rendered(replace(small_record(), scan=scan(ScanState.INCOMPLETE)))

    assert {} == samples(text, "assay_last_complete_scan_age_seconds")


def test_a_scan_without_kinds_has_no_coverage() -> None:
    """1 would look like a scan of everything."""
    text = rendered(replace(small_record(), coverage=()))

    assert {} == samples(text, "assay_coverage_ratio")


def test_previews_are_in_no_number() -> None:
    """An alert on violations must not fire for a policy that is not bound."""
    text = rendered(previewed(), "openmetrics-detailed")

    assert {} == samples(text, "assay_checks") == samples(text, "assay_problems")
    assert {0} == set(samples(text, "assay_namespace_findings").values())
