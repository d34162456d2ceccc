"""`assay rbac check --fleet` asks every cluster, also after one that fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from scanner.model.json import JsonObject
from tests.cli.conftest import Assay
from tests.integration.apiserver import ADMIN, ApiServer


@pytest.fixture
def fleet(api_server: ApiServer, tmp_path: Path) -> str:
    """A file with a cluster that is away, one whose user has no rights, and one whose user has all."""
    clusters: list[JsonObject] = [
        {"name": "away", "kubeconfig": str(tmp_path / "missing")},
        {"name": "guests", "kubeconfig": str(api_server.kubeconfig_for("guest"))},
        {"name": "admins", "kubeconfig": str(api_server.kubeconfig_for(ADMIN))},
    ]
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump({"clusters": clusters}))
    return str(path)


def test_every_cluster_has_a_line(assay: Assay, fleet: str) -> None:
    """With the exit code and the missing rights, or the reason why the cluster could not be asked; the worst code is that of the fleet."""
    ran = assay("rbac", "check", "--fleet", fleet)
    head, *lines = ran.stdout.decode().splitlines()
    assert ["CLUSTER", "EXIT", "VERDICT"] == head.split()
    assert [["away", "4"], ["guests", "3"], ["admins", "0"]] == [line.split()[:2] for line in lines]
    assert "missing" in lines[0]
    assert "permissions are missing: " in lines[1]
    assert lines[2].endswith("All required permissions are granted")
    assert 4 == ran.code


def test_programs_get_the_rights_of_each_cluster(assay: Assay, fleet: str) -> None:
    """In the order of the file."""
    away, guests, admins = json.loads(assay("rbac", "check", "--fleet", fleet, "-o", "json").stdout)
    assert [("away", False), ("guests", False), ("admins", True)] == [
        (each["cluster"], each["complete"]) for each in (away, guests, admins)
    ]
    assert "missing" in away["error"]
    assert {False} == {each["allowed"] for each in guests["rights"] if not each["optional"] and each["verb"] == "list"}
    assert {True} == {each["allowed"] for each in admins["rights"]}
