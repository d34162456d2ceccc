"""Temporary databases, empty and prepared ones; in PostgreSQL a schema of its own, or a database of its own that is a copy, on the given server."""

from __future__ import annotations

import atexit
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, select, text
from sqlalchemy.engine import URL, Connection, Engine, make_url

from scanner.store import open_store
from scanner.store.rows.daily_lists import read_counts_of_set
from scanner.store.rows.gap_lists import read_gaps
from scanner.store.rows.search_index import NAME as WORDS
from scanner.store.rows.tables import DAYS, METADATA, SCANS
from scanner.store.rows.tally_lists import read_tally_rows
from scanner.store.upkeep.views import VIEWS
from tests.requirements import POSTGRES

KINDS = ("sqlite", "postgresql")
Rows = list[dict[str, Any]]


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty database; without a server for it the test is skipped with the remedy."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / uuid.uuid4().hex}.db"
        return
    with _schema() as name:
        options = {"options": f"-csearch_path={name}"}
        yield _own_database().update_query_dict(options).render_as_string(hide_password=False)


@contextmanager
def prepared_database(kind: str, folder: Path) -> Iterator[str]:
    """The URL of a database with the newest schema, and no scan; skips as `database` does.

    In PostgreSQL it is a copy: the migrations of a new database take more than ten times as long.
    """
    if kind == "sqlite":
        with database(kind, folder) as url:
            open_store(url).close()
            yield url
        return
    copy, drop = _create_database(f" TEMPLATE {_template()}")
    try:
        yield copy.render_as_string(hide_password=False)
    finally:
        drop()


@cache
def _own_database() -> URL:
    """The database of this process: advisory locks are those of a database, so two processes would wait for each other in one."""
    url, drop = _create_database()
    atexit.register(drop)
    return url


@cache
def _template() -> str:
    """The name of a prepared database of this process that only copies are made of: nothing may be connected to it."""
    url, drop = _create_database()
    atexit.register(drop)
    open_store(url.render_as_string(hide_password=False)).close()
    return str(url.database)


def _create_database(options: str = "") -> tuple[URL, Callable[[], None]]:
    """Create a database on the given server; return its URL, and the function that drops it."""
    url, name = make_url(POSTGRES.require()).set(drivername="postgresql+psycopg"), f"assay_{uuid.uuid4().hex}"
    _administer(url, f"CREATE DATABASE {name}{options}")
    return url.set(database=name), partial(_administer, url, f"DROP DATABASE {name} WITH (FORCE)")


