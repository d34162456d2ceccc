"""The API server that the integration tests share, one for each process that runs tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import assay, home
from tests.integration.apiserver import ApiServer, running
from tests.requirements import API_SERVER

__all__ = ["assay", "home"]


@pytest.fixture(scope="session")
def assets() -> Path:
    """The directory with the programs `kube-apiserver` and `etcd`."""
    return Path(API_SERVER.require())


@pytest.fixture(scope="session")
def api_server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A running kube-apiserver 1.36, shared: each test gives its policies a narrow match and its objects names of their own."""
    with running(assets, tmp_path_factory.mktemp("api-server")) as server:
        yield server
