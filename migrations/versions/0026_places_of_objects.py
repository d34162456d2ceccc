"""Adds the places of the objects of scans of files: file and line."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "places",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "scan_places",
        sa.Column("scan", sa.Integer(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["scan"], ["scans.number"]),
        sa.ForeignKeyConstraint(["places"], ["places.id"]),
        sa.PrimaryKeyConstraint("scan"),
    )
