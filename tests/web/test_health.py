"""`/healthz` and `/readyz`, which a kubelet asks without a token."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore
from urllib.request import urlopen

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from scanner.errors import AssayError, StoreError
from scanner.store import open_reader, open_store
from scanner.web.server.application import THREADS, application
from scanner.web.server.health import Readable, Readiness, health_routes
from scanner.web.views.library import ScanLibrary
from tests.store.databases import execute
from tests.store.made import Round, clock
from tests.web.listening import listening

SECRET = "hunter2"


class Database:
    """A database that has a trouble, or none."""

    def __init__(self) -> None:
        self.trouble: AssayError | None = None
        self.asked = 0
        self.wait: Event | None = None

    def check_tables(self) -> None:
        self.asked += 1
        if self.wait is not None:
            self.wait.wait(5)
        if self.trouble is not None:
            raise self.trouble


class Served:
    """A client of an application, its log, and a clock that stands still."""

    def __init__(self, database: Callable[[], Readable], patience: float = 5.0) -> None:
        self.log: list[str] = []
        self.time = 100.0
        readiness = Readiness(database, log=self.log.append, clock=lambda: self.time, patience=patience)
        self.client = TestClient(Starlette(routes=list(health_routes(readiness))))

    def ready(self) -> tuple[int, str]:
        """The answer of `/readyz` after two seconds."""
        self.time += 2
        response = self.client.get("/readyz")
        return response.status_code, response.text


def test_a_readable_database_is_ready() -> None:
    """The answer may not be cached."""
    database = Database()
    response = Served(lambda: database).client.get("/readyz")

    assert (200, "ok\n", "no-store") == (response.status_code, response.text, response.headers["cache-control"])


def test_a_process_answers_although_its_database_does_not() -> None:
    """A restart would not help."""
    database = Database()
    database.trouble = StoreError("down")

    assert 200 == Served(lambda: database).client.get("/healthz").status_code


def test_a_reason_has_neither_address_nor_words_of_the_driver() -> None:
    """They are in the log, once, and so is the recovery."""
    database = Database()
    message = f"The database postgresql://assay@db.internal/assay does not answer (connection to 10.0.0.5: {SECRET})."
    database.trouble = StoreError(message)
    served = Served(lambda: database)
    first = served.ready()
    again = served.ready()
    database.trouble = None
    recovered = served.ready()

    assert (503, "not ready: the database cannot be read: the log of the server has the reason\n") == first == again
    assert 200 == recovered[0]
    assert [f"not ready: {message}", "ready: the database can be read"] == served.log


def test_probes_wait_for_no_page(tmp_path: Path) -> None:
    """Pages that take long use all their threads; a kubelet without an answer would restart the server."""
    begun, release = Semaphore(0), Event()

    def slow(_: Request) -> Response:
        begun.release()
        release.wait(30)
        return PlainTextResponse("late")

    probes = health_routes(Readiness(Database))
    pages = application(ScanLibrary(f"sqlite:///{tmp_path / 'none.db'}"), [*probes, Route("/slow", slow)])
    with listening(pages) as address, ThreadPoolExecutor(THREADS) as readers:
        try:
            late = [readers.submit(_status, f"{address}/slow") for _ in range(THREADS)]
            assert all(begun.acquire(timeout=10) for _ in late)
            assert [200, 200] == [_status(f"{address}/{probe}") for probe in ("healthz", "readyz")]
            assert not any(each.done() for each in late)
        finally:
            release.set()
        assert {200} == {each.result() for each in late}


def _status(address: str) -> int:
    with urlopen(address, timeout=20) as answer:  # noqa: S310 - an address of loopback
        return int(answer.status)


def test_a_database_that_cannot_be_opened_is_not_ready() -> None:
    """As at the start of a server before its database."""

    def no_database() -> Readable:
        raise StoreError("down")

    assert 503 == Served(no_database).ready()[0]


def test_a_database_that_hangs_does_not_hold_up_the_answer() -> None:
    """One question waits for it, and no further one."""
    database = Database()
    database.wait = Event()
    served = Served(lambda: database, patience=0.02)
    answers = [served.ready() for _ in range(3)]
    database.wait.set()

    assert [(503, "not ready: the database does not answer\n")] * 3 == answers
    assert 1 == database.asked


def test_the_database_is_asked_once_a_second() -> None:
    """Anyone who reaches the port can ask."""
    database = Database()
    served = Served(lambda: database)
    for _ in range(20):
        served.client.get("/readyz")

    assert 1 == database.asked


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE alembic_version SET version_num = '0025'", "run assay db upgrade"),
        ("UPDATE alembic_version SET version_num = '9999'", "run assay serve of that version"),
        ("DROP TABLE alembic_version", "the tables of another program"),
    ],
)
def test_another_schema_is_named(tmp_path: Path, change: str, reason: str) -> None:
    """The database of a running server may be upgraded or replaced."""
    url = f"sqlite:///{tmp_path / 'assay.db'}"
    with open_store(url, clock) as store:
        Round().record(store, 1)
    with open_reader(url, clock) as reader:
        served = Served(lambda: reader)
        before = served.ready()
        execute(url, change)
        status, text = served.ready()

    assert (200, "ok\n") == before
    assert 503 == status
    assert reason in text
    assert str(tmp_path) not in text
