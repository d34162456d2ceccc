"""A fresh database for each test, of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scanner.store import SqlStore, open_store
from tests.store.databases import KINDS, database
from tests.store.made import clock


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    with database(request.param, tmp_path) as fresh:
        yield fresh


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    """A store that no scan was written to yet."""
    with open_store(url, clock) as opened:
        yield opened
