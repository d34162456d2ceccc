"""Records of an older version belong to the right policy where policies of two languages have one name."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from scanner.model.outcome import Change, Check, CheckKind, WouldChange
from scanner.model.policy import VALIDATING
from scanner.model.scans.scan import ScanStart
from scanner.store import open_store, upgrade
from tests.store.databases import without_column, without_lists, without_shared_rows
from tests.store.made import Round, binding, clock, finding, policy, statuses

MUTATING = "MutatingAdmissionPolicy"
DRIFT = finding(
    "drifted",
    outcome=WouldChange((Change("add", "/spec/paused", value=True),)),
    check=Check(CheckKind.MUTATION, 0, "[]"),
    language=MUTATING,
)


class Both(Round):
    """A scan with a validating and a mutating policy of one name."""

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        start = super().start(number)
        return replace(
            start,
            policies=(*start.policies, policy("replicas", language=MUTATING)),
            bindings=(*start.bindings, binding("replicas", language=MUTATING)),
        )


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A database without languages, as the version before them wrote it."""
    path = tmp_path / "older.db"
    with open_store(str(path), clock) as store:
        Both((finding("a"), DRIFT)).record(store, 1)
    without_lists(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection, connection:
        without_shared_rows(connection)
        for table in ("checks", "health"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN language")
        connection.execute("ALTER TABLE scans DROP COLUMN opinion")
        without_column(connection, "findings", "evidence")
        connection.execute("DROP TABLE evidence")
        connection.execute("UPDATE checks SET digest = randomblob(16)")
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
    return path


def test_a_finding_belongs_to_the_policy_with_such_checks(older: Path) -> None:
    """A mutation belongs to the mutating policy, every other check to the validating one."""
    upgrade(str(older))
    with open_store(str(older), clock) as store:
        record = store.read_scan("scan-1")
    assert {"a": VALIDATING, "drifted": MUTATING} == {
        finding.finding.name: finding.finding.language for finding in record.findings()
    }
    assert {VALIDATING, MUTATING} == {key.language for key in record.tallies}


def test_the_same_checks_are_found_again(older: Path) -> None:
    """An upgrade of the database changes no finding."""
    upgrade(str(older))
    with open_store(str(older), clock) as store:
        Both((finding("a"), DRIFT)).record(store, 2)
        assert {"a": "open", "drifted": "open"} == statuses(store.read_scan("scan-2").findings())
    with closing(sqlite3.connect(older)) as connection:
        assert (2, 2) == tuple(
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("checks", "findings")
        )
