"""Adds the checks that waivers name, as the scans that used the waivers had them. The upgrade fills the table afterwards."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "waived_checks",
        sa.Column("cluster", sa.Integer(), sa.ForeignKey("clusters.id"), autoincrement=False, nullable=False),
        sa.Column("waiver", sa.LargeBinary(), nullable=False),
        sa.Column("form", sa.LargeBinary(), nullable=False),
        sa.Column("question", text, nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("cluster", "waiver", "form"),
        sqlite_with_rowid=False,
    )
