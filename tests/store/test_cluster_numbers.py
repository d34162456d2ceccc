"""The scans and runs of all clusters in numbers: nothing that has a row is silent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from scanner.model.scans.scan import ClusterIdentity, ScanState, Scope
from scanner.store import SqlStore, open_reader
from scanner.store.catalog.every_cluster import RECENT, AllClusters, ClusterNumbers, EndedRun, NewestRuns
from tests.store.databases import execute
from tests.store.made import DAWN, PROD, Round, clock, ended

STAGING = ClusterIdentity("staging", "77aa", "v1.36.0")
PARTIAL = Round(state=ScanState.INCOMPLETE)


def of(numbers: AllClusters, label: str) -> ClusterNumbers:
    """The numbers of the cluster with a label."""
    [found] = (each for each in numbers.clusters if each.label == label)
    return found


def test_each_cluster_has_its_scans_by_state(store: SqlStore) -> None:
    """And the end of its newest complete one, which is not the newest."""
    Round().record(store, 1)
    Round(cluster=STAGING).record(store, 2)
    PARTIAL.record(store, 3)

    prod, staging = of(store.all_clusters(), "prod"), of(store.all_clusters(), "staging")
    assert ({"complete": 1, "incomplete": 1}, "scan-3", ended(1)) == (prod.scans, prod.newest, prod.last.complete)
    assert ({"complete": 1}, "scan-2", ended(2)) == (staging.scans, staging.newest, staging.last.complete)


def test_a_cluster_without_a_finished_scan_is_there(url: str, store: SqlStore) -> None:
    """Its only scan was killed, and counts as failed before the database records it."""
    store.begin(Round().start(1))
    execute(url, "UPDATE scans SET process = 4194305, process_started = '1'")

    prod = of(store.all_clusters(), "prod")
    assert ("", None, 1, 0) == (prod.newest, prod.last.complete, prod.scans["failed"], prod.scans["running"])


def test_a_running_scan_is_running(store: SqlStore) -> None:
    """This process is alive."""
    store.begin(Round().start(1))

    assert {"running": 1} == of(store.all_clusters(), "prod").scans


def test_clusters_of_one_name_have_their_identities(store: SqlStore) -> None:
    """Two samples with the same labels would be rejected."""
    Round().record(store, 1)
    Round(cluster=replace(PROD, uid="other")).record(store, 2)

    assert ["uid:6d1c", "uid:other"] == [each.label for each in store.all_clusters().clusters]


def test_a_pruned_scan_has_no_report(url: str, store: SqlStore) -> None:
    """The newest one that has one counts."""
    Round().record(store, 1)
    Round().record(store, 2)
    execute(url, "UPDATE scans SET pruned_at = finished_at WHERE id = 'scan-2'")

    assert "scan-1" == of(store.all_clusters(), "prod").newest


def end_run(store: SqlStore, name: str, code: int, scan: str = "") -> None:
    """Record a run that ends at once."""
    store.end_run(store.begin_run(name), exit_code=code, scan_id=scan)


def exit_code(runs: NewestRuns | None) -> int | None:
    """The exit code of the newest run that has ended."""
    return runs.ended.exit_code if runs and runs.ended else None


def test_the_newest_run_of_a_cluster_may_have_no_scan(store: SqlStore) -> None:
    """It has the name of a run that scanned the cluster: the context, or its folder."""
    Round().record(store, 1)
    end_run(store, "admin@prod", 0, "scan-1")
    end_run(store, "admin@prod", 4)

    assert 4 == exit_code(of(store.all_clusters(), "prod").runs)


def test_a_run_with_the_name_of_a_cluster_belongs_to_it(store: SqlStore) -> None:
    """Although no run with a scan is recorded."""
    Round().record(store, 1)
    end_run(store, "prod", 4)

    assert 4 == exit_code(of(store.all_clusters(), "prod").runs)
    assert {} == store.all_clusters().unreached


def test_a_cluster_that_no_scan_reached_has_its_run(store: SqlStore) -> None:
    """A scheduled scan that never worked must not be silent."""
    end_run(store, "edge", 4)
    store.begin_run("running")

    unreached = store.all_clusters().unreached
    assert {"edge": 4, "running": None} == {name: exit_code(runs) for name, runs in unreached.items()}
    assert NewestRuns(DAWN, None) == unreached["running"]


def test_a_mistyped_name_is_forgotten(url: str, store: SqlStore) -> None:
    """After a month."""
    end_run(store, "pord", 4)
    with open_reader(url, lambda: clock() + RECENT + timedelta(seconds=1)) as reader:
        later = reader.all_clusters().unreached

    assert 1 == len(store.all_clusters().unreached)
    assert {} == later


def test_a_run_of_a_name_that_scanned_two_clusters_belongs_to_neither(store: SqlStore) -> None:
    """The context was changed; the run is there under its name."""
    Round().record(store, 1)
    Round(cluster=STAGING).record(store, 2)
    end_run(store, "here", 0, "scan-1")
    end_run(store, "here", 0, "scan-2")
    end_run(store, "here", 4)

    numbers = store.all_clusters()
    assert [0, 0] == [exit_code(each.runs) for each in numbers.clusters]
    assert {"here": NewestRuns(DAWN, EndedRun(3, DAWN, 4))} == numbers.unreached


def test_a_killed_run_is_the_newest_one_and_has_no_exit_code(url: str, store: SqlStore) -> None:
    """Its process is gone; the last sign of its life is its end."""
    Round().record(store, 1)
    end_run(store, "prod", 0, "scan-1")
    killed = store.begin_run("prod")
    kill(url, killed)

    assert EndedRun(killed, DAWN, None) == ended_run(store)


def test_a_run_that_repeats_a_killed_one_decides(url: str, store: SqlStore) -> None:
    """A Job has started another pod: once that pod has ended, nothing is wrong."""
    Round().record(store, 1)
    kill(url, store.begin_run("prod"))
    killed = ended_run(store)
    end_run(store, "prod", 0, "scan-1")

    assert (None, 0) == (killed and killed.exit_code, exit_code(of(store.all_clusters(), "prod").runs))


def test_a_running_run_is_no_end_of_the_one_before(store: SqlStore) -> None:
    """The begin is that of the running one."""
    Round().record(store, 1)
    end_run(store, "prod", 4, "scan-1")
    store.begin_run("prod")

    assert NewestRuns(DAWN, EndedRun(1, DAWN, 4)) == of(store.all_clusters(), "prod").runs


def test_a_killed_first_run_is_known_by_its_name(url: str, store: SqlStore) -> None:
    """The process ended before it reached its cluster."""
    killed = store.begin_run("edge")
    kill(url, killed)

    assert {"edge": NewestRuns(DAWN, EndedRun(killed, DAWN, None))} == store.all_clusters().unreached


def test_a_scan_of_a_part_is_no_whole_one(store: SqlStore) -> None:
    """The newest complete scan may be limited, and the newest whole one is another."""
    Round().record(store, 1)
    Round(scope=Scope(namespaces=("shop",))).record(store, 2)
    Round(cluster=STAGING, scope=Scope(kinds=("Pod",))).record(store, 3)

    assert [(ended(2), ended(1)), (ended(3), None)] == [each.last for each in store.all_clusters().clusters]


def kill(url: str, number: int) -> None:
    """Give a run a process that has gone."""
    execute(url, "UPDATE runs SET process = 4194305, process_started = '1' WHERE number = :number", number=number)


def ended_run(store: SqlStore) -> EndedRun | None:
    """The newest run of the cluster that does not run any more."""
    runs = of(store.all_clusters(), "prod").runs
    return runs.ended if runs else None
