"""Makes lists of the tallies, daily tallies and gaps that older versions stored as rows: the step between migrations 0033 and 0034.

A transaction makes the lists of some scans, and what it has done shows in their rows: an upgrade that was killed continues where it
was. No row changes or goes before migration 0034 drops the tables. Closing sums stay: they are about the same logical rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Update,
    func,
    inspect,
    select,
    text,
    update,
)

from scanner.store.database.engine import is_among, share_texts, writing_shared
from scanner.store.rows.daily_lists import write_daily_lists
from scanner.store.rows.gap_lists import GapRow, write_gaps
from scanner.store.rows.tables import DAILY_KEYS, DAYS, SCANS
from scanner.store.rows.tally_lists import TallyRow, write_tallies

_OLD: Final = MetaData()
_TALLIES: Final = Table(
    "tallies",
    _OLD,
    *(Column(name, Integer) for name in ("scan", "check", "kind")),
    *(Column(name, String) for name in ("namespace", "outcome")),
    Column("count", Integer),
    Column("requester", Boolean),
)
_GAPS: Final = Table(
    "gaps",
    _OLD,
    *(Column(name, Integer) for name in ("scan", "position")),
    *(Column(name, String) for name in ("kind", "where", "why")),
)
_DAILY: Final = Table("daily", _OLD, *(Column(name, Integer) for name in ("day", "key", "count")))

_MOST_ROWS: Final = 100_000
"""The rows of one table of which a transaction makes lists, or those of one scan."""


class _OldRows(NamedTuple):
    """A table of rows, the owners of which get a list each: where they are found, and how their lists are written."""

    table: Table
    owner: Column[Any]
    missing: Select[int]
    write: Callable[[Connection, Sequence[int]], None]


def make_lists(engine: Engine) -> None:
    """Make all lists, in short transactions."""
    done = False
    while not done:
        with writing_shared(engine) as connection:
            # Another process may have ended the upgrade meanwhile.
            done = not inspect(connection).has_table(_TALLIES.name) or not _make_some(connection)


def make_last_lists(connection: Connection) -> None:
    """Make the lists of what a scan of an older version has written meanwhile; nothing else writes the rows until the end of the transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE tallies, daily, gaps IN ACCESS EXCLUSIVE MODE"))
    while _make_some(connection):
        pass


def _make_some(connection: Connection) -> bool:
    """Make the lists of some owners; return whether there were any."""
    share_texts(connection)
    for rows in _list_tables():
        if owners := list(_choose_owners(connection, rows)):
            rows.write(connection, owners)
            return True
    return False


def _list_tables() -> Iterator[_OldRows]:
    scan, day = SCANS.c, DAYS.c
    for table, column, write in (
        (_GAPS, scan.gaps, _write_gaps),
        (_TALLIES, scan.tallies, _write_tallies),
    ):
        of_scan = select(table.c.scan).where(table.c.scan == scan.number).exists()
        missing = select(scan.number).where(column.is_(None), of_scan).order_by(scan.number)
        yield _OldRows(table, table.c.scan, missing, write)
    of_day = select(_DAILY.c.day).where(_DAILY.c.day == day.number).exists()
    missing = select(day.number).where(day.tallies.is_(None), of_day).order_by(day.number)
    yield _OldRows(_DAILY, _DAILY.c.day, missing, _write_days)


def _choose_owners(connection: Connection, rows: _OldRows) -> Iterator[int]:
    """The owners of the next rows: one at least, and more as long as their rows are few."""
    next_owners = connection.execute(rows.missing.limit(100)).scalars().all()
    counted = select(rows.owner, func.count()).where(is_among(connection, rows.owner, next_owners)).group_by(rows.owner)
    counts: dict[int, int] = dict(connection.execute(counted).all())
    left = _MOST_ROWS
    for owner in next_owners:
        yield owner
        left -= counts[owner]
        if left <= 0:
            return


def _write_gaps(connection: Connection, scans: Sequence[int]) -> None:
    old = _GAPS.c
    wanted = select(old.scan, old.position, old.kind, old.where, old.why).where(is_among(connection, old.scan, scans))
    rows = connection.execute(wanted.order_by(old.scan, old.position)).all()
    for scan, several in groupby(rows, key=attrgetter("scan")):
        number = write_gaps(connection, [GapRow(*row[1:]) for row in several])
        connection.execute(_set_of_scan(scan).values(gaps=number))


def _write_tallies(connection: Connection, scans: Sequence[int]) -> None:
    old = _TALLIES.c
    columns = old.scan, old.check, old.kind, old.namespace, old.outcome, old["count"], old.requester
    rows = connection.execute(select(*columns).where(is_among(connection, old.scan, scans)).order_by(old.scan)).all()
    for scan, several in groupby(rows, key=attrgetter("scan")):
        written = write_tallies(connection, (TallyRow(*row[1:-1], bool(row[-1])) for row in several))
        connection.execute(_set_of_scan(scan).values(tallies=written.number if written else None))


def _write_days(connection: Connection, days: Sequence[int]) -> None:
    old, key = _DAILY.c, DAILY_KEYS.c
    columns = old.day, old.key, old["count"], key.namespace
    wanted = select(*columns).join(DAILY_KEYS, key.id == old.key).where(is_among(connection, old.day, days))
    rows = connection.execute(wanted.order_by(old.day)).all()
    for day, several in groupby(rows, key=itemgetter(0)):
        lists: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for _, number, count, namespace in several:
            lists[namespace][number] = count
        tallies = write_daily_lists(connection, lists.values())
        connection.execute(update(DAYS).where(DAYS.c.number == day).values(tallies=tallies))


def _set_of_scan(scan: int) -> Update:
    return update(SCANS).where(SCANS.c.number == scan)
