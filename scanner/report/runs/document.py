"""The data of the run register and of the completeness sheet of a run, which every form shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from scanner.errors import UsageError
from scanner.model.scans.run import RunDetails
from scanner.model.scans.scan import Coverage, CoverageState, ObjectCount, ScanRecord, Scope
from scanner.model.schedule import Schedule, parse_schedule
from scanner.posture.run_register import RegisterEntry, RunState, make_register, run_entry
from scanner.report.document.method import MethodSection, method_of

MOST_TIMES: Final = 100_000
"""The expected times that one register can have."""


@dataclass(frozen=True, slots=True)
class RunExpectation:
    """The times at which runs are expected: a schedule in a time zone, and the tolerance after which a run is late."""

    schedule: str
    time_zone: str
    tolerance: timedelta

    @property
    def times(self) -> Schedule:
        """The times. Raises UsageError for a schedule that the API would deny."""
        return _schedule_of(self.schedule, self.time_zone)


@cache
def _schedule_of(text: str, time_zone: str) -> Schedule:
    return parse_schedule(text, ZoneInfo(time_zone))


@dataclass(frozen=True, slots=True)
class RunExpectations:
    """The times at which runs of each cluster are expected: those `of_clusters`, by name, have times of their own.

    `members` are the names of the clusters in the file of a fleet; empty without one.
    """

    others: RunExpectation | None = None
    of_clusters: Mapping[str, RunExpectation] = field(default_factory=dict)
    members: tuple[str, ...] = ()

    def find(self, cluster: str) -> RunExpectation | None:
        """The expected times of a cluster, None without any, as for a cluster that is none of the fleet."""
        return self.of_clusters.get(cluster, self.others) if self.includes(cluster) else None

    def includes(self, cluster: str) -> bool:
        """Return whether runs of a cluster are expected at all: of every cluster without a file of a fleet, else of its members."""
        return not self.members or cluster in self.members

    def schedule_of(self, cluster: str) -> Schedule | None:
        """The schedule of a cluster, None without any. Raises UsageError for an invalid one."""
        expectation = self.find(cluster)
        return expectation.times if expectation else None


@dataclass(frozen=True, slots=True)
class RegisterDocument:
    """The register of a period, the newest entry first. `expectation` is None if all runs are listed as recorded.

    `cluster` is empty for the runs of all clusters. `limit` is the number of entries to list, None for all.
    """

    entries: tuple[RegisterEntry, ...]
    since: datetime | None
    until: datetime
    cluster: str = ""
    expectation: RunExpectation | None = None
    limit: int | None = None

    @property
    def shown_entries(self) -> tuple[RegisterEntry, ...]:
        """The entries to list."""
        return self.entries[: self.limit]

    @property
    def expected_states(self) -> Mapping[RunState, int]:
        """The number of expected runs in each state."""
        return Counter(entry.state for entry in self.entries if entry.expected is not None)

    @property
    def other_states(self) -> Mapping[RunState, int]:
        """The number of runs that no schedule expects, in each state."""
        return Counter(entry.state for entry in self.entries if entry.expected is None)


def list_recorded_runs(
    runs: Sequence[RunDetails], since: datetime | None, now: datetime, cluster: str = ""
) -> RegisterDocument:
    """The register of runs as recorded, given the newest first."""
    return RegisterDocument(tuple(map(run_entry, runs)), since, now, cluster)


class RegisterPeriod(NamedTuple):
    """The begin of a register: `since` if a user names it, else the first recorded run, but not before `earliest`.

    `first_run` is the begin of the first of all recorded runs, None without one: then no run is expected.
    """

    since: datetime | None
    first_run: datetime | None
    earliest: datetime | None = None

    def begin(self, expectation: RunExpectation) -> datetime | None:
        """The first moment at which a run may be expected."""
        if self.since is not None or self.first_run is None:
            return self.since
        first = _first_time(expectation, self.first_run)
        return first if self.earliest is None else max(first, self.earliest)


def list_expected_runs(
    runs: Sequence[RunDetails], expectation: RunExpectation, period: RegisterPeriod, now: datetime, cluster: str = ""
) -> RegisterDocument:
    """The register of runs beside the times of a schedule. Raises UsageError for more than `MOST_TIMES` of them."""
    schedule = expectation.times
    start = period.begin(expectation)
    times = _times(schedule, start, now) if start else ()
    entries = make_register(runs, times, now=now, tolerance=expectation.tolerance)
    return RegisterDocument(entries[::-1], start, now, cluster, expectation)


def _first_time(expectation: RunExpectation, started: datetime) -> datetime:
    """The first expected time: the last one before the first run if that run is not late, else the next one."""
    near = list(expectation.times.list_times(started - expectation.tolerance, started))
    return near[-1] if near else started


def _times(schedule: Schedule, start: datetime, now: datetime) -> tuple[datetime, ...]:
    times = tuple(islice(schedule.list_times(start, now), MOST_TIMES + 1))
    if len(times) > MOST_TIMES:
        raise UsageError(
            f"--expect: the schedule has more than {MOST_TIMES:,} times since {start:%Y-%m-%d}. Name a later date with --since"
        )
    return times


@dataclass(frozen=True, slots=True)
class RunSheet:
    """The completeness sheet of a run. `record` is None if no scan began, or if the scan still runs.

    `why_not_compared` is the reason why the API server's own counts were not read, or empty.
    """

    entry: RegisterEntry
    details: RunDetails
    record: ScanRecord | None
    method: MethodSection | None
    kinds: tuple[KindLine, ...]
    why_not_compared: str

    @property
    def agreements(self) -> Mapping[Agreement, int]:
        """The number of kinds by the result of their comparison."""
        return Counter(line.agreement for line in self.kinds)


def sheet_of(details: RunDetails, record: ScanRecord | None, counts: tuple[ObjectCount, ...]) -> RunSheet:
    """The sheet of a run, with the record and the counts of its scan."""
    entry = run_entry(details)
    if record is None:
        return RunSheet(entry, details, None, None, (), "")
    why_not = record.method.without_counts if record.method else ""
    kinds = kind_lines(record.coverage, counts, record.scan.scope, why_not)
    return RunSheet(entry, details, record, method_of(record), kinds, why_not)


def has_ended(details: RunDetails) -> bool:
    """Return whether a run began a scan that has ended, in any state: only such a scan has a record."""
    still_runs = details.run.open and details.last_sign is None and details.complete is None
    return bool(details.run.scan) and not still_runs


# The objects of each kind that a scan listed, beside the API server's own count of them.
#
# The server counts the keys in its store once a minute, for each resource, in all namespaces. A count is compared
# with a list only if the list is complete and includes all namespaces.


class Agreement(StrEnum):
    """The result of a comparison. `changed` is a number between the server's counts before and after the lists."""

    EQUAL = "equal"
    CHANGED = "changed"
    DIFFERENT = "different"
    NOT_COMPARED = "notCompared"


