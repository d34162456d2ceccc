"""What the store keeps of rules, method, pages and uncovered kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from scanner.model.resource import UserInfo
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.method import Method
from scanner.model.scans.scan import ScanEnd, ScanStart, UncoveredKind
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.problem_ids import CONTINUATION_RULES
from scanner.store import SqlStore, open_store, upgrade
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, writing
from scanner.store.rows.tables import HEAD, find_migrations
from tests.store.databases import count
from tests.store.made import Round, clock, listed

STRICT = RuleObject(RuleType.PARAM, "ConfigMap shop/limits", "a" * 64, {"data": {"maximum": "3"}})
LOOSE = replace(STRICT, digest="b" * 64, document={"data": {"maximum": "300"}})
LABELS = RuleObject(RuleType.NAMESPACE_LABELS, "shop", "c" * 64, {"metadata": {"labels": {"a": "\0é🙂"}}}, masked=True)
SCANNER = UserInfo("auditor", groups=("auditors",))
METHOD = Method(
    SCANNER,
    "audit-1",
    ("assay", "scan"),
    kyverno_compat="cli",
    network=True,
    network_to=("10.0.0.0/8",),
    workers=2,
    chunk_size=500,
)
DIGESTS = b"\x01" * 64


class Kept(Round):
    """A scan with rules, and with all that is known of how it was made."""

    def start(self, number: int, rules: tuple[RuleObject, ...] = (STRICT, LABELS)) -> ScanStart:
        """How it begins."""
        return replace(
            super().start(number),
            rules=rules,
            method=METHOD,
            policy_set_digest=f"{number}" * 64,
            description_digest="d" * 64,
        )

    def end(self, number: int) -> ScanEnd:
        """How it ends."""
        coverage = (replace(listed("Deployment"), page_digests=DIGESTS), listed("Pod"))
        uncovered = (UncoveredKind("apps/v1", "DaemonSet"), UncoveredKind("v1", "Node"))
        return replace(super().end(number), coverage=coverage, uncovered=uncovered)


def recorded(store: SqlStore, number: int, *rules: RuleObject) -> StoredScan:
    """Store a scan with rules and read it."""
    store.begin(Kept().start(number, rules))
    store.write_page(f"scan-{number}", Kept().page())
    store.finish(f"scan-{number}", Kept().end(number))
    return store.read_scan(f"scan-{number}")


def test_a_record_has_the_rules_of_the_scan(store: SqlStore) -> None:
    """Rules in their order, the method with the schema of the database, the digests, and the uncovered kinds."""
    record = recorded(store, 1, STRICT, LABELS)

    assert (STRICT, LABELS) == record.rules
    assert replace(METHOD, schema_version=HEAD, ladder=CONTINUATION_RULES) == record.method
    assert ("1" * 64, "d" * 64) == (record.scan.policy_set_digest, record.scan.description_digest)
    assert (UncoveredKind("apps/v1", "DaemonSet"), UncoveredKind("v1", "Node")) == record.uncovered
    assert [DIGESTS, b""] == [line.page_digests for line in record.coverage]


def test_an_unchanged_scan_adds_no_rule(url: str) -> None:
    """It refers to the rows of the scan before it, and so does the one after it."""
    with open_store(url, clock) as store:
        records = [recorded(store, number, STRICT, LABELS) for number in (1, 2, 3)]

    assert (2, 2, 2) == tuple(count(url, table) for table in ("rules", "scan_rules", "uncovered"))
    assert [(STRICT, LABELS)] * 3 == [record.rules for record in records]
    assert 1 == len({record.uncovered for record in records})


def test_each_scan_keeps_the_content_that_it_used(url: str) -> None:
    """A changed param is a row of its own, a content that returns is stored once, and scans with equal rules share them."""
    with open_store(url, clock) as store:
        for number, rule in enumerate((STRICT, LOOSE, STRICT), 1):
            recorded(store, number, rule)
        rules = [store.read_scan(f"scan-{number}").rules for number in (1, 2, 3)]

    assert [(STRICT,), (LOOSE,), (STRICT,)] == rules
    assert (2, 2) == tuple(count(url, table) for table in ("rules", "scan_rules"))


def test_the_digest_of_the_scan_before_is_known(store: SqlStore) -> None:
    """Two scans are compared without reading the rules of both."""
    recorded(store, 1, STRICT)
    previous = recorded(store, 2, LOOSE).previous

    assert previous
    assert "1" * 64 == previous.policy_set_digest


@pytest.mark.parametrize("state", ["complete", "failed"])
def test_what_an_older_version_did_not_record_is_not_known(fresh: str, state: str) -> None:
    """A database of schema 0009 with scans and coverage is migrated: no rules, no method, no digests, no kinds."""
    older(fresh, state)
    upgrade(fresh)
    with open_store(fresh, clock) as store:
        record = store.read_scan("old")

    assert ((), (), None) == (record.rules, record.uncovered, record.method)
    assert ("", "") == (record.scan.policy_set_digest, record.scan.description_digest)
    assert [(41, b"", "")] == [(line.objects, line.page_digests, line.digest) for line in record.coverage]


def test_scans_after_an_upgrade_record_everything(fresh: str) -> None:
    """The first of them has the old scan before it, of which the digests are not known."""
    older(fresh, "complete")
    upgrade(fresh)
    with open_store(fresh, clock) as store:
        record = recorded(store, 1, STRICT)

    assert (STRICT,) == record.rules
    assert record.previous
    assert "" == record.previous.policy_set_digest


def older(url: str, state: str) -> None:
    """Make a database of schema 0009 with one scan."""
    engine = make_engine(address_of(url))
    with writing(engine) as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(find_migrations()))
        command.upgrade(config, "0009")
        _insert(connection, "clusters", identity="6d1c", name="prod")
        _insert(connection, "scans", **_scan(state))
        coverage = {"scan": 1, "position": 0, "api_version": "v1", "kind": "Pod", "state": "listed"}
        numbers = {"objects": 41, "evaluated": 41, "pages": 1, "bytes": 900}
        _insert(connection, "coverage", **coverage, **numbers, resource_version="7", note="")
    engine.dispose()


def _scan(state: str) -> dict[str, Any]:
    texts = {"cluster_name": "prod", "cluster_uid": "6d1c", "server_version": "v1.36.0", "source": "cluster"}
    times = {"started_at": "2026-03-01 06:00:00+00:00", "heartbeat": "2026-03-01 06:05:00+00:00"}
    counts = dict.fromkeys(("base", "findings", "new", "reopened", "resolved", "unchecked"), 0)
    owner = {"host": "h", "process": 1, "process_started": ""}
    merged = {"revision": 1} if state == "complete" else {}
    named = {"id": "old", "cluster": 1, "state": state, "scope": "{}", "tool_version": "0.1.0"}
    return {**named, **texts, **times, **counts, **owner, **merged}


def _insert(connection: Connection, table: str, **values: Any) -> None:
    names, places = ", ".join(f'"{name}"' for name in values), ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({places})"), values)
