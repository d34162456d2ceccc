"""Adds the findings that the newest scan of each cluster left unchecked in a form that SQL reads, for the views."""

from __future__ import annotations

import zlib

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

WORD = 4
"""The bytes of the ids in a row: 32 bits."""


def upgrade() -> None:
    table = op.create_table(
        "unchecked_now",
        sa.Column("cluster", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("part", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("bits", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.id"]),
        sa.PrimaryKeyConstraint("cluster", "part"),
        sqlite_with_rowid=False,
    )
    newest = "SELECT cluster, max(revision) AS revision FROM scans GROUP BY cluster"
    joined = (
        f"scans JOIN ({newest}) AS newest USING (cluster, revision) JOIN unchecked ON unchecked.scan = scans.number"
    )
    query = f"SELECT cluster, unchecked.findings FROM {joined}"  # noqa: S608 -- of constants alone
    for cluster, findings in op.get_bind().execute(sa.text(query)).all():
        bits = zlib.decompress(bytes(findings))
        words = (int.from_bytes(bits[start : start + WORD], "little") for start in range(0, len(bits), WORD))
        rows = [{"cluster": cluster, "part": part, "bits": word} for part, word in enumerate(words) if word]
        if rows:
            op.bulk_insert(table, rows)
