"""Adds the read-only views, which every upgrade creates anew after its last migration: see `scanner.store.upkeep.views`.

The number alone lets databases without views be upgraded. A change of the views needs a migration of its own for the same reason.
"""

from __future__ import annotations

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change no table."""
