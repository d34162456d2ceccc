"""Roles of PostgreSQL that may only read, before and after `assay db upgrade`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from scanner.errors import MissingTableRight, StoreError, UsageError
from scanner.store import open_reader, open_store, upgrade
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, writing_shared
from scanner.store.rows.tables import METADATA, WRITER_TABLES, find_migrations
from scanner.store.upkeep.reading_rights import TABLES, TABLES_OF_PAGES
from scanner.store.upkeep.views import VIEWS
from tests.command import assay_here
from tests.store.databases import database, execute, rows
from tests.store.made import Round, clock, finding
from tests.store.roles import READ_ALL_TABLES, USE_SCHEMA, role

READ_VIEW = "GRANT SELECT ON v_scans TO {role}"


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    with database("postgresql", tmp_path_factory.mktemp("rights")) as empty:
        yield empty


def migrated(url: str, revision: str) -> None:
    """Create the schema of an earlier version."""
    engine = make_engine(address_of(url))
    with writing_shared(engine) as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(find_migrations()))
        command.upgrade(config, revision)
    engine.dispose()


def readable(url: str, name: str) -> set[str]:
    """The tables and views that a role may read."""
    listed = rows(
        url,
        "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(current_schema()) AND relkind IN ('r', 'v')"
        f" AND has_table_privilege('{name}', oid, 'SELECT')",
    )
    return {row["relname"] for row in listed}


def test_pages_read_every_table_but_those_of_writers() -> None:
    """A table that a later version adds is among those that pages read, until its author names it as one of the writers."""
    writers = {table.name for table in WRITER_TABLES}
    assert {*METADATA.tables, "words", "alembic_version"} == {*TABLES}
    assert {*TABLES} - writers == {*TABLES_OF_PAGES}


def test_an_upgrade_lets_a_role_read(url: str) -> None:
    """A role without any right reads scans, findings and the search after `--grant-select`, and the tables of pages."""
    with role(url) as reader:
        upgrade(url, readers=[reader.name])
        with open_store(url, clock) as store:
            Round((finding("a"),)).record(store, 1)
        with open_reader(reader.url, clock) as opened:
            opened.check_tables()
            assert ["a"] == [hit.name for hit in opened.search("a").objects.first]
            assert {*TABLES} == readable(url, reader.name)


def test_a_role_that_read_everything_reads_new_tables(url: str) -> None:
    """Also without the flag: a role of an earlier version needs no new grants."""
    migrated(url, "0026")
    with role(url, USE_SCHEMA, READ_ALL_TABLES) as reader:
        before = readable(url, reader.name)
        upgrade(url)
        assert "words" not in before
        assert {*TABLES} <= readable(url, reader.name)
        with open_reader(reader.url, clock) as opened:
            opened.check_tables()


def test_a_role_that_read_some_tables_reads_no_more(url: str) -> None:
    """An upgrade does not widen its rights."""
    migrated(url, "0026")
    with role(url, USE_SCHEMA, "GRANT SELECT ON scans, clusters TO {role}") as reader:
        upgrade(url)
        assert {"scans", "clusters"} == readable(url, reader.name)


def test_a_role_that_reads_views_keeps_views_alone(url: str) -> None:
    """Also while another role gets the right to read tables."""
    upgrade(url)
    with role(url, USE_SCHEMA, READ_VIEW) as views, role(url) as reader:
        upgrade(url, readers=[reader.name])
        assert {"v_scans"} == readable(url, views.name)
        assert set() == readable(url, reader.name) & set(VIEWS)


def test_rights_that_a_role_has_are_not_granted_again(url: str) -> None:
    """Upgrades run before every scan, and a GRANT would write the catalog each time."""
    versions = "SELECT sum(xmin::text::bigint) FROM pg_class WHERE relnamespace = to_regnamespace(current_schema())"
    with role(url) as reader:
        upgrade(url, readers=[reader.name])
        before = rows(url, versions)
        assert not upgrade(url, readers=[reader.name])
        assert before == rows(url, versions)


def test_an_unknown_role_is_named_before_anything_changes(url: str) -> None:
    """PUBLIC is no role: everyone would read."""
    for name in ("nobody_here", "public", 'x"; DROP'):
        with pytest.raises(UsageError, match=r"has no role .*CREATE ROLE"):
            upgrade(url, readers=[name])
    assert [] == rows(url, "SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(current_schema())")


def test_a_name_is_quoted(url: str) -> None:
    """Roles may have any characters."""
    name = 'Reader "of" pages'
    execute(url, 'CREATE ROLE "Reader ""of"" pages"')
    try:
        upgrade(url, readers=[name])
        assert {*TABLES} == readable(url, name)
    finally:
        execute(url, 'DROP OWNED BY "Reader ""of"" pages"; DROP ROLE "Reader ""of"" pages"')


def test_a_user_that_owns_no_table_cannot_grant(url: str) -> None:
    """The message names the remedy."""
    upgrade(url)
    with role(url, USE_SCHEMA, READ_ALL_TABLES) as stranger, role(url) as reader:
        with pytest.raises(StoreError):
            upgrade(stranger.url, readers=[reader.name])
        assert set() == readable(url, reader.name)


def test_the_command_names_the_roles(url: str, tmp_path: Path) -> None:
    """Each on a line of its own, also if nothing was left to upgrade."""
    with role(url) as one, role(url) as other:
        flags = [f"--grant-select={each.name}" for each in (one, other)]
        ran = [assay_here("db", "upgrade", "--db", url, *each, home=tmp_path) for each in (flags[:1], flags)]
        assert [0, 0] == [each.code for each in ran]
        assert f"The role {one.name} can read all tables.\n" in ran[0].stderr
        assert ran[1].stderr.endswith("".join(f"The role {each.name} can read all tables.\n" for each in (one, other)))
        assert {*TABLES} == readable(url, other.name)


def test_sqlite_has_no_roles(tmp_path: Path) -> None:
    """The error is clear, and no file is created."""
    path = tmp_path / "assay.db"
    with pytest.raises(
        UsageError, match=r"^--grant-select is about roles of PostgreSQL.*SQLite file: leave out the flag"
    ):
        upgrade(str(path), readers=["reader"])
    assert not path.exists()


@pytest.mark.parametrize("table", TABLES_OF_PAGES)
def test_a_missing_right_is_named(filled: str, reader_url: str, table: str) -> None:
    """Each table that pages read, by its name."""
    name = reader_url.partition("//")[2].partition(":")[0]
    execute(filled, f"REVOKE SELECT ON {table} FROM {name}")
    try:
        with (
            pytest.raises(MissingTableRight, match=f"may not read the table {table}[.]"),
            open_reader(reader_url, clock) as opened,
        ):
            opened.check_tables()
    finally:
        execute(filled, f"GRANT SELECT ON {table} TO {name}")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL database with a scan."""
    with database("postgresql", tmp_path_factory.mktemp("filled")) as url:
        with open_store(url, clock) as store:
            Round((finding("a"),)).record(store, 1)
        yield url


@pytest.fixture(scope="module")
def reader_url(filled: str) -> Iterator[str]:
    """The URL of that database for a role that may read all tables."""
    with role(filled, USE_SCHEMA, READ_ALL_TABLES) as reader:
        yield reader.url


def test_a_schema_that_a_role_may_not_use_is_named(filled: str) -> None:
    """The database is not taken for an empty one."""
    with (
        role(filled, READ_ALL_TABLES) as reader,
        pytest.raises(MissingTableRight, match="may not use the schema assay_"),
    ):
        open_reader(reader.url, clock)
