"""A cluster that left the file of the fleet, or was deleted, has no metrics and no alert; pages show the first, and not the second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.report.runs.document import RunExpectation, RunExpectations
from scanner.store import open_reader
from scanner.store.upkeep.deletion import delete_cluster
from scanner.web.server.metrics import ClusterMetrics
from scanner.web.views.kept import RECENT
from tests.web.fleets import NOW, fill
from tests.web.served import Served, served
from tests.web.test_metrics import families_of, samples

_OK, _MISSING = 200, 404
DAILY = RunExpectation("0 3 * * *", "Etc/UTC", timedelta(minutes=10))
MEMBERS = "prod", "stage", "partial", "planned"
FLEET = RunExpectations(DAILY, members=MEMBERS)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database in which the clusters `silent` and `failed`, and the run `unreachable`, are none of the fleet."""
    address = f"sqlite:///{tmp_path_factory.mktemp('left') / 'assay.db'}"
    fill(address)
    return address


@pytest.fixture(scope="module")
def site(url: str) -> Iterator[Served]:
    """The application with the file of the fleet."""
    with served(url, lambda: NOW, FLEET) as opened:
        yield opened


def metrics_of(url: str, fleet: RunExpectations) -> str:
    """The text of `/metrics`."""
    with open_reader(url, lambda: NOW) as reader:
        metrics = ClusterMetrics(
            lambda: reader, DEFAULT_SETTINGS, fleet.schedule_of, includes=fleet.includes, clock=lambda: NOW
        )
        return metrics.text(5)


def clusters_of(text: str) -> set[str]:
    """The values of the label `cluster`."""
    return {
        sample.labels["cluster"]
        for family in families_of(text)
        for sample in family.samples
        if family.name != "assay_clusters"
    }


def test_a_cluster_outside_of_the_fleet_has_no_metrics(url: str) -> None:
    """Nor has a run of a name that is none of the fleet's, so no alert is about them; their number is a metric."""
    text = metrics_of(url, FLEET)

    assert {"prod", "stage", "partial"} == clusters_of(text)
    assert 3 == samples(text, "assay_clusters")["left",]


def test_without_a_file_of_a_fleet_every_cluster_stays(url: str) -> None:
    """A cluster that is not scanned any more must not vanish by itself."""
    text = metrics_of(url, RunExpectations(DAILY))

    assert {"prod", "stage", "partial", "silent", "failed", "unreachable"} == clusters_of(text)
    assert 0 == samples(text, "assay_clusters")["left",]


def test_the_list_of_clusters_shows_it_last(site: Served) -> None:
    """It is neither silent nor never complete: no run of it is expected."""
    page = site.get("/")
    [row] = page.rows("silent")

    assert "Left the fleet the file of the fleet does not name the cluster" in row
    assert "the last run began" not in row
    assert "5 clusters; none is silent; 2 left the fleet;" in page.text
    assert ["failed", "silent"] == [each.split(" ")[0] for each in page.rows()][4:6]


def test_its_report_stays(site: Served) -> None:
    """The database has its history until the cluster is deleted."""
    [link] = [link for link in site.get("/").links("/clusters/silent.") if link.endswith("/latest/index.html")]

    assert _OK == site.get(link).status


def test_the_api_names_the_state(site: Served) -> None:
    """Alone."""
    text = site.get("/api/v1/clusters").text.replace(" ", "")

    assert 1 == text.count('"states":["left"]')
    assert '"silent"]' not in text


def test_its_register_expects_no_run(site: Served) -> None:
    """The runs are listed as they were recorded."""
    page = site.get(next(link for link in site.get("/").links("/clusters/silent.") if link.endswith("/runs")))

    assert "Missed" not in page.text


def test_a_deleted_cluster_leaves_pages_and_metrics(tmp_path: Path) -> None:
    """Though the server has read its scan: the others stay."""
    address = f"sqlite:///{tmp_path / 'assay.db'}"
    fill(address)
    with served(address, lambda: NOW) as site, open_reader(address, lambda: NOW) as reader:
        metrics = ClusterMetrics(lambda: reader, DEFAULT_SETTINGS, clock=lambda: NOW)
        [link] = [each for each in site.get("/").links("/clusters/silent.") if each.endswith("/latest/index.html")]
        before = site.get(link).status, clusters_of(metrics.text(5))
        delete_cluster(address, "silent", NOW)
        time.sleep(RECENT + 0.1)

        assert (_OK, {"silent"}) == (before[0], before[1] - clusters_of(metrics.text(5)))
        assert _MISSING == site.get(link).status
        assert [] == site.get("/").links("/clusters/silent.")
        assert "silent" not in site.get("/api/v1/clusters").text.replace('"silent"', "")
