"""Adds the user of the requests, the auditability of policies, and objects that are out of scope."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("scans", sa.Column("requester", TEXT, nullable=False, server_default=sa.text("''")))
    op.add_column("scan_policies", sa.Column("reading", TEXT, nullable=False, server_default=sa.text("''")))
    op.add_column("tallies", sa.Column("requester", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "outside",
        sa.Column("scan", sa.Integer(), sa.ForeignKey("scans.number"), primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("kind", "name", "why")),
    )
