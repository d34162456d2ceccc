"""Roles of PostgreSQL with a password, each for one test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url


class Role(NamedTuple):
    """A role, and the URL of the database for it."""

    name: str
    url: str


@contextmanager
def role(url: str, *grants: str) -> Iterator[Role]:
    """A new role with the rights of some statements, in which `{role}` and `{schema}` stand for its name and the schema."""
    name, password = f"reader_{uuid.uuid4().hex}", uuid.uuid4().hex
    engine = create_engine(url)
    with engine.begin() as connection:
        schema = connection.execute(text("SELECT current_schema()")).scalar_one()
        connection.execute(text(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'"))
        for grant in grants:
            connection.execute(text(grant.format(role=name, schema=schema)))
    try:
        yield Role(name, make_url(url).set(username=name, password=password).render_as_string(hide_password=False))
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"DROP OWNED BY {name}"))
            connection.execute(text(f"DROP ROLE {name}"))
        engine.dispose()


USE_SCHEMA = "GRANT USAGE ON SCHEMA {schema} TO {role}"
READ_ALL_TABLES = "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
