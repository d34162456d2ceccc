"""A closed reader leaves no connection open, and an interrupted writer none that waits for an answer."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from sqlalchemy import Engine, text

from scanner.store import open_store
from scanner.store.database.address import address_of
from scanner.store.database.engine import close_connections, make_engine, make_reading_engine, writing
from tests.store.databases import database
from tests.store.made import clock

if TYPE_CHECKING:
    from psycopg import Connection as Driver


def test_a_connection_in_use_is_closed_when_it_is_given_back(url: str) -> None:
    """The reader may be closed by one thread while another one reads."""
    open_store(url, clock).close()
    engine = make_reading_engine(address_of(url))
    used = engine.connect()
    driver = used.connection.driver_connection
    close_connections(engine)
    used.close()
    assert driver is not None
    assert _is_closed(driver)


def test_a_connection_that_is_made_later_is_closed_too(url: str) -> None:
    """A thread may still have the engine."""
    open_store(url, clock).close()
    engine = make_reading_engine(address_of(url))
    close_connections(engine)
    with engine.connect() as late:
        driver = late.connection.driver_connection
    assert driver is not None
    assert _is_closed(driver)


def test_a_statement_that_a_signal_ended_costs_its_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It cannot be rolled back before it has an answer; nothing but the signal is reported, and the next one works."""
    with database("postgresql", tmp_path) as url:
        engine = make_engine(address_of(url))
        drivers: list[Driver] = []
        with caplog.at_level(logging.ERROR), pytest.raises(KeyboardInterrupt):
            _interrupt(engine, drivers)
        with writing(engine) as later:
            answer = later.execute(text("SELECT 2")).scalar_one()
        engine.dispose()

    assert ([], 2, [True]) == (caplog.messages, answer, [driver.closed for driver in drivers])


def _interrupt(engine: Engine, drivers: list[Driver]) -> None:
    """End a transaction while the server has not yet answered a statement of it."""
    with writing(engine) as connection:
        driver = cast("Driver", connection.connection.driver_connection)
        drivers.append(driver)
        connection.execute(text("SELECT 1"))
        driver.pgconn.send_query(b"SELECT pg_sleep(30)")
        raise KeyboardInterrupt


def _is_closed(driver: object) -> bool:
    closed = getattr(driver, "closed", None)
    if closed is not None:
        return bool(closed)
    try:
        driver.execute("SELECT 1")  # type: ignore[attr-defined] # a connection of sqlite3
    except Exception as error:  # noqa: BLE001 - the driver's own error
        return "closed" in str(error)
    return False
