"""One number for a scan, and how far it can be trusted.

The score is the share of decided checks that passed: passed / (passed + violated + errored-would-deny). Its bounds ask
what it would be if everything undecided had failed, or had passed. What depends on who makes the request is undecided:
a policy that exempts whoever scans must not look clean. Previews of policies that nothing binds do not count. There is no score without a known population: when
a kind that some bound policy needs was not listed to its end, nobody knows what was missed.
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
    """`value`, `low` and `high` lie between 0 and 1, or are None, and then `why_not` says why.

    `passed` of `decided` checks passed; `undecided` is the most that could still be added to them.
    """

    passed: int
    decided: int
    undecided: int
    why_not: str = ""

    @property
    def value(self) -> float | None:
        """The share of decided checks that passed."""
        return None if self.why_not else self.passed / self.decided

    @property
    def low(self) -> float | None:
        """The score if everything undecided had failed."""
        return None if self.why_not else self.passed / (self.decided + self.undecided)

    @property
    def high(self) -> float | None:
        """The score if everything undecided had passed."""
        return None if self.why_not else (self.passed + self.undecided) / (self.decided + self.undecided)


def score_of(record: ScanRecord) -> Score:
    """The score of a scan, with its bounds."""
    record = _in_force(record)
    decided = _sum(record.tallies, _is_decided)
    passed = _sum(record.tallies, lambda key: _is_decided(key) and key.outcome is OutcomeName.PASSED)
    undecided = _undecided(record) + _unevaluated(record)
    return Score(passed, decided, undecided, _why_not(record, decided))


def _in_force(record: ScanRecord) -> ScanRecord:
    """The same scan without what it only assumed."""
    assumed = {it.key for entry in record.policies for it in entry.bindings if it.assumed}
    kept = {key: number for key, number in record.tallies.items() if key.binding_key not in assumed}
    return replace(record, tallies=kept) if assumed else record


def _is_decided(key: TallyKey) -> bool:
    """Tell whether a check counts: whoever asks, it would be answered so."""
    return _is_answered(key) and not key.requester


def _is_answered(key: TallyKey) -> bool:
    """Passes and violations of validations; errors that deny count against the score whatever raised them."""
    if key.outcome is OutcomeName.ERRORED_DENY:
        return True
    return key.check.kind is CheckKind.VALIDATION and key.outcome in _SCORED


def _undecided(record: ScanRecord) -> int:
    """Checks without an answer that holds for everybody: admission lets them pass, or nobody could decide them here."""
    return _sum(record.tallies, _is_open)


def _is_open(key: TallyKey) -> bool:
    # A mutation that has no answer would, with one, be no part of the score either.
    unknown = key.outcome in _UNKNOWN and key.check.kind is not CheckKind.MUTATION
    return unknown or (_is_answered(key) and key.requester)


def _unevaluated(record: ScanRecord) -> int:
    """Find the most checks that objects which were seen, but not evaluated, can have been asked."""
    missed = sum(_is_one_object(gap) for gap in record.gaps)
    return missed * _checks_per_object(record) if missed else 0


def _checks_per_object(record: ScanRecord) -> int:
    """Add up every validation under every binding and param that the scan met."""
    met: defaultdict[PolicyKey, set[tuple[str, str, str]]] = defaultdict(set)
    for key in record.tallies:
        met[key.policy_key].add((key.binding, key.param_namespace, key.param_name))
    return sum(len(it.policy.validations) * max(len(it.bindings), len(met[it.policy.key])) for it in record.policies)


def _is_one_object(gap: Gap) -> bool:
    """Tell `apps/v1/Deployment shop/web` from a whole page (`apps/v1/Deployment`) or a whole policy (`policy x`)."""
    return gap.kind not in _UNCOUNTED and " " in gap.where and not gap.where.startswith("policy ")


def _why_not(record: ScanRecord, decided: int) -> str:
    unlisted = sorted({line.kind for line in record.coverage if line.state in UNLISTED})
    if unlisted:
        return f"the number of objects is unknown for {_few(unlisted)}"
    if uncounted := [gap for gap in record.gaps if not _is_one_object(gap)]:
        return f"the number of objects missed is unknown: {plural(len(uncounted), 'gap')}, first {uncounted[0].where}"
    if record.scan.state not in (ScanState.COMPLETE, ScanState.PARTIAL):
        return f"the scan is {record.scan.state}"
    return "" if decided else "no check was decided"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return listed(cut(name, _NAME) for name in names[:_NAMED]) + more


def _sum(tallies: Mapping[TallyKey, int], wanted: Callable[[TallyKey], bool]) -> int:
    return sum(number for key, number in tallies.items() if wanted(key))
