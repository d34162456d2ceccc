"""Adds the process, the command line and the scan of a run while it lasts, and the counts of objects that a scan is reconciled with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("runs", sa.Column("process", sa.Integer(), nullable=False, server_default=sa.text("0")))
    for table, name in (
        ("runs", "process_started"),
        ("runs", "scan_id"),
        ("runs", "command_line"),
        ("scans", "object_counts"),
    ):
        op.add_column(table, sa.Column(name, TEXT, nullable=False, server_default=sa.text("''")))
