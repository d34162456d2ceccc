"""A finding with its history, and the numbers of such findings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import starmap
from typing import Final, Literal, NamedTuple

from scanner.model.outcome import Finding, WouldChange
from scanner.model.population import KeptOfObject, Workload
from scanner.model.scans.cause import Cause
from scanner.model.scans.census import Bucket, Census, OwnedCensus, OwnerOf

SINGLE_SCAN_STATUSES: Final = frozenset({"preview", "outdated"})
"""The statuses of findings that belong to one scan alone: they count in no number of problems, and fail no gate."""


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with its history: `id` is the short id for users; `resolved_at` is None while it is open.

    `first_seen` never moves; `opened_at` is the beginning of the latest episode. `resolution` is the reason of a resolution, and
    `problem` the id of the finding's problem. Older versions recorded none of these three: they are None or empty then.
    `cause` is that of the change with which the scan found it new, reopened, changed or resolved, else None; `continues` is the
    id of the finding that it continues since this scan. `problem_first_seen` and `problem_opened_at` are those of the problem.
    `moved_to` is the id of the problem in which it goes on, if its object has another workload now.
    An `outdated` one is that of a scan which began before another one and ended after it: the later scan shows that it is not open.
    A `preview` comes from a binding that `--assume-bound` added: it has no history, and belongs to this scan alone.
    `workload` is that of the object, which may be the object itself, and `kept` has the labels that were kept of both and of the
    namespace; None if they are not known, as for scans of older versions.
    """

    id: str
    finding: Finding
    status: Literal["new", "open", "reopened", "resolved", "preview", "outdated"]
    first_seen: datetime
    last_seen: datetime
    resolved_at: datetime | None = None
    workload: Workload | None = None
    opened_at: datetime | None = None
    resolution: str = ""
    problem: str = ""
    cause: Cause | None = None
    continues: str = ""
    problem_first_seen: datetime | None = None
    problem_opened_at: datetime | None = None
    kept: KeptOfObject | None = None
    moved_to: str = ""


class ProblemFinding(NamedTuple):
    """A finding of a scan for the joining of problems; the scan did not check it if `checked` is false.

    `episode` is the status of its problem as long as a finding is open: new or reopened if this scan was the first to find one.
    """

    stored: StoredFinding
    checked: bool
    episode: Literal["new", "reopened", "open"]


def make_census(findings: Iterable[StoredFinding]) -> Census:
    """Count findings."""
    return Counter(map(_bucket_of, findings))


def make_census_by_owner(findings: Iterable[StoredFinding], owner_of: OwnerOf) -> Iterator[OwnedCensus]:
    """Count findings by owner."""
    counted: defaultdict[str, Counter[Bucket]] = defaultdict(Counter)
    for stored in findings:
        counted[owner_of(stored.kept)][_bucket_of(stored)._replace(namespace="")] += 1
    yield from starmap(OwnedCensus, counted.items())


def _bucket_of(stored: StoredFinding) -> Bucket:
    finding = stored.finding
    drift = isinstance(finding.outcome, WouldChange)
    return Bucket(*finding.severity_key, finding.namespace, stored.status, finding.denies, drift)
