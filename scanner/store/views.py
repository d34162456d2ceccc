"""Creates the read-only views: see `view_queries` for what they contain.

The views belong to the newest schema alone, and every upgrade creates them anew after its last migration: no migration creates
one. SQLite renames no table while a view refers to a table that does not exist, so there the views are dropped before the first
migration. PostgreSQL replaces views in their place, because views and rights of users may depend on them. A migration that
changes or drops a column below a view calls `drop_views(op.get_bind())` first; the upgrade restores the rights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Dialect, text

from scanner.store.view_queries import VIEWS


@contextmanager
def views_after(connection: Connection) -> Iterator[None]:
    """Let the block migrate the database to the newest schema, then create its views. All happens in one transaction."""
    rights = list(_rights(connection))
    if connection.dialect.name == "sqlite":
        drop_views(connection)
    yield
    create_views(connection)
    for view, user, more in rights:
        quoted = "PUBLIC" if user == "PUBLIC" else connection.dialect.identifier_preparer.quote_identifier(user)
        connection.exec_driver_sql(f"GRANT SELECT ON {view} TO {quoted}{more}")


def create_views(connection: Connection) -> None:
    """Create the views; PostgreSQL replaces older ones, which may lack columns at the end."""
    for statement in view_definitions(connection.dialect):
        connection.exec_driver_sql(statement)


def view_definitions(dialect: Dialect) -> Iterator[str]:
    """The statements that create the views."""
    create = "CREATE VIEW" if dialect.name == "sqlite" else "CREATE OR REPLACE VIEW"
    for name, query in VIEWS.items():
        compiled = query.compile(dialect=dialect, compile_kwargs={"literal_binds": True})
        yield f"{create} {name} AS {compiled}"


def drop_views(connection: Connection) -> None:
    """Drop the views that exist."""
    for name in VIEWS:
        connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")


def _rights(connection: Connection) -> Iterator[tuple[str, str, str]]:
    """The rights to read the views in PostgreSQL: the view, the user, and the end of a GRANT."""
    if connection.dialect.name != "postgresql":
        return
    granted = text(
        "SELECT table_name, grantee, is_grantable FROM information_schema.role_table_grants"
        " WHERE table_schema = current_schema() AND privilege_type = 'SELECT' AND grantee <> current_user"
    )
    for view, user, grantable in connection.execute(granted):
        if view in VIEWS:
            yield view, user, " WITH GRANT OPTION" if grantable == "YES" else ""
