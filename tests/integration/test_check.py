"""`assay check --ask-server` on a real server: the API server decides the same about random manifests, and stores none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.integration.apiserver import ApiServer, running
from tests.integration.checked import WITHOUT, compare, prepare

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
