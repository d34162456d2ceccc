"""Findings of a database of revision 0008, on every kind of database, keep their histories."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, MetaData

from scanner.model.outcome import Finding
from scanner.model.population import Workload
from scanner.model.scans.scan import Scope
from scanner.store import open_store, upgrade
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, writing
from scanner.store.rows import codec
from scanner.store.rows.columns import (
    CheckColumns,
    KindColumns,
    VerdictColumns,
    check_values,
    kind_values,
    verdict_values,
)
from scanner.store.rows.interning import digest
from scanner.store.rows.tables import OPEN, find_migrations
from tests.store.databases import count, execute
from tests.store.made import PROD, Round, clock, finding, statuses

OLD = datetime(2026, 2, 1, 6, tzinfo=UTC)
BOTH = finding("both")
LABELS = finding("both", policy="labels")
GONE = finding("gone")


def older(url: str) -> None:
    """Make a database of revision 0008 with two scans: the second one resolved one of three findings."""
    config = Config()
    config.set_main_option("script_location", str(find_migrations()))
    engine = make_engine(address_of(url))
    with writing(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0008")
    with writing(engine) as connection:
        fill(connection)
    engine.dispose()


def fill(connection: Connection) -> None:
    """Insert the scans and the findings."""
    tables = MetaData()
    tables.reflect(connection)

    def insert(table: str, **values: Any) -> None:
        connection.execute(tables.tables[table].insert().values(values))

    insert("clusters", id=1, identity=PROD.uid, name=PROD.name)
    for number in (1, 2):
        insert(
            "scans",
            number=number,
            id=f"old-{number}",
            cluster=1,
            cluster_name=PROD.name,
            cluster_uid=PROD.uid,
            server_version="",
            source="cluster",
            started_at=OLD,
            finished_at=OLD,
            state="complete",
            scope=codec.to_text(Scope()),
            tool_version="0.1.0",
            base=number - 1,
            revision=number,
            findings=0,
            new=0,
            reopened=0,
            resolved=0,
            unchecked=0,
            host="host",
            process=1,
            process_started="",
            heartbeat=OLD,
        )
    insert("kinds", id=1, digest=digest(kind_values(BOTH)), **named(KindColumns, kind_values(BOTH)))
    insert("verdicts", id=1, digest=digest(verdict_values(BOTH)[:-1]), **named(VerdictColumns, verdict_values(BOTH)))
    for number, each in enumerate((BOTH, LABELS), start=1):
        insert("checks", id=number, digest=digest(check_values(each)), **named(CheckColumns, check_values(each)))
    insert("findings", **row(1, BOTH, check=1, until=OPEN, last_seen=None))
    insert("findings", **row(2, LABELS, check=2, until=OPEN, last_seen=None))
    insert("findings", **row(3, GONE, check=1, until=2, last_seen=1))


def named(columns: Any, values: tuple[Any, ...]) -> dict[str, Any]:
    """Columns by name."""
    return dict(zip(columns._fields, values, strict=True))


def row(number: int, each: Finding, *, check: int, until: int, last_seen: int | None) -> dict[str, Any]:
    """A row of `findings` as version 0008 wrote it."""
    return {
        "id": number,
        "cluster": 1,
        "fingerprint": bytes.fromhex(each.fingerprint),
        "since": 1,
        "until": until,
        "superseded": None,
        "first": 1,
        "event": "new",
        "reopened": 0,
        "last_seen": last_seen,
        "check": check,
        "kind": 1,
        "namespace": each.namespace,
        "name": each.name,
        "uid": each.uid,
        "resource_version": each.resource_version,
        "verdict": 1,
        "evidence": None,
    }


def test_findings_refer_to_one_row_for_each_object(fresh: str) -> None:
    """Old scans read as before; their population and workloads are not known."""
    older(fresh)
    assert upgrade(fresh)
    with open_store(fresh, clock) as store:
        first, second = store.read_scan("old-1"), store.read_scan("old-2")
        assert {(each.finding.name, each.finding.uid, each.workload) for each in first.findings()} == {
            ("both", BOTH.uid, None),
            ("gone", GONE.uid, None),
        }
        assert ({"both": "open"}, {"gone": "resolved"}) == (
            statuses(second.findings()),
            statuses(second.resolved_findings()),
        )
        assert [] == [*first.population(), *first.evaluated_objects()]
    assert (3, 2, 0) == (count(fresh, "findings"), count(fresh, "objects"), count(fresh, "population"))


def test_the_next_scan_continues_them_and_records_the_population(fresh: str) -> None:
    """Unchanged findings get no new row, and their workloads are known from that scan on."""
    older(fresh)
    upgrade(fresh)
    with open_store(fresh, clock) as store:
        scan = Round((BOTH, LABELS)).record(store, 3)
        record = store.read_scan("scan-3")
        assert (2, 0, 0) == (scan.findings, scan.new, scan.resolved)
        assert {"both": "open"} == statuses(record.findings())
        own = Workload("apps/v1", "Deployment", "shop", "both")
        assert [own, own] == [each.workload for each in record.findings()]
        assert ["both"] == [each.name for each in record.population()]
    assert (3, 1) == (count(fresh, "findings"), count(fresh, "population"))


def test_messages_with_the_marks_of_templates_stay_as_they_are(fresh: str) -> None:
    """A control character of an older message is not taken for the name of the object."""
    message = "a\x01b\x02\x03"
    older(fresh)
    execute(fresh, "UPDATE verdicts SET message = :message", message=message)
    upgrade(fresh)
    with open_store(fresh, clock) as store:
        assert {message} == {each.finding.outcome.message for each in store.read_scan("old-1").findings()}
