"""Adds the kinds of rules that differ from those of the newest comparable scan, which stay when scans are pruned."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("scans", sa.Column("changed_rules", TEXT, nullable=False, server_default=sa.text("''")))
