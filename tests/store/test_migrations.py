"""The migrations build what the code expects."""

from __future__ import annotations

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from scanner.store import open_store
from scanner.store.schema import HEAD, migrations
from scanner.store.tables import METADATA


def test_the_newest_migration_is_the_one_the_code_wants() -> None:
    """A migration without a new HEAD would never run."""
    config = Config()
    config.set_main_option("script_location", str(migrations()))

    assert HEAD == ScriptDirectory.from_config(config).get_current_head()


def test_the_migrated_database_is_the_one_the_code_describes(fresh: str) -> None:
    """Tables, columns, types, keys and indexes are the same in both."""
    open_store(fresh).close()
    engine = create_engine(fresh)
    with engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        differences = compare_metadata(MigrationContext.configure(connection, opts=options), METADATA)
        found = set(inspect(connection).get_table_names())
    engine.dispose()

    assert [] == differences
    assert {"alembic_version", *METADATA.tables} == found


def test_findings_are_looked_up_in_the_index_that_does_not_grow(fresh: str) -> None:
    """The index of fingerprints is partial: superseded rows are not in it."""
    open_store(fresh).close()
    engine = create_engine(fresh)
    with engine.connect() as connection:
        [index] = [item for item in inspect(connection).get_indexes("findings") if item["name"] == "findings_last_word"]
        text_of = {"sqlite": "SELECT sql FROM sqlite_master WHERE name = 'findings_last_word'"}.get(
            connection.dialect.name, "SELECT indexdef FROM pg_indexes WHERE indexname = 'findings_last_word'"
        )
        definition = connection.execute(text(text_of)).scalars().first() or ""
    engine.dispose()

    assert index["unique"]
    assert "superseded IS NULL" in definition
