"""Clusters of a database of revision 0009, on every kind of database, keep their histories."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, text

from scanner.model.scans.scan import ClusterIdentity
from scanner.store import open_store, upgrade
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, writing
from scanner.store.rows.tables import find_migrations
from tests.store.databases import execute
from tests.store.made import Round, clock, finding, statuses

PROD = ClusterIdentity("prod", "6d1c", "v1.36.0", server="server-1")
POD = ClusterIdentity("in-cluster", server="server-2")
FILES = ClusterIdentity("manifests", source="files", folder="/srv/manifests")
COLUMNS = (
    "number, id, cluster, cluster_name, cluster_uid, server_version, source, started_at, finished_at, state, scope, tool_version, "
    "base, revision, findings, new, reopened, resolved, unchecked, host, process, process_started, heartbeat"
)
MOMENT = "'2026-03-01 06:00:00+00:00'"


def older(url: str) -> None:
    """Make a database of revision 0009 with a scan of each of three clusters: one with a UID, two with names alone."""
    config = Config()
    config.set_main_option("script_location", str(find_migrations()))
    engine = make_engine(address_of(url))
    with writing(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0009")
    engine.dispose()
    for number, (identity, name, uid) in enumerate(
        (("6d1c", "prod", "6d1c"), ("in-cluster", "in-cluster", ""), ("manifests", "manifests", "")), start=1
    ):
        execute(
            url, "INSERT INTO clusters VALUES (:number, :identity, :name)", number=number, identity=identity, name=name
        )
        execute(
            url,
            f"INSERT INTO scans ({COLUMNS}) VALUES (:number, :id, :number, :name, :uid, '', 'cluster', {MOMENT}, {MOMENT}, "
            f"'complete', '{{}}', '0.1.0', 0, 1, 0, 0, 0, 0, 0, 'host', 1, '', {MOMENT})",
            number=number,
            id=f"old-{number}",
            name=name,
            uid=uid,
        )


def upgraded(url: str) -> None:
    """Make an older database, and upgrade it."""
    older(url)
    assert upgrade(url)


def test_a_cluster_known_by_its_uid_goes_on(fresh: str) -> None:
    """With and without the name under which it was shown."""
    upgraded(fresh)
    with open_store(fresh, clock) as store:
        note = store.register(PROD)
        Round((finding("a"),), cluster=PROD).record(store, 1)

        assert ("", "old-1") == (note, store.find_scan("last~1", "prod").id)


def test_a_cluster_known_by_name_begins_anew_with_one_notice(fresh: str) -> None:
    """The name might have been that of several clusters."""
    upgraded(fresh)
    with open_store(fresh, clock) as store:
        notes = [store.register(POD), store.register(POD), store.register(FILES)]

    earlier = "the history of earlier scans is under --cluster-name"
    assert [
        f"the history of in-cluster begins with this scan, under {POD.key}; {earlier} in-cluster",
        "",
        f"the history of manifests begins with this scan, under folder:/srv/manifests; {earlier} manifests",
    ] == notes


def test_the_name_continues_the_history_of_earlier_scans(fresh: str) -> None:
    """Before and after the first scan without it."""
    upgraded(fresh)
    named = ClusterIdentity("manifests", source="files", given_name="manifests", folder="/srv/manifests")
    with open_store(fresh, clock) as store:
        Round((finding("a"),), cluster=FILES).record(store, 1)
        Round((finding("b"),), cluster=named).record(store, 2)
        Round((), cluster=named).record(store, 3)

        assert "old-3" == store.find_scan("last~2", "name:manifests").id
        assert {"b": "resolved"} == statuses(store.read_scan("scan-3").resolved_findings())


def test_row_ids_go_on_after_an_upgrade(fresh: str) -> None:
    """The highest id of each table is kept."""
    upgraded(fresh)
    engine = create_engine(fresh)
    with engine.connect() as connection:
        marks = {name: last for name, last in connection.execute(text("SELECT name, id FROM last_ids"))}  # noqa: C416 - rows
    engine.dispose()

    assert {"clusters": 3, "scans": 3, "findings": 0} == {
        name: marks[name] for name in ("clusters", "scans", "findings")
    }
