"""A cluster can be deleted: nothing of it is left, and the other clusters read as before."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import pytest

from scanner import __version__
from scanner.errors import StoreError, UsageError
from scanner.model.scans.scan import ClusterIdentity
from scanner.store import SqlStore, open_store, prune
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, share_texts, writing
from scanner.store.rows.references import REFERENCES
from scanner.store.rows.tables import CLUSTERS, DELETED_CLUSTERS, LAST_IDS, MARK, METADATA, RUNS
from scanner.store.upkeep.cluster_rows import list_owned_tables
from scanner.store.upkeep.deletion import delete_cluster, plan_deletion
from scanner.store.upkeep.renaming import rename_cluster
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.conftest import Original
from tests.store.databases import Rows, count, execute, path_of, refill, rows
from tests.store.made import DAWN, Round, clock, ended, finding
from tests.store.neighbors import GONE, OTHERS, SCANS, WORDS, answers, cluster_of, fill, find_words
from tests.store.test_integrity import problems_of

DELETE = """
import sys
from scanner.store.upkeep.deletion import delete_cluster
from tests.store.made import DAWN
delete_cluster(sys.argv[1], sys.argv[2], DAWN)
"""
OF_GONE = 1 + SCANS, 2 + SCANS
"""The scans and the runs of the cluster that is deleted."""


@pytest.fixture
def town(url: str, original: Original) -> Iterator[SqlStore]:
    """A store with twelve clusters."""
    refill(url, original(url, fill))
    with open_store(url, clock) as opened:
        yield opened


def tombstones(url: str) -> Rows:
    """The tombstones."""
    return rows(url, "SELECT * FROM deleted_clusters ORDER BY number")


def names_of(store: SqlStore) -> list[str]:
    """The names of the clusters."""
    return sorted(each.name for each in store.clusters())


@pytest.mark.usefixtures("town")
def test_nothing_of_a_deleted_cluster_is_left(url: str) -> None:
    """Its names, its UID and its texts stand in no column of any table, the index of the search included; before, they did."""
    before = set(find_words(url, GONE))
    delete_cluster(url, GONE, DAWN)

    assert [] == find_words(url, GONE)
    assert {"clusters.name", "scans.cluster_uid", "objects.uid", "workloads.name", "waivers.name"} <= before
    assert [] == problems_of(url)


def test_no_byte_of_a_deleted_cluster_is_left_in_a_file(town: SqlStore, url: str) -> None:
    """SQLite overwrites what is deleted, and the file has what is in its log."""
    town.close()
    if url.startswith("postgresql"):
        return
    before = path_of(url).read_bytes()
    delete_cluster(url, GONE, DAWN)

    assert GONE.encode() in before
    assert GONE.encode() not in path_of(url).read_bytes()


def test_the_other_clusters_read_as_before(town: SqlStore, url: str) -> None:
    """Reports, differences, trends, searches, runs and views are equal."""
    before = answers(town, url, OTHERS)
    delete_cluster(url, GONE, DAWN)

    assert before == answers(town, url, OTHERS)
    assert list(OTHERS) == names_of(town)


def test_the_other_clusters_go_on(town: SqlStore, url: str) -> None:
    """Their next scans find no finding new, and a scan under the deleted name begins a new history."""
    delete_cluster(url, GONE, DAWN)
    for number, word in ((90, WORDS[0]), (91, GONE)):
        Round((finding("shared"),), cluster=cluster_of(word)).record(town, number)

    assert [("scan-90", 0), ("scan-91", 1)] == [(each.id, each.new) for each in reversed(town.scans(2))]
    assert [] == problems_of(url)


def test_a_tombstone_has_dates_and_counts(town: SqlStore, url: str) -> None:
    """And a digest of the ids of the scans, which only the holder of all reports can compute, and no user can read back."""
    ids = [row["id"] for row in rows(url, f"SELECT id FROM scans WHERE cluster_name = '{GONE}' ORDER BY number")]
    [result] = delete_cluster(url, GONE, DAWN)
    [tombstone] = tombstones(url)

    assert (1, GONE, *OF_GONE) == (result.tombstone, result.name, result.scans, result.runs)
    assert (1, *OF_GONE, 5, 5) == tuple(tombstone[name] for name in ("number", "scans", "runs", "objects", "findings"))
    assert hashlib.sha256("".join(f"{each}\n" for each in ids).encode()).hexdigest() == tombstone["scans_digest"]
    assert __version__ == tombstone["tool_version"]
    assert None is not tombstone["ended_at"]


def test_a_dry_run_counts_and_changes_nothing(town: SqlStore, url: str) -> None:
    """The counts are those of the rows that go, but for rows that clusters share."""
    tables = sorted(METADATA.tables)
    before = {name: count(url, name) for name in tables}
    planned = plan_deletion(url, GONE)
    between = {name: count(url, name) for name in tables}
    [result] = delete_cluster(url, GONE, DAWN)
    gone = {name: before[name] - count(url, name) for name in planned.rows}

    assert before == between
    assert gone == planned.rows
    assert {"scans": OF_GONE[0], "runs": OF_GONE[1]} == {name: planned.rows[name] for name in ("scans", "runs")}
    assert result.rows >= sum(planned.rows.values()) - planned.rows["runs"] - planned.rows["closing_sums"]


def test_every_table_is_known_to_a_deletion() -> None:
    """A table has rows of clusters, rows that clusters share, or no rows about a cluster; the last are these."""
    others = {CLUSTERS, RUNS, DELETED_CLUSTERS, LAST_IDS, MARK}

    assert set(METADATA.sorted_tables) == {*list_owned_tables(), *REFERENCES, *others}


@pytest.mark.usefixtures("town")
@pytest.mark.parametrize("name", [GONE, f"{GONE}-uid", f"uid:{GONE}-uid"])
def test_a_cluster_has_several_names(url: str, name: str) -> None:
    """The name, the UID and the identity of its history."""
    assert [GONE] == [each.name for each in delete_cluster(url, name, DAWN)]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("qzxvi", r"There is no cluster 'qzxvi' in this database. Did you mean qzxvj\?"),
        ("town1", r"There is no cluster 'town1' in this database. Did you mean town12 or town11 or town10\?"),
        ("elsewhere", "There is no cluster 'elsewhere' in this database: it has town01, town02, "),
    ],
)
@pytest.mark.usefixtures("town")
def test_an_unknown_name_is_refused(url: str, name: str, sentence: str) -> None:
    """The message suggests the names that are like it, and nothing changes."""
    with pytest.raises(UsageError, match=sentence):
        delete_cluster(url, name, DAWN)
    assert [] == tombstones(url)


def test_a_name_that_only_runs_have_is_deleted(store: SqlStore, url: str) -> None:
    """A run with a mistyped name reached no cluster, and leaves lists and metrics."""
    Round(cluster=ClusterIdentity("prod", "uid-1")).record(store, 1)
    for name in ("porod", "prod"):
        store.end_run(store.begin_run(name), exit_code=4)
    [result] = delete_cluster(url, "porod", DAWN)

    assert (0, 1) == (result.scans, result.runs)
    assert ["prod"] == [each.run.name for each in store.list_runs()]
    assert [(0, 1)] == [(each["scans"], each["runs"]) for each in tombstones(url)]


def test_the_runs_of_a_renamed_cluster_go_too(store: SqlStore, url: str) -> None:
    """Under every name that they were made with."""
    run = store.begin_run("old")
    Round(cluster=ClusterIdentity("old", "uid-1")).record(store, 1)
    store.end_run(run, exit_code=0, scan_id="scan-1")
    rename_cluster(url, "old", "new", DAWN)
    delete_cluster(url, "new", DAWN)

    assert (0, 0) == (count(url, "runs"), count(url, "scans"))


def test_the_last_cluster_leaves_nothing(store: SqlStore, url: str) -> None:
    """Tables without a row keep no sample of the planner either."""
    Round((finding(f"{GONE}-web"),), cluster=cluster_of(GONE)).record(store, 1)
    if url.startswith("postgresql"):
        execute(url, "ANALYZE")
        assert any(place.startswith("statistics") for place in find_words(url, GONE))
    delete_cluster(url, GONE, DAWN)

    kept = {"deleted_clusters": 1, "last_ids": count(url, "last_ids")}
    assert kept == {name: number for name in METADATA.tables if (number := count(url, name))}
    assert [] == find_words(url, GONE)


def test_a_cluster_is_not_deleted_while_it_is_scanned(town: SqlStore, url: str) -> None:
    """The message names the scan; when it has ended, the cluster can be deleted."""
    scanned = Round(cluster=cluster_of(GONE))
    town.begin(scanned.start(90))

    with pytest.raises(UsageError, match=f"Scan scan-90 of {GONE} is running: run the command again when the scan has"):
        delete_cluster(url, GONE, DAWN)
    town.write_page("scan-90", scanned.page())
    town.finish("scan-90", scanned.end(90))
    assert 1 == len(delete_cluster(url, GONE, DAWN))


def test_a_cluster_is_not_deleted_while_a_run_begins(town: SqlStore, url: str) -> None:
    """The run would begin another history."""
    begun = town.begin_run(GONE)

    with pytest.raises(UsageError, match=f"Run {begun} of {GONE} has not ended"):
        delete_cluster(url, GONE, DAWN)
    town.end_run(begun, exit_code=4)
    assert 1 == len(delete_cluster(url, GONE, DAWN))


def test_a_scan_whose_process_is_gone_keeps_no_cluster(town: SqlStore, url: str) -> None:
    """It has failed, even if no scan has marked it yet."""
    town.begin(Round(cluster=cluster_of(GONE)).start(90))
    execute(url, "UPDATE scans SET host = 'elsewhere' WHERE id = 'scan-90'")

    assert 1 == len(delete_cluster(url, GONE, DAWN + timedelta(days=1)))
    assert [] == problems_of(url)


def test_other_clusters_are_scanned_meanwhile(town: SqlStore, url: str) -> None:
    """A scan begins before the deletion, and others begin and end while it lasts."""
    running = Round((finding("shared"), finding("later")), cluster=cluster_of(WORDS[1]))
    town.begin(running.start(90))
    ready, done = Event(), Event()

    def scans() -> int:
        number = 100
        with open_store(url, clock) as other:
            while not done.is_set() or number == 100:
                Round((finding("shared"),), cluster=cluster_of(WORDS[2])).record(other, number)
                number += 1
                ready.set()
        return number - 100

    with ThreadPoolExecutor(1) as threads:
        scanning = threads.submit(scans)
        ready.wait(60)
        try:
            delete_cluster(url, GONE, DAWN)
        finally:
            done.set()
        made = scanning.result(120)
    town.write_page("scan-90", running.page())
    town.finish("scan-90", running.end(90))

    assert made == sum(each.id.startswith("scan-1") and len(each.id) > len("scan-99") for each in town.scans(1000))
    assert [] == [*problems_of(url), *find_words(url, GONE)]


MOMENTS = (0.0, 0.02, 0.05)
"""Seconds after the first transaction of a deletion at which it is killed."""


def test_a_killed_deletion_is_continued(town: SqlStore, url: str) -> None:
    """Killed at any time, the database has no problem, the cluster is in no list, and the next deletion ends it."""
    before = answers(town, url, OTHERS)
    problems: list[object] = []
    for moment in MOMENTS:
        kill_a_deletion(url, moment)
        problems += [*problems_of(url), *(name for name in names_of(town) if name == GONE)]
    if tombstones(url)[0]["ended_at"] is None:
        delete_cluster(url, GONE, DAWN)

    assert [] == [*problems, *problems_of(url), *find_words(url, GONE)]
    assert before == answers(town, url, OTHERS)
    assert [(1, *OF_GONE)] == [(each["number"], each["scans"], each["runs"]) for each in tombstones(url)]


def kill_a_deletion(url: str, moment: float) -> None:
    """Run a deletion, and kill it some seconds after its first transaction, unless it ends before."""
    with subprocess.Popen([sys.executable, "-c", DELETE, url, GONE], stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not tombstones(url):
            time.sleep(0.005)
        time.sleep(moment)
        process.kill()
        process.wait()


@pytest.fixture
def halfway(town: SqlStore, url: str) -> SqlStore:
    """A store in which a deletion failed when the rows of scans were deleted, and those of findings were not."""
    if url.startswith("postgresql"):
        body = "BEGIN RAISE EXCEPTION 'no space left on device'; END"
        execute(url, f"CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$")
        execute(url, "CREATE TRIGGER fails BEFORE DELETE ON findings EXECUTE FUNCTION fails()")
        drop = "DROP FUNCTION fails CASCADE"
    else:
        execute(url, "CREATE TRIGGER fails BEFORE DELETE ON findings BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
        drop = "DROP TRIGGER fails"
    with pytest.raises(StoreError, match="the disk is full"):
        delete_cluster(url, GONE, DAWN)
    execute(url, drop)
    return town


def test_half_a_deletion_is_no_problem(halfway: SqlStore, url: str) -> None:
    """The cluster is in no list, the others read as before, and `assay db check` has no problem."""
    assert list(OTHERS) == names_of(halfway)
    assert [None] == [each["ended_at"] for each in tombstones(url)]
    assert [] == problems_of(url)
    assert set(OTHERS) == {each.cluster.name for each in halfway.newest_scans()}


def test_half_a_deletion_is_ended_by_the_same_command(halfway: SqlStore, url: str) -> None:
    """Though a scan has begun a new history under the name: that one stays, until the command is repeated."""
    Round((finding(f"{GONE}-web"),), cluster=cluster_of(GONE)).record(halfway, 90)
    first, kept = delete_cluster(url, GONE, DAWN), names_of(halfway)
    second = delete_cluster(url, GONE, DAWN)

    assert [(1, True)] == [(each.tombstone, each.continued) for each in first]
    assert GONE in kept
    assert [(2, False, 1)] == [(each.tombstone, each.continued, each.scans) for each in second]
    assert [] == [*problems_of(url), *find_words(url, GONE)]


def test_a_deletion_that_lacks_its_last_step_is_ended_by_the_same_command(town: SqlStore, url: str) -> None:
    """Only the end of the tombstone was not written: the cluster is in no table any more."""
    delete_cluster(url, GONE, DAWN)
    execute(url, "UPDATE deleted_clusters SET ended_at = NULL")

    assert [(1, True)] == [(each.tombstone, each.continued) for each in delete_cluster(url, GONE, DAWN)]
    assert list(OTHERS) == names_of(town)


def test_half_a_deletion_is_ended_before_another_one(halfway: SqlStore, url: str) -> None:
    """The next deletion of any cluster ends it first."""
    results = delete_cluster(url, WORDS[0], DAWN)

    assert [(1, GONE, True), (2, WORDS[0], False)] == [(each.tombstone, each.name, each.continued) for each in results]
    assert [] == [*problems_of(url), *find_words(url, GONE)]


def test_a_prune_of_half_a_deleted_cluster_is_harmless(halfway: SqlStore, url: str) -> None:
    """It deletes what scans shared, and the deletion is ended later."""
    prune(url, RetentionRule(1), ended(90))
    between = problems_of(url)
    delete_cluster(url, GONE, DAWN)

    assert [] == [*between, *problems_of(url), *find_words(url, GONE)]


@pytest.mark.usefixtures("store")
def test_scans_that_leave_no_moment_are_named(url: str) -> None:
    """On PostgreSQL, a scan that begins or ends may refer to any shared text: the command states what to do."""
    if not url.startswith("postgresql"):
        return
    engine = make_engine(address_of(url))
    seconds = iter(range(0, 10_000, 30))
    with open_store(url, clock) as store:
        Round(cluster=cluster_of(GONE)).record(store, 1)
    with writing(engine) as scan:
        share_texts(scan)
        with pytest.raises(StoreError, match="Run the command again when no scan runs"):
            delete_cluster(url, GONE, DAWN, timer=lambda: float(next(seconds)))
    engine.dispose()
    assert [True] == [each.continued for each in delete_cluster(url, GONE, DAWN)]


@pytest.mark.usefixtures("town")
def test_a_database_that_cannot_be_written_keeps_the_cluster(url: str) -> None:
    """The message names the database and the reason."""
    if url.startswith("postgresql"):
        read_only = url.replace(
            "options=-csearch_path%3D", "options=-cdefault_transaction_read_only%3Don+-csearch_path%3D"
        )
    else:
        raising = "SELECT RAISE(ABORT, 'attempt to write a readonly database')"
        execute(url, f"CREATE TRIGGER fails BEFORE INSERT ON deleted_clusters BEGIN {raising}; END")
        read_only = url

    with pytest.raises(StoreError, match=r"The database .* cannot be written"):
        delete_cluster(read_only, GONE, DAWN)
    assert (1, 0) == (count(url, f"clusters WHERE name = '{GONE}'"), len(tombstones(url)))


def test_a_missing_database_is_not_created(tmp_path: object) -> None:
    """As with the other commands that maintain a database."""
    with pytest.raises(UsageError, match="does not exist"):
        delete_cluster(f"{tmp_path}/none.db", GONE, DAWN)
