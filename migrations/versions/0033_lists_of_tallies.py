"""Adds lists of tallies, of daily tallies and of gaps, which scans and days share. `old_tallies` fills them from the rows of before."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    _create_lists("tally_lists", sa.Column("content", sa.LargeBinary(), nullable=False))
    _create_lists("tally_sets", sa.Column("lists", sa.LargeBinary(), nullable=False))
    _create_lists("gap_lists", sa.Column("content", sa.LargeBinary(), nullable=False))
    _create_lists("daily_lists", sa.Column("content", TEXT, nullable=False))
    _create_lists("daily_sets", sa.Column("lists", TEXT, nullable=False))
    # As text: with a foreign key, Alembic would copy the whole table in SQLite.
    op.execute("ALTER TABLE scans ADD COLUMN tallies INTEGER REFERENCES tally_sets (id)")
    op.execute("ALTER TABLE scans ADD COLUMN gaps INTEGER REFERENCES gap_lists (id)")
    op.execute("ALTER TABLE days ADD COLUMN tallies INTEGER REFERENCES daily_sets (id)")


def _create_lists(name: str, column: sa.Column[Any]) -> None:
    op.create_table(
        name,
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        column,
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
