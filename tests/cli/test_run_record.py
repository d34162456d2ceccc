"""Every run of `assay scan` is recorded, also one that never reached the cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.cli.scanning.run_record import RunRecord
from scanner.model.scans.run import Run
from scanner.store import open_reader, open_store
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_trouble import kubeconfig

Write = Callable[[str, str], Path]


def last_run() -> Run:
    """The newest run."""
    with open_reader("assay.db") as reader:
        return reader.list_runs(1)[0].run


def test_a_complete_scan_is_a_run(assay: Assay, write: Write, home: Path) -> None:
    """With exit code 0, its scan, and the path as its name."""
    write("cluster/all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    assay("scan", "--from", "cluster", "--db", "assay.db", "-q")

    run = last_run()
    with open_reader("assay.db") as reader:
        [scan] = reader.scans()
    assert (str(home / "cluster"), 0, "", scan.id) == (run.name, run.exit_code, run.reason, run.scan)
    assert run.finished_at is not None
    assert scan.started_at >= run.started_at


def test_an_incomplete_scan_has_a_reason(assay: Assay, write: Write) -> None:
    """The sentence of the report."""
    write("cluster/all.yaml", config_map("one"))
    assay("scan", "--from", "cluster", "--cluster-name", "shop", "--db", "assay.db", "-q")

    run = last_run()
    assert ("shop", 3) == (run.name, run.exit_code)
    assert run.reason.startswith("No policies were found.")


def test_a_mistyped_folder_is_a_run_without_a_scan(assay: Assay) -> None:
    """A run of a scheduled job that could not begin leaves a trace."""
    assay("scan", "--from", "missing", "--db", "assay.db")

    run = last_run()
    assert (2, "") == (run.exit_code, run.scan)
    assert run.reason.startswith("there is no file or folder missing")


def test_a_cluster_that_does_not_answer_is_a_run(assay: Assay, write: Write, closed_port: int) -> None:
    """Under the name of the context."""
    write("config", kubeconfig(f"https://127.0.0.1:{closed_port}"))
    assay("scan", "--kubeconfig", "config", "--request-timeout", "2s", "--db", "assay.db")

    run = last_run()
    assert ("here", 4, "") == (run.name, run.exit_code, run.scan)
    assert "cannot be reached" in run.reason


def test_no_credentials_are_a_run(assay: Assay) -> None:
    """The kubeconfig of the job may be missing."""
    assay("scan", "--db", "assay.db")

    run = last_run()
    assert ("", 4) == (run.name, run.exit_code)
    assert run.reason.startswith("no cluster to scan")


@pytest.mark.parametrize(
    ("error", "exit_code", "reason"),
    [
        (KeyboardInterrupt(), 3, "interrupted"),
        (ValueError("the content of an object"), 4, "internal error: ValueError"),
    ],
)
def test_every_end_of_a_run_is_recorded(home: Path, error: BaseException, exit_code: int, reason: str) -> None:
    """Interrupts and bugs too, without the data of objects."""
    with open_store("assay.db") as store, pytest.raises(type(error)), RunRecord(store, "prod"):
        raise error

    assert (exit_code, reason) == (last_run().exit_code, last_run().reason)


def test_a_database_that_fails_does_not_hide_the_error(home: Path) -> None:
    """The error that ended the run is the one that users see."""
    with open_store("assay.db") as store, pytest.raises(ValueError, match="first"), RunRecord(store, "prod"):
        _break(home / "assay.db")


def _break(path: Path) -> None:
    """Damage a database, and fail."""
    path.write_bytes(b"no database any more")
    raise ValueError("first")
