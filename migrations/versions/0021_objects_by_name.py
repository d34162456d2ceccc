"""Adds an index of objects by name, which finds the workload and the namespace of an object, whose labels name its owner."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index."""
    op.create_index("objects_by_name", "objects", ["cluster", "kind", "namespace", "name"], if_not_exists=True)
