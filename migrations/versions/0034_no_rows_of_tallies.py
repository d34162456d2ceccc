"""Drops the rows of tallies, of daily tallies and of gaps: `old_tallies` has made lists of them."""

from __future__ import annotations

from alembic import op

from scanner.store.upkeep.views import drop_views

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    drop_views(op.get_bind())
    for table in ("tallies", "daily", "gaps"):
        op.drop_table(table)
