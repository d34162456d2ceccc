"""Evidence is stored with findings, and kept while it is the same."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from scanner.model.outcome import NO_EVIDENCE, Evidence, Reason
from scanner.store import SqlStore, open_store, upgrade
from scanner.store.rows.stored_texts import decode_evidence, encode_evidence
from tests.store.databases import count, without_column, without_lists, without_shared_rows
from tests.store.made import Round, clock, finding, statuses

WHY = Evidence(
    (Reason("object.spec.replicas", "7", "spec.replicas"), Reason("x", "no such key: x", "", "v", erred=True)), 2
)
OTHER = Evidence((Reason("object.spec.replicas", "8", "spec.replicas"),))


def evidence_by_name(store: SqlStore, scan: str) -> dict[str, Evidence]:
    """The evidence of a scan by the name of the object."""
    return {finding.finding.name: finding.finding.evidence for finding in store.read_scan(scan).findings()}


def test_evidence_reads_back_as_it_was(store: SqlStore) -> None:
    """A finding without evidence is read without evidence."""
    Round((finding("a", evidence=WHY), finding("b"))).record(store, 1)
    assert {"a": WHY, "b": NO_EVIDENCE} == evidence_by_name(store, "scan-1")


def test_each_scan_shows_the_evidence_of_its_own_time(store: SqlStore) -> None:
    """Other values make no new finding, and the record of the older scan is unchanged."""
    Round((finding("a", evidence=WHY),)).record(store, 1)
    Round((finding("a", evidence=OTHER),)).record(store, 2)
    assert ({"a": WHY}, {"a": OTHER}) == (evidence_by_name(store, "scan-1"), evidence_by_name(store, "scan-2"))
    assert {"a": "open"} == statuses(store.read_scan("scan-2").findings())


def test_a_resolved_finding_keeps_its_last_evidence(store: SqlStore) -> None:
    """A report states the reasons of a resolved finding."""
    Round((finding("a", evidence=WHY),)).record(store, 1)
    Round((finding("a", evidence=OTHER),)).record(store, 2)
    Round().record(store, 3)
    [gone] = store.read_scan("scan-3").resolved_findings()
    assert OTHER == gone.finding.evidence


def test_the_same_evidence_is_written_once(url: str) -> None:
    """Equal evidence of several objects and scans is a single row."""
    with open_store(url, clock) as store:
        for number in (1, 2):
            Round(tuple(finding(name, evidence=WHY) for name in "abc")).record(store, number)
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        counted = [
            connection.execute(text(f"SELECT count(*) FROM {name}")).scalar() for name in ("evidence", "findings")
        ]
    engine.dispose()
    assert [1, 3] == counted


def test_an_excerpt_is_that_of_the_first_scan(store: SqlStore, url: str) -> None:
    """Another excerpt alone opens no new row, and excerpts that differ by the object alone are stored once."""
    Round(tuple(finding(name, evidence=replace(WHY, excerpt=f"spec: {name}")) for name in "ab")).record(store, 1)
    Round((finding("a", evidence=replace(WHY, excerpt="spec: other")),)).record(store, 2)
    excerpts = {name: evidence.excerpt for name, evidence in evidence_by_name(store, "scan-2").items()}

    assert ({"a": "spec: a"}, 2) == (excerpts, count(url, "excerpts"))


@pytest.mark.parametrize(
    ("hostile", "expected"),
    [("a\0b", "a\ufffdb"), ("\ud800", "\ufffd"), ('"]\\', '"]\\'), ("🙂\n", "🙂\n")],
)
def test_hostile_texts_are_made_fit(store: SqlStore, hostile: str, expected: str) -> None:
    """Every database accepts the cleaned texts."""
    Round((finding("a", evidence=Evidence((Reason("e", hostile, hostile),))),)).record(store, 1)
    assert {"a": Evidence((Reason("e", expected, expected),))} == evidence_by_name(store, "scan-1")


@pytest.mark.parametrize("evidence", [NO_EVIDENCE, WHY, OTHER])
def test_the_text_of_evidence_is_complete(evidence: Evidence) -> None:
    """The noun that is read from the text equals the written noun."""
    assert evidence == decode_evidence(encode_evidence(evidence))


def test_findings_of_older_versions_have_none_until_they_are_seen_again(tmp_path: Path) -> None:
    """A later scan adds evidence to them without making them new."""
    path = tmp_path / "older.db"
    with open_store(str(path), clock) as store:
        Round((finding("a"),)).record(store, 1)
    without_lists(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection, connection:
        without_shared_rows(connection)
        connection.execute("ALTER TABLE scans DROP COLUMN opinion")
        without_column(connection, "findings", "evidence")
        connection.execute("DROP TABLE evidence")
        connection.execute("UPDATE alembic_version SET version_num = '0005'")
    upgrade(str(path))
    with open_store(str(path), clock) as store:
        Round((finding("a", evidence=WHY),)).record(store, 2)
        assert ({"a": NO_EVIDENCE}, {"a": WHY}) == (
            evidence_by_name(store, "scan-1"),
            evidence_by_name(store, "scan-2"),
        )
        assert {"a": "open"} == statuses(store.read_scan("scan-2").findings())
