"""Connections to PostgreSQL: one that was idle is tested before it is used, one that was used a moment ago is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from scanner.store.database import engine as idle_connections
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, make_reading_engine
from tests.store.databases import database

_MADE = {"writing": make_engine, "reading": make_reading_engine}
PROCESS = text("SELECT pg_backend_pid()")


@pytest.fixture(params=["writing", "reading", "limited"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An engine of each kind with one connection in its pool."""
    with database("postgresql", tmp_path) as url:
        address = address_of(url)
        engine = make_reading_engine(address, 5) if request.param == "limited" else _MADE[request.param](address)
        _process(engine)
        yield engine
        engine.dispose()


def _process(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(PROCESS).scalar_one())


def test_an_idle_connection_that_the_server_ended_is_replaced(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader after a restart of the database does not see the restart."""
    monkeypatch.setattr(idle_connections, "_IDLE", 0.0)
    ended = _process(engine)
    other = create_engine(engine.url.set(drivername="postgresql+psycopg"))
    with other.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:process, 5000)"), {"process": ended})
    other.dispose()
    assert ended != _process(engine)


@pytest.mark.parametrize(("idle", "tests"), [(3_600.0, 0), (0.0, 1)])
def test_a_connection_is_tested_only_after_it_was_idle(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, idle: float, tests: int
) -> None:
    """A test is a message of its own, and pages take hundreds of connections a second."""
    monkeypatch.setattr(idle_connections, "_IDLE", idle)
    tested: list[object] = []
    monkeypatch.setattr(engine.dialect, "do_ping", tested.append)
    same = _process(engine)
    assert same == _process(engine)
    assert 2 * tests == len(tested)
