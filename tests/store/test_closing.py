"""A closed reader leaves no connection open."""

from __future__ import annotations

from scanner.store import open_store
from scanner.store.database.address import address_of
from scanner.store.database.engine import close_connections, make_reading_engine
from tests.store.made import clock


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


def _is_closed(driver: object) -> bool:
    closed = getattr(driver, "closed", None)
    if closed is not None:
        return bool(closed)
    try:
        driver.execute("SELECT 1")  # type: ignore[attr-defined] # a connection of sqlite3
    except Exception as error:  # noqa: BLE001 - the driver's own error
        return "closed" in str(error)
    return False
