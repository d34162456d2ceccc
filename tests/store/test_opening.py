"""Opening a database: created files, rejected databases, and their messages."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import Engine, create_engine, event, select, text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from scanner.errors import StoreError, UsageError
from scanner.model.outcome import Violated
from scanner.store import open_reader, open_store, upgrade
from scanner.store.database.address import Address, address_of
from scanner.store.database.engine import make_engine, make_reading_engine
from tests.requirements import POSTGRES
from tests.store.databases import closing_connections, count, execute
from tests.store.made import Round, clock, finding

SECRET = "hunter2+x"


@pytest.mark.parametrize("form", ["{}", "sqlite:{}", "sqlite:///{}", "sqlite+pysqlite:///{}"])
def test_a_file_and_its_folders_are_made(tmp_path: Path, form: str) -> None:
    """A path or its URL is enough; only the owner may read the file."""
    path = tmp_path / "not" / "yet" / "assay.db"
    with open_store(form.format(path), clock) as store:
        Round().record(store, 1)

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 0o700 == stat.S_IMODE(path.parent.stat().st_mode)


def test_the_write_ahead_log_is_private(tmp_path: Path) -> None:
    """The write-ahead log has the same findings as the file."""
    path = tmp_path / "assay.db"
    with open_store(str(path), clock) as store:
        Round().record(store, 1)
        modes = {stat.S_IMODE(item.stat().st_mode) for item in tmp_path.iterdir()}

    assert {0o600} == modes


def test_a_file_is_kept_safe_by_its_settings(tmp_path: Path) -> None:
    """SQLite uses the write-ahead log, foreign keys, and a timeout of a minute."""
    engine = make_engine(address_of(str(tmp_path / "assay.db")))
    with closing_connections(engine), engine.connect() as connection:
        pragmas = ("journal_mode", "foreign_keys", "busy_timeout")
        values = [connection.execute(text(f"PRAGMA {name}")).scalar() for name in pragmas]

    assert ["wal", 1, 60000] == values


@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_new_file_is_opened_while_another_process_writes_to_it(tmp_path: Path, begin: str) -> None:
    """Switching to the write-ahead log waits for the end of the other transaction, for which SQLite alone does not always wait."""
    path = tmp_path / "assay.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE other (id)")
        other.execute(begin)
        end = threading.Timer(0.3, lambda: other.execute("COMMIT"))
        end.start()
        engine = make_engine(address_of(str(path)))
        with closing_connections(engine), engine.connect() as connection:
            assert "wal" == connection.execute(text("PRAGMA journal_mode")).scalar()
        end.join()


def test_a_reopened_database_has_its_scans(fresh: str) -> None:
    """No data is kept in the process alone."""
    with open_store(fresh, clock) as store:
        Round((finding("a"),)).record(store, 1)
    with open_store(fresh, clock) as store:
        assert [finding("a")] == [item.finding for item in store.read_scan("scan-1").findings()]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "The database address is empty"),
        ("sqlite://", "in memory"),
        (":memory:", "in memory"),
        ("mysql://root@localhost/x", "of type mysql"),
        ("://", "is invalid"),
        (f"postgresql://u:{SECRET}@host:port/x", "is invalid"),
        (f"postgresql:/u:{SECRET}@host/x", "lacks the two slashes"),
        (f"postgres:u:{SECRET}@host/x", "lacks the two slashes"),
        (f"host=db user=u password={SECRET}", "keywords and values"),
        (f"password = {SECRET}", "keywords and values"),
    ],
)
def test_a_url_of_no_usable_database_is_a_usage_error(given: str, message: str) -> None:
    """The message names the valid forms."""
    with pytest.raises(UsageError, match=message) as caught:
        open_store(given)

    assert "Use a path, sqlite:PATH or postgresql://USER@HOST/DATABASE." in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("option", ["password", "PASSWORD", "sslpassword", "sslkey", "passfile", "oauth_client_secret"])
def test_an_address_is_shown_without_its_secrets(option: str) -> None:
    """Secrets in every part and encoding of the URL are masked, and in the driver's errors too."""
    address = address_of(f"postgresql://u:{quote(SECRET)}@host/x?{option}={quote(SECRET)}&connect_timeout=5")

    assert "postgresql://u:***@host/x?connect_timeout=5" == address.text
    assert "[redacted] and [redacted]" == address.mask(f"{SECRET} and {quote(SECRET)}")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_scheme_of_postgresql_is_one_address(scheme: str) -> None:
    """Providers of databases hand out each of them."""
    address = address_of(f"{scheme}://u@host/x")

    assert ("postgresql+psycopg", "postgresql://u@host/x", None) == (
        address.url.drivername,
        address.text,
        address.path,
    )


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The message has the problem, the place, the reason and the remedy."""
    (tmp_path / "file").write_text("not a folder")
    path = tmp_path / "file" / "assay.db"

    with pytest.raises(StoreError) as caught:
        open_store(str(path))

    assert (
        f"The database {path} cannot be created or written (its folder is a file). "
        "Check the permissions of its folder, or name another file with --db."
    ) == str(caught.value)


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    """The message states that the path is a folder."""
    with pytest.raises(StoreError, match="Is a directory"):
        open_store(str(tmp_path))


def test_another_kind_of_file_is_rejected_unchanged(tmp_path: Path) -> None:
    """A text file is not a database."""
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk " * 100)

    with pytest.raises(StoreError, match=r"notes\.txt is not a database .*Name another file with --db\."):
        open_store(str(path))

    assert "remember the milk " * 100 == path.read_text()


@pytest.mark.parametrize("change", [open_store, upgrade])
def test_a_database_of_another_program_is_rejected_unchanged(fresh: str, change: object) -> None:
    """No table is added to the tables of another program."""
    execute(fresh, "CREATE TABLE invoices (id INTEGER)")

    with pytest.raises(StoreError, match="has tables of another program"):
        change(fresh)  # type: ignore[operator]

    assert 0 == count(fresh, "invoices")


@contextmanager
def full_disk() -> Iterator[None]:
    """A block in which no database that is opened can grow."""

    def limit(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")

    event.listen(Engine, "connect", limit)
    try:
        yield
    finally:
        event.remove(Engine, "connect", limit)


def test_a_full_disk_is_reported_and_the_scan_stays_unfinished(tmp_path: Path) -> None:
    """The page that did not fit is missing, and earlier data can be read."""
    with open_store(str(tmp_path / "assay.db"), clock) as store:
        Round((finding("a"),)).record(store, 1)
        store.begin(Round().start(2))
        store.close()
        with full_disk(), pytest.raises(StoreError, match=r"the disk is full.*Free some space"):
            store.write_page("scan-2", Round(tuple(finding(str(number)) for number in range(999))).page())
        assert [finding("a")] == [item.finding for item in store.read_scan("scan-1").findings()]


def test_a_server_that_does_not_answer_is_named_without_the_password() -> None:
    """The message is one sentence with the address and the remedy."""
    with pytest.raises(StoreError) as caught:
        open_store(f"postgresql://auditor:{SECRET}@127.0.0.1:1/audit?password={SECRET}&connect_timeout=5")

    message = str(caught.value)
    assert message.startswith(
        "The database postgresql://auditor:***@127.0.0.1:1/audit?connect_timeout=5 does not answer"
    )
    assert message.endswith("Check that the server runs and that host and port are right.")
    assert SECRET not in message


def test_a_missing_database_of_a_server_is_named() -> None:
    """The server answers, but has no such database."""
    server = POSTGRES.require().rpartition("/")[0]
    with pytest.raises(StoreError, match=r"does not exist.*Create the database"):
        open_store(server + "/nowhere")


def test_a_missing_driver_is_reported_with_the_command_that_installs_it() -> None:
    """The driver of PostgreSQL is an extra."""
    script = "import sys; sys.modules['psycopg'] = None\nfrom scanner.store import open_store; open_store(sys.argv[1])"
    command = [sys.executable, "-c", script, f"postgresql://auditor:{SECRET}@db/audit"]
    last = subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()[-1]

    assert (
        "scanner.errors.DatabaseUnusable: The database postgresql://auditor:***@db/audit needs the PostgreSQL driver, which is "
        'not installed. Install Assay with its extra postgres, such as, in the repository: pip install ".[postgres]".'
    ) == last


def test_a_newer_database_is_rejected(own_url: str) -> None:
    """The changes of a later version are not known."""
    execute(own_url, "UPDATE alembic_version SET version_num = '9999'")

    for change in (open_store, upgrade):
        with pytest.raises(StoreError, match="created by a newer version of Assay"):
            change(own_url)


@pytest.mark.parametrize(
    "versions", [(), ("0003",), ("0009",), ("*",), ("0001", "0003")], ids=lambda versions: "+".join(versions) or "none"
)
def test_a_database_of_another_program_that_uses_alembic_is_left_alone(fresh: str, versions: tuple[str, ...]) -> None:
    """Other programs number their revisions alike, and some have applied none yet."""
    execute(fresh, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    for version in versions:
        execute(fresh, "INSERT INTO alembic_version VALUES (:version)", version=version)

    for change in (open_store, open_reader, upgrade):
        with pytest.raises(StoreError, match="has tables of another program"):
            change(fresh)
    assert len(versions) == count(fresh, "alembic_version")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("*", "created by a newer version of Assay"),
        ("0003", r"created by an older version of Assay.*run: assay db upgrade\."),
    ],
)
def test_a_version_is_known_by_its_whole_name(own_url: str, version: str, message: str) -> None:
    """A version is compared as a whole, and an older database is not upgraded without a command."""
    execute(own_url, "UPDATE alembic_version SET version_num = :version", version=version)

    for change in (open_store, open_reader):
        with pytest.raises(StoreError, match=message):
            change(own_url)


def test_a_database_without_its_version_is_rejected(own_url: str) -> None:
    """The state of its tables is not known."""
    execute(own_url, "DELETE FROM alembic_version")

    with pytest.raises(StoreError, match="has tables of another program"):
        open_store(own_url)


def test_a_current_database_needs_no_upgrade(fresh: str) -> None:
    """An upgrade creates the tables of a fresh database; a second upgrade changes nothing."""
    assert upgrade(fresh)
    assert not upgrade(fresh)


def test_the_message_of_a_database_error_quotes_no_values(own_url: str) -> None:
    """Errors of the database may quote objects; the message has the cause alone."""
    with open_store(own_url, clock) as store:
        execute(own_url, "DROP TABLE scan_policies")
        with pytest.raises(StoreError) as caught:
            store.begin(Round((finding("a", outcome=Violated(SECRET)),)).start(1))

    assert SECRET not in str(caught.value)
    assert "INSERT" not in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


def test_reading_does_not_wait_for_writing(tmp_path: Path) -> None:
    """While one process writes, another process reads the earlier data."""
    path = tmp_path / "assay.db"
    with open_store(str(path), clock) as store:
        Round((finding("a"),)).record(store, 1)
        engine = create_engine(f"sqlite:///{path}")
        with engine.connect() as writer:
            writer.exec_driver_sql("BEGIN IMMEDIATE")
            writer.exec_driver_sql("UPDATE scans SET tallies = NULL")
            counted = store.read_scan("scan-1").tallies
            writer.rollback()
        engine.dispose()

    assert 1 == sum(counted.values())


@pytest.mark.parametrize("engine_of", [make_engine, make_reading_engine])
def test_engines_share_compiled_statements(url: str, engine_of: Callable[[Address], Engine]) -> None:
    """A statement that one engine has compiled is not compiled by the next."""
    compilations = []

    class One(FunctionElement[int]):
        name = "one"
        inherit_cache = True

    @compiles(One)
    def compiled(_element: One, _compiler: object, **_: object) -> str:
        compilations.append(1)
        return "1"

    for engine in (make_engine(address_of(url)), engine_of(address_of(url))):
        with engine.connect() as connection:
            assert 1 == connection.execute(select(One())).scalar()
        engine.dispose()

    assert [1] == compilations


def test_databases_of_two_kinds_share_no_statement(tmp_path: Path) -> None:
    """A statement has another text in each."""
    urls = (f"sqlite:///{tmp_path / 'assay.db'}", POSTGRES.require())
    engines = [make_engine(address_of(url)) for url in urls]
    for engine in engines:
        engine.dispose()

    assert engines[0].dialect != engines[1].dialect
