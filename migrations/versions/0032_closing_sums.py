"""Adds the sums over what scans wrote. Scans of older versions have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "closing_sums",
        sa.Column("part", text, nullable=False),
        sa.Column("block", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("scan", sa.Integer(), sa.ForeignKey("scans.number"), autoincrement=False, nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("sum", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("part", "block", "scan"),
        sqlite_with_rowid=False,
    )
