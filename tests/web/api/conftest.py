"""The API over the example cluster after two scans, and over a longer history of two clusters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.databases import KINDS, prepared_database
from tests.web.api.asking import Api
from tests.web.api.history import api_at, fill
from tests.web.served import Served


@pytest.fixture(scope="session")
def api(site: Served) -> Api:
    """The API over the example cluster."""
    return Api(site)


@pytest.fixture(scope="session", params=KINDS)
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API over the history of two clusters."""
    with prepared_database(request.param, tmp_path_factory.mktemp("history")) as url:
        fill(url)
        with api_at(url) as opened:
            yield opened
