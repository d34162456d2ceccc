"""Row ids are never used again: sets of ids and references outside of the database stay true."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import create_engine, text

from scanner.store import SqlStore, open_store
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, writing
from scanner.store.rows.interning import reserve_ids
from scanner.store.rows.tables import FINDINGS, SCANS
from tests.store.databases import execute
from tests.store.made import Round, clock, finding


def ids(url: str) -> list[int]:
    """The ids of the findings."""
    engine = create_engine(url)
    with engine.connect() as connection:
        ids = list(connection.execute(text("SELECT id FROM findings ORDER BY id")).scalars())
    engine.dispose()
    return ids


def test_the_id_of_a_deleted_row_is_not_used_again(store: SqlStore, url: str) -> None:
    """Not even that of the newest row."""
    Round((finding("a"), finding("b"))).record(store, 1)
    execute(url, "DELETE FROM closing_sums")  # Otherwise the row is missing, and no scan builds on it.
    execute(url, "DELETE FROM findings WHERE id = 2")
    Round((finding("c"),)).record(store, 2)

    assert [1, 3] == ids(url)


def test_the_number_of_a_deleted_scan_is_not_used_again(store: SqlStore, url: str) -> None:
    """A failed begin leaves a hole, and no number comes twice."""
    store.begin(Round().start(1))
    execute(url, "DELETE FROM scan_policies")
    execute(url, "DELETE FROM scan_bindings")
    execute(url, "DELETE FROM closing_sums")
    execute(url, "DELETE FROM scans")
    store.begin(Round().start(2))

    engine = make_engine(address_of(url))
    with writing(engine) as connection:
        following = reserve_ids(connection, SCANS, 1)
    engine.dispose()
    assert range(3, 4) == following


def test_ids_go_on_from_the_highest_row_where_no_mark_is_kept(store: SqlStore, url: str) -> None:
    """A table that a migration filled has no mark yet."""
    Round((finding("a"), finding("b"))).record(store, 1)
    execute(url, "DELETE FROM last_ids")
    Round((finding("c"),)).record(store, 2)

    assert [1, 2, 3] == ids(url)


def test_no_ids_are_reserved_for_no_rows(store: SqlStore, url: str) -> None:
    """An unchanged cluster uses none up."""
    Round((finding("a"),)).record(store, 1)
    for number in (2, 3):
        Round((finding("a"),)).record(store, number)
    Round((finding("a"), finding("b"))).record(store, 4)

    assert [1, 2] == ids(url)


def test_reservations_at_once_do_not_overlap(url: str) -> None:
    """In every order of the processes, each id is reserved once."""
    open_store(url, clock).close()
    engine = make_engine(address_of(url))

    def reserved(count: int) -> list[int]:
        with writing(engine) as connection:
            return list(reserve_ids(connection, FINDINGS, count))

    with ThreadPoolExecutor(8) as threads:
        blocks = list(threads.map(reserved, [1, 7, 3, 20, 1, 5, 2, 11] * 4))
    engine.dispose()

    every = sorted(number for block in blocks for number in block)
    assert list(range(1, 201)) == every
