"""The clock of a real API server dates a scan of a machine whose clock is behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from scanner.cluster.live.cluster import LiveCluster
from scanner.model.json import dig
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import open_store
from tests.cli.conftest import Assay
from tests.integration.apiserver import ApiServer

LATE = timedelta(hours=3)
SOON = timedelta(minutes=1)


def test_the_clock_of_the_api_server_dates_a_scan_of_a_machine_that_is_behind(
    api_server: ApiServer, tmp_path: Path
) -> None:
    """The next scan, of a machine that is right, follows; the difference is recorded."""
    cluster = LiveCluster(kubeconfig=str(api_server.kubeconfig))
    with open_store(str(tmp_path / "assay.db")) as store:
        behind = run(cluster, store, Options(), scan_id="behind", clock=lambda: datetime.now(UTC) - LATE)
        right = run(cluster, store, Options(), scan_id="right", clock=lambda: datetime.now(UTC))
        methods = [store.read_scan(scan.id).method for scan in (behind, right)]

    assert SOON > abs(datetime.now(UTC) - behind.started_at)
    assert behind.finished_at
    assert behind.finished_at < right.started_at + timedelta(seconds=1)
    assert [True, False] == [method.clocks.differ for method in methods if method]


def test_a_scan_records_the_difference_from_the_clock_of_its_api_server(api_server: ApiServer, assay: Assay) -> None:
    """Both run on one machine, and the API server tells whole seconds."""
    ran = assay("scan", "--kubeconfig", api_server.kubeconfig, "--allow-empty", "-o", "json")
    ahead = dig(ran.report, "method", "clocks", "apiServer")
    assert isinstance(ahead, int)
    assert -60 < ahead <= 0
    assert dig(ran.report, "method", "clocks", "database") is None
