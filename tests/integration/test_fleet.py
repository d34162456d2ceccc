"""A fleet of one cluster that answers and one that does not, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Assay
from tests.integration import examples
from tests.integration.apiserver import ApiServer, running
from tests.integration.manifests import apply

AWAY = {"clusters": [{"name": "away", "cluster": {"server": "https://127.0.0.1:1"}}], "users": []}
AWAY_KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    **AWAY,
    "contexts": [{"name": "away", "context": {"cluster": "away"}}],
    "current-context": "away",
}


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with the example cluster and its policies."""
    with running(assets, tmp_path_factory.mktemp("fleet")) as server:
        apply(server, [*examples.objects("after"), *examples.policies()])
        yield server


@pytest.fixture
def fleet(server: ApiServer, tmp_path: Path) -> Path:
    """A file with that server and one that is away."""
    (tmp_path / "away").write_text(json.dumps(AWAY_KUBECONFIG))
    members = [{"name": "near", "kubeconfig": str(server.kubeconfig)}, {"name": "away", "kubeconfig": "away"}]
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump({"clusters": members}))
    return file


def runs(assay: Assay) -> dict[str, tuple[str, str]]:
    """The state and the reason of the run of each cluster."""
    entries: list[dict[str, Any]] = json.loads(assay("runs", "--db", "assay.db", "-o", "json").stdout)["runs"]
    return {entry["run"]["name"]: (entry["state"], entry["run"]["reason"]) for entry in entries}


def test_every_cluster_is_a_run_on_one_machine(fleet: Path, assay: Assay) -> None:
    """The one that is away keeps the other one from nothing, and decides the exit code."""
    ran = assay("scan", "--fleet", fleet, "--parallel", "2", "--db", "assay.db", "-q")
    lines = ran.stdout.decode().splitlines()
    recorded = runs(assay)

    assert 4 == ran.code
    assert lines[1].startswith("near     0     Complete: ")
    assert "would be refused" in lines[1]
    assert ("complete", "") == recorded["near"]
    assert "failed" == recorded["away"][0]
    assert lines[2].endswith(recorded["away"][1])


def test_every_index_is_a_run_of_its_own(fleet: Path, assay: Assay) -> None:
    """As the pods of an Indexed Job."""
    codes = [assay("scan", "--fleet", fleet, "--index", index, "--db", "assay.db", "-q").code for index in "01"]

    assert [0, 4] == codes
    assert ["complete", "failed"] == [runs(assay)[name][0] for name in ("near", "away")]
