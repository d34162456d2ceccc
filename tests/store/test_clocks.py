"""Dates of scans: the clock of the database, scans with a wrong date, and the scan that answers a date."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError

from scanner.errors import UsageError
from scanner.model.scans.scan import Scan, ScanState
from scanner.model.waiver import WaiverSet
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import SqlStore, open_reader, open_store, prune
from scanner.store.database.clocks import ServerClock, SteadyClock
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.scan.fakes import FakeCluster
from tests.store.databases import execute, prepared_database
from tests.store.made import DAWN, Round, finding
from tests.store.test_fixes import fixing
from tests.store.test_killed import heartbeats

A, B = finding("a"), finding("b")
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
FUTURE = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def record(store: SqlStore, scan_id: str, at: datetime, each: Round | None = None, **start: object) -> None:
    """Store a scan that begins at a moment, and ends then."""
    made = each or Round((A,))
    store.begin(replace(made.start(1), id=scan_id, started_at=at, **start))  # type: ignore[arg-type]
    for page in made.pages():
        store.write_page(scan_id, page)
    store.finish(scan_id, replace(made.end(1), finished_at=at))


def answer(store: SqlStore, moment: datetime) -> str:
    """The id of the scan that answers a moment; empty if none does. A cluster and all clusters have the same answer."""
    cluster = store.cluster()
    by_cluster = store.find_newest_scan(cluster.id, moment)
    try:
        scan = store.find_scan_at(moment)
    except UsageError:
        assert by_cluster is None
        return ""
    assert scan == by_cluster == store.find_scan_at(moment, cluster.name)
    return scan.id


@pytest.fixture
def ahead(tmp_path: Path) -> Iterator[str]:
    """A PostgreSQL database whose clock is five hours ahead of that of this machine."""
    with prepared_database("postgresql", tmp_path) as url:
        later = "$$SELECT pg_catalog.clock_timestamp() + interval '5 hours'$$"
        execute(url, f"CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS {later}")
        options = {"options": "-csearch_path=public,pg_catalog"}
        yield make_url(url).update_query_dict(options).render_as_string(hide_password=False)


def from_now(moment: datetime | None) -> int:
    """The hours from now to a moment, rounded."""
    assert moment is not None
    return round((moment - datetime.now(UTC)) / HOUR)


def test_a_file_has_no_clock_of_its_own(tmp_path: Path) -> None:
    """Its processes have the clock of their machine."""
    with open_store(str(tmp_path / "assay.db")) as store:
        assert store.now() is None


def test_the_clock_of_postgresql_dates_a_scan_of_a_machine_that_is_behind(ahead: str) -> None:
    """The difference is recorded."""
    with open_store(ahead) as store:
        scan = run(FakeCluster([]), store, Options(), scan_id="s1", clock=lambda: datetime.now(UTC))
        method = store.read_scan("s1").method

    assert method is not None
    assert (5, 5) == (from_now(scan.started_at), from_now(scan.finished_at))
    assert (5, True) == (round((method.clocks.database or 0) / 3600), method.clocks.differ)


def test_the_processes_on_postgresql_have_its_clock(ahead: str) -> None:
    """Heartbeats and runs have one clock, and readers compare with it: no machine with a wrong clock gives up a scan of another one."""
    with open_store(ahead) as store, open_reader(ahead) as reader:
        store.begin(Round().start(1))
        execute(ahead, "UPDATE scans SET host = 'another-host'")
        store.begin_run("prod")
        store.beat("scan-1")
        [heartbeat], [scan], [started] = heartbeats(ahead), reader.scans(), reader.list_runs()

    assert (5, 5, ScanState.RUNNING) == (from_now(heartbeat), from_now(started.run.started_at), scan.state)


def test_a_scan_is_dated_by_the_latest_of_three_clocks(url: str) -> None:
    """In the database, too, with the differences; a file has no clock that could be the latest."""
    with open_store(url, lambda: NOON + 3 * HOUR) as store:
        scan = run(FakeCluster([], time=NOON + HOUR), store, Options(), scan_id="s1", clock=lambda: NOON)
        method = store.read_scan("s1").method
    latest, database = (HOUR, None) if url.startswith("sqlite") else (3 * HOUR, 3 * 3600)

    assert method is not None
    assert (NOON + latest, NOON + latest) == (scan.started_at, scan.finished_at)
    assert (3600, database) == (method.clocks.api_server, method.clocks.database)


def test_a_clock_that_was_set_back_changes_no_earlier_answer(store: SqlStore) -> None:
    """The clock of its machine is five hours late, and that of the API server dates the scan."""
    for hours in (0, 1):
        scan_at(store, f"scan {hours}", NOON + hours * HOUR, NOON + hours * HOUR)
    moments = [NOON - 4 * HOUR, NOON, NOON + HOUR, NOON + 1.5 * HOUR]
    before = [answer(store, moment) for moment in moments]
    late = scan_at(store, "late", NOON - 3 * HOUR, NOON + 2 * HOUR)

    assert ["", "scan 0", "scan 1", "scan 1"] == before
    assert before == [answer(store, moment) for moment in moments]
    assert (NOON + 2 * HOUR, "late") == (late.started_at, answer(store, NOON + 2 * HOUR))


def scan_at(store: SqlStore, scan_id: str, own: datetime, server: datetime) -> Scan:
    """A scan, given the times of its machine and of the API server."""
    return run(FakeCluster([], time=server), store, Options(), scan_id=scan_id, clock=lambda: own)


def test_the_latest_date_up_to_a_moment_answers_it(store: SqlStore) -> None:
    """A scan whose clocks were all set back answers for its own date, and takes no answer from a scan with a later one."""
    record(store, "morning", NOON - 3 * HOUR)
    record(store, "noon", NOON)
    record(store, "set back", NOON - HOUR)

    moments = (NOON - 4 * HOUR, NOON - 2 * HOUR, NOON - HOUR / 2, NOON, NOON + DAY)
    assert ["", "morning", "set back", "noon", "noon"] == [answer(store, moment) for moment in moments]


def test_of_two_scans_with_one_date_the_later_one_answers(store: SqlStore) -> None:
    """Its revision is higher."""
    record(store, "first", NOON)
    record(store, "second", NOON)

    assert "second" == answer(store, NOON)


@pytest.fixture
def wrong(store: SqlStore) -> SqlStore:
    """Scans of two days, and between them one of 2030."""
    record(store, "first", NOON, waivers=WaiverSet(faults=("first",)))
    record(store, "future", FUTURE, Round((A, B)), waivers=WaiverSet(faults=("future",)))
    record(store, "second", NOON + DAY, Round((B,)))
    return store


def test_a_scan_of_2030_dates_no_later_scan(wrong: SqlStore) -> None:
    """Each keeps the date of its own clocks."""
    dates = {scan.id: scan.finished_at for scan in wrong.scans()}
    assert {"first": NOON, "future": FUTURE, "second": NOON + DAY} == dates


def test_a_scan_of_2030_hides_no_later_scan(wrong: SqlStore) -> None:
    """The last scan is the last of history, and a date has the answer of its own scan."""
    latest, newest = wrong.latest_scan("prod"), wrong.newest_scans()[0]

    assert latest is not None
    assert newest.newest is not None
    assert newest.complete is not None
    assert {"second"} == {latest.id, newest.newest.id, newest.complete.id, wrong.all_clusters().clusters[0].newest}
    assert ["first", "second", "second"] == [answer(wrong, NOON + number * DAY) for number in (0, 1, 300)]


def test_a_scan_of_2030_is_not_the_last_complete_scan(wrong: SqlStore) -> None:
    """Else no alert would notice until 2030 that no scan is complete any more."""
    dates = wrong.all_clusters().clusters[0].last.complete, wrong.read_scan("second").register().last_complete
    assert (NOON + DAY, NOON + DAY) == dates


def test_a_scan_of_2030_is_on_no_day_before(wrong: SqlStore) -> None:
    """A trend until today has the days of the other scans."""
    cluster, since, until = wrong.cluster("prod").id, NOON.date(), date(2026, 6, 1)
    recorded = wrong.days(cluster, since, until)
    by_policy = wrong.trend_of_policies(cluster, since, {"violated"}, until=until)
    by_day = wrong.trend_of_days(cluster, since, lambda _: True, until=until)
    with wrong.trend(cluster, since, until=until) as trend:
        tallies = list(trend.tallies)

    assert ["first", "second"] == [day.scan for day in recorded]
    assert recorded == by_policy.days == by_day.days == trend.days
    assert [NOON.date(), (NOON + DAY).date()] == sorted(by_day.outcomes)
    assert {"replicas": {NOON.date(): 1, (NOON + DAY).date(): 1}} == by_policy.failing
    assert 2 == len(tallies)


def test_a_scan_of_2030_has_no_waivers_for_earlier_days(wrong: SqlStore) -> None:
    """A later scan has those of the last scan that read some by then."""
    waivers = wrong.find_waivers_at("second", NOON + DAY), wrong.find_waivers_at("future", FUTURE)
    assert [("first",), ("future",)] == [each.faults for each in waivers if each]


def test_a_problem_of_2030_is_no_older_than_its_scan(wrong: SqlStore) -> None:
    """It is open since the scan that found it."""
    [stored] = [each for each in wrong.read_scan("second").findings() if each.finding.name == "b"]
    assert ("open", FUTURE) == (stored.status, stored.opened_at)


def test_a_problem_that_was_fixed_in_2030_is_in_no_period_before(store: SqlStore) -> None:
    """Each day has the fixes of its own scans."""
    for at, fixed in ((NOON, ()), (NOON + DAY, (A,)), (FUTURE, (A, B))):
        record(store, f"scan of {at:%Y-%m-%d}", at, fixing((A, B), fixed))
    cluster = store.cluster().id

    periods = [store.times_to_fix(cluster, NOON.date(), until) for until in (date(2026, 6, 1), FUTURE.date())]
    assert [[1], [2]] == [[each.problems for each in times] for times in periods]


def test_the_latest_date_of_a_day_counts(store: SqlStore) -> None:
    """A scan whose clock was set back changes no tally of the day."""
    record(store, "noon", NOON, Round((A, B)))
    record(store, "set back", NOON - HOUR, Round((A,)))

    assert [("noon", 2)] == [(day.scan, day.findings) for day in store.days(store.cluster("prod").id, NOON.date())]


def test_the_latest_date_of_a_month_is_kept(store: SqlStore, url: str) -> None:
    """It answers the end of the month before and after the prune."""
    record(store, "noon", NOON)
    record(store, "set back", NOON - HOUR)
    record(store, "today", NOON + 40 * DAY)
    prune(url, RetentionRule(1, months=1), NOON + 40 * DAY)

    assert frozenset({"set back"}) == store.find_pruned_scans(store.scans())
    assert "noon" == answer(store, NOON + 20 * DAY)


def test_scans_are_compared_in_the_order_of_history(wrong: SqlStore) -> None:
    """Not in that of their dates."""
    assert ("future", "second") == wrong.order_scans("second", "future")


def test_a_dead_scan_ends_no_earlier_than_it_began(store: SqlStore, url: str) -> None:
    """Its date is that of the API server, which is ahead of the clock of its heartbeats."""
    store.begin(replace(Round().start(1), started_at=DAWN + HOUR))
    execute(url, "UPDATE scans SET process_started = '1'")
    [seen] = store.scans()
    store.begin(Round().start(2))
    [_, marked] = store.scans()

    assert (ScanState.FAILED, DAWN + HOUR) == (seen.state, seen.finished_at) == (marked.state, marked.finished_at)


class Server:
    """A server whose clock is an hour ahead of a counter of seconds."""

    def __init__(self) -> None:
        self.counter = 0.0
        self.asked = 0
        self.answers = True

    def __call__(self) -> datetime:
        self.asked += 1
        if not self.answers:
            raise OperationalError("SELECT clock_timestamp()", None, ConnectionRefusedError())
        return NOON + timedelta(seconds=self.counter, hours=self.asked)


def test_the_clock_of_a_server_is_asked_once_a_minute() -> None:
    """Between two answers it counts on, so that no question of a page needs another one."""
    server = Server()
    clock = ServerClock(server, lambda: server.counter)
    server.counter = 60
    early = clock()
    server.counter = 61

    assert (NOON + HOUR + timedelta(seconds=60), NOON + 2 * HOUR + timedelta(seconds=61)) == (early, clock())
    assert 2 == server.asked


def test_a_server_that_does_not_answer_leaves_its_clock_running() -> None:
    """Its last answer counts: a heartbeat never raises."""
    server = Server()
    clock = ServerClock(server, lambda: server.counter)
    server.answers = False
    server.counter = 600

    assert NOON + HOUR + timedelta(seconds=600) == clock()


def test_a_steady_clock_counts_the_seconds_that_pass() -> None:
    """Also if the clock of the machine is set back."""
    counter = iter((5.0, 65.0))
    clock = SteadyClock(NOON, lambda: next(counter))
    assert NOON + timedelta(minutes=1) == clock()
