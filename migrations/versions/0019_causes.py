"""Adds causes to findings, the findings that they continue, the clocks of their problems, and the numbers of fixed problems."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "causes",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("also", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "fixes",
        sa.Column("cluster", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("language", TEXT, nullable=False),
        sa.Column("policy", TEXT, nullable=False),
        sa.Column("opened", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("problems", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.id"]),
        sa.PrimaryKeyConstraint("cluster", "revision", "language", "policy", "opened"),
    )
    _add_since()
    for name in ("cause", "end_cause", "problem_first", "problem_opened"):
        op.add_column("findings", sa.Column(name, sa.Integer(), nullable=True))
    op.add_column("findings", sa.Column("continues", sa.LargeBinary(), nullable=True))
    # The condition keeps the index empty but for the few rows that continue others.
    condition = sa.text("continues IS NOT NULL")
    op.create_index("findings_continues", "findings", ["continues"], sqlite_where=condition, postgresql_where=condition)


def _add_since() -> None:
    """Let the ids of checks begin with a revision: a check may get another id, and older reports keep the earlier one."""
    op.create_table(
        "names_since",
        sa.Column("cluster", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("since", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.id"]),
        sa.PrimaryKeyConstraint("cluster", "digest", "since"),
    )
    op.execute("INSERT INTO names_since SELECT cluster, digest, 0, name FROM check_names")
    op.drop_table("check_names")
    op.rename_table("names_since", "check_names")
