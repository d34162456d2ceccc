"""What a database knows about the scans of a cluster, besides the one that a report describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final, NamedTuple

RECENT: Final = 90


class DayCounts(NamedTuple):
    """The open findings of the last complete scan of a day, and the sums of new and resolved ones over its complete scans."""

    day: date
    findings: int
    new: int
    resolved: int


@dataclass(frozen=True, slots=True)
class Register:
    """`scans` counts those of the cluster by state, `last_complete` is the end of the newest complete one.

    `database_bytes` is the size of the whole database. `days` are the last `RECENT` days with a complete scan, until that of the report.
    """

    scans: Mapping[str, int] = field(default_factory=dict)
    last_complete: datetime | None = None
    database_bytes: int = 0
    days: tuple[DayCounts, ...] = ()
