"""Adds the time at which the body of a scan was pruned, and daily tallies, which stay when scans are pruned."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("scans", sa.Column("pruned_at", sa.DateTime(timezone=True)))
    op.create_table(
        "days",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("cluster", sa.Integer(), nullable=False),
        sa.Column("day", TEXT, nullable=False),
        sa.Column("scan", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.id"]),
        sa.ForeignKeyConstraint(["scan"], ["scans.number"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("cluster", "day"),
    )
    op.create_table(
        "daily_keys",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("language", "policy", "namespace", "outcome")),
        sa.Column("requester", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "daily",
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["day"], ["days.number"]),
        sa.ForeignKeyConstraint(["key"], ["daily_keys.id"]),
        sa.PrimaryKeyConstraint("day", "key"),
        sqlite_with_rowid=False,
    )
