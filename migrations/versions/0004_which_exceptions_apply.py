"""Adds the policy exceptions that exempt the object of a verdict."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("verdicts", sa.Column("excepted_by", TEXT, nullable=False, server_default=sa.text("''")))
