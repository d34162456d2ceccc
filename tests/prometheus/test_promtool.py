"""promtool accepts every metric of reports, of the server and of pushes: names, units, types, labels and escapes."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from prometheus_client import generate_latest

from scanner.model.access_token import AccessToken
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.method import ClockDifferences, Method
from scanner.model.scans.register import Register
from scanner.model.scans.scan import ClusterIdentity, ScanState
from scanner.model.schedule import parse_schedule
from scanner.model.waiver import WaiverSet
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats.metric_families import IN_DETAIL, LIVE
from scanner.report.formats.openmetrics import RunEnd, document_samples, families_of_run
from scanner.store import open_store
from scanner.web.server.metrics import ClusterMetrics
from tests.posture.waivers import waiver
from tests.prometheus.programs import check
from tests.report.in_memory import ScanInMemory
from tests.report.records import FINISHED, hostile_record, large_record, partial_record, small_record
from tests.store.made import Round, clock, finding

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
ODD = 'a"b\\c\nd\u202e\x1bé'


def full_record() -> ScanInMemory:
    """A record with a sample of every metric of a report."""
    register = Register({"complete": 2, "failed": 1}, FINISHED, FINISHED, 4096)
    unmatched = Health(HealthKind.NO_OBJECT, "require-owner", "", "nothing matched")
    return replace(
        partial_record(),
        history=register,
        health=(unmatched,),
        reasons={"fixed": 1},
        method=Method(clocks=ClockDifferences(api_server=-1, database=2), credentials_until=1_800_000_000),
    )


def rendered(record: ScanInMemory, name: str) -> str:
    """The metrics of a report."""
    out = io.StringIO()
    settings = replace(DEFAULT_SETTINGS, waivers=WaiverSet((waiver(),)))
    FORMATS[name].render(document_of(record, settings), out)
    return out.getvalue()


def with_samples(text: str) -> set[str]:
    """The names of the metrics with samples."""
    return {line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")}


@pytest.mark.parametrize("name", ["openmetrics", "openmetrics-detailed"])
@pytest.mark.parametrize(
    "record", [small_record(), full_record(), hostile_record(), large_record(40, policies=4, namespaces=3)]
)
def test_a_report_is_accepted(record: ScanInMemory, name: str) -> None:
    """Also one with hostile names."""
    assert "" == check(rendered(record, name))


def test_every_metric_of_a_report_is_checked() -> None:
    """A metric without samples is left out by promtool."""
    assert {metric.name for metric in IN_DETAIL} == with_samples(rendered(full_record(), "openmetrics-detailed"))


def test_the_metrics_of_a_server_are_accepted(tmp_path: Path) -> None:
    """Of all clusters, with odd names, with and without a finished scan."""
    with open_store(f"sqlite:///{tmp_path / 'assay.db'}", clock) as store:
        Round((finding("web"), finding("api", policy="labels"))).record(store, 1)
        Round(cluster=ClusterIdentity(ODD, "odd"), state=ScanState.INCOMPLETE).record(store, 2)
        store.begin(Round(cluster=ClusterIdentity("new", "new")).start(3))
        store.plan_notifications("scan-1", ["payments"])
        store.end_run(store.begin_run("prod"), exit_code=1, scan_id="scan-1")
        store.end_run(store.begin_run("never reached"), exit_code=4)
        schedule = parse_schedule("0 2 * * *", ZoneInfo("Etc/UTC"))
        token = AccessToken(ODD, "0" * 64, NOW.date())
        text = ClusterMetrics(
            lambda: store,
            DEFAULT_SETTINGS,
            lambda _: schedule,
            members=(f"{ODD}2",),
            tokens=(token,),
            clock=lambda: NOW,
        ).text(5)

    assert "" == check(text)
    assert {metric.name for metric in LIVE if metric.live} <= with_samples(text)


def test_a_push_is_accepted() -> None:
    """Of a scan, and of a run without one."""
    run = RunEnd(NOW, 4)
    pushes = (
        families_of_run(run, {}, ODD, document_samples(document_of(full_record()))),
        families_of_run(run, {}, ODD),
    )

    assert ["", ""] == [check(generate_latest(push).decode()) for push in pushes]


def test_promtool_finds_problems() -> None:
    """So its silence has a meaning."""
    assert "" == check("# HELP assay_gaps x.\n# TYPE assay_gaps gauge\nassay_gaps 1\n")
    assert check("# HELP assay_gaps_total x.\n# TYPE assay_gaps_total gauge\nassay_gaps_total 1\n")
    assert check("# TYPE assay_build info\nassay_build_info 1\n")
    assert check("assay_gaps{a=1} 1\n")
