"""Problems that only the objects reveal: bindings that matched none, found no param, or whose errors are ignored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scanner.admission.dispatch import BoundPolicy
from scanner.model.policy import BindingKey, Policy, PolicyKey
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.scan import Coverage, CoverageState, PageResult
from scanner.model.scans.tally import OutcomeName

_NEAR = 0.8
_SEEN = (CoverageState.LISTED, CoverageState.INCONSISTENT)


@dataclass(slots=True)
class ObservedCounts:
    """The counts of a scan for each binding: matched objects, those of them without a param, ignored errors.

    `budget_use` has, by policy, the largest share of its budgets that an evaluation used: 1.0 is the whole budget.
    """

    matched: Counter[BindingKey] = field(default_factory=Counter)
    without_param: Counter[BindingKey] = field(default_factory=Counter)
    ignored: Counter[BindingKey] = field(default_factory=Counter)
    budget_use: dict[PolicyKey, float] = field(default_factory=dict)

    def add(self, result: PageResult) -> None:
        """Add the counts of a page."""
        self.matched.update(result.matched)
        self.without_param.update(result.without_param)
        for key, number in result.tallies.items():
            if key.outcome is OutcomeName.ERRORED_ADMIT:
                self.ignored[key.binding_key] += number
        for policy, share in result.budget_use.items():
            self.budget_use[policy] = max(share, self.budget_use.get(policy, 0.0))


def find_observed_problems(
    bound: Iterable[BoundPolicy], counted: ObservedCounts, coverage: Iterable[Coverage]
) -> Iterator[Health]:
    """The problems that are known after the last object: costs near a limit, unused bindings, missing params, ignored errors.

    `coverage` shows whether every kind was listed completely; the detail about an unused binding depends on it.
    """
    complete = all(kind_coverage.state in _SEEN for kind_coverage in coverage)
    for bound_policy in bound:
        if bound_policy.reading.reason:
            continue
        yield from _check_cost(bound_policy.policy, counted.budget_use.get(bound_policy.policy.key, 0.0))
        for binding in bound_policy.bindings:
            yield from _check_binding(binding.key, counted, complete=complete)


def _check_binding(key: BindingKey, counted: ObservedCounts, *, complete: bool) -> Iterator[Health]:
    language, policy, binding = key
    matched, without_param, ignored = counted.matched[key], counted.without_param[key], counted.ignored[key]
    if not matched:
        detail = f"{'every' if complete else 'not every'} kind of the scan was listed"
        yield Health(HealthKind.NO_OBJECT, policy, binding, detail, language)
    if without_param:
        detail = f"there is no param for {without_param:,} of {_write_number(matched)} that it matched: they were not evaluated"
        yield Health(HealthKind.PARAM_MISSING, policy, binding, detail, language)
    if ignored:
        checks = "1 check" if ignored == 1 else f"{ignored:,} checks"
        detail = f"{checks} failed to evaluate, and failurePolicy Ignore lets the objects pass"
        yield Health(HealthKind.HIDDEN_ERRORS, policy, binding, detail, language)


def _check_cost(policy: Policy, share: float) -> Iterator[Health]:
    if share >= _NEAR:
        detail = f"an evaluation used {share:.0%} of what it may cost; beyond that the API server calls it an error"
        yield Health(HealthKind.NEAR_LIMIT, policy.name, "", detail, policy.language)


def _write_number(number: int) -> str:
    return "1 object" if number == 1 else f"{number:,} objects"
