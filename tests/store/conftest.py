"""Databases of each kind: empty ones, and prepared ones without a scan."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from scanner.store import SqlStore, open_store
from tests.store.databases import KINDS, database, emptied, path_of, prepared_database
from tests.store.made import clock

Original = Callable[[str, Callable[[SqlStore], None]], str]


@pytest.fixture(params=KINDS)
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    with database(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=KINDS)
def own_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a prepared database that no other test uses: its tables may be changed."""
    with prepared_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """One prepared database of each kind, kept for the whole run: preparing one takes longer than most tests."""
    with ExitStack() as kept:
        yield _Prepared(kept, tmp_path_factory.mktemp("prepared"))


class _Prepared(dict[str, str]):
    def __init__(self, kept: ExitStack, folder: Path) -> None:
        super().__init__()
        self.kept = kept
        self.folder = folder

    def __missing__(self, kind: str) -> str:
        url = self.kept.enter_context(database(kind, self.folder))
        open_store(url, clock).close()
        self[kind] = url
        return url


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, prepared: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The URL of a prepared database without a scan."""
    kept = prepared[request.param]
    if request.param == "sqlite":
        yield f"sqlite:///{shutil.copy(path_of(kept), tmp_path / 'assay.db')}"
        return
    yield kept
    emptied(kept)


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    """A store without a scan."""
    with open_store(url, clock) as opened:
        yield opened


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    """The URL of a database that a function filled once, of the same kind as another database."""
    with ExitStack() as kept:

        @cache
        def filled(kind: str, fill: Callable[[SqlStore], None]) -> str:
            url = kept.enter_context(database(kind, tmp_path_factory.mktemp(kind)))
            with open_store(url, clock) as store:
                fill(store)
            return url

        yield lambda url, fill: filled("postgresql" if url.startswith("postgresql") else "sqlite", fill)
