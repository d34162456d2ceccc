"""A database can be copied into another one, of either kind: it reads as before, and is verified."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import create_engine, inspect

from scanner.errors import NoScans, SchemaMismatch, StoreError, UsageError
from scanner.store import SqlStore, open_reader, open_store, upgrade
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, reading_snapshot, writing
from scanner.store.rows.tables import EVIDENCE, HEAD, METADATA
from scanner.store.upkeep.copying import CopyResult, copy_database
from scanner.store.upkeep.deletion import delete_cluster
from scanner.store.upkeep.table_streams import read_batches
from tests.store.conftest import Original
from tests.store.databases import count, database, execute, path_of, prepared_database, rows
from tests.store.made import DAWN, Round, clock, finding
from tests.store.neighbors import GONE, WORDS, answers, cluster_of, fill
from tests.store.test_integrity import problems_of
from tests.store.test_reading import ROOT, mounted
from tests.store.test_reading import fill as fill_disk

COPY = """
import sys
from scanner.store.upkeep.copying import copy_database
from tests.store.made import DAWN
copy_database(sys.argv[1], sys.argv[2], DAWN)
"""
BOTH = ("sqlite", "postgresql"), ("postgresql", "sqlite")


class Pair(NamedTuple):
    """A source with twelve clusters, and a target of the other kind without a scan."""

    source: str
    target: str


@pytest.fixture(params=BOTH, ids=["to PostgreSQL", "to SQLite"])
def pair(request: pytest.FixtureRequest, original: Original, tmp_path: Path) -> Iterator[Pair]:
    """The URLs of a source, and of a target that has tables without rows."""
    source, target = request.param
    with prepared_database(target, tmp_path) as to:
        yield Pair(source_in(source, original, tmp_path), to)


@pytest.fixture(params=BOTH, ids=["to PostgreSQL", "to SQLite"])
def new_pair(request: pytest.FixtureRequest, original: Original, tmp_path: Path) -> Iterator[Pair]:
    """The URLs of a source, and of a target that has no tables."""
    source, target = request.param
    with database(target, tmp_path) as to:
        yield Pair(source_in(source, original, tmp_path), to)


def source_in(kind: str, original: Original, folder: Path) -> str:
    """The URL of a source; a file is a copy of its own."""
    filled = original(f"{kind}:", fill)
    return filled if kind != "sqlite" else f"sqlite:///{shutil.copy(path_of(filled), folder / 'source.db')}"


def copied(pair: Pair) -> CopyResult:
    """Copy at the moment of the heartbeats of the scans."""
    return copy_database(pair.source, pair.target, DAWN)


def test_a_copy_reads_as_its_source(new_pair: Pair) -> None:
    """Reports, differences, trends, searches, runs and views of all clusters are equal."""
    result = copied(new_pair)

    with open_store(new_pair.source, clock) as source, open_store(new_pair.target, clock) as target:
        assert answers(source, new_pair.source) == answers(target, new_pair.target)
    assert [] == problems_of(new_pair.target)
    assert (len(rows(new_pair.source, "SELECT id FROM scans")), False, False) == (
        result.scans,
        result.continued,
        result.source_changed,
    )


def test_every_table_has_the_same_rows(pair: Pair) -> None:
    """In number; the result has the numbers, and tables without a row."""
    result = copied(pair)
    names = [table.name for table in METADATA.sorted_tables if table.name not in {"kube_assay", "last_ids"}]

    assert {name: count(pair.source, name) for name in names} == {name: count(pair.target, name) for name in names}
    assert result.rows == {**result.rows, **{name: count(pair.source, name) for name in names}}


def test_a_copy_goes_on(pair: Pair) -> None:
    """The next scan continues the history, is given new ids, and can be searched; a cluster can be deleted."""
    copied(pair)
    number = len(rows(pair.target, "SELECT id FROM scans"))
    with open_store(pair.target, clock) as store:
        run = store.begin_run(WORDS[1])
        Round((finding("shared"), finding("zebra")), cluster=cluster_of(WORDS[1])).record(store, 900)
        store.end_run(run, exit_code=0, scan_id="scan-900")
        hits = store.search("zebra")

    [scan] = rows(pair.target, "SELECT number, new FROM scans WHERE id = 'scan-900'")
    assert number < scan["number"]
    assert 1 == scan["new"]
    assert "zebra" in repr(hits)
    delete_cluster(pair.target, GONE, DAWN)
    assert [] == problems_of(pair.target)


def test_the_sequences_of_a_server_go_on(pair: Pair) -> None:
    """A row that is inserted without an id gets one above those that were copied."""
    if pair.target.startswith("sqlite"):
        return
    with open_store(pair.source, clock) as store:
        each = Round((finding("web"),), cluster=cluster_of(WORDS[1]))
        store.begin(each.start(900))
        for _ in range(3):
            store.write_page("scan-900", each.page())
    execute(pair.source, "UPDATE scans SET host = 'elsewhere' WHERE id = 'scan-900'")
    later = DAWN.replace(year=DAWN.year + 1)
    copy_database(pair.source, pair.target, later)
    with open_store(pair.target, clock) as store:
        Round((finding("web"),), cluster=cluster_of(WORDS[2])).record(store, 901)
    assert 1 == count(pair.target, "scans WHERE id = 'scan-901' AND state = 'complete'")


def test_the_source_is_only_read(pair: Pair) -> None:
    """Not one of its bytes, or of its rows, changes."""
    before = source_of(pair)
    copied(pair)

    assert before == source_of(pair)


def source_of(pair: Pair) -> object:
    """What the source has."""
    if pair.source.startswith("sqlite"):
        return path_of(pair.source).read_bytes()
    return {name: rows(pair.source, f"SELECT * FROM {name}") for name in METADATA.tables}


MOMENTS = (0.0, 0.1, 0.3)
"""Seconds after the begin of a copy at which it is killed."""


def test_a_killed_copy_is_continued(new_pair: Pair) -> None:
    """Nothing else opens the target meanwhile, and in the end it is a copy like any other."""
    opened = []
    for moment in MOMENTS:
        kill_a_copy(new_pair, moment)
        opened += open_quietly(new_pair.target)
    if is_copying(new_pair.target) or not has_version(new_pair.target):
        copied(new_pair)

    assert [] == opened
    with open_store(new_pair.source, clock) as source, open_store(new_pair.target, clock) as target:
        assert answers(source, new_pair.source, WORDS[:2]) == answers(target, new_pair.target, WORDS[:2])
    assert [] == problems_of(new_pair.target)


def kill_a_copy(pair: Pair, moment: float) -> None:
    """Run a copy, and kill it some seconds after its begin, unless it ends before."""
    command = [sys.executable, "-c", COPY, *pair]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not has_version(pair.target):
            time.sleep(0.01)
        time.sleep(moment)
        process.kill()
        process.wait()


def has_version(url: str) -> bool:
    """Whether a database has a schema."""
    if not url.startswith("postgresql") and not path_of(url).exists():
        return False
    engine = create_engine(url)
    try:
        return inspect(engine).has_table("alembic_version")
    finally:
        engine.dispose()


def is_copying(url: str) -> bool:
    """Whether a copy into a database has begun, and not ended."""
    return has_version(url) and bool(rows(url, "SELECT 1 FROM alembic_version WHERE version_num LIKE 'copy %'"))


def open_quietly(url: str) -> list[str]:
    """The URL if a target whose copy has not ended can be opened."""
    if not is_copying(url):
        return []
    try:
        open_reader(url, clock).close()
    except SchemaMismatch:
        return []
    return [url]


@pytest.fixture
def begun(pair: Pair) -> Pair:
    """A copy that failed at the findings, because the disk of the target was full."""
    if pair.target.startswith("postgresql"):
        body = "BEGIN RAISE EXCEPTION 'no space left on device'; END"
        execute(pair.target, f"CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$")
        execute(pair.target, "CREATE TRIGGER fails BEFORE INSERT ON findings FOR EACH ROW EXECUTE FUNCTION fails()")
        drop = "DROP FUNCTION fails CASCADE"
    else:
        fails = "SELECT RAISE(ABORT, 'disk is full')"
        execute(pair.target, f"CREATE TRIGGER fails BEFORE INSERT ON findings BEGIN {fails}; END")
        drop = "DROP TRIGGER fails"
    with pytest.raises(StoreError, match=rf"The database {address_of(pair.target).text} cannot grow: the disk is full"):
        copied(pair)
    execute(pair.target, drop)
    return pair


def test_a_begun_copy_opens_for_nothing_else(begun: Pair) -> None:
    """Every command names the one that continues the copy."""
    sentence = r"is a copy that has not ended. Run the same `assay db copy` again, which continues it"

    for use in (open_reader, open_store, upgrade):
        with pytest.raises(SchemaMismatch, match=sentence):
            use(begun.target)


def test_a_begun_copy_is_continued(begun: Pair) -> None:
    """Rows that are there are not copied again, and the copy is verified like any other."""
    before = count(begun.target, "checks")
    result = copied(begun)

    assert before > 0
    assert result.continued
    assert count(begun.source, "findings") == count(begun.target, "findings")
    assert [] == problems_of(begun.target)


def test_a_begun_copy_takes_no_other_source(begun: Pair, tmp_path: Path) -> None:
    """Rows of two databases would be mixed."""
    other = f"sqlite:///{tmp_path / 'other.db'}"
    with open_store(other, clock) as store:
        Round().record(store, 1)

    with pytest.raises(UsageError, match="has a part of a copy from another source, or the source has changed"):
        copy_database(other, begun.target, DAWN)
    assert copied(begun).continued


def test_a_copy_that_differs_is_not_opened(begun: Pair) -> None:
    """A row that was changed in the target meanwhile is found, and the table is named."""
    execute(begun.target, "UPDATE checks SET policy = 'another' WHERE id = (SELECT min(id) FROM checks)")

    with pytest.raises(StoreError, match="the table checks has other rows"):
        copied(begun)
    assert is_copying(begun.target)


@pytest.fixture
def one(store: SqlStore) -> SqlStore:
    """A store with one scan."""
    Round((finding("web"),)).record(store, 1)
    return store


@pytest.fixture
def target(tmp_path: Path) -> str:
    """The address of a file that does not exist."""
    return str(tmp_path / "new" / "copy.db")


def test_a_copy_within_one_kind(one: SqlStore, url: str, target: str) -> None:
    """The folder of a file is made, and the file is its owner's alone."""
    copy_database(url, target, DAWN)

    with open_store(target, clock) as copy:
        assert [each.id for each in one.scans()] == [each.id for each in copy.scans()]
    assert 0o600 == Path(target).stat().st_mode & 0o777


