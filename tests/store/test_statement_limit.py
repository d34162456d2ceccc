"""A query that takes too long ends, and the connection answers the next one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from scanner.errors import QueryTooLong
from scanner.store.database.address import Address, address_of
from scanner.store.database.engine import make_reading_engine, reading_snapshot
from scanner.store.database.store_errors import as_store_error

LIMIT = 0.5
LONG = {
    "sqlite": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n WHERE x < 0",
    "postgresql": "SELECT pg_sleep(30)",
}
ROWS = {
    "sqlite": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000) SELECT x FROM n",
    "postgresql": "SELECT generate_series(1, 20000)",
}


@pytest.fixture
def address(url: str) -> Address:
    """A database that exists."""
    return address_of(url)


@pytest.fixture
def engine(address: Address) -> Iterator[Engine]:
    """An engine whose queries take half a second at most."""
    engine = make_reading_engine(address, LIMIT)
    yield engine
    engine.dispose()


def test_a_long_query_ends(engine: Engine, address: Address) -> None:
    """As an error of its own, so that the reader can be told to ask for less."""
    begin = time.monotonic()
    with pytest.raises(QueryTooLong, match="takes too long"), as_store_error(address), engine.connect() as connection:
        connection.execute(text(LONG[engine.dialect.name])).fetchall()
    assert time.monotonic() - begin < 5
    with engine.connect() as connection:
        assert 1 == connection.execute(text("SELECT 1")).scalar()


def test_a_slow_reader_of_a_long_result_is_no_long_query(engine: Engine) -> None:
    """The time in which the rows are used does not count, or little."""
    with engine.connect() as connection:
        rows = connection.execution_options(yield_per=1_000).execute(text(ROWS[engine.dialect.name]))
        read = 0
        for page in rows.partitions():
            read += len(page)
            if read in {1_000, 2_000}:
                time.sleep(1.2 * LIMIT)
    assert 20_000 == read


def test_each_query_has_its_own_time(engine: Engine) -> None:
    """Several short queries in a transaction may take longer together."""
    short = {"sqlite": "SELECT 1", "postgresql": "SELECT pg_sleep(0.2)"}[engine.dialect.name]
    with engine.connect() as connection:
        for _ in range(4):
            time.sleep(0.2)
            connection.execute(text(short)).fetchall()


@pytest.mark.parametrize("limit", [None, LIMIT])
def test_a_reader_only_reads(address: Address, limit: float | None) -> None:
    """In every transaction; those whose queries answer as of one moment see what the first of them saw."""
    engine = make_reading_engine(address, limit)
    levels = ("1", "1") if engine.dialect.name == "sqlite" else ("on, read committed", "on, repeatable read")
    for _ in range(2):
        with engine.connect() as connection:
            assert levels[0] == _transaction(connection)
        with reading_snapshot(engine) as connection:
            assert levels[1] == _transaction(connection)
    engine.dispose()


def _transaction(connection: Connection) -> str:
    shown: tuple[str, ...] = ("SHOW transaction_read_only", "SHOW transaction_isolation")
    if connection.dialect.name == "sqlite":
        shown = ("PRAGMA query_only",)
    return ", ".join(str(connection.execute(text(each)).scalar()) for each in shown)


def test_a_reader_of_the_command_line_has_no_limit(address: Address) -> None:
    """A report of a large scan takes its time."""
    engine = make_reading_engine(address)
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            assert "0" == connection.execute(text("SHOW statement_timeout")).scalar()
        else:
            assert 20_000 == len(connection.execute(text(ROWS["sqlite"])).fetchall())
    engine.dispose()
