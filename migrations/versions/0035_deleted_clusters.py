"""Adds the tombstones of deleted clusters."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "deleted_clusters",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        *(sa.Column(name, sa.DateTime(timezone=True)) for name in ("ended_at", "oldest_scan", "newest_scan")),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("scans", "runs", "objects", "findings")),
        *(sa.Column(name, text, nullable=False) for name in ("scans_digest", "tool_version")),
        sa.PrimaryKeyConstraint("number"),
    )
