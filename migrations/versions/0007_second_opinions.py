"""Adds the second opinion of a scan."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("scans", sa.Column("opinion", TEXT, nullable=False, server_default=sa.text("''")))
