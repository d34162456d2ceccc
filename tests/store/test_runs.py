"""Runs are recorded before a scan begins, and closed with an exit code and a reason."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta

import pytest

from scanner.errors import UsageError
from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.run import Run
from scanner.model.scans.scan import ClusterIdentity, ObjectCount, ScanState, Scope
from scanner.store import SqlStore, open_reader
from tests.store.databases import execute
from tests.store.made import DAWN, Round, clock

STAGING = ClusterIdentity("staging", "77aa", "v1.36.0")


def test_a_run_keeps_its_end_and_its_scan(store: SqlStore) -> None:
    """Exit code, reason, scan and command are recorded."""
    number = store.begin_run("prod", ("assay", "scan"))
    Round().record(store, 1)
    store.end_run(number, exit_code=3, reason="2 gaps", scan_id="scan-1")

    [details] = store.list_runs()
    assert Run(1, "prod", DAWN, DAWN, 3, "2 gaps", "scan-1", socket.gethostname(), ("assay", "scan")) == details.run
    assert (True, Scope()) == (details.complete, details.scope)


def test_a_run_may_end_without_a_scan(store: SqlStore) -> None:
    """The cluster could not be reached, or the scan did not begin."""
    number = store.begin_run("prod")
    store.begin_scan_of_run(number, "never-begun")
    store.end_run(number, exit_code=4, reason="no answer", scan_id="never-begun")

    assert [(4, "", None)] == [
        (details.run.exit_code, details.run.scan, details.complete) for details in store.list_runs()
    ]


def test_a_run_of_a_living_process_is_open(url: str, store: SqlStore) -> None:
    """It has no end, and no last sign of life."""
    store.begin_run("prod")
    with open_reader(url, clock) as reader:
        [details] = reader.list_runs()

    assert (True, None, None) == (details.run.open, details.run.finished_at, details.last_sign)


def test_a_run_of_a_killed_process_has_a_last_sign(url: str, store: SqlStore) -> None:
    """A killed process closes nothing; readers see that its process is gone, and which scan it made."""
    number = store.begin_run("prod")
    store.begin(Round().start(1))
    store.begin_scan_of_run(number, "scan-1")
    execute(url, "UPDATE runs SET process = 4194305, process_started = '1'")

    [details] = store.list_runs()
    assert (True, DAWN, "scan-1") == (details.run.open, details.last_sign, details.run.scan)


@pytest.mark.parametrize(("minutes", "last_sign"), [(14, None), (16, DAWN)])
def test_a_silent_run_of_another_host_has_a_last_sign(
    url: str, store: SqlStore, minutes: int, last_sign: datetime | None
) -> None:
    """Its process cannot be seen from here: after 15 minutes without a heartbeat it is taken for dead."""
    store.begin_run("prod")
    execute(url, "UPDATE runs SET host = 'elsewhere'")
    with open_reader(url, lambda: DAWN + timedelta(minutes=minutes)) as reader:
        [details] = reader.list_runs()

    assert last_sign == details.last_sign


def test_an_open_run_of_an_older_version_is_silent_in_time(url: str, store: SqlStore) -> None:
    """Its process is not known."""
    store.begin_run("prod")
    execute(url, "UPDATE runs SET process = 0, process_started = ''")
    with open_reader(url, lambda: DAWN + timedelta(days=1)) as reader:
        [details] = reader.list_runs()

    assert DAWN == details.last_sign


def test_the_newest_runs_come_first(store: SqlStore) -> None:
    """At most the requested number."""
    for name in ("one", "two", "three"):
        store.begin_run(name)

    assert ["three", "two"] == [details.run.name for details in store.list_runs(2)]


def test_runs_before_a_moment_are_left_out(store: SqlStore) -> None:
    """The moment itself is included."""
    store.begin_run("prod")

    assert (1, 0) == (len(store.list_runs(since=DAWN)), len(store.list_runs(since=DAWN + timedelta(seconds=1))))


def test_a_run_gets_its_name_when_it_is_known(store: SqlStore) -> None:
    """The name of the context is read after the run has begun."""
    store.name_run(store.begin_run(""), "kind-kind")

    assert ["kind-kind"] == [details.run.name for details in store.list_runs()]


def recorded(store: SqlStore, number: int, cluster: ClusterIdentity, name: str) -> None:
    """A run with a complete scan of a cluster."""
    run = store.begin_run(name)
    Round(cluster=cluster).record(store, number)
    store.end_run(run, exit_code=0, scan_id=f"scan-{number}")


def test_runs_of_a_cluster_include_those_without_a_scan(store: SqlStore) -> None:
    """A run that failed early is known by the name that the cluster's other runs have, such as their context."""
    recorded(store, 1, ClusterIdentity("prod", "6d1c"), "admin@prod")
    recorded(store, 2, STAGING, "staging")
    store.end_run(store.begin_run("admin@prod"), exit_code=4, reason="no answer")

    assert [3, 1] == [details.run.number for details in store.list_runs(cluster="prod")]
    assert [2] == [details.run.number for details in store.list_runs(cluster="77aa")]
    assert ("prod", "staging") == store.list_clusters_of_runs()


def test_a_cluster_that_never_answered_has_runs(store: SqlStore) -> None:
    """By the name of the run."""
    store.end_run(store.begin_run("new"), exit_code=4, reason="no answer")

    assert [1] == [details.run.number for details in store.list_runs(cluster="new")]


def test_an_unknown_cluster_is_an_error(store: SqlStore) -> None:
    """A typing error must not look like missed runs; the message names the clusters."""
    recorded(store, 1, STAGING, "staging")

    with pytest.raises(UsageError, match=r"no run of cluster 'prud': the database has runs of staging\."):
        store.list_runs(cluster="prud")


def test_an_unknown_run_is_an_error(store: SqlStore) -> None:
    """The message names the command that lists runs."""
    with pytest.raises(UsageError, match=r"There is no run 7 in this database\. `assay runs`"):
        store.find_run(7)


def test_an_incomplete_scan_shows_where_its_gaps_are(store: SqlStore) -> None:
    """The places of the gaps, in their order."""
    run = store.begin_run("prod")
    gaps = tuple(Gap(GapKind.LIST, where, "forbidden") for where in ("v1/Secret", "v1/Pod"))
    Round(gaps=gaps, state=ScanState.INCOMPLETE).record(store, 1)
    store.end_run(run, exit_code=3, reason="the scan is incomplete: 2 gaps", scan_id="scan-1")

    details = store.find_run(run)
    assert (False, ("v1/Pod", "v1/Secret")) == (details.complete, details.gaps)


def test_counts_of_objects_are_kept(store: SqlStore) -> None:
    """In the order of the coverage; a scan without them has none."""
    counts = (ObjectCount(2, 9, None), ObjectCount())
    Round(counts=counts).record(store, 1)

    assert counts == store.object_counts("scan-1")
    assert () == store.object_counts("no-such-scan")


def test_times_are_utc(store: SqlStore) -> None:
    """Also those that the database returns without a zone."""
    store.begin_run("prod")

    assert UTC == store.find_run(1).run.started_at.tzinfo
