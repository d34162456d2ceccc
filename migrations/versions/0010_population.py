"""Adds the population: objects, what is kept of them, and the sets of objects by invocation. Findings refer to objects.

The objects of older findings get rows, but no interval: older scans did not record their population.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
OPEN = 2_147_483_647


def upgrade() -> None:
    op.create_table(
        "objects",
        _id(),
        sa.Column("cluster", sa.Integer(), sa.ForeignKey("clusters.id"), nullable=False),
        sa.Column("kind", sa.Integer(), sa.ForeignKey("kinds.id"), nullable=False),
        *_texts("namespace", "name", "uid"),
    )
    op.create_table(
        "workloads",
        _id(),
        _digest(),
        *_texts("api_version", "kind", "namespace", "name"),
        sa.Column("derived", sa.Boolean(), nullable=False),
    )
    op.create_table("kept", _id(), _digest(), *_texts("labels", "annotations"))
    op.create_table(
        "population",
        sa.Column("object", sa.Integer(), sa.ForeignKey("objects.id"), primary_key=True, autoincrement=False),
        sa.Column("since", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("until", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.Integer(), sa.ForeignKey("clusters.id"), nullable=False),
        sa.Column("kind", sa.Integer(), sa.ForeignKey("kinds.id"), nullable=False),
        sa.Column("workload", sa.Integer(), nullable=False),
        sa.Column("kept", sa.Integer(), nullable=False),
    )
    in_force = sa.text(f"until = {OPEN}")
    op.create_index(
        "population_in_force", "population", ["cluster", "kind"], sqlite_where=in_force, postgresql_where=in_force
    )
    op.create_table(
        "object_sets",
        _id(),
        _digest(),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    op.create_table("set_lists", _id(), _digest(), sa.Column("content", sa.LargeBinary(), nullable=False))
    # As text: with a foreign key, Alembic would copy the whole table in SQLite.
    op.add_column("scans", sa.Column("notes", TEXT, nullable=False, server_default=sa.text("''")))
    op.execute("ALTER TABLE coverage ADD COLUMN sets INTEGER REFERENCES set_lists (id)")
    _stage_objects()
    _refer_to_objects()


def _stage_objects() -> None:
    """Staged pages belong to scans that ended long ago: they are not read again."""
    op.drop_table("staged_pages")
    op.create_table(
        "staged_pages",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("scan", sa.Integer(), sa.ForeignKey("scans.number"), nullable=False),
        *_texts("api_version", "kind"),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary()),
        sa.Column("objects", sa.LargeBinary(), nullable=False),
        sa.Column("sets", sa.LargeBinary()),
    )
    op.create_index("staged_pages_scan", "staged_pages", ["scan"])


def _refer_to_objects() -> None:
    identity = "cluster, kind, namespace, name, uid"
    op.execute(
        f"INSERT INTO objects (id, {identity}) SELECT row_number() OVER (ORDER BY {identity}), {identity} "  # noqa: S608 - constants
        f"FROM (SELECT DISTINCT {identity} FROM findings) AS found"
    )
    op.create_index("objects_of_findings", "objects", ["cluster", "kind", "namespace", "name", "uid"])
    op.execute("ALTER TABLE findings ADD COLUMN object INTEGER REFERENCES objects (id)")
    op.execute(
        "UPDATE findings SET object = (SELECT id FROM objects WHERE objects.cluster = findings.cluster "
        "AND objects.kind = findings.kind AND objects.namespace = findings.namespace "
        "AND objects.name = findings.name AND objects.uid = findings.uid)"
    )
    op.drop_index("objects_of_findings", "objects")
    with op.batch_alter_table("findings") as table:
        table.alter_column("object", existing_type=sa.Integer(), nullable=False)
        for name in ("namespace", "name", "uid"):
            table.drop_column(name)


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False)


def _digest() -> sa.Column[bytes]:
    return sa.Column("digest", sa.LargeBinary(), nullable=False, unique=True)


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, TEXT, nullable=False) for name in names]
