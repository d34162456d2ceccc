"""Adds the rules besides policies, the method of a scan, digests of pages, and the kinds that no policy covers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "rules",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("type", "name", "content_digest", "document")),
        sa.Column("masked", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "scan_rules",
        *_place(),
        sa.Column("rule", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["rule"], ["rules.id"]),
        sa.ForeignKeyConstraint(["scan"], ["scans.number"]),
        sa.PrimaryKeyConstraint("scan", "position"),
    )
    op.create_table(
        "uncovered",
        *_place(),
        *(sa.Column(name, TEXT, nullable=False) for name in ("api_version", "kind")),
        sa.ForeignKeyConstraint(["scan"], ["scans.number"]),
        sa.PrimaryKeyConstraint("scan", "position"),
    )
    for rows in ("rules", "uncovered"):
        op.add_column("scans", sa.Column(f"{rows}_of", sa.Integer(), nullable=False, server_default=sa.text("0")))
    for name in ("policy_set_digest", "description_digest", "method"):
        op.add_column("scans", sa.Column(name, TEXT, nullable=False, server_default=sa.text("''")))
    op.add_column("coverage", sa.Column("page_digests", sa.LargeBinary()))


def _place() -> tuple[sa.Column[int], sa.Column[int]]:
    """The columns of the place of a row in a scan."""
    return (
        sa.Column("scan", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
    )
