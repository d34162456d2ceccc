"""The numbers of one scan that pages about all clusters need: a small part of its report, counted by the database.

They are those of the scan's own summary: waivers count as they do there, as of the day on which the scan ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from sys import intern
from typing import Final, NamedTuple, TypeVar

from scanner.model.policy import ACTIONS, Binding, PolicyKey
from scanner.model.scans.problem_numbers import ProblemTotals
from scanner.model.scans.register import DayCounts
from scanner.model.scans.scan import PolicyRecord, Scan, ScanState
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.settings import Settings
from scanner.posture.severity import Severity
from scanner.posture.triage import Triage
from scanner.posture.worst_problems import problems_of
from scanner.report.document.coverage import CoverageSection, coverage_of
from scanner.report.document.document import titles_of
from scanner.report.document.sentences import coverage_words
from scanner.report.html.site import slugs_of
from scanner.report.text.scope import EVERYTHING, exclusions_of, scope_of
from scanner.store import SqlReader
from scanner.store.read.open_problems import OpenWorkload


class Numbers(NamedTuple):
    """Numbers of open problems: admission would refuse `refused` of them and the pods of `pods_refused` more, and `new` began with the scan."""

    problems: int = 0
    refused: int = 0
    new: int = 0
    pods_refused: int = 0

    def plus(self, other: Numbers) -> Numbers:
        """The sums."""
        return Numbers(*(own + more for own, more in zip(self, other, strict=True)))


NONE: Final = Numbers()
KeyT = TypeVar("KeyT", bound=Hashable)


class CountedBinding(NamedTuple):
    """A binding of a policy. `digest` is empty for one that no manifest contains; `note` tells that the scan assumed it."""

    name: str
    actions: tuple[str, ...]
    digest: str
    note: str


@dataclass(frozen=True, slots=True)
class CountedPolicy:
    """A policy as a scan used it. `page` is the path of its page in the report, `title` its name there."""

    key: PolicyKey
    title: str
    page: str
    digest: str
    severity: Severity
    bindings: tuple[CountedBinding, ...]
    numbers: Numbers

    @property
    def bindings_in_force(self) -> tuple[CountedBinding, ...]:
        """The bindings that are in force."""
        return tuple(binding for binding in self.bindings if not binding.note)

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions of these bindings, the strictest first."""
        actions = {action for binding in self.bindings_in_force for action in binding.actions}
        return tuple(action for action in ACTIONS if action in actions)


class CountedWorkload(NamedTuple):
    """The open problems of a workload; `rank` is that of the worst severity. Workloads are sorted by name."""

    name: str
    namespace: str
    kind: str
    problems: int
    refused: int
    rank: int


@dataclass(frozen=True, slots=True)
class CountedScan:
    """The numbers of a finished scan.

    `complete` is true only if nothing was missed; `unseen` is the number of gaps, `coverage` a sentence. `limits` are the limits of
    its scope in words, and `limits_policies` tells that they leave out policies or bindings. `severities` has numbers for each
    severity; in the first scan of a cluster, nothing is new. `days` are the open findings at the ends of days, up to the day of the scan.
    """

    scan: Scan
    complete: bool
    unseen: int
    coverage: str
    limits: tuple[str, ...]
    limits_policies: bool
    totals: ProblemTotals
    is_first: bool
    waived: int
    severities: Mapping[Severity, Numbers]
    policies: Mapping[PolicyKey, CountedPolicy]
    workloads: tuple[CountedWorkload, ...]
    days: tuple[DayCounts, ...]

    @property
    def new(self) -> int:
        """The number of new problems; nothing is new in the first scan of a cluster."""
        return 0 if self.is_first else self.totals.new

    @property
    def end(self) -> datetime:
        """The end of the scan, or its beginning if it did not end."""
        return self.scan.finished_at or self.scan.started_at


def counts_of(reader: SqlReader, settings: Settings, scan_id: str) -> CountedScan:
    """Count a finished scan, by its full id. Raises UsageError for one without a record, StoreError for errors of the database."""
    record = reader.read_scan(scan_id)
    triage = triage_of(reader, settings, record)
    workloads = record.open_workloads(triage.ranks, triage.waived.rows)
    return _counts(record, triage, workloads)


