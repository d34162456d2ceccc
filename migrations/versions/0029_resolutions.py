"""Adds what an incomplete scan had none of, the problem to which a finding moved, and the newest resource version of each list."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("scans", sa.Column("emptiness", TEXT, nullable=False, server_default=sa.text("''")))
    op.add_column("findings", sa.Column("moved_to", sa.BigInteger(), nullable=True))
    moved = sa.text("moved_to IS NOT NULL")
    op.create_index("findings_moved_to", "findings", ["moved_to"], sqlite_where=moved, postgresql_where=moved)
    op.create_table(
        "list_versions",
        sa.Column("cluster", sa.Integer(), sa.ForeignKey("clusters.id"), primary_key=True, autoincrement=False),
        sa.Column("api_group", TEXT, primary_key=True),
        sa.Column("kind", TEXT, primary_key=True),
        sa.Column("uid", TEXT, nullable=False),
        sa.Column("resource_version", TEXT, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
    )
