"""Which policy exceptions take the effect of a verdict away."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("verdicts", sa.Column("excepted_by", sa.Text(), nullable=False, server_default=sa.text("''")))
