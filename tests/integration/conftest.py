"""The API server that the integration tests share, one for each process that runs tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import assay, home
from tests.integration.apiserver import ApiServer, running

__all__ = ["assay", "home"]

NO_ASSETS = (
    "no kube-apiserver: KUBEBUILDER_ASSETS is not set. Build one with"
    ' `export KUBEBUILDER_ASSETS="$(make -s apiserver)"` (go 1.26, some minutes the first time) and test again'
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ask a real API server, and skip them all for one stated reason where there is none."""
    for item in items:
        if "assets" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)
            if not os.environ.get("KUBEBUILDER_ASSETS"):
                item.add_marker(pytest.mark.skip(reason=NO_ASSETS))


@pytest.fixture(scope="session")
def assets() -> Path:
    """The directory with the programs `kube-apiserver` and `etcd`."""
    return Path(os.environ["KUBEBUILDER_ASSETS"])


@pytest.fixture(scope="session")
def api_server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A running kube-apiserver 1.36, shared: each test gives its policies a narrow match and its objects names of their own."""
    with running(assets, tmp_path_factory.mktemp("api-server")) as server:
        yield server
