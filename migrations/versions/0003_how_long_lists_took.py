"""Adds the duration of the list requests of a kind."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("coverage", sa.Column("seconds", sa.Float(), nullable=False, server_default=sa.text("0")))
