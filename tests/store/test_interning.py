"""The digests of rows that several rows refer to."""

from __future__ import annotations

from typing import Final

import pytest
from sqlalchemy import Column, Integer, LargeBinary, MetaData, String, Table, create_engine

from scanner.store.rows.interning import Interner, Key, digest
from tests.store.databases import closing_connections

_TABLE: Final = Table(
    "words",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("digest", LargeBinary),
    Column("word", String),
    Column("added", String, server_default=""),
    Column("added_later", String, server_default=""),
)


@pytest.mark.parametrize(
    ("key", "digested"),
    [
        (("a", "", ""), ("a",)),
        (("a", "b", ""), ("a", "b")),
        (("a", "", "c"), ("a", "", "c")),
        (("", "", ""), ("",)),
    ],
)
def test_a_row_keeps_its_digest_when_a_column_is_added(key: Key, digested: Key) -> None:
    """Empty columns that migrations added are no part of the digest, but for those before one that is not empty."""
    with closing_connections(create_engine("sqlite://")) as engine, engine.begin() as connection:
        _TABLE.metadata.create_all(connection)
        connection.execute(_TABLE.insert().values(id=7, digest=digest(digested)))

        assert {key: 7} == Interner(connection, _TABLE).find_known([key])
