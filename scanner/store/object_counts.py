"""The counts of objects that a scan is reconciled with: a column of its row, in the order of its coverage."""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from sqlalchemy import Connection, select

from scanner.model.object_counts import ObjectCount
from scanner.store.tables import SCANS


def to_text(counts: Iterable[ObjectCount]) -> str:
    """JSON of the counts: excluded, at the start, at the end."""
    return orjson.dumps([(count.excluded, count.at_start, count.at_end) for count in counts]).decode()


def read(connection: Connection, scan_id: str) -> tuple[ObjectCount, ...]:
    """The counts of a scan; empty for a scan of an older version."""
    text = connection.execute(select(SCANS.c.object_counts).where(SCANS.c.id == scan_id)).scalar()
    return tuple(ObjectCount(*values) for values in orjson.loads(text)) if text else ()
