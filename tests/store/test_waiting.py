"""A scan waits for a database that does not answer, and for no other trouble."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Timer

import pytest
from sqlalchemy import text

from scanner.errors import CredentialsChanged, CredentialsRefused, DatabaseUnreachable, DatabaseUnusable, StoreError
from scanner.store import open_store
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, writing
from scanner.store.database.store_errors import UncertainCommit, as_store_error
from scanner.store.database.waiting import DatabaseWait
from tests.store.databases import prepared_database
from tests.store.made import Round, finding, snapshot
from tests.store.relay import Relay, refusing, relayed

AWAY = DatabaseUnreachable("The database does not answer.")


class Time:
    """A clock that a sleep moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Database:
    """A database that fails at first."""

    def __init__(self, *errors: StoreError) -> None:
        self.errors = list(errors)

    def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def waiting(seconds: float, time: Time, said: list[str] | None = None) -> DatabaseWait:
    """A wait with a clock of its own."""
    return DatabaseWait(
        seconds, report=(said if said is not None else []).append, sleep=time.sleep, count=lambda: time.now
    )


def test_a_database_that_answers_later_is_waited_for() -> None:
    """The pauses double, and the time of the wait is known."""
    time, said = Time(), list[str]()
    wait = waiting(600, time, said)

    assert "answer" == wait.until_answered(Database(*[AWAY] * 6))
    assert [1, 2, 4, 8, 15, 15] == time.slept
    assert timedelta(seconds=45) == wait.waited
    assert [
        "The database does not answer. Waiting for the database, 600 seconds at most",
        "The database answers after 45 seconds",
    ] == said


def test_a_wait_ends_with_the_error_of_the_last_try() -> None:
    """After its time, to the second."""
    time, last = Time(), DatabaseUnreachable("The last error.")

    with pytest.raises(DatabaseUnreachable, match="The last error"):
        waiting(10, time).until_answered(Database(*[AWAY] * 3, *[last] * 20))
    assert 10 == sum(time.slept)


def test_without_a_time_nothing_is_waited_for() -> None:
    """Nor is anything printed."""
    time, said = Time(), list[str]()

    with pytest.raises(DatabaseUnreachable):
        waiting(0, time, said).until_answered(Database(AWAY))
    assert ([], []) == (time.slept, said)


def test_a_signal_ends_a_wait() -> None:
    """With the error of the database."""
    time = Time()
    wait = DatabaseWait(600, stopped=lambda: time.now > 3, sleep=time.sleep, count=lambda: time.now)

    with pytest.raises(DatabaseUnreachable):
        wait.until_answered(Database(*[AWAY] * 100))
    assert [1, 2, 4] == time.slept


@pytest.mark.parametrize("error", [StoreError("The database is damaged."), CredentialsRefused("A wrong password.")])
def test_an_error_that_no_later_try_mends_ends_at_once(error: StoreError) -> None:
    """Also within a wait."""
    time = Time()

    with pytest.raises(type(error), match=str(error)):
        waiting(600, time).until_answered(Database(AWAY, error))
    assert [1] == time.slept


@pytest.mark.parametrize(
    ("state", "message", "expected"),
    [
        ("28P01", 'password authentication failed for user "assay"', CredentialsRefused),
        ("28000", 'no pg_hba.conf entry for host "10.0.0.1", user "assay"', DatabaseUnusable),
        ("3D000", 'database "assay" does not exist', DatabaseUnusable),
        ("42501", "permission denied for schema public", DatabaseUnusable),
        ("53100", "could not extend file: No space left on device", StoreError),
        ("57P03", "the database system is starting up", DatabaseUnreachable),
        ("57P01", "terminating connection due to administrator command", DatabaseUnreachable),
        ("53300", "sorry, too many clients already", DatabaseUnreachable),
    ],
)
def test_the_answer_of_a_server_decides_whether_to_wait(state: str, message: str, expected: type[StoreError]) -> None:
    """A server that starts, ends or is full answers later; a wrong password stays wrong until a user acts."""
    with refusing(state, message) as url, pytest.raises(StoreError) as raised:
        open_store(url)

    assert expected is type(raised.value), str(raised.value)


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    """A PostgreSQL database without a scan that is away."""
    with prepared_database("postgresql", tmp_path) as url, relayed(url) as relay:
        yield relay


def test_a_database_that_is_away_at_the_start_gets_its_run_late(relay: Relay) -> None:
    """The run is recorded with the time at which it began."""
    relay.give(refused=2)
    wait = DatabaseWait(60)
    with open_store(relay.url, wait=wait) as store:
        store.end_run(store.begin_run("prod"), exit_code=0)
        [run] = store.list_runs()
        late = (run.run.finished_at or run.run.started_at) - run.run.started_at

    assert timedelta(seconds=2) < wait.waited <= late + timedelta(seconds=0.1)


def test_a_scan_goes_on_when_its_database_comes_back(relay: Relay, tmp_path: Path) -> None:
    """Each page is stored once, and the history is that of a scan without the break."""
    scan = Round((finding("web"), finding("api", policy="labels"), finding("one", kind="Pod")))
    relay.give()
    with open_store(relay.url, wait=DatabaseWait(60)) as store:
        store.begin(scan.start(1))
        for page in scan.pages():
            relay.take()
            Timer(0.5, relay.give).start()
            store.write_page("scan-1", page)
        relay.take()
        Timer(0.5, relay.give).start()
        store.finish("scan-1", scan.end(1))
        broken = snapshot(store, 1)
    with open_store(f"sqlite:///{tmp_path / 'other.db'}") as other:
        scan.record(other, 1)
        assert snapshot(other, 1) == broken


def test_a_password_that_changes_during_a_scan_is_worth_another_try(relay: Relay) -> None:
    """A Job tries it again: the store was opened with the old one, and the next pod has that of now."""
    relay.give()
    with open_store(relay.url, wait=DatabaseWait(60)) as store:
        relay.take()
        relay.give(refused=100, state="28P01", message='password authentication failed for user "assay"')
        with pytest.raises(CredentialsChanged) as raised:
            store.begin_run("prod")

    assert not raised.value.needs_user


def test_a_commit_whose_answer_is_lost_is_not_repeated(relay: Relay) -> None:
    """The changes may be stored: a second try could store them twice."""
    relay.give()
    with pytest.raises(StoreError) as raised:
        end_without_database(relay)

    assert StoreError is type(raised.value)
    assert isinstance(raised.value.__cause__, UncertainCommit)


def end_without_database(relay: Relay) -> None:
    """Take the database away before the end of a transaction that writes."""
    address = address_of(relay.url)
    engine = make_engine(address)
    with as_store_error(address), writing(engine) as connection:
        connection.execute(text("SELECT 1"))
        relay.take()
