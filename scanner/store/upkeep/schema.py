"""The schema version of a database, and its upgrade.

Source of truth: Alembic's table `alembic_version` and the folder `migrations/`. An empty database gets the newest schema; one
with data is upgraded only by `assay db upgrade`. Other programs use Alembic with the same revision numbers: a database is
Assay's only if it has the table that marks it, or the tables of the versions before that mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias, assert_never

from sqlalchemy import Connection, Dialect, Engine, delete, inspect, select, text
from sqlalchemy.schema import CreateIndex, CreateTable

from scanner.errors import NoScans, SchemaMismatch, UsageError
from scanner.store.database.address import Address
from scanner.store.database.engine import writing_shared
from scanner.store.database.sqlite_file import back_up, reject_cut_file
from scanner.store.rows.tables import HEAD, LAST_IDS, MARK, METADATA, VERSIONS, WAIVED_CHECKS, find_migrations
from scanner.store.upkeep.reading_rights import (
    grant_select,
    keeping_rights,
    reject_closed_schema,
    reject_unknown_roles,
    reject_unreadable,
)

_MARKED_SINCE = "0009"
ROWS_BEFORE: Final = "0033"
"""The version that has both the rows and the lists of tallies: see `old_tallies`."""
OLD_TALLIES: Final = "tallies"
"""A table of rows that later versions do not have."""
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
    """Check a database. Raises NoScans if it is empty, and StoreError if this version cannot read it, or if it is cut short.

    Raises MissingTableRight if the user of PostgreSQL may not read which schema it has.
    """
    reject_cut_file(address)
    with engine.connect() as connection:
        reject_unreadable(connection, [VERSIONS])
        state = _read_state(connection)
        if state == "fresh":
            reject_closed_schema(connection)
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


def migrate(engine: Engine, address: Address, *, backup: bool = False, readers: Sequence[str] = ()) -> UpgradeResult:
    """Upgrade the database to the newest schema; with `backup`, copy a SQLite file with data first.

    `readers` are roles of PostgreSQL that may read all tables afterwards. Raises UsageError for unknown ones, and StoreError. An
    upgrade of an older database takes several transactions. If it is killed, the next one continues.
    """
    reject_cut_file(address)
    copy = None
    with writing_shared(engine) as connection:
        reject_unknown_roles(connection, readers)
        match _read_state(connection):
            case "current":
                grant_select(connection, readers)
                return UpgradeResult(changed=False)
            case "newer":
                raise _newer_error(address)
            case "foreign":
                raise _foreign_error(address)
            case "copying":
                raise _copying_error(address)
            case "fresh":
                _create(connection)
                grant_select(connection, readers)
                return UpgradeResult(changed=True)
            case "older":
                # An upgrade that was killed has made the copy.
                if _read_versions(connection) != [ROWS_BEFORE]:
                    # While this transaction lasts, nothing else can write: the copy has all that the upgrade changes.
                    copy = back_up(address.path, HEAD) if backup and address.path else None
                _migrate_to_rows(connection)
    ended = _migrate_rows(engine, readers)
    return UpgradeResult(changed=ended, migrated=ended, backup=copy)


def _migrate_to_rows(connection: Connection) -> None:
    """Upgrade a database that has rows of tallies to the version that also has the lists."""
    from scanner.store.upkeep.views import drop_views

    if inspect(connection).has_table(OLD_TALLIES):
        with keeping_rights(connection):
            if connection.dialect.name == "sqlite":
                drop_views(connection)
            _upgrade(connection, ROWS_BEFORE)


def _migrate_rows(engine: Engine, readers: Sequence[str]) -> bool:
    """Make the lists in short transactions, and upgrade to the newest schema; False if another process has ended the upgrade meanwhile."""
    from scanner.store.upkeep.old_tallies import make_lists

    make_lists(engine)
    with writing_shared(engine) as connection:
        is_older = _read_state(connection) == "older"
        if is_older:
            run_migrations(connection)
        grant_select(connection, readers)
        return is_older


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
        connection.execute(text(f"UPDATE {VERSIONS} SET version_num = :mark"), {"mark": mark})  # noqa: S608 - a constant
        return False


def end_copy(engine: Engine) -> None:
    """Give the target of a copy the version of its schema, so that it can be opened."""
    with writing_shared(engine) as connection:
        connection.execute(text(f"UPDATE {VERSIONS} SET version_num = :head"), {"head": HEAD})  # noqa: S608 - a constant


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
    versions = _read_versions(connection) if VERSIONS in tables else []
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
    return [str(version) for version in connection.execute(text(f"SELECT version_num FROM {VERSIONS}")).scalars()]  # noqa: S608 - a constant


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
    versions = f"CREATE TABLE {VERSIONS} (version_num VARCHAR(32) NOT NULL, {key})"
    return (*_list_table_definitions(dialect()), *list_definitions(), *list_view_definitions(dialect()), versions)


def _list_table_definitions(dialect: Dialect) -> Iterator[str]:
    for table in METADATA.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=dialect))


def run_migrations(connection: Connection) -> None:
    """Upgrade a database to the newest schema, its views, its index, the checks of its waivers and the rights to read, step by step.

    The connection holds the lock of the database.
    """
    from scanner.store.catalog import waivers
    from scanner.store.rows import search_index
    from scanner.store.upkeep.old_tallies import make_last_lists
    from scanner.store.upkeep.views import creating_views

    with keeping_rights(connection), creating_views(connection):
        if _read_state(connection) == "fresh" or inspect(connection).has_table(OLD_TALLIES):
            _upgrade(connection, ROWS_BEFORE)
            make_last_lists(connection)
        _upgrade(connection, "head")
    search_index.index_after_upgrade(connection)
    if connection.execute(select(WAIVED_CHECKS.c.since).limit(1)).first() is None:
        waivers.write_all_waived_checks(connection)


def _upgrade(connection: Connection, version: str) -> None:
    # Importing Alembic takes as long as importing SQLAlchemy, and most runs do not need it.
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(find_migrations()).replace("%", "%%"))
    command.upgrade(config, version)


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
