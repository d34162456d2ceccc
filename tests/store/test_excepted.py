"""Policy exceptions are stored with the verdict, and change no row of an older version."""

from __future__ import annotations

from sqlalchemy import create_engine, insert

from scanner.store import SqlStore
from scanner.store.rows.interning import Interner, digest
from scanner.store.rows.tables import LAST_IDS, VERDICTS
from tests.store.databases import closing_connections
from tests.store.made import Round, finding, statuses

FINDING = finding("a", excepted_by="team/let-be", denies=False)


def test_a_finding_keeps_its_exceptions(store: SqlStore) -> None:
    """The finding is read as it was written."""
    Round((FINDING,)).record(store, 1)

    assert [FINDING] == [item.finding for item in store.read_scan("scan-1").findings()]


def test_a_finding_that_becomes_excepted_stays_open(store: SqlStore) -> None:
    """An exception changes the verdict and makes no new finding."""
    Round((finding("a"),)).record(store, 1)
    Round((FINDING,)).record(store, 2)

    assert {"a": "open"} == statuses(store.read_scan("scan-2").findings())


def test_verdicts_of_older_databases_are_found_again() -> None:
    """The digest of a verdict without exceptions is that of older versions."""
    older = ("violated", "m", "Invalid", 422, False, False, "CREATE", "Deny", True)
    names = [column.name for column in VERDICTS.columns]
    with closing_connections(create_engine("sqlite://")) as engine, engine.begin() as connection:
        LAST_IDS.create(connection)
        VERDICTS.create(connection)
        connection.execute(insert(VERDICTS).values(dict(zip(names, (7, digest(older), *older, ""), strict=True))))
        assert [7, 8] == Interner(connection, VERDICTS).intern([(*older, ""), (*older, "team/let-be")])
