"""The metrics of a push: those of the scan, of its run and of the schedule."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from scanner.model.scans.register import Register
from scanner.posture.run_register import ExpectedRun
from scanner.report.document.document import document_of
from scanner.report.formats.metric_families import Families
from scanner.report.formats.openmetrics import RunEnd, document_samples, expected_samples, families_of_run

from .records import FINISHED, small_record

NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)
EXPECTED = ExpectedRun(NOW - timedelta(hours=1), NOW + timedelta(hours=23), timedelta(days=1))


def values(metrics: Families) -> dict[str, float]:
    """The samples without labels besides `cluster`, by name."""
    samples = [sample for family in metrics.collect() for sample in family.samples]
    return {sample.name: sample.value for sample in samples if ["cluster"] == list(sample.labels)}


def test_a_push_of_a_scan_has_its_run_and_the_schedule() -> None:
    """Beside the metrics of the report."""
    record = replace(small_record(), history=Register({"complete": 1}, FINISHED))
    samples = document_samples(document_of(record))
    found = values(families_of_run(RunEnd(NOW, 1), expected_samples(EXPECTED, EXPECTED.following), "harbour", samples))

    assert {
        "assay_last_run_exit_code": 1,
        "assay_last_run_end_timestamp_seconds": NOW.timestamp(),
        "assay_expected_run_timestamp_seconds": NOW.timestamp() - 3600,
        "assay_schedule_interval_seconds": 86400,
        "assay_next_run_timestamp_seconds": NOW.timestamp() + 23 * 3600,
        "assay_last_complete_scan_timestamp_seconds": FINISHED.timestamp(),
        "assay_scan_complete": 1,
    }.items() <= found.items()


def test_a_push_without_a_scan_names_only_its_run() -> None:
    """Sent with POST, it leaves all other metrics of the cluster as they are."""
    metrics = families_of_run(RunEnd(NOW, 4), {}, "harbour")

    assert {
        "assay_run_recorded": 1,
        "assay_last_run_exit_code": 4,
        "assay_last_run_end_timestamp_seconds": NOW.timestamp(),
        "assay_last_run_killed": 0,
    } == values(metrics)
    assert 4 == len(list(metrics.collect()))