def test_nothing_is_copied_while_a_scan_runs(one: SqlStore, url: str, target: str) -> None:
    """Its result would be missing."""
    each = Round()
    one.begin(each.start(2))
    with pytest.raises(UsageError, match="Scan scan-2 is running, and the copy would lack its result"):
        copy_database(url, target, DAWN)
    one.write_page("scan-2", each.page())
    one.finish("scan-2", each.end(2))
    run = one.begin_run("prod")
    with pytest.raises(UsageError, match=f"Run {run} of prod has not ended, and the copy would lack its result"):
        copy_database(url, target, DAWN)

    assert not Path(target).exists()


@pytest.mark.usefixtures("one")
def test_a_database_is_not_copied_onto_itself(url: str, tmp_path: Path) -> None:
    """Under another name either."""
    if url.startswith("postgresql"):
        others = [url, url.replace("127.0.0.1", "localhost")]
    else:
        link = tmp_path / "link.db"
        os.link(path_of(url), link)
        others = [url, str(link), str(path_of(url).parent / ".." / path_of(url).parent.name / path_of(url).name)]

    for other in others:
        with pytest.raises(UsageError, match=r"are the same database. Name another target"):
            copy_database(url, other, DAWN)


@pytest.mark.usefixtures("one")
def test_a_target_with_data_is_refused(url: str, target: str) -> None:
    """A copy replaces nothing, also no finished copy."""
    copy_database(url, target, DAWN)

    with pytest.raises(UsageError, match=r"is not empty. Name an empty or a new one"):
        copy_database(url, target, DAWN)
    with open_store(target, clock) as copy:
        assert 1 == len(copy.scans())


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("side", ["source", "target"])
def test_another_schema_is_refused(url: str, target: str, side: str) -> None:
    """The message names the command that upgrades it."""
    open_store(target, clock).close()
    older = url if side == "source" else f"sqlite:///{target}"
    execute(older, "UPDATE alembic_version SET version_num = '0031'")

    with pytest.raises(SchemaMismatch, match="run: assay db upgrade"):
        copy_database(url, target, DAWN)
    # Other tests have the same database of PostgreSQL.
    execute(older, f"UPDATE alembic_version SET version_num = '{HEAD}'")


