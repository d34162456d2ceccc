"""Rows that scans have in common are written once, and every scan reads as if it had its own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from scanner.model.policy import VALIDATING
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import PolicyRecord, ScanEnd
from scanner.store import SqlStore, open_store, upgrade
from tests.store.databases import count, without_lists, without_shared_rows
from tests.store.made import DAWN, Round, clock, finding

NOTE = Health(HealthKind.NOTE, "replicas", "", "it is odd", VALIDATING)
OTHER = replace(NOTE, detail="it is odd in another way")
WEBHOOK = OutOfScope("ValidatingWebhookConfiguration", "gate", "its server decides")
LINES = ("scan_policies", "scan_bindings", "health", "outside")


@dataclass(frozen=True)
class Noted(Round):
    """A scan with a problem of a policy and a webhook."""

    health: tuple[Health, ...] = (NOTE,)
    outside: tuple[OutOfScope, ...] = (WEBHOOK,)

    def end(self, number: int) -> ScanEnd:
        return replace(super().end(number), health=self.health, outside=self.outside)


FIRST = Noted((finding("a"),))


def row_counts(url: str) -> list[int]:
    """The number of rows of each table."""
    return [count(url, table) for table in LINES]


def names(policies: tuple[PolicyRecord, ...]) -> list[tuple[str, int]]:
    """The policies of a record, and the numbers of objects that they matched."""
    return [(policy.policy.name, policy.matched) for policy in policies]


def test_a_scan_with_nothing_new_writes_no_shared_rows(store: SqlStore, url: str) -> None:
    """Every scan still has its policies, their health and the webhooks."""
    FIRST.record(store, 1)
    written = row_counts(url)
    for number in (2, 3):
        FIRST.record(store, number)
    assert written == row_counts(url) == [2, 2, 1, 1]
    for number in (1, 2, 3):
        record = store.read_scan(f"scan-{number}")
        assert [("replicas", 9), ("labels", 0)] == names(record.policies)
        assert ((NOTE,), (WEBHOOK,)) == (record.health, record.outside)
        assert ["replicas-binding"] == [binding.name for binding in record.policies[0].bindings]


@pytest.mark.parametrize(
    ("changed", "written"),
    [
        (replace(FIRST, policies=("replicas",)), [3, 2, 1, 1]),
        (replace(FIRST, policies=("labels", "replicas")), [4, 2, 1, 1]),
        (replace(FIRST, bound=("labels",)), [2, 3, 1, 1]),
        (replace(FIRST, health=(OTHER,)), [2, 2, 2, 1]),
        (replace(FIRST, health=()), [2, 2, 1, 1]),
        (replace(FIRST, outside=(WEBHOOK, replace(WEBHOOK, name="other"))), [2, 2, 1, 3]),
    ],
)
def test_changed_rows_are_written(store: SqlStore, url: str, changed: Noted, written: list[int]) -> None:
    """Every scan reads as it was: those before the change, and one that returns to the earlier rows."""
    for number, state in enumerate((FIRST, changed, FIRST), start=1):
        state.record(store, number)
        if number == 2:
            assert written == row_counts(url)
    for number, state in enumerate((FIRST, changed, FIRST), start=1):
        record = store.read_scan(f"scan-{number}")
        assert (list(state.policies), state.health, state.outside) == (
            [policy.policy.name for policy in record.policies],
            record.health,
            record.outside,
        )
        bound = {binding.policy_name for policy in record.policies for binding in policy.bindings}
        assert set(state.bound) & set(state.policies) == bound


def test_the_counts_of_an_older_version_are_kept(tmp_path: Path) -> None:
    """The number of objects that each policy matched was a column of the shared rows."""
    path = tmp_path / "older.db"
    with open_store(str(path), clock) as store:
        FIRST.record(store, 1)
    without_lists(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection, connection:
        without_shared_rows(connection)
        connection.execute("UPDATE scan_policies SET matched = 7 + position")
        connection.execute("UPDATE alembic_version SET version_num = '0007'")
    upgrade(str(path))
    with open_store(str(path), clock) as store:
        FIRST.record(store, 2)
        first, second = store.read_scan("scan-1"), store.read_scan("scan-2")
    assert [("replicas", 7), ("labels", 8)] == names(first.policies)
    assert [("replicas", 9), ("labels", 0)] == names(second.policies)
    assert (NOTE,) == first.health == second.health


@pytest.mark.parametrize(("seconds", "beats"), [(0, False), (9, False), (10, True), (3600, True), (-5, True)])
def test_the_heartbeat_is_written_now_and_then(url: str, seconds: int, beats: bool) -> None:  # noqa: FBT001
    """A heartbeat with every page would write a row for each."""
    moment = DAWN

    with open_store(url, lambda: moment) as store:
        store.begin(FIRST.start(1))
        moment = DAWN + timedelta(seconds=seconds)
        store.write_page("scan-1", FIRST.page())
    assert (moment if beats else DAWN).strftime("%H:%M:%S") in heartbeat(url)


def heartbeat(url: str) -> str:
    """The last heartbeat of the only scan."""
    engine = create_engine(url)
    with engine.connect() as connection:
        beat = str(connection.execute(text("SELECT heartbeat FROM scans")).scalar())
    engine.dispose()
    return beat
