"""A role of PostgreSQL that may only read suffices for every command that reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scanner.errors import StoreError
from scanner.store import open_reader, open_store
from tests.store.databases import execute, prepared_database
from tests.store.made import Round, clock, finding
from tests.store.roles import READ_ALL_TABLES, USE_SCHEMA, role


@contextmanager
def reader_role(url: str) -> Iterator[str]:
    """The URL of a database for a new role with USAGE and SELECT alone."""
    with role(url, USE_SCHEMA, READ_ALL_TABLES) as reader:
        yield reader.url


@pytest.fixture
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL database with a scan, a run and a scan whose process died."""
    with prepared_database("postgresql", tmp_path_factory.mktemp("select-only")) as url:
        with open_store(url, clock) as store:
            store.begin_run("prod")
            Round((finding("a"),)).record(store, 1)
            store.begin(Round().start(2))
        execute(url, "UPDATE scans SET process = 4194305, process_started = '1' WHERE state = 'running'")
        yield url


def test_a_role_that_may_only_read_reads_everything(written: str) -> None:
    """Scans, runs, clusters, reports and findings; the dead scan is shown as failed, and not changed."""
    with reader_role(written) as url, open_reader(url, clock) as reader:
        states = [scan.state.value for scan in reader.scans()]
        record = reader.read_scan(reader.find_scan("last").id)
        [shown] = record.findings()

        assert (["failed", "complete"], "a") == (states, shown.finding.name)
        assert shown == reader.find_finding(shown.id).stored
        assert (1, 1) == (len(reader.list_runs()), len(reader.clusters()))
        assert ["a"] == [hit.name for hit in reader.search("a").objects.first]
        assert frozenset({1}) == reader.search_words(1, "replicas")[0].verdicts


def test_a_role_that_may_only_read_cannot_scan(written: str) -> None:
    """The message is that a permission is missing."""
    with (
        reader_role(written) as url,
        open_store(url, clock) as store,
        pytest.raises(StoreError, match="denies access to the user"),
    ):
        store.begin_run("prod")
