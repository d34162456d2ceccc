"""A history can be given another name: later scans continue it under that name, and histories are never joined."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier

import pytest

from scanner.errors import StoreError, UsageError
from scanner.model.scans.scan import ClusterIdentity, ScanState
from scanner.model.waiver import WaiverSet
from scanner.posture.waivers.waivers import WaiverRules
from scanner.posture.waivers.waiving import Waiving
from scanner.store import SqlStore, open_store
from scanner.store.upkeep.renaming import RenameResult, rename_cluster
from tests.posture.waivers import waiver
from tests.store.databases import count, execute, rows
from tests.store.made import DAWN, Round, clock, ended, finding, snapshot, statuses
from tests.store.test_clusters import FILES, OTHER, PROD, named
from tests.store.test_integrity import problems_of

A, B = finding("a"), finding("b")
OLD, NEW = named(PROD, "old"), named(PROD, "new")


def scanned(store: SqlStore, number: int, cluster: ClusterIdentity, *, run: str = "", **more: object) -> None:
    """A scan of a cluster that finds A and B, as a run with a name."""
    name = run or cluster.name
    begun = store.begin_run(name, ("assay", "scan"))
    Round((A, B), cluster=cluster, **more).record(store, number)  # type: ignore[arg-type]
    store.end_run(begun, exit_code=0, scan_id=f"scan-{number}")


def renamed(url: str, old: str, new: str) -> RenameResult:
    """Rename at the moment of the heartbeats of these scans."""
    return rename_cluster(url, old, new, DAWN)


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "text", "second"),
    [
        pytest.param(OLD, "old", NEW, id="a given name"),
        pytest.param(OLD, "name:old", NEW, id="by its identity"),
        pytest.param(OLD, "uid-1", NEW, id="by its UID"),
        pytest.param(PROD, "prod", NEW, id="a cluster known by its UID"),
        pytest.param(
            ClusterIdentity("in-pod", server="s"), "in-pod", named(ClusterIdentity("x", server="s"), "new"), id="no UID"
        ),
        pytest.param(FILES, "/srv/a/manifests", named(FILES, "new"), id="files"),
    ],
)
def test_a_scan_with_the_new_name_continues_the_history(
    store: SqlStore, url: str, first: ClusterIdentity, text: str, second: ClusterIdentity
) -> None:
    """No finding is new, and none is resolved."""
    scanned(store, 1, first)
    result = renamed(url, text, "new")
    scanned(store, 2, second)
    record = store.read_scan("scan-2")

    assert RenameResult(first.name, "new", 1, changed=True) == result
    assert ({"a": "open", "b": "open"}, []) == (statuses(record.findings()), list(record.resolved_findings()))
    assert ("new", "scan-1") == (record.scan.cluster.name, record.previous.id if record.previous else "")
    assert [] == problems_of(url)


def test_a_scan_without_a_name_continues_a_history_that_has_its_shown_name(store: SqlStore, url: str) -> None:
    """The context of the kubeconfig has the new name, and the UID is that of the history."""
    scanned(store, 1, PROD)
    renamed(url, "prod", "new")
    scanned(store, 2, replace(PROD, name="new"))

    assert {"a": "open", "b": "open"} == statuses(store.read_scan("scan-2").findings())


def test_the_old_name_is_free_for_another_cluster(store: SqlStore, url: str) -> None:
    """Its history begins anew, and ends nothing of the renamed one."""
    scanned(store, 1, OLD)
    renamed(url, "old", "new")
    Round((A,), cluster=named(OTHER, "old")).record(store, 2)
    Round((A,), cluster=NEW).record(store, 3)

    assert {"a": "new"} == statuses(store.read_scan("scan-2").findings())
    assert ({"a": "open"}, {"b": "resolved"}) == (
        statuses(store.read_scan("scan-3").findings()),
        statuses(store.read_scan("scan-3").resolved_findings()),
    )


def test_reports_show_the_new_name_and_nothing_else_changes(store: SqlStore, url: str) -> None:
    """Scans before the rename, too; the recorded name of a scan stays beside the new one."""
    scanned(store, 1, OLD)
    before = snapshot(store, 1)
    stored = rows(url, "SELECT * FROM scans")
    renamed(url, "old", "new")
    scan, *rest = snapshot(store, 1)

    assert ("new", "old") == (scan.cluster.name, scan.cluster.earlier_name)
    assert before[1:] == tuple(rest)
    assert stored == rows(url, "SELECT * FROM scans")
    assert ["new"] == [each.cluster.name for each in store.scans()]
    assert {"new"} == {row["cluster"] for row in rows(url, "SELECT cluster FROM v_findings_open")}


def test_every_way_to_name_a_cluster_follows(store: SqlStore, url: str) -> None:
    """The newest scan, `last`, the runs, and the list of clusters."""
    scanned(store, 1, OLD)
    renamed(url, "old", "new")
    latest = store.latest_scan("new")

    assert "scan-1" == (latest.id if latest else "")
    assert "scan-1" == store.find_scan("last", "new").id
    assert [1] == [each.run.number for each in store.list_runs(cluster="new")]
    assert ("new",) == store.list_clusters_of_runs()
    assert None is store.latest_scan("old")
    assert ["new"] == [each.label for each in store.all_clusters().clusters]


def test_runs_without_a_scan_follow(store: SqlStore, url: str) -> None:
    """A run that reached no cluster has the name alone; those under the name of another cluster stay."""
    scanned(store, 1, OLD)
    scanned(store, 2, named(OTHER, "other"), run="shared")
    for name in ("old", "shared"):
        store.end_run(store.begin_run(name), exit_code=4, reason="it does not answer")
    renamed(url, "old", "new")

    assert ["new", "new"] == [each.run.name for each in store.list_runs(cluster="new")]
    assert ["shared", "shared"] == [each.run.name for each in store.list_runs(cluster="other")]
    assert () == store.runs_without_scan(9)


def test_a_waiver_for_the_old_name_covers_the_scans_of_that_time(store: SqlStore, url: str) -> None:
    """The report of an earlier scan does not change; a later scan needs a waiver for the new name."""
    given = WaiverSet((waiver(cluster="old"),))
    scanned(store, 1, OLD)
    renamed(url, "old", "new")
    scanned(store, 2, NEW)
    waived = []
    for number in (1, 2):
        record = store.read_scan(f"scan-{number}")
        waiving = Waiving(given, record, ended(number).date(), WaiverRules())
        waived.append(sum(waiving.find_waiver(each) is not None for each in record.findings()))

    assert [2, 0] == waived


def test_the_same_name_is_no_change(store: SqlStore, url: str) -> None:
    """Not even while the cluster is scanned."""
    scanned(store, 1, OLD)
    store.begin(Round(cluster=OLD).start(2))

    assert RenameResult("old", "old", 2, changed=False) == renamed(url, "old", "old")


def test_a_shown_name_becomes_a_given_one(store: SqlStore, url: str) -> None:
    """So that the history goes on under the name, wherever the cluster is."""
    scanned(store, 1, PROD)

    assert renamed(url, "prod", "prod").changed
    assert ["name:prod"] == [each.identity for each in store.clusters()]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("nobody", "new", "There is no cluster 'nobody' in this database: it has old, other."),
        ("old", "other", "other is the name of another history, name:other, with 1 scan; histories are not joined."),
        ("old", "uid-2", "uid-2 is the name of another history, name:other, with 1 scan"),
        ("old", "", "The new name is empty"),
        ("old", "  ", "The new name is empty"),
        ("old", "a\nb", r"The new name 'a\nb' has a control character"),
        ("old", "a\x1b[31m", r"The new name 'a\x1b[31m' has a control character"),
        ("old", " new", "or a space at an end"),
    ],
)
def test_a_name_that_cannot_be_given_is_refused(store: SqlStore, url: str, old: str, new: str, sentence: str) -> None:
    """The message states what to do, and nothing changes."""
    scanned(store, 1, OLD)
    scanned(store, 2, named(OTHER, "other"))
    before = rows(url, "SELECT * FROM clusters ORDER BY id")

    with pytest.raises(UsageError, match=re.escape(sentence)):
        renamed(url, old, new)
    assert before == rows(url, "SELECT * FROM clusters ORDER BY id")


def test_the_refusal_of_a_taken_name_states_the_way_out(store: SqlStore, url: str) -> None:
    """The other history is renamed first; then the name is free."""
    scanned(store, 1, OLD)
    scanned(store, 2, NEW)

    with pytest.raises(UsageError, match="assay db rename-cluster name:new OTHER"):
        renamed(url, "old", "new")
    renamed(url, "name:new", "new-begun")
    assert renamed(url, "old", "new").changed


def test_an_ambiguous_name_lists_the_identities(store: SqlStore, url: str) -> None:
    """Two clusters may be shown alike."""
    scanned(store, 1, PROD)
    scanned(store, 2, OTHER)

    with pytest.raises(UsageError, match="Name one of: uid:uid-1, uid:uid-2"):
        renamed(url, "prod", "new")


def test_a_name_whose_scans_all_failed_is_free(store: SqlStore, url: str) -> None:
    """A scan with the new name was begun and interrupted before the history was renamed: the failed scan goes over to it."""
    scanned(store, 1, OLD)
    scanned(store, 2, NEW, state=ScanState.FAILED)
    result = renamed(url, "old", "new")
    scanned(store, 3, NEW)

    assert 2 == result.scans
    assert 1 == count(url, "clusters")
    assert {"a": "open", "b": "open"} == statuses(store.read_scan("scan-3").findings())
    assert [] == problems_of(url)


def test_a_name_whose_failed_scans_are_of_another_cluster_is_taken(store: SqlStore, url: str) -> None:
    """Those scans would be shown as scans of this one."""
    scanned(store, 1, OLD)
    scanned(store, 2, named(OTHER, "new"), state=ScanState.FAILED)

    with pytest.raises(UsageError, match="new is the name of another history, name:new, without a finished scan"):
        renamed(url, "old", "new")


def test_the_note_of_a_new_name_names_the_command(store: SqlStore) -> None:
    """It is printed when the scan begins."""
    scanned(store, 1, OLD)

    assert (
        "the history of new begins with this scan, under name:new; earlier scans of this cluster are under name:old. "
        "To continue these under the new name, end this scan and run: assay db rename-cluster old new"
    ) == store.register(NEW)


def test_the_note_of_a_cluster_without_its_name_names_the_flag(store: SqlStore) -> None:
    """A history under a given name goes on with that name."""
    scanned(store, 1, OLD)

    assert store.register(PROD).endswith("To continue these, end this scan and add --cluster-name old")


def test_a_cluster_is_not_renamed_while_it_is_scanned(store: SqlStore, url: str) -> None:
    """The scan ends under the name that it has, and then the history is renamed."""
    scanned(store, 1, OLD)
    each = Round((A, B), cluster=OLD)
    store.begin(each.start(2))

    with pytest.raises(
        UsageError, match=r"Scan scan-2 of old is running: run the command again when the scan has ended"
    ):
        renamed(url, "old", "new")
    store.write_page("scan-2", each.page())
    store.finish("scan-2", each.end(2))
    assert renamed(url, "old", "new").changed


def test_a_cluster_is_not_renamed_while_a_run_begins(store: SqlStore, url: str) -> None:
    """The run would begin a second history under the old name."""
    scanned(store, 1, OLD)
    begun = store.begin_run("old")

    with pytest.raises(UsageError, match=f"Run {begun} of old has not ended"):
        renamed(url, "old", "new")
    store.end_run(begun, exit_code=4)
    assert renamed(url, "old", "new").changed


def test_a_scan_whose_process_is_gone_keeps_no_name(store: SqlStore, url: str) -> None:
    """It has failed, even if no scan has marked it yet."""
    scanned(store, 1, OLD)
    store.begin(Round(cluster=OLD).start(2))
    execute(url, "UPDATE scans SET host = 'elsewhere' WHERE id = 'scan-2'")

    assert rename_cluster(url, "old", "new", DAWN + timedelta(days=1)).changed


def test_a_scan_that_begins_meanwhile_is_not_torn(store: SqlStore, url: str) -> None:
    """Scans and renames at one moment: each scan belongs to one history, which has all its findings."""
    scanned(store, 1, OLD)
    barrier = Barrier(2)

    def scans() -> None:
        with open_store(url, clock) as other:
            barrier.wait(60)
            for number in range(2, 12):
                Round((A, B), cluster=OLD).record(other, number)

    def renames() -> int:
        barrier.wait(60)
        done = 0
        for number in range(40):
            try:
                renamed(url, "old", f"new-{number}")
                done += 1
            except UsageError:
                continue
        return done

    with ThreadPoolExecutor(2) as threads:
        scanning, renaming = threads.submit(scans), threads.submit(renames)
        scanning.result(120)
        renaming.result(120)
    assert {"a", "b"} == {each.finding.name for scan in store.scans() for each in store.read_scan(scan.id).findings()}
    assert {ScanState.COMPLETE} == {each.state for each in store.scans()}
    assert [] == problems_of(url)


def test_a_database_that_cannot_be_written_is_not_renamed(store: SqlStore, url: str) -> None:
    """The message names the database and the reason."""
    scanned(store, 1, OLD)
    if url.startswith("postgresql"):
        read_only = url.replace(
            "options=-csearch_path%3D", "options=-cdefault_transaction_read_only%3Don+-csearch_path%3D"
        )
    else:
        execute(
            url,
            "CREATE TRIGGER no_rename BEFORE UPDATE ON clusters BEGIN SELECT RAISE(ABORT, 'attempt to write a readonly database'); END",
        )
        read_only = url

    with pytest.raises(StoreError, match=r"The database .* cannot be written"):
        renamed(read_only, "old", "new")
    assert ["old"] == [each.name for each in store.clusters()]


def test_a_missing_database_is_not_created(tmp_path: object) -> None:
    """As with the other commands that maintain a database."""
    with pytest.raises(UsageError, match="does not exist"):
        renamed(f"{tmp_path}/none.db", "old", "new")
