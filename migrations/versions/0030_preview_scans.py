"""Marks the scans with assumed bindings, which are no baseline of other scans. The mark stays when scans are pruned."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("scans", sa.Column("preview", sa.Boolean(), nullable=False, server_default=sa.false()))
    text = sa.String()
    scans = sa.table(
        "scans",
        *(sa.column(name) for name in ("number", "bindings_of", "pruned_at")),
        sa.column("method", text),
        sa.column("preview", sa.Boolean()),
    )
    used = sa.table("scan_bindings", sa.column("scan"), sa.column("binding"))
    bindings = sa.table("bindings", sa.column("id"), sa.column("name", text), sa.column("document", text))
    owner = sa.case((scans.c.bindings_of == 0, scans.c.number), else_=scans.c.bindings_of)
    # No object of a cluster has a name with a colon.
    assumed = bindings.c.name.startswith("assumed:") & bindings.c.document.contains('"assumed":true')
    of_scan = (used.c.scan == owner) & (used.c.binding == bindings.c.id) & assumed
    # A pruned scan may have no bindings any more: then its command line is left.
    asked = scans.c.pruned_at.is_not(None) & scans.c.method.contains("--assume-bound")
    has_assumed = sa.exists().where(of_scan).correlate(scans)
    op.execute(sa.update(scans).where(has_assumed | asked).values(preview=True))
