"""`assay check --ask-server` on a real server: the API server decides the same about random manifests, and stores none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import yaml

from tests.cli.conftest import Assay
from tests.integration.apiserver import ApiServer, running
from tests.integration.checked import WITHOUT, compare, prepare
from tests.integration.faults import wait_until
from tests.integration.made import binding, labelled, namespace, policy
from tests.integration.manifests import apply, wait_until_enforced

SEED = 20261128
NUMBER = 120


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of our own, with Pod Security."""
    with running(assets, tmp_path_factory.mktemp("checked"), without_plugins=WITHOUT) as server:
        yield server


def test_the_api_server_decides_the_same(server: ApiServer) -> None:
    """Refused, admitted with warnings or admitted; `make nightly` compares 2,000 manifests."""
    chance = Random(SEED)
    prepare(server, chance)
    tally = compare(server, chance, NUMBER, batches=1)

    print(*tally.write(), sep="\n")  # noqa: T201 - what `pytest -s` is for
    assert [] == tally.differences
    assert tally.compared["agrees"] >= NUMBER * 0.6
    assert {"CREATE", "UPDATE"} <= tally.operations.keys()
    assert {"refused", "admittedWithWarnings", "admitted"} <= tally.verdicts.keys()


def test_the_generated_roles_are_enough(server: ApiServer, assay: Assay, home: Path) -> None:
    """A user with the roles of --for-check alone decides everything; without them, nothing is claimed."""
    rights = [policy("for-check", "secrets"), binding("for-check")]
    apply(server, [namespace("checked"), *rights])
    wait_until_enforced(server)
    (home / "app.json").write_text(json.dumps(labelled("Secret", "for-check", "s", namespace="checked")))
    flags = ("check", "-f", "app.json", "-o", "json", "--kubeconfig", server.kubeconfig_for("guest"))
    before = assay(*flags)
    roles = assay("rbac", "generate", "--for-check", "--for", "user:guest", "--kubeconfig", server.kubeconfig)
    apply(server, yaml.safe_load_all(roles.stdout))
    wait_until(lambda: assay(*flags).code != 3)
    after = assay(*flags)

    assert 3 == before.code
    assert {0, 1} & {after.code}, after.report
    assert True is after.report["complete"]
