"""One cluster that runs pods, with the release; each process that runs tests has its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.controllers.cluster import Cluster, running_cluster
from tests.integration.controllers.container_process import why_impossible
from tests.integration.controllers.installation import Installed, install
from tests.store.databases import database


@pytest.fixture(scope="session")
def containers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip the tests on a machine that lets no process have namespaces of its own."""
    reason = why_impossible(tmp_path_factory.mktemp("containers"))
    if reason:
        pytest.skip(
            f"no containers: {reason}. Run the tests as root on Linux, or allow user namespaces with overlay mounts"
        )


@pytest.fixture(scope="session")
def cluster(assets: Path, containers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster without objects of its own."""
    with running_cluster(assets, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def installed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The release with a PostgreSQL database of its own."""
    with database("postgresql", tmp_path_factory.mktemp("database")) as url:
        yield install(cluster, url)
