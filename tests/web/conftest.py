"""The example cluster after two scans, in a database of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.conftest import prepared, store, url
from tests.store.databases import KINDS, prepared_database
from tests.web.fleets import NOW, fill
from tests.web.served import Served, counted, scan_examples, served

__all__ = ["examples", "fleet", "fleet_url", "prepared", "site", "store", "url"]


@pytest.fixture(scope="session", params=KINDS)
def examples(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database with two scans of the example cluster."""
    home = tmp_path_factory.mktemp("examples")
    with prepared_database(request.param, home) as url:
        scan_examples(url, home, "before", "after")
        yield url


@pytest.fixture(scope="session")
def site(examples: str) -> Iterator[Served]:
    """The application over that database."""
    with served(examples) as opened:
        yield opened


@pytest.fixture(scope="session", params=KINDS)
def fleet_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database with several clusters."""
    with prepared_database(request.param, tmp_path_factory.mktemp("fleet")) as url:
        fill(url)
        yield url


@pytest.fixture(scope="session")
def fleet(fleet_url: str) -> Iterator[Served]:
    """The application over several clusters, whose numbers are counted, at a fixed time."""
    with served(fleet_url, clock=lambda: NOW) as opened:
        counted(opened)
        yield opened
