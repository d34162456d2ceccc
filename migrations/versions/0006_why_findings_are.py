"""Adds evidence to findings. Older findings have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "evidence",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False, unique=True),
        sa.Column("reasons", TEXT, nullable=False),
    )
    # As text: with a foreign key, Alembic would copy the whole table in SQLite.
    op.execute("ALTER TABLE findings ADD COLUMN evidence INTEGER REFERENCES evidence (id)")
