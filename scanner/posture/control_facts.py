"""The facts of a scan about its policies, for the states of controls: outcomes, and the reasons why objects may be missing.

A gap concerns a policy unless its place is a kind that the policy cannot match, or another policy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Final, TypeAlias

from scanner.model.outcome import CheckKind, Gap, GapKind
from scanner.model.policy import MatchResources, Policy, PolicyKey, policy_label
from scanner.model.scans.health import HealthKind
from scanner.model.scans.scan import Coverage, CoverageState, PolicyRecord, ScanRecord, ScanState, Scope
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.posture.control_checks import ServingChecks
from scanner.posture.controls import CheckFacts, Place, PolicyFacts, ScanFacts
from scanner.posture.policy_kinds import CoveredKinds, KindKey, names_group
from scanner.posture.score import find_assumed_bindings

Forms: TypeAlias = Callable[[Policy], Iterable[MatchResources]]
"""The match constraints of each form in which a policy is evaluated."""

Tallies: TypeAlias = Mapping[TallyKey, int]
_Accepted: TypeAlias = Mapping[PolicyKey, "_Counts"]

_NAMESPACES: Final = "v1/Namespace"
"""The place of a gap about the labels of namespaces, which select the objects of every policy."""
_POLICY: Final = "policy "
_EVIDENCE: Final = (CheckKind.VALIDATION, CheckKind.MUTATION)
_CHANGEABLE: Final = (OutcomeName.PASSED, OutcomeName.SKIPPED)
_DECIDED: Final = (OutcomeName.PASSED, OutcomeName.VIOLATED)
_UNLISTED: Final = {
    CoverageState.PARTIAL: "was listed only partly",
    CoverageState.INCONSISTENT: "was listed at different moments",
    CoverageState.FORBIDDEN: "was not listed: no permission",
    CoverageState.FAILED: "could not be listed",
    CoverageState.SKIPPED: "was excluded on request",
}
_UNEVALUATED: Final = {
    HealthKind.COMPILE: "does not compile",
    HealthKind.PARAM_KIND: "has a param kind that is not served",
    HealthKind.PARAM_MISSING: "lacks a param for some objects",
    HealthKind.NOT_AUDITABLE: "cannot be audited",
}


@dataclass(frozen=True, slots=True)
class PolicyNeeds:
    """The lists that a policy needs, in the order of the scan, and the gaps that may hide its objects or a part of its rules."""

    coverage: tuple[Coverage, ...] = ()
    gaps: tuple[Gap, ...] = ()


Needs: TypeAlias = Mapping[PolicyKey, PolicyNeeds]


def needs_of(record: ScanRecord, forms: Forms) -> Needs:
    """The lists that each policy of a scan needs: those of kinds that it can match, those of its outcomes included."""
    matches = {used.policy.key: tuple(forms(used.policy)) for used in record.policies}
    covered = CoveredKinds(record.coverage, chain.from_iterable(matches.values()))
    seen: defaultdict[PolicyKey, set[KindKey]] = defaultdict(set)
    for tally in record.tallies:
        seen[tally.policy_key].add((tally.api_version, tally.kind))
    return {
        policy: _needs(record, policy, several, seen[policy].union(*map(covered.list_matched, several)))
        for policy, several in matches.items()
    }


def _needs(
    record: ScanRecord, policy: PolicyKey, matches: Sequence[MatchResources], kinds: Collection[KindKey]
) -> PolicyNeeds:
    coverage = tuple(line for line in record.coverage if (line.api_version, line.kind) in kinds)
    others = {*map(_name, record.coverage)} - {*map(_name, coverage)}
    return PolicyNeeds(coverage, tuple(gap for gap in record.gaps if _concerns(gap, policy, matches, others)))


def _concerns(gap: Gap, policy: PolicyKey, matches: Sequence[MatchResources], others: Collection[str]) -> bool:
    """Return whether a gap may hide an object that a policy matches. `others` are the listed kinds that it cannot match."""
    if gap.where.startswith(_POLICY):
        return gap.where == policy_label(policy)
    if gap.where == _NAMESPACES:
        return True
    if gap.kind is GapKind.DISCOVERY and "/" in gap.where:
        return any(names_group(match, gap.where.rpartition("/")[0]) for match in matches)
    return _place(gap) not in others


def facts_of(record: ScanRecord, needs: Needs, waived: Tallies) -> ScanFacts:
    """The facts of a scan about its policies. `waived` are those of its tallies whose findings are waived."""
    counts, accepted = _count_in_force(record), _count(waived)
    return ScanFacts(
        policies={
            used.policy.key: _facts(used, record, needs[used.policy.key], counts, accepted) for used in record.policies
        },
        obstacles=tuple(_obstacles(record)),
        unread=tuple(_list_unread(record)),
    )


EvaluatedByCheck: TypeAlias = Mapping[tuple[PolicyKey, str], int]
"""By policy and trimmed expression, the objects that a validation or mutation evaluated: bit n of a number is the object with id n."""


def collect_evaluated_objects(record: StoredScan) -> EvaluatedByCheck | None:
    """The objects that each validation or mutation evaluated. None if an older version recorded the scan."""
    assumed, objects = find_assumed_bindings(record), defaultdict[tuple[PolicyKey, str], int](int)
    known = not record.tallies
    for each in record.evaluated_objects():
        known = True
        if each.check.kind in _EVIDENCE and (each.language, each.policy, each.binding) not in assumed:
            objects[(each.language, each.policy), each.check.expression.strip()] |= each.evaluated.bits()
    return objects if known else None


def find_objects(objects: EvaluatedByCheck, checks: ServingChecks) -> int:
    """The objects that the checks of a control evaluated, as the bits of a number."""
    together = 0
    for (policy, expression), bits in objects.items():
        if checks.has(policy, expression) or checks.has_stricter(policy, expression):
            together |= bits
    return together


@dataclass(slots=True)
class _Counts:
    """The checks of a policy under bindings in force, and the same by expression."""

    outcomes: Counter[OutcomeName] = field(default_factory=Counter)
    passed: int = 0
    requester: int = 0
    evaluated: Counter[tuple[Place, str, str, str]] = field(default_factory=Counter)
    unproved: Counter[Place] = field(default_factory=Counter)
    checks: defaultdict[str, _Counts] = field(default_factory=lambda: defaultdict(_Counts))

    def add(self, tally: TallyKey, number: int) -> None:
        """Count checks with one outcome."""
        self.outcomes[tally.outcome] += number
        if tally.requester and tally.outcome in _CHANGEABLE:
            self.requester += number
        elif tally.outcome is OutcomeName.PASSED and tally.check.kind in _EVIDENCE:
            self.passed += number
        place = tally.api_version, tally.kind, tally.namespace
        if tally.outcome in _DECIDED:
            self.evaluated[place, tally.binding, tally.param_namespace, tally.param_name] += number
        if tally.outcome not in _CHANGEABLE:
            self.unproved[place] += number

    def facts(self, accepted: _Counts) -> CheckFacts:
        """The facts about the checks with one expression."""
        most: dict[Place, int] = {}
        for (place, *_), number in self.evaluated.items():
            most[place] = max(most.get(place, 0), number)
        return CheckFacts(
            dict(self.outcomes), self.passed, self.requester, dict(accepted.outcomes), most, dict(self.unproved)
        )


def _count_in_force(record: ScanRecord) -> Mapping[PolicyKey, _Counts]:
    assumed = find_assumed_bindings(record)
    return _count({tally: number for tally, number in record.tallies.items() if tally.binding_key not in assumed})


def _count(tallies: Tallies) -> Mapping[PolicyKey, _Counts]:
    counts: defaultdict[PolicyKey, _Counts] = defaultdict(_Counts)
    for tally, number in tallies.items():
        of_policy = counts[tally.policy_key]
        of_policy.add(tally, number)
        of_policy.checks[tally.check.expression.strip()].add(tally, number)
    return counts


def _facts(
    used: PolicyRecord,
    record: ScanRecord,
    needs: PolicyNeeds,
    in_force: Mapping[PolicyKey, _Counts],
    accepted: _Accepted,
) -> PolicyFacts:
    key = used.policy.key
    counts, waived = in_force.get(key, _Counts()), accepted.get(key, _Counts())
    checks = counts.checks.items()
    return PolicyFacts(
        bound=any(not binding.assumed for binding in used.bindings),
        outcomes=dict(counts.outcomes),
        passed=counts.passed,
        requester=counts.requester,
        accepted=dict(waived.outcomes),
        obstacles=(*_list_unlisted(needs), *_list_unevaluated(used, record)),
        checks={name: facts.facts(waived.checks.get(name, _Counts())) for name, facts in checks},
    )


def _list_unlisted(needs: PolicyNeeds) -> Iterator[str]:
    """The lists and gaps that may hide objects of a policy; a list that is not complete has no second line for its gap."""
    incomplete = [line for line in needs.coverage if line.state is not CoverageState.LISTED]
    for line in incomplete:
        yield f"{line.kind} ({line.api_version}) {_UNLISTED[line.state]}"
    stated = {*map(_name, incomplete)}
    others = [gap for gap in needs.gaps if gap.kind is not GapKind.LIST or gap.where not in stated]
    yield from _name_gaps(sorted(others))


def _name_gaps(gaps: Sequence[Gap]) -> Iterator[str]:
    """The gaps of each kind, if there are many as their number with the first of them."""
    for _, group in groupby(gaps, key=lambda gap: gap.kind):
        first, *more = group
        number = f"{len(more) + 1:,} gaps, first " if more else ""
        yield f"{number}{first.where}: {first.why}"


def _place(gap: Gap) -> str:
    """The kind of a gap: `apps/v1/Deployment` for `apps/v1/Deployment shop/web`."""
    return gap.where.partition(" ")[0]


def _name(line: Coverage) -> str:
    return f"{line.api_version}/{line.kind}"


def _list_unevaluated(used: PolicyRecord, record: ScanRecord) -> Iterator[str]:
    name = used.policy.name
    for kind in sorted({health.kind for health in record.health if health.policy_key == used.policy.key}):
        if clause := _UNEVALUATED.get(kind):
            yield f"policy {name} {clause}"
    if used.reading.reason:
        yield f"policy {name} cannot be audited"


def _obstacles(record: ScanRecord) -> Iterator[str]:
    """The reasons why a scan shows no control as met: its end, and the limits that the user set."""
    if record.scan.state not in (ScanState.COMPLETE, ScanState.INCOMPLETE):
        yield "the scan did not end"
    yield from limits_of(record.scan.scope)
    if record.method and record.method.kyverno_compat:
        yield f"the scan reproduces the reports of Kyverno's {record.method.kyverno_compat}, which hide exceptions"


def limits_of(scope: Scope) -> Iterator[str]:
    """The limits of a scope that leave out objects or policies of any kind, as clauses. Excluded kinds are none of them."""
    limits = (
        ("namespaces", scope.namespaces),
        ("namespaces other than", scope.exclude_namespaces),
        ("policies", scope.policies),
        ("bindings", scope.bindings),
        ("objects with the labels", (scope.selector,) if scope.selector else ()),
        ("requests to", (scope.operation,) if scope.operation != "auto" else ()),
    )
    for noun, names in limits:
        if names:
            yield f"the scan was limited to {noun} {', '.join(names)}"


def _list_unread(record: ScanRecord) -> Iterator[str]:
    """The reasons why policies or bindings may be missing from a scan."""
    scope = record.scan.scope
    if record.scan.state not in (ScanState.COMPLETE, ScanState.INCOMPLETE):
        yield "the scan did not end"
    yield from limits_of(Scope(policies=scope.policies, bindings=scope.bindings))
    known = {_NAMESPACES, *map(_name, record.coverage)}
    unknown = [gap for gap in record.gaps if _place(gap) not in known and not gap.where.startswith(_POLICY)]
    for reason in _name_gaps(sorted(unknown)):
        yield f"policies may be missing: {reason}"
