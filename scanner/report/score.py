"""The score of a scan and its bounds.

The score is the share of decided checks that passed: passed / (passed + violated + errored-would-deny). The bounds are the
score if all undecided checks had failed, or had passed. Checks that depend on the user of the request are undecided: a
policy that exempts the scanner's user must not look clean. Previewed policies do not count. Without a known population
there is no score: if a kind that a bound policy matches was not listed completely, the number of missed objects is unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from scanner.model.outcome import CheckKind, Gap, GapKind
from scanner.model.policy import PolicyKey
from scanner.model.scan import CoverageState, OutcomeName, ScanRecord, ScanState, TallyKey
from scanner.report.words import cut, listed, plural

UNLISTED = (CoverageState.PARTIAL, CoverageState.FORBIDDEN, CoverageState.FAILED)

_UNCOUNTED = (GapKind.DISCOVERY, GapKind.LIST, GapKind.DOCUMENT)
_NAMED = 5
_NAME = 100
_SCORED = (OutcomeName.PASSED, OutcomeName.VIOLATED)
_UNKNOWN = (OutcomeName.ERRORED_ADMIT, OutcomeName.NOT_AUDITABLE)


@dataclass(frozen=True, slots=True)
class Score:
    """`value`, `low` and `high` lie between 0 and 1, or are None for the reason in `why_not`.

    `passed` of `decided` checks passed; `undecided` is an upper bound for the number of undecided checks.
    """

    passed: int
    decided: int
    undecided: int
    why_not: str = ""

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


def score_of(record: ScanRecord) -> Score:
    """The score of a scan, with its bounds."""
    record = _in_force(record)
    decided = _sum(record.tallies, _is_decided)
    passed = _sum(record.tallies, lambda key: _is_decided(key) and key.outcome is OutcomeName.PASSED)
    undecided = _undecided(record) + _unevaluated(record)
    return Score(passed, decided, undecided, _why_not(record, decided))


def _in_force(record: ScanRecord) -> ScanRecord:
    """The same scan without the results of bindings that `--assume-bound` added."""
    assumed = {
        binding.key for policy_record in record.policies for binding in policy_record.bindings if binding.assumed
    }
    kept = {key: number for key, number in record.tallies.items() if key.binding_key not in assumed}
    return replace(record, tallies=kept) if assumed else record


def _is_decided(key: TallyKey) -> bool:
    """Return whether a check counts: it has a result, and the result is the same for all users."""
    return _is_answered(key) and not key.requester


def _is_answered(key: TallyKey) -> bool:
    """Return whether a check has a result: a pass or violation of a validation, or an error of any check that denies."""
    if key.outcome is OutcomeName.ERRORED_DENY:
        return True
    return key.check.kind is CheckKind.VALIDATION and key.outcome in _SCORED


def _undecided(record: ScanRecord) -> int:
    """Checks without a result for all users: errors that admission ignores, and checks that an audit cannot decide."""
    return _sum(record.tallies, _is_open)


def _is_open(key: TallyKey) -> bool:
    # A mutation is no part of the score, with or without a result.
    unknown = key.outcome in _UNKNOWN and key.check.kind is not CheckKind.MUTATION
    return unknown or (_is_answered(key) and key.requester)


def _unevaluated(record: ScanRecord) -> int:
    """An upper bound for the number of checks on objects that were listed, but not evaluated."""
    missed = sum(_is_one_object(gap) for gap in record.gaps)
    return missed * _checks_per_object(record) if missed else 0


def _checks_per_object(record: ScanRecord) -> int:
    """The number of validations, under every binding and param in the scan."""
    invocations: defaultdict[PolicyKey, set[tuple[str, str, str]]] = defaultdict(set)
    for key in record.tallies:
        invocations[key.policy_key].add((key.binding, key.param_namespace, key.param_name))
    return sum(
        len(used.policy.validations) * max(len(used.bindings), len(invocations[used.policy.key]))
        for used in record.policies
    )


def _is_one_object(gap: Gap) -> bool:
    """Return whether a gap is an object (`apps/v1/Deployment shop/web`), not a page (`apps/v1/Deployment`) or `policy x`."""
    return gap.kind not in _UNCOUNTED and " " in gap.where and not gap.where.startswith("policy ")


def _why_not(record: ScanRecord, decided: int) -> str:
    unlisted = sorted({line.kind for line in record.coverage if line.state in UNLISTED})
    if unlisted:
        return f"the number of objects is unknown for {_few(unlisted)}"
    if uncounted := [gap for gap in record.gaps if not _is_one_object(gap)]:
        return f"the number of missed objects is unknown: {plural(len(uncounted), 'gap')}, first {uncounted[0].where}"
    if record.scan.state not in (ScanState.COMPLETE, ScanState.PARTIAL):
        return f"the scan is {record.scan.state}"
    return "" if decided else "no check was decided"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return listed(cut(name, _NAME) for name in names[:_NAMED]) + more


def _sum(tallies: Mapping[TallyKey, int], counts: Callable[[TallyKey], bool]) -> int:
    return sum(number for key, number in tallies.items() if counts(key))
