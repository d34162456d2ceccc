"""The rights of PostgreSQL's roles to read the tables and views of Assay: an upgrade keeps and extends them, and `/readyz` checks them.

Source of truth: pg_class.relacl and `aclexplode`, in "Privileges" of PostgreSQL's documentation. SQLite has no roles (ADR 77).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from sqlalchemy import Connection, inspect, text

from scanner.errors import DatabaseUnusable, MissingTableRight, UsageError
from scanner.store.rows import search_index
from scanner.store.rows.tables import MARK, METADATA, VERSIONS, WRITER_TABLES

TABLES: Final = (*sorted(METADATA.tables), search_index.NAME, VERSIONS)
"""All tables: a role that reads them can run every command that only reads."""
TABLES_OF_PAGES: Final = tuple(name for name in TABLES if name not in {table.name for table in WRITER_TABLES})
"""The tables that pages, reports and metrics read: all but those that are known to serve writers alone."""

_EVERYONE: Final = "PUBLIC"
_RIGHTS: Final = text(
    "SELECT c.relname, CASE a.grantee WHEN 0 THEN NULL ELSE pg_get_userbyid(a.grantee) END, a.is_grantable"
    " FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v')"
    " AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner"
)
_READABLE: Final = text(
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = current_schema() AND has_table_privilege(:role, c.oid, 'SELECT')"
)
_CLOSED_SCHEMA: Final = text(
    "SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relname = :mark AND NOT has_schema_privilege(n.oid, 'USAGE') ORDER BY 1 LIMIT 1"
)


class _Right(NamedTuple):
    """The right of a role to read a table or a view. `role` is None for everyone."""

    relation: str
    role: str | None
    grantable: bool


@contextmanager
def keeping_rights(connection: Connection) -> Iterator[None]:
    """Let the block migrate the database, then restore the rights to read that roles had.

    A role that could read every table that pages read gets the tables that the block creates; readers of views get none.
    """
    if connection.dialect.name != "postgresql":
        yield
        return
    before, existed = _read_rights(connection), set(inspect(connection).get_table_names())
    yield
    _grant(connection, [*before, *_extend_rights(before, existed)])


def _extend_rights(before: Iterable[_Right], existed: Collection[str]) -> Iterator[_Right]:
    """The rights to read new tables, of the roles that could read all earlier tables that pages read."""
    of_roles: defaultdict[str | None, set[str]] = defaultdict(set)
    for right in before:
        of_roles[right.role].add(right.relation)
    needed = {name for name in TABLES_OF_PAGES if name in existed}
    for role, relations in of_roles.items():
        if needed and needed <= relations:
            yield from (_Right(name, role, grantable=False) for name in TABLES if name not in existed)


def _read_rights(connection: Connection) -> tuple[_Right, ...]:
    return tuple(_Right(*row) for row in connection.execute(_RIGHTS))


def _grant(connection: Connection, rights: Iterable[_Right]) -> None:
    """Grant those rights whose tables and views exist, and that are missing."""
    existing = {*inspect(connection).get_table_names(), *inspect(connection).get_view_names()}
    quote = connection.dialect.identifier_preparer.quote_identifier
    has = set(_read_rights(connection))
    for right in dict.fromkeys(rights):
        if right.relation in existing and right not in has:
            role = _EVERYONE if right.role is None else quote(right.role)
            more = " WITH GRANT OPTION" if right.grantable else ""
            connection.exec_driver_sql(f"GRANT SELECT ON {quote(right.relation)} TO {role}{more}")


def reject_unknown_roles(connection: Connection, roles: Sequence[str]) -> None:
    """Raise UsageError for a role that the server does not have."""
    for role in roles:
        if connection.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role}).first() is None:
            raise UsageError(
                f"--grant-select: PostgreSQL has no role {role!r}. Create it with CREATE ROLE, or correct the name: the names of "
                "roles are case-sensitive."
            )


def grant_select(connection: Connection, roles: Sequence[str]) -> None:
    """Let roles read all tables, in the transaction of `connection`; rights that they have already are not touched.

    Raises DatabaseUnusable if the user of the database may not grant them.
    """
    quote = connection.dialect.identifier_preparer.quote_identifier
    for role in roles:
        schema = connection.execute(text("SELECT current_schema()")).scalar_one()
        if not _may_use(connection, role, schema):
            connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {quote(schema)} TO {quote(role)}")
        if missing := find_unreadable(connection, TABLES, role):
            tables = ", ".join(quote(name) for name in missing)
            connection.exec_driver_sql(f"GRANT SELECT ON {tables} TO {quote(role)}")
        # PostgreSQL warns, and does not fail, if the user may grant a part of the rights alone.
        if not _may_use(connection, role, schema) or find_unreadable(connection, TABLES, role):
            raise DatabaseUnusable(
                f"The user of the database may not let the role {role} read: the user owns neither the schema {schema} nor its tables. "
                "Run `assay db upgrade --grant-select` as their owner."
            )


def _may_use(connection: Connection, role: str, schema: str) -> bool:
    wanted = text("SELECT has_schema_privilege(:role, CAST(:schema AS text), 'USAGE')")
    return bool(connection.execute(wanted, {"role": role, "schema": schema}).scalar_one())


def find_unreadable(connection: Connection, tables: Iterable[str], role: str = "") -> list[str]:
    """Those of some tables that a role, by default the user of the connection, may not read; on SQLite, those that are missing."""
    if connection.dialect.name == "sqlite":
        readable = set(inspect(connection).get_table_names())
    else:
        user = role or connection.execute(text("SELECT current_user")).scalar_one()
        readable = set(connection.execute(_READABLE, {"role": user}).scalars())
    return [name for name in tables if name not in readable]


def reject_unreadable(connection: Connection, tables: Iterable[str]) -> None:
    """Raise MissingTableRight if the user of a PostgreSQL connection may not read some tables of a database that has them."""
    if connection.dialect.name != "postgresql":
        return
    existing = set(inspect(connection).get_table_names())
    if missing := [name for name in find_unreadable(connection, tables) if name in existing]:
        raise MissingTableRight(
            f"may not read the tables {', '.join(missing)}" if missing[1:] else f"may not read the table {missing[0]}"
        )


def reject_closed_schema(connection: Connection) -> None:
    """Raise MissingTableRight if the tables are in a schema that the user of a PostgreSQL connection may not use."""
    if connection.dialect.name != "postgresql":
        return
    if (schema := connection.execute(_CLOSED_SCHEMA, {"mark": MARK.name}).scalar()) is not None:
        raise MissingTableRight(f"may not use the schema {schema}")


def read_tables_of_pages(connection: Connection) -> None:
    """Read from every table that pages read. Raises MissingTableRight, and errors of the driver."""
    reject_unreadable(connection, TABLES_OF_PAGES)
    # Without a row, so that a table with many deleted ones costs no time; rights and tables are checked all the same.
    quote = connection.dialect.identifier_preparer.quote_identifier
    each = (f"SELECT 1 FROM {quote(name)} WHERE 1 = 0" for name in TABLES_OF_PAGES)  # noqa: S608 - names of our own tables
    connection.exec_driver_sql(" UNION ALL ".join(each)).all()
