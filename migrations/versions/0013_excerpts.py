"""Adds excerpts of objects to findings, and escapes marks in the messages of older findings: messages are templates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MARKS = ("\x03", "\x01", "\x02")
"""The escape of templates, and their marks."""


def upgrade() -> None:
    op.create_table(
        "excerpts",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    # As text: with a foreign key, Alembic would copy the whole table in SQLite.
    op.execute("ALTER TABLE findings ADD COLUMN excerpt INTEGER REFERENCES excerpts (id)")
    _escape_marks()


def _escape_marks() -> None:
    verdicts = sa.table("verdicts", sa.column("id", sa.Integer()), sa.column("message", sa.String()))
    has_marks = sa.or_(*(verdicts.c.message.contains(mark, autoescape=True) for mark in MARKS))
    connection = op.get_bind()
    for number, message in connection.execute(sa.select(verdicts.c.id, verdicts.c.message).where(has_marks)).all():
        escaped = "".join(MARKS[0] + character if character in MARKS else character for character in message)
        connection.execute(verdicts.update().where(verdicts.c.id == number).values(message=escaped))
