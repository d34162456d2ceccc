"""The scans of a cluster that a rule of retention keeps, and the intervals of revisions that these scans need; without any SQL.

A scan that is not kept is pruned: its body goes, and its row in `scans` stays as a tombstone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

from scanner.model.scans.scan import ScanState
from scanner.store.rows.shared_rows import RowOwners

Question: TypeAlias = tuple[object, ...]
"""What must be equal in two scans of a cluster that are comparable: see `problem_counts.find_comparable_scan`."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Keep the scans of the last `days` days, and of older scans the last complete scan of each of `months` months.

    Months are those of UTC that have such a scan, the newest first; each question of a cluster has its own.
    """

    days: int
    months: int = 0


class RetainedScan(NamedTuple):
    """A scan of a cluster. `owners` are the numbers of the scans whose rows it shares, 0 for its own."""

    number: int
    revision: int | None
    state: str
    finished_at: datetime | None
    question: Question
    base: int
    owners: RowOwners
    pruned: bool
    preview: bool = False


def list_prunable(scans: Sequence[RetainedScan], rule: RetentionRule, now: datetime) -> list[int]:
    """The numbers of the scans to prune, ascending; `scans` are all scans of one cluster."""
    kept = {*_list_recent(scans, rule, now), *_list_monthly(scans, rule, now), *_list_newest(scans), *list_used(scans)}
    return sorted(scan.number for scan in scans if not scan.pruned and scan.number not in kept)


def _list_recent(scans: Iterable[RetainedScan], rule: RetentionRule, now: datetime) -> Iterator[int]:
    return (scan.number for scan in scans if not _is_older(scan, rule, now))


def _is_older(scan: RetainedScan, rule: RetentionRule, now: datetime) -> bool:
    return scan.finished_at is not None and scan.finished_at < now - timedelta(days=rule.days)


def _list_monthly(scans: Iterable[RetainedScan], rule: RetentionRule, now: datetime) -> Iterator[int]:
    """The last complete scans of the months, by their dates and without previews: those that answer the ends of the months (ADR 44)."""
    months: defaultdict[Question, dict[tuple[int, int], RetainedScan]] = defaultdict(dict)
    for scan in sorted(_sort_by_revision(scans), key=lambda scan: scan.finished_at or now):
        complete = scan.state == ScanState.COMPLETE.value and not scan.pruned and not scan.preview
        if scan.finished_at and complete and _is_older(scan, rule, now):
            months[scan.question][_month(scan.finished_at)] = scan
    for of_question in months.values():
        yield from (of_question[month].number for month in sorted(of_question, reverse=True)[: rule.months])


def _month(moment: datetime) -> tuple[int, int]:
    in_utc = moment.astimezone(UTC)
    return in_utc.year, in_utc.month


def _list_newest(scans: Iterable[RetainedScan]) -> Iterator[int]:
    """The newest scan of the cluster and of each question, and the newest complete one: later scans are compared with them."""
    newest: dict[object, int] = {}
    for scan in _sort_by_revision(scans):
        newest[None] = scan.number
        if not scan.preview:
            newest[scan.question] = newest[scan.question, scan.state] = scan.number
    return iter(newest.values())


def _sort_by_revision(scans: Iterable[RetainedScan]) -> list[RetainedScan]:
    return sorted((scan for scan in scans if scan.revision is not None), key=lambda scan: scan.revision or 0)


def list_used(scans: Sequence[RetainedScan]) -> Iterator[int]:
    """The numbers of running scans, of the scans with which they will be compared, and of those whose rows they share."""
    running = [scan for scan in scans if scan.state == ScanState.RUNNING.value]
    for scan in running:
        yield scan.number
        yield from filter(None, scan.owners)
        yield from (other.number for other in scans if other.revision is not None and other.revision >= scan.base)


def list_baselines(scans: Iterable[RetainedScan], going: AbstractSet[int]) -> Iterator[int]:
    """The revisions with which the scans that have a report are compared: the comparable scan before each of them."""
    before: dict[Question, int] = {}
    for scan in _sort_by_revision(scans):
        if scan.question in before and not scan.pruned and scan.number not in going:
            yield before[scan.question]
        if not scan.preview:
            before[scan.question] = scan.revision or 0


def find_next_owners(
    scans: Iterable[RetainedScan], rows: str, owners: AbstractSet[int], gone: AbstractSet[int]
) -> Mapping[int, int]:
    """The oldest scan that shares the rows of each of some owners and is not gone, by the number of the owner.

    `rows` is a field of `RowOwners`. An owner without a successor is left out.
    """
    oldest: dict[int, int] = {}
    for scan in sorted(scans, key=lambda each: each.number):
        owner: int = getattr(scan.owners, rows)
        if owner in owners and scan.number not in gone:
            oldest.setdefault(owner, scan.number)
    return oldest


@dataclass(frozen=True, slots=True)
class NeededRevisions:
    """Revisions that stay readable, ascending."""

    revisions: Sequence[int]

    def overlap(self, since: int, until: int) -> bool:
        """Return whether one of them is in an interval, which does not include `until`."""
        place = bisect_left(self.revisions, since)
        return place < len(self.revisions) and self.revisions[place] < until
