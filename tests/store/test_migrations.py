"""The migrations create the tables that the code expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine.interfaces import ReflectedColumn, ReflectedIndex

from scanner.store import open_store
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, writing_shared
from scanner.store.rows.search_index import NAME as WORDS
from scanner.store.rows.tables import HEAD, METADATA, find_migrations
from scanner.store.upkeep import schema
from tests.store.databases import KINDS, database


def test_the_newest_migration_is_the_one_the_code_wants() -> None:
    """The names of the files order the migrations as they depend on each other."""
    config = Config()
    config.set_main_option("script_location", str(find_migrations()))

    assert HEAD == ScriptDirectory.from_config(config).get_current_head()


@pytest.fixture(params=KINDS)
def two_fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The URLs of two empty databases of the same kind."""
    folders = tmp_path / "one", tmp_path / "other"
    for folder in folders:
        folder.mkdir()
    with database(request.param, folders[0]) as first, database(request.param, folders[1]) as second:
        yield first, second


def opened(url: str) -> None:
    """Create the tables directly."""
    open_store(url).close()


def migrated(url: str) -> None:
    """Create the tables step by step."""
    engine = make_engine(address_of(url))
    with writing_shared(engine) as connection:
        schema.run_migrations(connection)
    engine.dispose()


Make = Callable[[str], None]


@pytest.mark.parametrize("make", [opened, migrated])
def test_a_database_is_the_one_the_code_describes(fresh: str, make: Make) -> None:
    """Tables, columns, types, keys and indexes are the same, created directly or step by step."""
    make(fresh)
    engine = create_engine(fresh)
    with engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True, "include_object": described_here}
        differences = compare_metadata(MigrationContext.configure(connection, opts=options), METADATA)
        existing = set(inspect(connection).get_table_names())
    engine.dispose()

    assert [] == differences
    assert {"alembic_version", *METADATA.tables} == {name for name in existing if not of_search(name)}
    assert WORDS in existing


def described_here(_: object, name: str | None, type_: str, *__: object) -> bool:
    """Whether `METADATA` describes a table or an index: the index of the search differs between the databases."""
    return not (type_ == "table" and of_search(name or "")) and name != "objects_by_word"


def of_search(table: str) -> bool:
    """Whether a table belongs to the index of the search: SQLite has several."""
    return table == WORDS or table.startswith(f"{WORDS}_")


def test_a_database_made_at_once_is_as_if_it_had_been_migrated(two_fresh: tuple[str, str]) -> None:
    """The descriptions of both databases are equal except for the order of columns."""
    for url, make in zip(two_fresh, (opened, migrated), strict=True):
        make(url)
    first, second = (described(url) for url in two_fresh)
    assert first == second


def described(url: str) -> dict[str, object]:
    """The description that a database gives of its tables, and its version."""
    engine = create_engine(url)
    with engine.connect() as connection:
        seen = inspect(connection)
        tables = {
            name: {
                "columns": sorted(map(without_type_objects, seen.get_columns(name)), key=str),
                "key": seen.get_pk_constraint(name),
                "foreign": sorted(seen.get_foreign_keys(name), key=str),
                "unique": sorted(seen.get_unique_constraints(name), key=str),
                "checks": sorted(seen.get_check_constraints(name), key=str),
                "indexes": sorted(map(plain, seen.get_indexes(name)), key=str),
            }
            for name in seen.get_table_names()
        }
        views = {name: seen.get_view_definition(name) for name in seen.get_view_names()}
        version = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    engine.dispose()
    return {"tables": tables, "views": views, "version": version}


def without_type_objects(column: ReflectedColumn) -> dict[str, object]:
    """A column with its type as text."""
    return {**column, "type": repr(column["type"])}


def plain(index: ReflectedIndex) -> dict[str, object]:
    """An index with its condition as text."""
    options = {key: str(value) for key, value in index.get("dialect_options", {}).items()}
    return {**index, "dialect_options": options}


def test_fingerprints_have_a_partial_index(own_url: str) -> None:
    """The index of fingerprints is partial: superseded rows are not in it."""
    engine = create_engine(own_url)
    with engine.connect() as connection:
        [index] = [item for item in inspect(connection).get_indexes("findings") if item["name"] == "findings_last_word"]
        text_of = {"sqlite": "SELECT sql FROM sqlite_master WHERE name = 'findings_last_word'"}.get(
            connection.dialect.name, "SELECT indexdef FROM pg_indexes WHERE indexname = 'findings_last_word'"
        )
        definition = connection.execute(text(text_of)).scalars().first() or ""
    engine.dispose()

    assert index["unique"]
    assert "superseded IS NULL" in definition
