"""Adds the notifications of scans: which routes were notified about which scan, so that a scan is notified once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "notifications",
        sa.Column("scan", sa.Integer(), sa.ForeignKey("scans.number"), nullable=False),
        sa.Column("route", text, nullable=False),
        sa.Column("before", sa.Integer(), sa.ForeignKey("scans.number")),
        sa.Column("state", text, nullable=False),
        sa.PrimaryKeyConstraint("scan", "route"),
    )