def _administer(url: URL, statement: str) -> None:
    """Execute a statement that no transaction may contain."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


@cache
def _own_engine() -> Engine:
    """Connections to the database of this process that are kept: a new one takes five times as long as emptying all tables."""
    url = _own_database()
    _KEPT[url] = create_engine(url, connect_args={"prepare_threshold": None})  # schemas differ
    return _KEPT[url]


_KEPT: dict[URL, Engine] = {}


@contextmanager
def _schema() -> Iterator[str]:
    name = f"assay_{uuid.uuid4().hex}"
    with _own_engine().begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    try:
        yield name
    finally:
        with _own_engine().begin() as connection:
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))


@contextmanager
def _changing(url: str) -> Iterator[Connection]:
    """A transaction without the store."""
    address = make_url(url)
    if kept := _KEPT.get(address.set(query={})):
        with kept.begin() as connection:
            connection.execute(text(f"SET LOCAL search_path TO {_schema_of(url)}"))
            yield connection
        return
    engine = create_engine(address)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def closing_connections(engine: Engine) -> Iterator[Engine]:
    """An engine that leaves no connection open, of which Python 3.13 warns."""
    try:
        yield engine
    finally:
        engine.dispose()


def _schema_of(url: str) -> str:
    return str(make_url(url).query["options"]).removeprefix("-csearch_path=")


def path_of(url: str) -> Path:
    """The file of a SQLite database."""
    return Path(make_url(url).database or "")


def emptied(url: str) -> None:
    """Delete the rows of all tables. TRUNCATE would replace the files of each, which takes ten times as long for a few rows."""
    statements = [f"DELETE FROM {table.name}" for table in reversed(METADATA.sorted_tables)]
    if url.startswith("postgresql"):
        statements = ["; ".join([*statements, f"DELETE FROM {WORDS}"])]  # one round trip
    else:
        statements.append(f"INSERT INTO {WORDS} ({WORDS}) VALUES ('delete-all')")
    with _changing(url) as connection:
        for statement in statements:
            connection.execute(text(statement))


def refill(url: str, original: str) -> None:
    """Replace the rows of a prepared database by those of another database of the same kind."""
    if not url.startswith("postgresql"):
        shutil.copy(path_of(original), path_of(url))
        return
    emptied(url)
    schema = _schema_of(original)
    tables = [*(table.name for table in METADATA.sorted_tables), WORDS]
    execute(url, "; ".join(f"INSERT INTO {name} SELECT * FROM {schema}.{name}" for name in tables))


def count(url: str, table: str) -> int:
    """The number of rows of a table."""
    with _changing(url) as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def execute(url: str, statement: str, **values: object) -> None:
    """Change a database without the store."""
    with _changing(url) as connection:
        connection.execute(text(statement), values)


def rows(url: str, query: str) -> Rows:
    """The rows of a query."""
    with _changing(url) as connection:
        return [dict(row._mapping) for row in connection.execute(text(query))]


def without_column(connection: sqlite3.Connection, table: str, column: str) -> None:
    """Drop a column with everything that refers to it: SQLite drops no column with a foreign key."""
    columns = [row for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != column]
    declared = ", ".join(f'"{name}" {type_}{" NOT NULL" * null}' for _, name, type_, null, *_ in columns)
    names = ", ".join(f'"{row[1]}"' for row in columns)
    connection.execute(f"CREATE TABLE remaining ({declared})")
    connection.execute(f"INSERT INTO remaining SELECT {names} FROM {table}")
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"ALTER TABLE remaining RENAME TO {table}")


_LISTS = ("tally_lists", "tally_sets", "gap_lists", "daily_lists", "daily_sets")
_ROWS = """
CREATE TABLE gaps (
    scan INTEGER NOT NULL REFERENCES scans (number), position INTEGER NOT NULL, kind VARCHAR NOT NULL,
    "where" VARCHAR NOT NULL, why VARCHAR NOT NULL, PRIMARY KEY (scan, position)
);
CREATE TABLE tallies (
    scan INTEGER NOT NULL REFERENCES scans (number), "check" INTEGER NOT NULL REFERENCES checks (id),
    kind INTEGER NOT NULL REFERENCES kinds (id), namespace VARCHAR NOT NULL, outcome VARCHAR NOT NULL,
    count INTEGER NOT NULL, requester BOOLEAN DEFAULT FALSE NOT NULL,
    PRIMARY KEY (scan, "check", kind, namespace, outcome)
);
CREATE TABLE daily (
    day INTEGER NOT NULL REFERENCES days (number), "key" INTEGER NOT NULL REFERENCES daily_keys (id),
    count INTEGER NOT NULL, PRIMARY KEY (day, "key")
)
"""
"""The tables that migration 0034 drops."""


def without_lists(url: str) -> None:
    """Undo migrations 0033 to 0035: gaps and tallies are rows again, and no cluster was deleted."""
    with _changing(url) as connection:
        for statement in (*(f"DROP VIEW IF EXISTS {name}" for name in VIEWS), *_ROWS.split(";")):
            connection.execute(text(statement))
        scans = connection.execute(select(SCANS.c.number)).scalars().all()
        days = connection.execute(select(DAYS.c.number, DAYS.c.tallies)).all()
        gaps = [(scan, *gap) for scan in scans for gap in read_gaps(connection, scan)]
        tallies = [(scan, *row) for scan in scans for row in read_tally_rows(connection, scan)]
        daily = [(day, *pair) for day, number in days for pair in read_counts_of_set(connection, number)]
        for name, old in (("gaps", gaps), ("tallies", tallies), ("daily", daily)):
            for row in old:
                values = {f"v{place}": value for place, value in enumerate(row)}
                connection.execute(
                    text(f"INSERT INTO {name} VALUES ({', '.join(f':{value}' for value in values)})"), values
                )
        for table, columns in (("scans", ("tallies", "gaps")), ("days", ("tallies",))):
            _drop_references(connection, table, columns)
        for name in _LISTS:
            connection.execute(text(f"DROP TABLE {name}"))
            connection.execute(text(f"DELETE FROM last_ids WHERE name = '{name}'"))
        connection.execute(text("DROP TABLE deleted_clusters"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0032'"))


def _drop_references(connection: Connection, table: str, columns: tuple[str, ...]) -> None:
    """Drop columns with foreign keys, which SQLite does not: the table is made anew, with the other lines of its definition."""
    if connection.dialect.name == "postgresql":
        for column in columns:
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        return
    wanted = text("SELECT sql FROM sqlite_master WHERE name = :name")
    definition = str(connection.execute(wanted, {"name": table}).scalar_one())
    lines = [line.strip().rstrip(",") for line in definition.splitlines()[1:-1]]
    gone = [f"{column} INTEGER" for column in columns] + [f"FOREIGN KEY({column})" for column in columns]
    kept = [line for line in lines if not line.startswith(tuple(gone))]
    names = ", ".join(column.name for column in METADATA.tables[table].columns if column.name not in columns)
    for statement in (
        f"CREATE TABLE remaining ({', '.join(kept)})",
        f"INSERT INTO remaining ({names}) SELECT {names} FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE remaining RENAME TO {table}",
    ):
        connection.execute(text(statement))


WITHOUT_SEARCH = (
    *(f"DROP VIEW IF EXISTS {name}" for name in VIEWS),
    "DROP TABLE closing_sums",
    "DROP TABLE list_versions",
    "DROP INDEX findings_moved_to",
    "ALTER TABLE findings DROP COLUMN moved_to",
    "ALTER TABLE scans DROP COLUMN emptiness",
    "ALTER TABLE scans DROP COLUMN preview",
    "DROP TABLE waived_checks",
    "DROP TABLE notifications",
    f"DROP TABLE {WORDS}",
    "DROP TABLE verdict_uses",
    "DROP INDEX population_by_workload",
    "DROP INDEX population_by_kept",
    "DELETE FROM last_ids WHERE name LIKE 'words of %'",
)
"""Undo migrations 0027 to 0032, after `without_lists`. PostgreSQL has another index, `objects_by_word`."""


def without_shared_rows(connection: sqlite3.Connection) -> None:
    """Undo migrations 0008 to 0032, after `without_lists`, but for foreign keys."""
    for statement in WITHOUT_SEARCH:
        connection.execute(statement)
    without_places(connection)
    connection.execute("UPDATE scans SET state = 'partial' WHERE state = 'incomplete'")
    without_waivers(connection)
    without_views(connection)
    connection.execute("ALTER TABLE scans DROP COLUMN changed_rules")
    connection.execute("DROP TABLE unchecked_now")
    without_causes(connection)
    without_retention(connection)
    without_excerpts(connection)
    without_rules(connection)
    without_identity_and_runs(connection)
    without_population(connection)
    connection.execute("DROP TABLE kube_assay")
    for name in ("policies_of", "bindings_of", "health_of", "outside_of", "matched"):
        connection.execute(f"ALTER TABLE scans DROP COLUMN {name}")
    connection.execute("ALTER TABLE scan_policies ADD COLUMN matched INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE scan_policies ADD COLUMN evaluated BOOLEAN NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE scan_bindings ADD COLUMN matched INTEGER NOT NULL DEFAULT 0")


def without_population(connection: sqlite3.Connection) -> None:
    """Undo migration 0010."""
    connection.execute("ALTER TABLE scans DROP COLUMN notes")
    for name in ("namespace", "name", "uid"):
        connection.execute(f"ALTER TABLE findings ADD COLUMN {name} VARCHAR NOT NULL DEFAULT ''")
        connection.execute(f"UPDATE findings SET {name} = (SELECT {name} FROM objects WHERE id = findings.object)")
    connection.execute("DROP TABLE kept")
    for table, column in (("findings", "object"), ("coverage", "sets"), ("staged_pages", "objects")):
        without_column(connection, table, column)
    connection.execute("ALTER TABLE staged_pages DROP COLUMN sets")
    for table in ("population", "workloads", "object_sets", "set_lists", "objects"):
        connection.execute(f"DROP TABLE {table}")


def without_places(connection: sqlite3.Connection) -> None:
    """Undo migration 0026."""
    for table in ("scan_places", "places"):
        connection.execute(f"DROP TABLE {table}")


def without_waivers(connection: sqlite3.Connection) -> None:
    """Undo migration 0022."""
    for table in ("scan_waivers", "waiver_sets", "waivers"):
        connection.execute(f"DROP TABLE {table}")


def without_views(connection: sqlite3.Connection) -> None:
    """Undo migrations 0020 and 0021."""
    connection.execute("DROP INDEX objects_by_name")
    for name in VIEWS:
        connection.execute(f"DROP VIEW IF EXISTS {name}")


def without_causes(connection: sqlite3.Connection) -> None:
    """Undo migration 0019."""
    without_column(connection, "check_names", "since")
    connection.execute("DROP INDEX findings_continues")
    for name in ("cause", "end_cause", "problem_first", "problem_opened", "continues"):
        connection.execute(f"ALTER TABLE findings DROP COLUMN {name}")
    for table in ("causes", "fixes"):
        connection.execute(f"DROP TABLE {table}")


def without_retention(connection: sqlite3.Connection) -> None:
    """Undo migration 0018."""
    for table in ("daily", "daily_keys", "days"):
        connection.execute(f"DROP TABLE {table}")
    connection.execute("ALTER TABLE scans DROP COLUMN pruned_at")


def without_excerpts(connection: sqlite3.Connection) -> None:
    """Undo migrations 0013 to 0017, but for foreign keys and the table of runs, which goes with its own migration."""
    connection.execute("ALTER TABLE scans DROP COLUMN object_counts")
    connection.execute("DROP TABLE check_names")
    for name in ("opened", "resolution", "problem"):
        connection.execute(f"ALTER TABLE findings DROP COLUMN {name}")
    connection.execute("DROP TABLE merged_pages")
    without_column(connection, "findings", "excerpt")
    connection.execute("DROP TABLE excerpts")


def without_rules(connection: sqlite3.Connection) -> None:
    """Undo migration 0012."""
    for table in ("scan_rules", "rules", "uncovered"):
        connection.execute(f"DROP TABLE {table}")
    for name in ("rules_of", "uncovered_of", "policy_set_digest", "description_digest", "method"):
        connection.execute(f"ALTER TABLE scans DROP COLUMN {name}")
    connection.execute("ALTER TABLE coverage DROP COLUMN page_digests")


def without_identity_and_runs(connection: sqlite3.Connection) -> None:
    """What migration 0011 does, undone."""
    connection.execute("DROP TABLE runs")
    connection.execute("DROP TABLE last_ids")
    connection.execute("ALTER TABLE scans DROP COLUMN silence")
    connection.execute("ALTER TABLE clusters DROP COLUMN observed")
    connection.execute("UPDATE clusters SET identity = substr(identity, instr(identity, ':') + 1)")
