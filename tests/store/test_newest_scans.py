"""The newest scans of every cluster, and the runs that began no scan."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from scanner.model.scans.scan import ClusterIdentity, ScanState, Scope
from scanner.store import SqlStore, open_reader
from tests.store.databases import execute
from tests.store.made import DAWN, Round, finding

OTHER = ClusterIdentity("other")


def _ids(store: SqlStore) -> dict[str, list[str]]:
    """The ids of the newest scan, the newest one with findings and the newest complete one, by cluster."""
    return {
        each.cluster.name: [scan.id if scan else "" for scan in (each.newest, each.usable, each.complete)]
        for each in store.newest_scans()
    }


def test_each_cluster_has_its_own_newest_scans(store: SqlStore) -> None:
    """A later scan that failed or is incomplete leaves the last complete one."""
    Round().record(store, 1)
    Round(cluster=OTHER).record(store, 2)
    Round(state=ScanState.INCOMPLETE).record(store, 3)
    Round(state=ScanState.FAILED).record(store, 4)

    assert {"prod": ["scan-4", "scan-3", "scan-1"], "other": ["scan-2"] * 3} == _ids(store)


def test_a_cluster_without_a_finished_scan_is_there(store: SqlStore) -> None:
    """Its scan runs, or its process was killed: neither has findings."""
    store.begin(Round().start(1))

    [prod] = store.newest_scans()
    assert prod.newest is not None
    assert ("scan-1", ScanState.RUNNING) == (prod.newest.id, prod.newest.state)
    assert prod.usable is prod.complete is None


def test_a_scan_whose_process_is_gone_has_failed(store: SqlStore, url: str) -> None:
    """Even before the database records that: on another host, after its time of silence."""
    store.begin(replace(Round().start(1), silence=1))
    execute(url, "UPDATE scans SET host = 'elsewhere'")
    with open_reader(url, lambda: DAWN + timedelta(days=9)) as later:
        [prod] = later.newest_scans()
    assert prod.newest is not None
    assert ScanState.FAILED is prod.newest.state


def test_a_limited_scope_is_marked(store: SqlStore) -> None:
    """Namespaces and labels limit a scan; kinds that the user skips do not."""
    Round(scope=Scope(namespaces=("shop",))).record(store, 1)
    Round(scope=Scope(skip_kinds=("Secret",)), cluster=OTHER).record(store, 2)

    assert [True, False] == [each.newest is not None and each.newest.limited for each in store.newest_scans()]


def test_the_runs_that_never_began_a_scan_are_grouped_by_name(store: SqlStore) -> None:
    """The last of each with its reason; a name that any run with a scan has is left out."""
    for reason in ("first", "second"):
        store.end_run(store.begin_run("away"), exit_code=4, reason=reason)
    store.end_run(store.begin_run("prod"), exit_code=4, reason="once")
    run = store.begin_run("prod")
    Round((finding("a"),)).record(store, 1)
    store.end_run(run, exit_code=0, scan_id="scan-1")

    [away] = store.runs_without_scan(9)
    assert ("away", 2, "second") == (away.name, away.runs, away.reason)
    assert () == store.runs_without_scan(0)


def test_an_object_is_found_where_the_newest_scan_saw_it(store: SqlStore) -> None:
    """By its kind in any case, its namespace and its name."""
    Round((finding("a"),)).record(store, 1)
    Round((finding("a"),), cluster=OTHER).record(store, 2)
    Round((finding("b"),), cluster=OTHER).record(store, 3)
    ids = {each.name: each.id for each in store.clusters()}

    def there(*names: str) -> set[str]:
        found = store.find_clusters_with(list(ids.values()), *names)
        return {name for name, number in ids.items() if number in found}

    assert {"prod"} == there("deployment", "shop", "a")
    assert {"other"} == there("Deployment", "shop", "b")
    assert set() == there("Pod", "shop", "a") | there("Deployment", "other", "a") | there("Nothing", "shop", "a")
