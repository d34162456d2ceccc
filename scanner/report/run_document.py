"""The data of the run register and of the completeness sheet of a run, which every form shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from scanner.model.object_counts import ObjectCount
from scanner.model.run import RunDetails
from scanner.model.scan import ScanRecord
from scanner.posture.run_register import RegisterEntry, RunState, run_entry
from scanner.report.method import MethodSection, method_of
from scanner.report.reconciliation import Agreement, KindLine, kind_lines


@dataclass(frozen=True, slots=True)
class Expectation:
    """The times at which runs are expected: a schedule in a time zone, and the tolerance after which a run is late."""

    schedule: str
    time_zone: str
    tolerance: timedelta


@dataclass(frozen=True, slots=True)
class RegisterDocument:
    """The register of a period, the newest entry first. `expectation` is None if all runs are listed as recorded.

    `cluster` is empty for the runs of all clusters. `shown` is the number of entries to list, None for all.
    """

    entries: tuple[RegisterEntry, ...]
    since: datetime | None
    until: datetime
    cluster: str = ""
    expectation: Expectation | None = None
    shown: int | None = None

    @property
    def listed(self) -> tuple[RegisterEntry, ...]:
        """The entries to list."""
        return self.entries[: self.shown]

    @property
    def expected(self) -> Mapping[RunState, int]:
        """The number of expected runs in each state."""
        return Counter(entry.state for entry in self.entries if entry.expected is not None)

    @property
    def other(self) -> Mapping[RunState, int]:
        """The number of runs that no schedule expects, in each state."""
        return Counter(entry.state for entry in self.entries if entry.expected is None)


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