def test_a_source_without_data_is_named(tmp_path: Path, target: str) -> None:
    """A missing file is not created, and an empty one has nothing to copy."""
    with pytest.raises(UsageError, match=r"none\.db does not exist"):
        copy_database(str(tmp_path / "none.db"), target, DAWN)
    (tmp_path / "empty.db").touch()
    with pytest.raises(NoScans, match="has no scans"):
        copy_database(str(tmp_path / "empty.db"), target, DAWN)
    assert not Path(target).exists()


@pytest.mark.usefixtures("one")
def test_a_target_that_does_not_answer_is_named(url: str) -> None:
    """Without the password of its address."""
    with pytest.raises(StoreError, match="does not answer") as caught:
        copy_database(url, "postgresql://me:hidden@127.0.0.1:1/none", DAWN)
    assert "hidden" not in str(caught.value)


@ROOT
def test_a_full_disk_stops_a_copy(tmp_path: Path) -> None:
    """With space, it is continued."""
    source = str(tmp_path / "source.db")
    with open_store(source, clock) as store:
        for number in range(1, 6):
            Round(tuple(finding(f"{number}-{each}") for each in range(200))).record(store, number)
    with mounted(tmp_path) as place:
        target = str(place / "copy.db")
        fill_disk(place)
        with pytest.raises(StoreError, match=r"disk is full|cannot be read or written|cannot be created"):
            copy_database(source, target, DAWN)
        (place / "full").unlink()
        copy_database(source, target, DAWN)

        assert [] == problems_of(target)


def test_large_rows_come_in_small_batches(store: SqlStore, url: str) -> None:
    """So that the memory of a copy does not grow with the sizes of rows."""
    Round((finding("web"),)).record(store, 1)
    engine = make_engine(address_of(url))
    with writing(engine) as connection:
        connection.execute(
            EVIDENCE.insert(),
            [{"id": 1000 + each, "digest": bytes([each]), "reasons": "x" * 200_000} for each in range(60)],
        )
    with reading_snapshot(engine) as connection:
        sizes = [len(batch) for batch in read_batches(connection, EVIDENCE)]
    engine.dispose()

    assert 60 <= sum(sizes)
    assert 16 == max(sizes)
