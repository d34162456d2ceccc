"""The schema version of a database, and its upgrade.

Source of truth: Alembic's table `alembic_version` and the folder `migrations/`. An empty database gets the newest schema; one
with data is upgraded only by `assay db upgrade`. Other programs use Alembic with the same revision numbers: a database is
Assay's only if it has the table that marks it, or the tables of the versions before that mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from sqlalchemy import Connection, Dialect, Engine, delete, inspect, select, text
from sqlalchemy.schema import CreateIndex, CreateTable

from scanner.errors import NoScans, SchemaMismatch, UsageError
from scanner.store.database.address import Address
from scanner.store.database.engine import writing_shared
from scanner.store.database.sqlite_file import back_up, reject_cut_file
from scanner.store.rows.tables import HEAD, LAST_IDS, MARK, METADATA, WAIVED_CHECKS, find_migrations

_VERSIONS = "alembic_version"
_MARKED_SINCE = "0009"
_UNMARKED = frozenset(
    {"checks", "clusters", "coverage", "findings", "gaps", "policies", "scans", "tallies", "verdicts"}
)
"""The tables of every version before the mark."""

_COPYING = "copy "
"""Begins the version of a database into which `assay db copy` writes; a mark of its source follows. No version can open it."""

State: TypeAlias = Literal["fresh", "current", "older", "newer", "foreign", "copying"]


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """The result of an upgrade, which is true if the database changed. `migrated` is False for a new database.

    `backup` is the copy of the file that was made first, if any.
    """

    changed: bool
    migrated: bool = False
    backup: Path | None = None

    def __bool__(self) -> bool:
        """Return whether the database changed."""
        return self.changed


def prepare_schema(engine: Engine, address: Address) -> None:
    """Create the schema in an empty database. Raises StoreError for a database that this version cannot use, or that is cut short."""
    reject_cut_file(address)
    with engine.connect() as connection:
        state = _read_state(connection)
    if state == "fresh":
        migrate(engine, address)
    else:
        _reject_unusable(state, address)


def check_schema(engine: Engine, address: Address) -> None:
    """Check a database. Raises NoScans if it is empty, and StoreError if this version cannot read it, or if it is cut short."""
    reject_cut_file(address)
    with engine.connect() as connection:
        state = _read_state(connection)
    if state == "fresh":
        raise NoScans(f"The database {address.text} has no scans. Run: assay scan.")
    _reject_unusable(state, address)


def _reject_unusable(state: Literal["current", "older", "newer", "foreign", "copying"], address: Address) -> None:
    match state:
        case "current":
            return
        case "older":
            raise _older_error(address)
        case "newer":
            raise _newer_error(address)
        case "foreign":
            raise _foreign_error(address)
        case "copying":
            raise _copying_error(address)
        case _ as never:
            assert_never(never)


def migrate(engine: Engine, address: Address, *, backup: bool = False) -> UpgradeResult:
    """Upgrade the database to the newest schema; with `backup`, copy a SQLite file with data first. Raises StoreError."""
    reject_cut_file(address)
    with writing_shared(engine) as connection:
        match _read_state(connection):
            case "current":
                return UpgradeResult(changed=False)
            case "newer":
                raise _newer_error(address)
            case "foreign":
                raise _foreign_error(address)
            case "copying":
                raise _copying_error(address)
            case "fresh":
                _create(connection)
                return UpgradeResult(changed=True)
            case "older":
                # While this transaction lasts, nothing else can write: the copy has all that the upgrade changes.
                copy = back_up(address.path, HEAD) if backup and address.path else None
                run_migrations(connection)
                return UpgradeResult(changed=True, migrated=True, backup=copy)


def _create(connection: Connection) -> None:
    """Create the newest schema in an empty database."""
    if connection.dialect.name == "sqlite":
        _create_schema(connection)
    else:
        run_migrations(connection)


def begin_copy(engine: Engine, address: Address, source: str) -> bool:
    """Make an empty database the target of a copy, which nothing can open until `end_copy`; `source` is the mark of its source.

    Returns whether the copy was begun earlier. Raises UsageError for a database that has data, or a part of another source's;
    StoreError for one that this version cannot use.
    """
    reject_cut_file(address)
    mark = f"{_COPYING}{source}"
    with writing_shared(engine) as connection:
        state = _read_state(connection)
        if state == "copying":
            if _read_versions(connection) != [mark]:
                raise _other_copy_error(address)
            return True
        if state == "fresh":
            _create(connection)
        else:
            _reject_unusable(state, address)
            _reject_data(connection, address)
        connection.execute(delete(LAST_IDS))  # some migrations begin to count
        connection.execute(text(f"UPDATE {_VERSIONS} SET version_num = :mark"), {"mark": mark})  # noqa: S608 - a constant
        return False


def end_copy(engine: Engine) -> None:
    """Give the target of a copy the version of its schema, so that it can be opened."""
    with writing_shared(engine) as connection:
        connection.execute(text(f"UPDATE {_VERSIONS} SET version_num = :head"), {"head": HEAD})  # noqa: S608 - a constant


def _reject_data(connection: Connection, address: Address) -> None:
    for table in METADATA.sorted_tables:
        if table is LAST_IDS:
            continue
        if connection.execute(select(text("1")).select_from(table).limit(1)).first() is not None:
            raise UsageError(
                f"The database {address.text} is not empty. Name an empty or a new one: a copy adds to no data."
            )


def _read_state(connection: Connection) -> State:
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return "fresh"
    versions = _read_versions(connection) if _VERSIONS in tables else []
    revisions = _list_revisions()
    if MARK.name not in tables and not (
        _UNMARKED <= tables and set(versions) <= {version for version in revisions if version < _MARKED_SINCE}
    ):
        return "foreign"
    match versions:
        case [version] if version == HEAD:
            return "current"
        case [version] if version in revisions:
            return "older"
        case [version] if version.startswith(_COPYING):
            return "copying"
        case [_]:
            return "newer"
        case _:
            return "foreign"


def _read_versions(connection: Connection) -> list[str]:
    return [str(version) for version in connection.execute(text(f"SELECT version_num FROM {_VERSIONS}")).scalars()]  # noqa: S608 - a constant


def _list_revisions() -> frozenset[str]:
    return frozenset(path.name.partition("_")[0] for path in (find_migrations() / "versions").glob("[0-9]*.py"))


def _create_schema(connection: Connection) -> None:
    """Create the schema of the last migration directly; a test compares the two.

    For SQLite alone: the tables lack some definitions for PostgreSQL, where databases are rarely created.
    """
    for statement in _list_definitions():
        connection.exec_driver_sql(statement)
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


@cache
def _list_definitions() -> tuple[str, ...]:
    """The statements that create tables, indexes, views and the index of a search in SQLite. Compiling them takes longer than executing them."""
    # Most runs create no database, and need no queries of views.
    from sqlalchemy.dialects.sqlite import dialect

    from scanner.store.rows.search_index import list_definitions
    from scanner.store.upkeep.views import list_view_definitions

    key = "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)"
    versions = f"CREATE TABLE {_VERSIONS} (version_num VARCHAR(32) NOT NULL, {key})"
    return (*_list_table_definitions(dialect()), *list_definitions(), *list_view_definitions(dialect()), versions)


def _list_table_definitions(dialect: Dialect) -> Iterator[str]:
    for table in METADATA.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=dialect))


def run_migrations(connection: Connection) -> None:
    """Upgrade a database to the newest schema, its views, its index and the checks of its waivers, step by step.

    The connection holds the lock of the database.
    """
    # Importing Alembic takes as long as importing SQLAlchemy, and most runs do not need it.
    from alembic import command
    from alembic.config import Config

    from scanner.store.catalog import waivers
    from scanner.store.rows import search_index
    from scanner.store.upkeep.views import creating_views

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(find_migrations()).replace("%", "%%"))
    indexed = search_index.exists(connection)
    waived = inspect(connection).has_table(WAIVED_CHECKS.name)
    with creating_views(connection):
        command.upgrade(config, "head")
    if not indexed:
        search_index.index_all(connection)
    if not waived:
        waivers.write_all_waived_checks(connection)


def _older_error(address: Address) -> SchemaMismatch:
    first = "To upgrade it" if address.path else "Back it up with pg_dump, then"
    return SchemaMismatch(
        f"The database {address.text} was created by an older version of Assay. {first} run: assay db upgrade.",
        "older",
    )


def _newer_error(address: Address) -> SchemaMismatch:
    return SchemaMismatch(
        f"The database {address.text} was created by a newer version of Assay, and this version cannot read it. "
        "Install that version, or name another database with --db; `assay db upgrade` cannot downgrade.",
        "newer",
    )


def _foreign_error(address: Address) -> SchemaMismatch:
    return SchemaMismatch(
        f"The database {address.text} has tables of another program, and Assay does not change it. "
        "Name another database with --db: it must be empty or Assay's.",
        "foreign",
    )


def _copying_error(address: Address) -> SchemaMismatch:
    return SchemaMismatch(
        f"The database {address.text} is a copy that has not ended. Run the same `assay db copy` again, which continues it.",
        "copying",
    )


def _other_copy_error(address: Address) -> UsageError:
    return UsageError(
        f"The database {address.text} has a part of a copy from another source, or the source has changed since that copy "
        "began. Empty it, and copy again: delete the file of SQLite, or drop and create the database of PostgreSQL."
    )
