"""Identifies clusters by observed marks, records runs, and never uses a row id again.

A cluster that an older version knew by UID keeps its history. One that it knew by name alone keeps its history under
that name, as if the user had given the name.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
NUMBERED = {
    "clusters": "id",
    "scans": "number",
    "policies": "id",
    "bindings": "id",
    "checks": "id",
    "kinds": "id",
    "verdicts": "id",
    "evidence": "id",
    "findings": "id",
}


def upgrade() -> None:
    op.add_column("clusters", sa.Column("observed", TEXT, nullable=False, server_default=sa.text("''")))
    op.add_column("scans", sa.Column("silence", sa.Integer(), nullable=False, server_default=sa.text("900")))
    known_by_uid = (
        "EXISTS (SELECT 1 FROM scans WHERE scans.cluster = clusters.id AND scans.cluster_uid <> '' "
        "AND scans.cluster_uid = clusters.identity)"
    )
    op.execute(
        f"UPDATE clusters SET observed = CASE WHEN {known_by_uid} THEN 'uid:' || identity ELSE '' END, "  # noqa: S608
        f"identity = CASE WHEN {known_by_uid} THEN 'uid:' ELSE 'name:' END || identity"
    )
    op.create_table(
        "last_ids",
        sa.Column("name", TEXT, primary_key=True),
        sa.Column("id", sa.Integer(), nullable=False),
    )
    for table, key in NUMBERED.items():
        op.execute(f"INSERT INTO last_ids SELECT '{table}', coalesce(max(\"{key}\"), 0) FROM {table}")  # noqa: S608
    op.create_table(
        "runs",
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("scan", sa.Integer(), sa.ForeignKey("scans.number")),
        sa.Column("host", TEXT, nullable=False),
    )
