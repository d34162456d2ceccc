"""Adds the findings of the pages of each cluster's newest scan, with which unchanged pages are merged quickly."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "merged_pages",
        sa.Column("cluster", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("findings", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.id"]),
        sa.PrimaryKeyConstraint("cluster", "digest"),
    )
