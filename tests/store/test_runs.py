"""Runs are recorded before a scan begins, and closed with an exit code and a reason."""

from __future__ import annotations

import socket

from scanner.model.run import Run
from scanner.store import SqlStore, open_reader
from tests.store.made import DAWN, Round, clock


def test_a_run_keeps_its_end_and_its_scan(store: SqlStore) -> None:
    """Exit code, reason and scan are recorded when the run ends."""
    number = store.begin_run("prod")
    Round().record(store, 1)
    store.end_run(number, exit_code=3, reason="2 gaps", scan_id="scan-1")

    assert (Run(1, "prod", DAWN, DAWN, 3, "2 gaps", "scan-1", socket.gethostname()),) == store.runs()


def test_a_run_may_end_without_a_scan(store: SqlStore) -> None:
    """The cluster could not be reached, or the scan did not begin."""
    number = store.begin_run("prod")
    store.end_run(number, exit_code=4, reason="no answer", scan_id="never-begun")

    assert [(4, "")] == [(run.exit_code, run.scan) for run in store.runs()]


def test_a_run_that_does_not_end_stays_open(url: str, store: SqlStore) -> None:
    """A killed process closes nothing, and readers see that."""
    store.begin_run("prod")
    with open_reader(url, clock) as reader:
        [run] = reader.runs()

    assert (True, None, None) == (run.open, run.exit_code, run.finished_at)


def test_the_newest_runs_come_first(store: SqlStore) -> None:
    """No more than asked for."""
    for name in ("one", "two", "three"):
        store.begin_run(name)

    assert ["three", "two"] == [run.name for run in store.runs(2)]


def test_a_run_gets_its_name_when_it_is_known(store: SqlStore) -> None:
    """The name of the context is read after the run has begun."""
    store.name_run(store.begin_run(""), "kind-kind")

    assert ["kind-kind"] == [run.name for run in store.runs()]
