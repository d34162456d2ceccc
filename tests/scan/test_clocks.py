"""A scan is dated by the latest of its clocks: that of its machine, of the API server, and of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from scanner.model.scans.method import ClockDifferences
from scanner.model.scans.scan import Scan
from scanner.scan.options import Options
from scanner.scan.run import run

from .fakes import NOON, FakeCluster, FakeStore

MINUTES = timedelta(minutes=1)


def scanned(
    *, server: timedelta | None = None, database: timedelta | None = None, own: Iterable[timedelta] = ()
) -> tuple[Scan, ClockDifferences]:
    """A scan at noon by the clock of its machine; the other clocks are ahead by some time, and `own` are its further readings."""
    readings = iter((timedelta(), *own))
    last = timedelta()

    def clock() -> datetime:
        nonlocal last
        last = next(readings, last)
        return NOON + last

    store = FakeStore(time=None if database is None else NOON + database)
    cluster = FakeCluster([], time=None if server is None else NOON + server)
    scan = run(cluster, store, Options(), scan_id="s1", clock=clock)
    return scan, store.starts[0].method.clocks


@pytest.mark.parametrize(
    ("server", "database", "latest"),
    [
        pytest.param(timedelta(hours=2), timedelta(hours=1), timedelta(hours=2), id="the API server is ahead"),
        pytest.param(-timedelta(hours=2), timedelta(hours=1), timedelta(hours=1), id="PostgreSQL is ahead"),
        pytest.param(-timedelta(hours=2), -timedelta(hours=1), timedelta(), id="the machine of the scan is ahead"),
        pytest.param(timedelta(seconds=40), None, timedelta(seconds=40), id="by seconds, against a file"),
        pytest.param(None, 3 * MINUTES, 3 * MINUTES, id="files"),
        pytest.param(None, None, timedelta(), id="files into a file"),
    ],
)
def test_the_latest_clock_dates_a_scan(server: timedelta | None, database: timedelta | None, latest: timedelta) -> None:
    """It may be any of them, and far ahead: a clock that was set back does not date a scan."""
    scan, _ = scanned(server=server, database=database)
    assert NOON + latest == scan.started_at


def test_a_scan_takes_as_long_as_by_the_clock_of_its_machine() -> None:
    """The differences are those of the beginning; the end is the beginning and the time that has passed."""
    scan, _ = scanned(server=timedelta(hours=2), own=[timedelta(), 7 * MINUTES])
    assert (NOON + timedelta(hours=2), NOON + timedelta(hours=2, minutes=7)) == (scan.started_at, scan.finished_at)


def test_a_clock_that_is_set_back_during_a_scan_ends_it_at_its_beginning() -> None:
    """No scan ends before it begins."""
    scan, _ = scanned(database=timedelta(hours=2), own=[timedelta(), -timedelta(hours=5)])
    assert NOON + timedelta(hours=2) == scan.started_at == scan.finished_at


def test_a_slow_answer_is_compared_with_the_moment_of_its_arrival() -> None:
    """A server that answers after ten minutes has a clock that is right."""
    _, clocks = scanned(server=10 * MINUTES, own=[10 * MINUTES])
    assert ClockDifferences(api_server=0) == clocks


def test_a_scan_records_the_differences_of_its_clocks() -> None:
    """In whole seconds, from the clock of its machine."""
    _, clocks = scanned(server=timedelta(seconds=-0.7), database=timedelta(hours=1))
    assert ClockDifferences(-1, 3600) == clocks


def test_files_have_no_clock_of_a_server() -> None:
    """Neither of an API server nor, in a file, of a database."""
    _, clocks = scanned()
    assert ClockDifferences(None, None) == clocks


@pytest.mark.parametrize(
    ("clocks", "differ"),
    [
        (ClockDifferences(), False),
        (ClockDifferences(300, 0), False),
        (ClockDifferences(301, 0), True),
        (ClockDifferences(None, -301), True),
        (ClockDifferences(-151, 150), True),
        (ClockDifferences(-150, 150), False),
    ],
)
def test_clocks_differ_by_more_than_five_minutes(clocks: ClockDifferences, *, differ: bool) -> None:
    """Any two of the three clocks count."""
    assert differ is clocks.differ
