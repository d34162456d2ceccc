"""The dialect of PostgreSQL for engines that share compiled statements; a scan into SQLite does not import it."""

from __future__ import annotations

from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from scanner.store.database.shared_statements import EqualDialect


class SharedPostgresql(EqualDialect, PGDialect_psycopg):
    """PostgreSQL by psycopg."""

    supports_statement_cache = True
