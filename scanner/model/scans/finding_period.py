"""What became of a finding during a period: whether it was open at both ends, and every change between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from scanner.model.outcome import Finding


class PeriodChange(StrEnum):
    """The changes of a finding. A `replaced` one goes on as another finding, which is `continued`."""

    NEW = "new"
    REOPENED = "reopened"
    CONTINUED = "continued"
    RESOLVED = "resolved"
    REPLACED = "replaced"


class FindingEvent(NamedTuple):
    """A change at the end of a scan; `reason` is that of a resolution, else empty."""

    at: datetime
    change: PeriodChange
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FindingOfPeriod:
    """A finding that was open at some time of a period. `finding` is its last state in the period.

    `checked` is false if the scan at the end left it open without checking it.
    """

    id: str
    finding: Finding
    first_seen: datetime
    open_at_begin: bool
    open_at_end: bool
    events: tuple[FindingEvent, ...]
    checked: bool = True

    def count(self, change: PeriodChange) -> int:
        """The number of such changes."""
        return sum(event.change is change for event in self.events)


class OpenInterval(NamedTuple):
    """Revisions in which a finding was open and did not change: from `since` up to, but without, `until`.

    `event` is the change with which it began. `resolution` is empty if the finding was not resolved at its end.
    """

    since: int
    until: int
    event: str
    resolution: str


_BEGINS = {"new": PeriodChange.NEW, "reopened": PeriodChange.REOPENED, "continued": PeriodChange.CONTINUED}


class RevisionEvent(NamedTuple):
    """A change in the scan of a revision."""

    revision: int
    change: PeriodChange
    reason: str = ""


def list_events(rows: Sequence[OpenInterval], first: int, last: int) -> Iterator[RevisionEvent]:
    """The changes of a finding after the scan `first`, up to the scan `last`; the intervals are in their order.

    An interval that begins with another change, while no interval ends there, continues one that a prune deleted: the finding was
    open all the time. So the numbers add up: open at the begin, and every begin, without every end, is open at the end.
    """
    if rows and rows[0].since > first and rows[0].event in _BEGINS:
        yield RevisionEvent(rows[0].since, _BEGINS[rows[0].event])
    for row, following in pairwise(rows):
        if following.since == row.until or following.event not in _BEGINS:
            continue
        yield _end(row)
        yield RevisionEvent(following.since, _BEGINS[following.event])
    if rows and rows[-1].until <= last:
        yield _end(rows[-1])


def was_open_at_begin(rows: Sequence[OpenInterval], first: int) -> bool:
    """Return whether a finding was open in the scan `first`, also in an interval that a prune deleted."""
    return rows[0].since <= first or rows[0].event not in _BEGINS


def _end(row: OpenInterval) -> RevisionEvent:
    return RevisionEvent(row.until, PeriodChange.RESOLVED if row.resolution else PeriodChange.REPLACED, row.resolution)
