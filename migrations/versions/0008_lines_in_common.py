"""Shares equal rows between scans: policies, bindings, health and webhooks."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    for lines in ("policies", "bindings", "health", "outside"):
        op.add_column("scans", sa.Column(f"{lines}_of", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.add_column("scans", sa.Column("matched", TEXT, nullable=False, server_default=sa.text("''")))
    connection = op.get_bind()
    counts: dict[int, list[int]] = {}
    for scan, matched in connection.execute(sa.text("SELECT scan, matched FROM scan_policies ORDER BY scan, position")):
        counts.setdefault(scan, []).append(matched)
    changed = sa.text("UPDATE scans SET matched = :matched WHERE number = :number")
    for number, matched in counts.items():
        connection.execute(changed, {"matched": json.dumps(matched, separators=(",", ":")), "number": number})
    with op.batch_alter_table("scan_policies") as table:
        table.drop_column("matched")
        table.drop_column("evaluated")
    with op.batch_alter_table("scan_bindings") as table:
        table.drop_column("matched")
