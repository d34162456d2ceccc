"""One cluster that runs pods, shared by the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.controllers.cluster import Cluster, running_cluster
from tests.integration.controllers.container_process import why_impossible


@pytest.fixture(scope="session")
def containers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip the tests on a machine that lets no process have namespaces of its own."""
    reason = why_impossible(tmp_path_factory.mktemp("containers"))
    if reason:
        pytest.skip(
            f"no containers: {reason}. Run the tests as root on Linux, or allow user namespaces with overlay mounts"
        )


@pytest.fixture(scope="module")
def cluster(assets: Path, containers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster without objects of its own."""
    with running_cluster(assets, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