def triage_of(reader: SqlReader, settings: Settings, record: StoredScan, day: date | None = None) -> Triage:
    """The triage of a scan as of a day, by default its own, with the waivers that scans had stored by its end unless the settings have some."""
    moment = record.scan.finished_at or record.scan.started_at
    waivers = settings.waivers or reader.find_waivers_at(record.scan.id, moment)
    return Triage(replace(settings, waivers=waivers), record, day)


def _counts(record: StoredScan, triage: Triage, workloads: Iterable[OpenWorkload]) -> CountedScan:
    totals, _ = problems_of(record, triage)
    coverage = coverage_of(record)
    scope = record.scan.scope
    is_first = record.previous is None
    open_workloads = [each._replace(new=0) for each in workloads] if is_first else list(workloads)
    by_policy = _sums((each.policy, each) for each in open_workloads)
    by_severity = _sums((Severity.of_rank(each.rank), each) for each in open_workloads)
    return CountedScan(
        scan=record.scan,
        complete=record.scan.state is ScanState.COMPLETE and not coverage.unseen,
        unseen=_gaps(record, coverage),
        coverage=coverage_words(coverage),
        limits=tuple(_limits(record.scan)),
        limits_policies=bool(scope.policies or scope.bindings),
        totals=totals,
        is_first=is_first,
        waived=triage.waived.problems,
        severities={severity: by_severity.get(severity, NONE) for severity in Severity},
        policies={policy.key: policy for policy in _policies(record, triage, by_policy)},
        workloads=tuple(sorted(_workloads(open_workloads))),
        days=record.register().days,
    )


def _sums(parts: Iterable[tuple[KeyT, OpenWorkload | Numbers]]) -> dict[KeyT, Numbers]:
    """The sums of numbers by a key."""
    sums: defaultdict[KeyT, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for key, part in parts:
        numbers = sums[key]
        numbers[0] += part.problems
        numbers[1] += part.refused
        numbers[2] += part.new
        numbers[3] += part.pods_refused
    return {key: Numbers(*numbers) for key, numbers in sums.items()}


def _gaps(record: StoredScan, coverage: CoverageSection) -> int:
    """The number of items that could not be scanned, as the verdict of the report has it."""
    return len(record.gaps) or len(coverage.unseen)


def _limits(scan: Scan) -> Iterator[str]:
    yield from (limit for limit in scope_of(scan) if limit not in EVERYTHING)
    yield from (f"without {excluded}" for excluded in exclusions_of(scan.scope))


def _policies(record: StoredScan, triage: Triage, numbers: Mapping[PolicyKey, Numbers]) -> Iterator[CountedPolicy]:
    keys = dict.fromkeys((*(used.policy.key for used in record.policies), *(key.policy_key for key in record.tallies)))
    titles = titles_of(keys)
    slugs = slugs_of(titles.get(key, key[1]) for key in keys)
    recorded = {used.policy.key: used for used in record.policies}
    for key in keys:
        title = titles.get(key, key[1])
        used = recorded.get(key)
        yield CountedPolicy(
            key=key,
            title=title,
            page=f"policies/{slugs[title]}.html",
            digest=used.policy.digest if used else "",
            severity=triage.description(key).severity,
            bindings=tuple(_bindings(used)) if used else (),
            numbers=numbers.get(key, NONE),
        )


def _bindings(used: PolicyRecord) -> Iterator[CountedBinding]:
    for binding in sorted(used.bindings, key=_name):
        note = "assumed for this scan" if binding.assumed else ""
        yield CountedBinding(binding.name, tuple(binding.actions), binding.digest, note)


def _name(binding: Binding) -> str:
    return binding.name


def _workloads(workloads: Iterable[OpenWorkload]) -> Iterator[CountedWorkload]:
    """The workloads with the sums over policies. Fleets run the same workloads in many clusters: equal names are one text."""
    sums: dict[tuple[str, str, str], tuple[int, int, int]] = {}
    for each in workloads:
        key = intern(each.name), intern(each.namespace), intern(each.kind)
        problems, refused, rank = sums.get(key, (0, 0, len(Severity)))
        sums[key] = problems + each.problems, refused + each.refused, min(rank, each.rank)
    return (CountedWorkload(*key, *numbers) for key, numbers in sums.items())
