"""Drops the foreign keys of findings: a database spent as long on checking them as on inserting the rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for key in sa.inspect(connection).get_foreign_keys("findings"):
            op.drop_constraint(str(key["name"]), "findings", type_="foreignkey")
        return
    _copy_table(connection)


def _copy_table(connection: sa.Connection) -> None:
    """SQLite cannot drop a foreign key, so the rows move to a new table."""
    columns = sa.inspect(connection).get_columns("findings")
    indexes = connection.execute(
        sa.text("SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'findings' AND sql IS NOT NULL")
    ).scalars()
    definitions = list(indexes)
    names = ", ".join(f'"{column["name"]}"' for column in columns)
    op.create_table(
        "findings_copy",
        *(
            sa.Column(
                column["name"],
                column["type"],
                nullable=column["nullable"],
                primary_key=bool(column.get("primary_key")),
                autoincrement=False,
            )
            for column in columns
        ),
    )
    op.execute(f"INSERT INTO findings_copy SELECT {names} FROM findings ORDER BY id")  # noqa: S608 - names of our own columns
    op.drop_table("findings")
    op.rename_table("findings_copy", "findings")
    for definition in definitions:
        op.execute(definition)
