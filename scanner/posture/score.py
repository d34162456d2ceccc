"""The score of a scan, of its policies, namespaces, owners and controls, and the bounds of each.

The score is the share of decided checks that passed: passed / (passed + violated + errored-would-deny). The bounds are the
score if all undecided checks had failed, or had passed. Checks that depend on the user of the request are undecided: a
policy that exempts the scanner's user must not look clean. Previewed policies do not count. Without a known population
there is no score: if a kind that a policy needs was not listed completely, the number of missed objects is unknown.

The weighted score counts each check as often as the weight of its severity.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from scanner.model.outcome import CheckKind, Gap, GapKind
from scanner.model.policy import BindingKey, Policy, PolicyKey, policy_label
from scanner.model.scans.scan import CoverageState, PolicyRecord, ScanRecord, ScanState
from scanner.model.scans.tally import OutcomeName, OwnedTally, TallyKey, group_tallies
from scanner.posture.policy_kinds import may_need
from scanner.posture.severity import DEFAULT_SEVERITY, Severity

WEIGHTS: Final[Mapping[Severity, int]] = {
    Severity.CRITICAL: 10,
    Severity.HIGH: 5,
    Severity.MEDIUM: 3,
    Severity.LOW: 1,
    Severity.INFO: 0,
}
"""The weights of the weighted score."""

SeverityOf: TypeAlias = Callable[[PolicyKey, str], Severity]
"""The severity of a check of a policy, given its expression."""


def default_severity(_: PolicyKey, __: str) -> Severity:
    """The severity of every check, if none is known."""
    return DEFAULT_SEVERITY


UNLISTED: Final = (CoverageState.PARTIAL, CoverageState.FORBIDDEN, CoverageState.FAILED)

_UNCOUNTED: Final = (GapKind.DISCOVERY, GapKind.LIST, GapKind.DOCUMENT)
_NAMED: Final = 5
_NAME: Final = 100
_SCORED: Final = (OutcomeName.PASSED, OutcomeName.VIOLATED)
_UNKNOWN: Final = (OutcomeName.ERRORED_ADMIT, OutcomeName.NOT_AUDITABLE)


@dataclass(frozen=True, slots=True)
class Score:
    """`value`, `low` and `high` lie between 0 and 1, or are None for the reason in `why_not`.

    `passed` of `decided` checks passed; `undecided` is an upper bound for the number of undecided checks. In the `weighted`
    score, which has no other one, each check is counted as often as its weight.
    """

    passed: int
    decided: int
    undecided: int
    why_not: str = ""
    weighted: Score | None = None

    @property
    def value(self) -> float | None:
        """The share of decided checks that passed, 0 to 1; None without a score."""
        return None if self.why_not else self.passed / self.decided

    @property
    def low(self) -> float | None:
        """The score if all undecided checks had failed, 0 to 1; None without a score."""
        return None if self.why_not else self.passed / (self.decided + self.undecided)

    @property
    def high(self) -> float | None:
        """The score if all undecided checks had passed, 0 to 1; None without a score."""
        return None if self.why_not else (self.passed + self.undecided) / (self.decided + self.undecided)


NO_SCORE: Final = Score(0, 0, 0, "no check was decided", Score(0, 0, 0, "no check was decided"))
"""The score of a part without checks."""


@dataclass(slots=True)
class Sums:
    """Numbers of checks: `passed` of the `decided` ones, and `open` ones, which have no result for all users."""

    passed: int = 0
    decided: int = 0
    open: int = 0

    @staticmethod
    def of_check(key: TallyKey) -> Sums:
        """The numbers of one check."""
        if _is_decided(key):
            return Sums(int(key.outcome is OutcomeName.PASSED), 1)
        return Sums(open=int(_is_open(key)))

    def add(self, other: Sums, weight: int = 1) -> None:
        """Add other numbers, each as often as a weight."""
        self.passed += weight * other.passed
        self.decided += weight * other.decided
        self.open += weight * other.open


@dataclass(slots=True)
class PartSums:
    """The numbers of checks of a part of a scan, and the same numbers with the weights of their severities."""

    plain: Sums = field(default_factory=Sums)
    weighted: Sums = field(default_factory=Sums)

    def add(self, sums: Sums, weight: int, times: int = 1) -> None:
        """Add numbers of checks with this weight, so many times."""
        self.plain.add(sums, times)
        self.weighted.add(sums, weight * times)

    def join(self, other: PartSums) -> None:
        """Add the numbers of another part."""
        self.plain.add(other.plain)
        self.weighted.add(other.weighted)


def find_assumed_bindings(record: ScanRecord) -> frozenset[BindingKey]:
    """The bindings that `--assume-bound` added to a scan."""
    return frozenset(binding.key for used in record.policies for binding in used.bindings if binding.assumed)


SumsByPolicy: TypeAlias = Mapping[PolicyKey, PartSums]


class Scores:
    """The scores of one scan. `waived` checks, counted by the keys of tallies, are left out."""

    def __init__(self, record: ScanRecord, severity: SeverityOf, waived: Mapping[TallyKey, int] | None = None) -> None:
        """Count the checks of a scan by policy and namespace, once."""
        self._record = record
        self._severity = severity
        self._policies = {used.policy.key: used for used in record.policies}
        self._assumed = find_assumed_bindings(record)
        self._missed = Counter(map(_kind_and_namespace, filter(_is_one_object, record.gaps)))
        invocations: defaultdict[PolicyKey, set[tuple[str, str, str]]] = defaultdict(set)
        self._sums: defaultdict[tuple[PolicyKey, str], PartSums] = defaultdict(PartSums)
        for key, numbers in group_tallies(_subtract(record.tallies, waived or {})):
            if self.counts(key):
                policy, one, weight = key.policy_key, Sums.of_check(key), self.weight(key)
                invocations[policy].add((key.binding, key.param_namespace, key.param_name))
                for namespace, number in numbers:
                    self._sums[policy, namespace].add(one, weight, number)
        self._checks = {key: _checks_per_object(used, len(invocations[key])) for key, used in self._policies.items()}

    def counts(self, key: TallyKey) -> bool:
        """Return whether a check is one of a bound policy, and no preview."""
        return key.binding_key not in self._assumed

    def score_scan(self) -> Score:
        """The score of the scan."""
        return self._score(self._sum_by_policy(), self._missed_checks(), self._explain_absence(None))

    def score_by_policy(self) -> dict[PolicyKey, Score]:
        """The score of each policy that the scan recorded or that has outcomes."""
        sums = self._sum_by_policy()
        return {
            policy: self._score(
                {policy: sums.get(policy, PartSums())},
                {policy: self._count_missed(policy)},
                self._explain_absence([policy]),
            )
            for policy in self._policies.keys() | sums.keys()
        }

    def score_by_namespace(self) -> dict[str, Score]:
        """The score of each namespace with outcomes; the empty name stands for cluster-scoped objects."""
        sums: defaultdict[str, dict[PolicyKey, PartSums]] = defaultdict(dict)
        for (policy, namespace), policy_sums in self._sums.items():
            sums[namespace][policy] = policy_sums
        why_not = self._explain_absence(None)
        return {
            name: self._score(policy_sums, self._missed_checks(name), why_not) for name, policy_sums in sums.items()
        }

    def score_part(self, part: PartSums) -> Score:
        """The score of a part of the objects, of which any may be among those that were not evaluated."""
        missed = PartSums()
        for policy, number in self._missed_checks().items():
            missed.add(Sums(open=number), self._weight_of_missed(policy))
        missed.join(part)
        return _make_score(missed, self._explain_absence(None))

    def weight(self, key: TallyKey) -> int:
        """The weight of a check in the weighted score."""
        return WEIGHTS[self._severity(*key.severity_key)]

    def _weight_of_missed(self, policy: PolicyKey) -> int:
        """The weight of the checks of a policy on objects that were not evaluated: the mean of its validations, rounded up."""
        used = self._policies.get(policy)
        weights = [WEIGHTS[self._severity(policy, each.expression)] for each in used.policy.validations] if used else []
        return -(-sum(weights) // len(weights)) if weights else 0

    def _sum_by_policy(self) -> dict[PolicyKey, PartSums]:
        joined: defaultdict[PolicyKey, PartSums] = defaultdict(PartSums)
        for (policy, _), policy_sums in self._sums.items():
            joined[policy].join(policy_sums)
        return joined

    def _score(self, sums: SumsByPolicy, missed: Mapping[PolicyKey, int], why_not: str) -> Score:
        part = PartSums()
        for policy in sums.keys() | missed.keys():
            if policy_sums := sums.get(policy):
                part.join(policy_sums)
            if number := missed.get(policy, 0):
                part.add(Sums(open=number), self._weight_of_missed(policy))
        return _make_score(part, why_not)

    def _missed_checks(self, namespace: str | None = None) -> dict[PolicyKey, int]:
        """Upper bounds for the numbers of checks on objects that were listed, but not evaluated."""
        objects = sum(number for (_, place), number in self._missed.items() if namespace in (None, place))
        return {policy: objects * number for policy, number in self._checks.items() if objects}

    def _count_missed(self, policy: PolicyKey) -> int:
        used = self._policies.get(policy)
        if used is None or not self._missed:
            return 0
        objects = sum(number for (kind, _), number in self._missed.items() if _needs(used.policy, kind))
        return objects * self._checks[policy]

    def _explain_absence(self, policies: Collection[PolicyKey] | None) -> str:
        """The reason why there is no score of some policies, or of all, or an empty string."""
        record = self._record
        used = [self._policies[key].policy for key in policies if key in self._policies] if policies else None
        unlisted = sorted(
            {
                line.kind
                for line in record.coverage
                if line.state in UNLISTED and _is_needed_by_any(used, f"{line.api_version}/{line.kind}")
            }
        )
        if unlisted:
            return f"the number of objects is unknown for {_join_few(unlisted)}"
        uncounted = [gap for gap in record.gaps if not _is_one_object(gap) and _concerns(gap, used)]
        if uncounted:
            gaps = f"{len(uncounted):,} {'gap' if len(uncounted) == 1 else 'gaps'}"
            return f"the number of missed objects is unknown: {gaps}, first {uncounted[0].where}"
        if record.scan.state not in (ScanState.COMPLETE, ScanState.INCOMPLETE):
            return f"the scan is {record.scan.state}"
        return ""


def _subtract(tallies: Mapping[TallyKey, int], without: Mapping[TallyKey, int]) -> Mapping[TallyKey, int]:
    return {key: number - without.get(key, 0) for key, number in tallies.items()} if without else tallies


def _make_score(part: PartSums, why_not: str) -> Score:
    plain, weighted = part.plain, part.weighted
    heavy = why_not or ("" if weighted.decided else "no check with a weight was decided")
    return Score(
        plain.passed,
        plain.decided,
        plain.open,
        why_not or ("" if plain.decided else "no check was decided"),
        Score(weighted.passed, weighted.decided, weighted.open, heavy),
    )


def _is_decided(key: TallyKey) -> bool:
    """Return whether a check counts: it has a result, and the result is the same for all users."""
    return _is_answered(key) and not key.requester


def _is_answered(key: TallyKey) -> bool:
    """Return whether a check has a result: a pass or violation of a validation, or an error of any check that denies."""
    if key.outcome is OutcomeName.ERRORED_DENY:
        return True
    return key.check.kind is CheckKind.VALIDATION and key.outcome in _SCORED


def _is_open(key: TallyKey) -> bool:
    """Return whether a check has no result for all users: an error that admission ignores, or one that no audit decides."""
    # A mutation is no part of the score, with or without a result.
    unknown = key.outcome in _UNKNOWN and key.check.kind is not CheckKind.MUTATION
    return unknown or (_is_answered(key) and key.requester)


def _checks_per_object(used: PolicyRecord, invocations: int) -> int:
    """The number of validations, under every binding and param in the scan."""
    return len(used.policy.validations) * max(len(used.bindings), invocations)


def _is_one_object(gap: Gap) -> bool:
    """Return whether a gap is an object (`apps/v1/Deployment shop/web`), not a page (`apps/v1/Deployment`) or `policy x`."""
    return gap.kind not in _UNCOUNTED and " " in gap.where and not gap.where.startswith("policy ")


def _kind_and_namespace(gap: Gap) -> tuple[str, str]:
    kind, _, name = gap.where.partition(" ")
    return kind, name.partition("/")[0] if "/" in name else ""


def _concerns(gap: Gap, policies: Iterable[Policy] | None) -> bool:
    """Return whether a gap may hide objects or checks of some policies, or of any."""
    if policies is None:
        return True
    if gap.where.startswith("policy "):
        return any(gap.where == policy_label(policy.key) for policy in policies)
    api_version, slash, kind = gap.where.rpartition("/")
    listed = gap.kind in (GapKind.LIST, GapKind.OBJECT, GapKind.EVALUATION) and slash and " " not in gap.where
    return _is_needed_by_any(policies, f"{api_version}/{kind}") if listed else True


def _is_needed_by_any(policies: Iterable[Policy] | None, kind: str) -> bool:
    return policies is None or any(_needs(policy, kind) for policy in policies)


def _needs(policy: Policy, kind: str) -> bool:
    """Return whether a policy may match a kind, written as `apps/v1/Deployment`."""
    api_version, _, name = kind.rpartition("/")
    return may_need(policy, api_version, name)


def _join_few(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(name if len(name) <= _NAME else f"{name[:_NAME]}…" for name in names[:_NAMED]) + more


# The scores of owners: of the checks on the objects of one team.


def owner_scores(tallies: Iterable[OwnedTally], scores: Scores) -> dict[str, Score]:
    """The score of each owner in some tallies; the empty name stands for objects without an owner.

    A scan without tallies, such as one of an older version, has no scores.
    """
    parts: defaultdict[str, PartSums] = defaultdict(PartSums)
    for tally in tallies:
        if scores.counts(tally.key):
            one, weight = Sums.of_check(tally.key), scores.weight(tally.key)
            for owner, number in tally.numbers.items():
                parts[owner].add(one, weight, number)
    return {owner: scores.score_part(part) for owner, part in parts.items()}