@dataclass(frozen=True, slots=True)
class KindLine:
    """A kind of the completeness sheet.

    `listed` are the objects in the lists: the `examined` ones and those that the user `excluded`. Both are None for a scan of a
    version that did not count them. `difference` is that of `listed` to the last count of the server, None if they are not
    compared; `why_not` is the reason then.
    """

    coverage: Coverage
    listed: int | None
    excluded: int | None
    at_start: int | None
    at_end: int | None
    agreement: Agreement
    difference: int | None = None
    why_not: str = ""

    @property
    def examined(self) -> int:
        """The number of examined objects."""
        return self.coverage.objects

    @property
    def server(self) -> int | None:
        """The last count of the server."""
        return self.at_start if self.at_end is None else self.at_end


def kind_lines(
    coverage: Iterable[Coverage], counts: tuple[ObjectCount, ...], scope: Scope, why_not: str
) -> tuple[KindLine, ...]:
    """The lines of the kinds of a scan. `counts` is empty for a scan of an older version; `why_not` is that of its server's counts."""
    if not counts:
        return tuple(
            KindLine(line, None, None, None, None, Agreement.NOT_COMPARED, why_not="not recorded by this version")
            for line in coverage
        )
    return tuple(_line(line, count, scope, why_not) for line, count in zip(coverage, counts, strict=True))


def _line(line: Coverage, count: ObjectCount, scope: Scope, why_not: str) -> KindLine:
    """Compare the list of a kind with the server's counts, if it has one and the list is complete."""
    listed = line.objects + count.excluded
    known = [number for number in (count.at_start, count.at_end) if number is not None]
    reason = _reason(line, scope) or ("" if known else why_not or "the API server does not count this kind")
    if reason:
        agreement, difference = Agreement.NOT_COMPARED, None
    else:
        difference = listed - known[-1]
        inside = min(known) <= listed <= max(known)
        agreement = Agreement.EQUAL if not difference else Agreement.CHANGED if inside else Agreement.DIFFERENT
    return KindLine(line, listed, count.excluded, count.at_start, count.at_end, agreement, difference, reason)


def _reason(line: Coverage, scope: Scope) -> str:
    """The reason why a list cannot be compared with a count of all objects, or an empty string."""
    if line.state is CoverageState.SKIPPED:
        return line.note or "left out by the user"
    if line.state is not CoverageState.LISTED:
        return "the list is not complete"
    if scope.selector:
        return "--selector limits the list"
    return "--namespace limits the list" if scope.namespaces else ""
