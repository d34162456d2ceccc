"""Pages and the API follow a history that is renamed while they are served."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.store import open_reader
from scanner.store.upkeep.renaming import rename_cluster
from scanner.web.server.metrics import ClusterMetrics
from scanner.web.views.kept import RECENT
from tests.web.fleets import NOW, fill
from tests.web.served import Served, served

_OK, _MISSING = 200, 404


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The application over a database whose cluster `prod` was renamed after each page had been read."""
    url = f"sqlite:///{tmp_path_factory.mktemp('renamed') / 'assay.db'}"
    fill(url)
    with served(url, lambda: NOW) as opened:
        [old] = [link for link in opened.get("/").links("/clusters/prod.") if link.endswith("/latest/index.html")]
        for path in (old, old.replace("index.html", "findings.html"), "/policies", "/api/v1/clusters"):
            assert _OK == opened.get(path).status
        rename_cluster(url, "prod", "production", NOW)
        time.sleep(RECENT + 0.1)
        yield opened


def _path(site: Served) -> str:
    """The path of the renamed cluster."""
    return next(link for link in site.get("/").links("/clusters/production.") if link.endswith("/latest/index.html"))


def test_the_list_of_clusters_and_the_report_have_the_new_name(site: Served) -> None:
    """The same scan was read under the old name a moment ago."""
    page = site.get(_path(site))

    assert "production" in page.text
    assert ">prod<" not in page.text
    assert ["production"] == [row.split(" ")[0] for row in site.get("/").rows("prod")]


def test_the_api_has_the_new_name(site: Served) -> None:
    """Of the cluster and of its newest scan."""
    text = site.get("/api/v1/clusters").text

    assert '"name":"production"' in text.replace(" ", "")
    assert '"name":"prod"' not in text.replace(" ", "")


def test_the_runs_are_under_the_new_name(site: Served) -> None:
    """Those of before, too."""
    page = site.get(_path(site).replace("/latest/index.html", "/runs"))

    assert "Runs of production" == page.heading
    assert "2 runs since" in page.text


def test_the_metrics_have_the_new_name(tmp_path: Path) -> None:
    """As the label of the cluster, also of lines that were made before."""
    url = f"sqlite:///{tmp_path / 'assay.db'}"
    fill(url)
    with open_reader(url, lambda: NOW) as reader:
        metrics = ClusterMetrics(lambda: reader, DEFAULT_SETTINGS, clock=lambda: NOW)
        before = metrics.text(60)
        rename_cluster(url, "prod", "production", NOW)
        after = metrics.text(60)

    assert before.count('cluster="prod"') == after.count('cluster="production"') > 0
    assert 0 == after.count('cluster="prod"')
