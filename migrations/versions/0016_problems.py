"""Adds problems to findings: their ids, the beginning of an episode, the reason of a resolution, and the ids of checks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
EPISODES = """
    UPDATE findings SET opened = begun.revision FROM (
        SELECT id, max(CASE WHEN event IN ('new', 'reopened', 'preview') THEN since END)
            OVER (PARTITION BY cluster, fingerprint ORDER BY since, id) AS revision
        FROM findings
    ) AS begun WHERE begun.id = findings.id
"""


def upgrade() -> None:
    op.create_table(
        "check_names",
        sa.Column("cluster", sa.Integer(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.id"]),
        sa.PrimaryKeyConstraint("cluster", "digest"),
    )
    op.add_column("findings", sa.Column("opened", sa.Integer(), nullable=True))
    op.add_column("findings", sa.Column("resolution", TEXT, nullable=True))
    op.add_column("findings", sa.Column("problem", sa.BigInteger(), nullable=True))
    op.execute(EPISODES)
    # The next scan of each cluster reads all pages again, and gives the open findings their problems.
    op.execute("DELETE FROM merged_pages")
