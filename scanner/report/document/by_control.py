"""The results of a scan by control: what it shows about each, with objects, findings, coverage and score beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scanner.model.policy import Policy, PolicyKey
from scanner.model.scans.census import Census
from scanner.model.scans.scan import Coverage, CoverageState, ScanRecord
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.scans.tally import OutcomeName
from scanner.posture.control_checks import Framework, ServingChecks, list_texts
from scanner.posture.control_facts import (
    EvaluatedByCheck,
    Needs,
    Tallies,
    collect_evaluated_objects,
    facts_of,
    find_objects,
    needs_of,
)
from scanner.posture.control_namespaces import ControlInNamespace, ControlNamespaces
from scanner.posture.controls import ControlResult, ControlState, ScanFacts, evaluate_controls
from scanner.posture.score import Score, Scores
from scanner.posture.triage import Triage
from scanner.report.document.counts import FindingCounts, count_findings


@dataclass(frozen=True, slots=True)
class ControlPolicy:
    """A policy with checks that serve a control; `bound` if a binding puts such a check into force.

    `checks` are the expressions of those that belong to the control, None for all of the policy. `stricter` checks demand more.
    """

    language: str
    name: str
    bound: bool
    checks: tuple[str, ...] | None = None
    stricter: tuple[str, ...] = ()

    @property
    def key(self) -> PolicyKey:
        """Language and name of the policy."""
        return self.language, self.name


@dataclass(frozen=True, slots=True)
class ControlCoverage:
    """The lists that the policies of a control need: how many there are, how many are complete, and their objects."""

    kinds: int
    listed: int
    objects: int


@dataclass(frozen=True, slots=True)
class ControlSection:
    """The state of a control in a scan. See `ControlResult` for the states and the reasons in `why`.

    `objects` is the number of different objects that its validations and mutations were evaluated on, None if an older version
    recorded the scan. `findings` are those of its checks in force, and `score` counts these checks, waived ones included. `whole` are
    the names of its policies that it selects with all of their several checks. `remedies` are the labels and policies that would cover a
    control that nothing covers, and `namespaces` has the answers of admission about each other control.
    """

    id: str
    title: str
    state: ControlState
    state_with_waivers: ControlState
    why: tuple[str, ...]
    policies: tuple[ControlPolicy, ...]
    whole: tuple[str, ...]
    unmatched: tuple[str, ...]
    objects: int | None
    findings: FindingCounts
    coverage: ControlCoverage
    score: Score
    score_with_waivers: Score
    remedies: tuple[str, ...]
    namespaces: tuple[ControlInNamespace, ...]
    checks: ServingChecks = field(metadata={"pages": True})

    @property
    def covered(self) -> bool:
        """Return whether a policy of the scan has a check of the control in force."""
        return any(policy.bound for policy in self.policies)


@dataclass(frozen=True, slots=True)
class FrameworkSection:
    """The controls of a framework, in the order of its mapping, and their number in each state."""

    name: str
    title: str
    version: str
    states: Mapping[ControlState, int]
    states_with_waivers: Mapping[ControlState, int]
    controls: tuple[ControlSection, ...]

    @property
    def heading(self) -> str:
        """Title, and the version in parentheses: a title may end with a number."""
        return f"{self.title} ({self.version})" if self.version else self.title


@dataclass(frozen=True, slots=True)
class _ControlNumbers:
    """The numbers of a scan that all controls share."""

    record: ScanRecord
    census: Census
    triage: Triage
    needs: Needs
    objects: EvaluatedByCheck | None
    facts: ScanFacts
    namespaces: ControlNamespaces

    @property
    def policies(self) -> Sequence[Policy]:
        """The policies of the scan."""
        return [used.policy for used in self.record.policies]


def frameworks_of(record: StoredScan, census: Census, triage: Triage) -> tuple[FrameworkSection, ...]:
    """The frameworks of a report, as the settings of its triage name them."""
    frameworks = triage.settings.frameworks
    if not frameworks:
        return ()
    # Languages bring the compiler of expressions, which no other part of a report needs.
    from scanner.policies.language import list_constraints  # noqa: PLC0415

    needs = needs_of(record, list_constraints)
    namespaces = ControlNamespaces(record, needs, triage.waived.tallies)
    facts = replace(facts_of(record, needs, triage.waived.tallies), unrefused=namespaces.list_unrefused)
    numbers = _ControlNumbers(record, census, triage, needs, collect_evaluated_objects(record), facts, namespaces)
    return tuple(_framework(framework, numbers) for framework in frameworks)


def _framework(framework: Framework, numbers: _ControlNumbers) -> FrameworkSection:
    ids = numbers.record.check_ids
    results = evaluate_controls(framework.controls, numbers.policies, numbers.facts, ids)
    controls = tuple(_control(result, numbers) for result in results)
    return FrameworkSection(
        name=framework.name,
        title=framework.title,
        version=framework.version,
        states=_numbers_of(control.state for control in controls),
        states_with_waivers=_numbers_of(control.state_with_waivers for control in controls),
        controls=controls,
    )


def _numbers_of(states: Iterable[ControlState]) -> dict[ControlState, int]:
    numbers = Counter(states)
    return {state: numbers[state] for state in ControlState}


def _control(result: ControlResult, numbers: _ControlNumbers) -> ControlSection:
    bound, checks = frozenset(result.policies_in_force), result.checks
    waived, score = numbers.triage.waived.tallies, _score(bound, checks, numbers)
    return ControlSection(
        id=result.control.id,
        title=result.control.title,
        state=result.state,
        state_with_waivers=result.state_with_waivers,
        why=result.why,
        policies=tuple(_policy(policy, checks, bound=policy in bound) for policy in result.policies),
        whole=tuple(_list_whole(checks, numbers)),
        unmatched=tuple(map(str, result.unmatched)),
        objects=None if numbers.objects is None else find_objects(numbers.objects, checks).bit_count(),
        findings=_findings(bound, checks, numbers.census),
        coverage=_coverage(_lines(bound, numbers)),
        score=score,
        score_with_waivers=_score(bound, checks, numbers, waived) if waived else score,
        remedies=() if bound else tuple(result.control.list_remedies()),
        namespaces=numbers.namespaces.find_states(checks) if bound else (),
        checks=checks,
    )


def _policy(policy: PolicyKey, checks: ServingChecks, *, bound: bool) -> ControlPolicy:
    own, stricter = checks.own.get(policy, frozenset()), checks.stricter.get(policy, frozenset())
    if own is None:
        return ControlPolicy(*policy, bound)
    return ControlPolicy(*policy, bound, tuple(sorted(own)), tuple(sorted(stricter - own)))


def _list_whole(checks: ServingChecks, numbers: _ControlNumbers) -> Iterator[str]:
    whole = checks.whole_policies
    several = {policy.key: len(list_texts(policy)) for policy in numbers.policies if policy.key in whole}
    yield from (name for language, name in whole if several[language, name] > 1)


def _findings(policies: frozenset[PolicyKey], checks: ServingChecks, census: Census) -> FindingCounts:
    return count_findings(
        (bucket, number)
        for bucket, number in census.items()
        if bucket.policy in policies
        and checks.has(bucket.policy, bucket.expression)
        and bucket.status not in SINGLE_SCAN_STATUSES
    )


def _lines(policies: frozenset[PolicyKey], numbers: _ControlNumbers) -> tuple[Coverage, ...]:
    """The lists that some policies need, in the order of the scan."""
    needed = {line for policy in policies for line in numbers.needs[policy].coverage}
    return tuple(line for line in numbers.record.coverage if line in needed)


def _coverage(lines: tuple[Coverage, ...]) -> ControlCoverage:
    return ControlCoverage(
        kinds=len(lines),
        listed=sum(line.state is CoverageState.LISTED for line in lines),
        objects=sum(line.objects for line in lines),
    )


def _score(
    policies: frozenset[PolicyKey], checks: ServingChecks, numbers: _ControlNumbers, waived: Tallies | None = None
) -> Score:
    """The score of a control: that of a scan of its checks alone, and of the passes of stricter ones. Waived checks are left out."""
    record = numbers.record
    alone = replace(
        record,
        policies=tuple(used for used in record.policies if used.policy.key in policies),
        tallies=_select_tallies(policies, checks, record.tallies),
        coverage=_lines(policies, numbers),
        gaps=tuple(sorted({gap for policy in policies for gap in numbers.needs[policy].gaps})),
    )
    return Scores(alone, numbers.triage.severity, waived).score_scan()


def _select_tallies(policies: frozenset[PolicyKey], checks: ServingChecks, tallies: Tallies) -> Tallies:
    return {
        tally: number
        for tally, number in tallies.items()
        if tally.policy_key in policies
        and (
            checks.has(*tally.severity_key)
            or (tally.outcome is OutcomeName.PASSED and checks.has_stricter(*tally.severity_key))
        )
    }
