"""What a database knows about the scans of a cluster, besides the one that a report describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Register:
    """`scans` counts those of the cluster by state, `last_complete` is the end of the newest complete one.

    `database_bytes` is the size of the whole database.
    """

    scans: Mapping[str, int] = field(default_factory=dict)
    last_complete: datetime | None = None
    database_bytes: int = 0
