"""The numbers of outcomes and findings that all sections of a report share, and those of previews.

Outcomes are counted from the scan's tallies, findings from its census. The checks of the bindings that `--assume-bound` added are no
violations, because nothing is in force.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Final, TypeVar

from scanner.model.policy import PolicyKey
from scanner.model.scans.census import Bucket, Census
from scanner.model.scans.scan import ScanRecord
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES
from scanner.model.scans.tally import OutcomeName, TallyKey, group_tallies
from scanner.posture.score import find_assumed_bindings

GroupT = TypeVar("GroupT", bound=Hashable)
NameT = TypeVar("NameT", str, PolicyKey)


@dataclass(frozen=True, slots=True)
class CheckCounts:
    """The number of checks with each outcome. The field names are those of `OutcomeName` in snake case.

    `skipped` checks were not evaluated, because a match condition is false; `not_auditable` checks cannot be decided by an
    audit. `would_change` is drift: mutations that would change the object, which is no violation. `excepted` checks would not
    pass without the policy exceptions, or the filters in Kyverno's configuration, that apply to their objects.
    """

    passed: int = 0
    violated: int = 0
    errored_would_deny: int = 0
    errored_would_admit: int = 0
    skipped: int = 0
    not_auditable: int = 0
    would_change: int = 0
    excepted: int = 0

    @property
    def errored(self) -> int:
        """The number of errors, with either decision of admission."""
        return self.errored_would_deny + self.errored_would_admit

    @property
    def failing(self) -> int:
        """The number of violations and errors."""
        return self.violated + self.errored

    @property
    def total(self) -> int:
        """The number of all counted checks."""
        return self.passed + self.failing + self.unanswered + self.would_change + self.excepted

    @property
    def all_passed(self) -> bool:
        """Return whether no check has another result."""
        return self.passed == self.total

    @property
    def unanswered(self) -> int:
        """The number of checks without a result: skipped or not auditable."""
        return self.skipped + self.not_auditable

    def subtract(self, other: CheckCounts) -> CheckCounts:
        """The counts less those of `other`, which are a part of them."""
        return CheckCounts(**{each.name: getattr(self, each.name) - getattr(other, each.name) for each in fields(self)})


NOTHING = CheckCounts()


def counts_by(tallies: Mapping[TallyKey, int], group: Callable[[TallyKey], GroupT | None]) -> dict[GroupT, CheckCounts]:
    """The outcomes of every group, groups in ascending order, without the keys for which `group` returns None."""
    sums: defaultdict[GroupT, dict[OutcomeName, int]] = defaultdict(dict)
    for key, number in tallies.items():
        if (name := group(key)) is not None:
            outcomes, outcome = sums[name], key.outcome
            outcomes[outcome] = outcomes.get(outcome, 0) + number
    return {name: _counts(sums[name]) for name in sorted(sums, key=_order)}


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """The tallies of a scan, added up once for all sections of a report.

    `everywhere` has no namespaces, so it is small; `places` are the outcomes by namespace, name and language of the policy.
    """

    everywhere: Mapping[TallyKey, int]
    places: Mapping[tuple[str, str, str], CheckCounts]


def count_outcomes(tallies: Mapping[TallyKey, int]) -> OutcomeCounts:
    """The outcomes of a scan."""
    everywhere: defaultdict[TallyKey, int] = defaultdict(int)
    places: defaultdict[tuple[str, str, str], dict[OutcomeName, int]] = defaultdict(dict)
    for key, numbers in group_tallies(tallies):
        policy, language, outcome = key.policy, key.language, key.outcome
        everywhere[key] += sum(number for _, number in numbers)
        for namespace, number in numbers:
            outcomes = places[namespace, policy, language]
            outcomes[outcome] = outcomes.get(outcome, 0) + number
    return OutcomeCounts(everywhere, {place: _counts(places[place]) for place in sorted(places)})


_OUTCOMES: Final = (
    OutcomeName.PASSED,
    OutcomeName.VIOLATED,
    OutcomeName.ERRORED_DENY,
    OutcomeName.ERRORED_ADMIT,
    OutcomeName.SKIPPED,
    OutcomeName.NOT_AUDITABLE,
    OutcomeName.WOULD_CHANGE,
    OutcomeName.EXCEPTED,
)
"""In the order of the fields of `CheckCounts`."""


def _counts(sums: Mapping[OutcomeName, int]) -> CheckCounts:
    return CheckCounts(*map(sums.get, _OUTCOMES, repeat(0)))


def _order(name: Hashable) -> tuple[object, ...]:
    return name if isinstance(name, tuple) else (name,)


@dataclass(frozen=True, slots=True)
class FindingCounts:
    """Findings of one scan by status; `would_deny` counts those for which admission would deny the object, without previews.

    `drift` counts those that are no violation: a mutating policy would change the object. A `preview` finding belongs to a
    binding that `--assume-bound` added: it is neither new nor open.
    """

    total: int = 0
    new: int = 0
    open: int = 0
    reopened: int = 0
    would_deny: int = 0
    preview: int = 0
    drift: int = 0


NO_FINDINGS = FindingCounts()


def findings_by(census: Census, group: Callable[[Bucket], NameT]) -> dict[NameT, FindingCounts]:
    """The finding counts of each group, groups in ascending order."""
    parts: defaultdict[NameT, list[tuple[Bucket, int]]] = defaultdict(list)
    for bucket, number in census.items():
        parts[group(bucket)].append((bucket, number))
    return {name: count_findings(parts[name]) for name in sorted(parts)}


def count_findings(buckets: Iterable[tuple[Bucket, int]]) -> FindingCounts:
    """The sum of some buckets and their numbers of findings."""
    by_status: Counter[str] = Counter()
    denied = drift = 0
    for bucket, number in buckets:
        by_status[bucket.status] += number
        denied += number * (bucket.denies and bucket.status not in SINGLE_SCAN_STATUSES)
        drift += number * bucket.drift
    return FindingCounts(
        total=by_status.total(),
        new=by_status["new"],
        open=by_status["open"],
        reopened=by_status["reopened"],
        would_deny=denied,
        preview=by_status["preview"],
        drift=drift,
    )


def previews_of(record: ScanRecord) -> Mapping[PolicyKey, CheckCounts]:
    """The checks of assumed bindings, by policy."""
    assumed = find_assumed_bindings(record)
    return (
        counts_by(record.tallies, lambda key: key.policy_key if key.binding_key in assumed else None) if assumed else {}
    )


def previews_in_namespaces(record: ScanRecord) -> Mapping[str, CheckCounts]:
    """The checks of assumed bindings, by namespace."""
    assumed = find_assumed_bindings(record)
    return (
        counts_by(record.tallies, lambda key: key.namespace if key.binding_key in assumed else None) if assumed else {}
    )
