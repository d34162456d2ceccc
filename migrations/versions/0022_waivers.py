"""Adds the waivers that scans read: their bodies, the sets of them, and the set of each scan."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    for table, columns in {"waivers": ("name", "document"), "waiver_sets": ("content",)}.items():
        op.create_table(
            table,
            sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
            sa.Column("digest", sa.LargeBinary(), nullable=False),
            *(sa.Column(name, TEXT, nullable=False) for name in columns),
            sa.PrimaryKeyConstraint("id"),
            sa.UniqueConstraint("digest"),
        )
    op.create_table(
        "scan_waivers",
        sa.Column("scan", sa.Integer(), nullable=False),
        sa.Column("waivers", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["scan"], ["scans.number"]),
        sa.ForeignKeyConstraint(["waivers"], ["waiver_sets.id"]),
        sa.PrimaryKeyConstraint("scan"),
    )
