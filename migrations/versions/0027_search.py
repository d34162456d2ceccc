"""Adds the index of a search, which the upgrade fills after its last migration: see `scanner.store.rows.search_index`.

SQLite needs the module FTS5. The findings refer to messages by id alone, so `verdict_uses` has the clusters and checks of each message;
two indexes find the clusters of workloads and of owners.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

WORDS_OF_SQLITE = (
    "CREATE VIRTUAL TABLE words USING fts5(entries, content='', columnsize=0, detail=none,"
    " tokenize=\"ascii tokenchars '-'\")"
)
WORDS = (
    "CREATE TABLE words (rowid BIGINT NOT NULL, entries TSVECTOR NOT NULL, CONSTRAINT words_pkey PRIMARY KEY (rowid))"
)
# A list of pending entries would be read by every search, and takes as much space as the index.
AT_ONCE = "WITH (fastupdate = off)"
WORDS_BY_BEGINNING = f"CREATE INDEX words_by_beginning ON words USING gin (entries) {AT_ONCE}"
OBJECTS_BY_WORD = (
    "CREATE INDEX objects_by_word ON objects USING gin ("
    "(array_to_tsvector(array_remove(regexp_split_to_array(lower((namespace || ' ') || name), '[^a-z0-9]+'), '')"
    " || ('--' || kind::text)))"
    f") {AT_ONCE} WHERE (octet_length(namespace || name) <= 300"
    " AND char_length(namespace || name) = octet_length(namespace || name))"
)


def upgrade() -> None:
    bind = op.get_bind()
    on_postgresql = WORDS, WORDS_BY_BEGINNING, OBJECTS_BY_WORD
    for statement in (WORDS_OF_SQLITE,) if bind.dialect.name == "sqlite" else on_postgresql:
        bind.exec_driver_sql(statement)
    op.create_table(
        "verdict_uses",
        *(
            sa.Column(name, sa.Integer(), autoincrement=False, nullable=False)
            for name in ("verdict", "cluster", "check")
        ),
        sa.PrimaryKeyConstraint("verdict", "cluster", "check"),
        sqlite_with_rowid=False,
    )
    uses = 'SELECT DISTINCT verdict, cluster, findings."check" FROM findings'
    op.execute(f'INSERT INTO verdict_uses (verdict, cluster, "check") {uses}')
    for name in ("workload", "kept"):
        known = sa.text(f"{name} != 0")
        op.create_index(
            f"population_by_{name}", "population", [name, "cluster"], sqlite_where=known, postgresql_where=known
        )
