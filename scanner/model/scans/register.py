"""Facts of a database about the scans of a cluster, besides the one that a report describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final, NamedTuple, TypeAlias

from scanner.model.policy import PolicyKey

RECENT: Final = 90
"""The days of a trend; reports keep resolved findings as long."""
MOST_RESOLVED: Final = 5_000
"""The resolved findings of these days that a report keeps at most."""


class DayCounts(NamedTuple):
    """The open findings of the last complete scan of a day, and the sums of new and resolved ones over its complete scans."""

    day: date
    findings: int
    new: int
    resolved: int


PolicyDays: TypeAlias = Mapping[PolicyKey, tuple[DayCounts, ...]]
"""The recorded days of each policy, in their order; `findings` are its failing checks on a day, the other numbers are 0."""


@dataclass(frozen=True, slots=True)
class ScanLine:
    """A scan of the cluster as its row has it. `findings`, `new` and `resolved` count findings.

    `alike` scans have the scope of the scan of the report. `rules_changed` is true if its rules differ from those of the scan
    with that scope before it, as far as both are known.
    """

    id: str
    state: str
    started_at: datetime
    finished_at: datetime | None
    tool_version: str
    findings: int
    new: int
    resolved: int
    alike: bool
    rules_changed: bool


@dataclass(frozen=True, slots=True)
class Register:
    """`scans` counts those of the cluster by state, `last_complete` is the end of the newest complete one.

    `last_whole` is the end of the newest complete one that was not limited to a part. `database_bytes` is the size of the whole database. `days` are the last `RECENT` days with a complete scan, until that of the report;
    `lines` are the newest scans up to that of the report, the newest first.
    """

    scans: Mapping[str, int] = field(default_factory=dict)
    last_complete: datetime | None = None
    last_whole: datetime | None = None
    database_bytes: int = 0
    days: tuple[DayCounts, ...] = ()
    lines: tuple[ScanLine, ...] = ()
