"""What an older version recorded finds the policy that it is about, where policies of two languages have one name."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from scanner.model.outcome import Change, Check, CheckKind, WouldChange
from scanner.model.policy import VALIDATING
from scanner.model.scan import ScanStart
from scanner.store import open_store, upgrade
from tests.store.databases import without_column, without_lines_in_common
from tests.store.made import Round, binding, clock, finding, policy, told

MUTATING = "MutatingAdmissionPolicy"
DRIFT = finding(
    "drifted",
    outcome=WouldChange((Change("add", "/spec/paused", value=True),)),
    check=Check(CheckKind.MUTATION, 0, "[]"),
    language=MUTATING,
)


class Both(Round):
    """A scan by a validating and a mutating policy of one name."""

    def start(self, number: int) -> ScanStart:
        """How the scan begins."""
        start = super().start(number)
        return replace(
            start,
            policies=(*start.policies, policy("replicas", language=MUTATING)),
            bindings=(*start.bindings, binding("replicas", language=MUTATING)),
        )


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A database as the version before it knew of languages left it."""
    path = tmp_path / "older.db"
    with open_store(str(path), clock) as store:
        Both((finding("a"), DRIFT)).record(store, 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in ("checks", "health"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN language")
        without_lines_in_common(connection)
        connection.execute("ALTER TABLE scans DROP COLUMN opinion")
        without_column(connection, "findings", "evidence")
        connection.execute("DROP TABLE evidence")
        connection.execute("UPDATE checks SET digest = randomblob(16)")
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
    return path


def test_what_was_found_belongs_to_the_policy_that_can_have_said_it(older: Path) -> None:
    """A mutation is the mutating policy's; any other check the other's."""
    upgrade(str(older))
    with open_store(str(older), clock) as store:
        record = store.record("scan-1")
    assert {"a": VALIDATING, "drifted": MUTATING} == {
        finding.finding.name: finding.finding.language for finding in record.findings()
    }
    assert {VALIDATING, MUTATING} == {key.language for key in record.tallies}


def test_the_same_checks_are_found_again(older: Path) -> None:
    """No finding looks different because the database was upgraded."""
    upgrade(str(older))
    with open_store(str(older), clock) as store:
        Both((finding("a"), DRIFT)).record(store, 2)
        assert {"a": "open", "drifted": "open"} == told(store.record("scan-2").findings())
    with closing(sqlite3.connect(older)) as connection:
        assert (2, 2) == tuple(
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("checks", "findings")
        )
