"""Calls a scan that did not see everything `incomplete`, as reports do; it was `partial`."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

SCANS = sa.table("scans", sa.column("state", sa.String()))


def upgrade() -> None:
    op.execute(SCANS.update().where(SCANS.c.state == "partial").values(state="incomplete"))
