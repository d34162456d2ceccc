"""Adds the table that marks a database as Assay's: other programs have a version table too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table("kube_assay", sa.Column("note", TEXT, nullable=False))
