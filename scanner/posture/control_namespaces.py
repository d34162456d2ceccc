"""The answer of admission to a violation of a control, in each namespace: it is refused, its pods are, or nothing refuses it.

The outcomes of a scan tell which binding evaluated which check in which namespace: a namespace whose objects no binding evaluated has
no policy, also if a binding names one. A namespace without an object to which the policies apply has no state that a scan could show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from scanner.model.outcome import CheckKind
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.scans.scan import ScanRecord
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.posture.control_checks import ServingChecks
from scanner.posture.control_facts import Needs, Tallies
from scanner.posture.policy_kinds import KindKey
from scanner.posture.score import find_assumed_bindings


class NamespaceState(StrEnum):
    """The answer of admission to a violation of a control in a namespace.

    `waivedOrExempt` has a check that an exemption or exception exempts, or whose finding is waived. `noPolicy` has objects that no
    binding evaluated by a check of the control, `noObject` none to which its policies apply.
    """

    ENFORCED = "enforced"
    PODS_REFUSED = "podsRefused"
    WARNED = "warnedOrAudited"
    ACCEPTED = "waivedOrExempt"
    NO_POLICY = "noPolicy"
    NO_OBJECT = "noObject"


_BY_STRENGTH: Final = (NamespaceState.WARNED, NamespaceState.PODS_REFUSED, NamespaceState.ENFORCED)
_FAILING: Final = (
    OutcomeName.VIOLATED,
    OutcomeName.ERRORED_DENY,
    OutcomeName.ERRORED_ADMIT,
    OutcomeName.WOULD_CHANGE,
)
_EVIDENCE: Final = (CheckKind.VALIDATION, CheckKind.MUTATION)


@dataclass(frozen=True, slots=True)
class ControlInNamespace:
    """A control in a namespace, the empty name for cluster-scoped objects.

    `checks` counts the evaluated checks of the control under all bindings, `open` those of them that fail and are not waived, and
    `accepted` those that are waived or exempt.
    """

    namespace: str
    state: NamespaceState
    checks: int = 0
    open: int = 0
    accepted: int = 0


class ControlNamespaces:
    """Answers for the controls of one scan."""

    def __init__(self, record: StoredScan, needs: Needs, waived: Tallies) -> None:
        """Group the outcomes of a scan by namespace. `waived` are those whose findings are waived."""
        self._record, self._needs, self._waived = record, needs, waived
        self._strengths = _rank_bindings(record)
        self._tallies = _group_by_check(record)
        self._known: dict[ServingChecks, tuple[ControlInNamespace, ...]] = {}

    def find_states(self, checks: ServingChecks) -> tuple[ControlInNamespace, ...]:
        """The state of a control in each namespace, ordered by name; none if no policy of the scan serves the control."""
        if not checks.policies:
            return ()
        if checks not in self._known:
            self._known[checks] = tuple(self._list_states(checks))
        return self._known[checks]

    def list_unrefused(self, checks: ServingChecks) -> tuple[str, ...]:
        """The reasons why admission would not refuse every violation of a control, as clauses."""
        states = self.find_states(checks)
        return tuple(
            _describe(words, [each.namespace for each in states if each.state is state])
            for state, words in _UNREFUSED_WORDS.items()
            if any(each.state is state for each in states)
        )

    def _list_states(self, checks: ServingChecks) -> Iterator[ControlInNamespace]:
        kinds = {(line.api_version, line.kind) for key in checks.policies for line in self._needs[key].coverage}
        tallies: defaultdict[str, list[tuple[TallyKey, int]]] = defaultdict(list)
        for key, of_check in self._tallies.items():
            for tally, number in of_check if checks.has(*key) or checks.has_stricter(*key) else ():
                tallies[tally.namespace].append((tally, number))
        for namespace in sorted({*self._namespaces, *self._kinds, *tallies}):
            evaluated = [each for each in tallies.get(namespace, ()) if each[0].outcome is not OutcomeName.SKIPPED]
            if evaluated:
                yield self._sum(namespace, checks, evaluated)
            elif namespace in tallies:
                yield ControlInNamespace(namespace, NamespaceState.NO_OBJECT)
            elif namespace:
                there = not kinds.isdisjoint(self._kinds.get(namespace, ()))
                yield ControlInNamespace(namespace, NamespaceState.NO_POLICY if there else NamespaceState.NO_OBJECT)

    def _sum(
        self, namespace: str, checks: ServingChecks, tallies: Collection[tuple[TallyKey, int]]
    ) -> ControlInNamespace:
        own = [(tally, number) for tally, number in tallies if checks.has(*tally.severity_key)]
        waived = sum(self._waived.get(tally, 0) for tally, _ in own)
        accepted = waived + _count(tallies, (OutcomeName.EXCEPTED,))
        return ControlInNamespace(
            namespace,
            NamespaceState.ACCEPTED if accepted else self._find_weakest(checks, tallies),
            sum(number for _, number in tallies),
            _count(own, _FAILING) - waived,
            accepted,
        )

    def _find_weakest(self, checks: ServingChecks, tallies: Iterable[tuple[TallyKey, int]]) -> NamespaceState:
        """The answer that every check has which the control needs; of those that it need not have, the strongest one."""
        strongest: dict[tuple[str, str, str], int] = {}
        for tally, _ in tallies:
            key = tally.language, tally.policy, tally.check.expression
            strongest[key] = max(strongest.get(key, 0), self._rank(tally))
        needed = [rank for (*policy, _), rank in strongest.items() if tuple(policy) in checks.required]
        return _BY_STRENGTH[min(needed) if needed else max(strongest.values())]

    def _rank(self, tally: TallyKey) -> int:
        if tally.check.kind is CheckKind.MUTATION:
            return len(_BY_STRENGTH) - 1  # the server changes the object, so a violation is not admitted either
        return 0 if tally.outcome is OutcomeName.ERRORED_ADMIT else self._strengths.get(tally.binding_key, 0)

    @cached_property
    def _namespaces(self) -> frozenset[str]:
        return frozenset(self._record.namespaces())

    @cached_property
    def _kinds(self) -> Mapping[str, Collection[KindKey]]:
        """The kinds of the objects in each namespace, as far as the scan examined them."""
        kinds: defaultdict[str, set[KindKey]] = defaultdict(set)
        for each in self._record.population():
            kinds[each.namespace].add((each.api_version, each.kind))
        return kinds


def _group_by_check(record: ScanRecord) -> Mapping[tuple[PolicyKey, str], list[tuple[TallyKey, int]]]:
    """The outcomes of the checks of bindings in force, by policy and expression."""
    assumed = find_assumed_bindings(record)
    tallies: defaultdict[tuple[PolicyKey, str], list[tuple[TallyKey, int]]] = defaultdict(list)
    for tally, number in record.tallies.items():
        if tally.check.kind in _EVIDENCE and tally.binding_key not in assumed:
            tallies[tally.severity_key].append((tally, number))
    return tallies


def _rank_bindings(record: ScanRecord) -> Mapping[BindingKey, int]:
    """The places of the strongest actions of bindings in `_BY_STRENGTH`."""
    ranks = {"Deny": 2, "RefusePods": 1}
    return {
        binding.key: max((ranks.get(action, 0) for action in binding.actions), default=0)
        for used in record.policies
        for binding in used.bindings
    }


def _count(tallies: Iterable[tuple[TallyKey, int]], outcomes: Collection[OutcomeName]) -> int:
    return sum(number for tally, number in tallies if tally.outcome in outcomes)


_UNREFUSED_WORDS: Final = {
    NamespaceState.WARNED: "violations are only warned of or audited",
    NamespaceState.NO_POLICY: "no policy evaluated the objects",
}


def _describe(words: str, namespaces: Collection[str]) -> str:
    first, number = next(iter(namespaces)) or "cluster-scoped objects", len(namespaces)
    return f"{words} in {number:,} namespaces, first {first}" if number > 1 else f"{words} in {first}"
