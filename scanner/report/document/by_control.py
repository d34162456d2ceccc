"""The results of a scan by control: what it shows about each, with objects, findings, coverage and score beside."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scanner.model.policy import PolicyKey
from scanner.model.scans.census import Census
from scanner.model.scans.scan import SINGLE_SCAN_STATUSES, Coverage, CoverageState, ScanRecord, TallyKey
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.control_facts import Needs, Tallies, collect_evaluated_objects, facts_of, needs_of
from scanner.posture.controls import ControlResult, ControlState, Framework, ScanFacts, evaluate_controls
from scanner.posture.score import Score, Scores
from scanner.posture.triage import Triage
from scanner.report.document.counts import FindingCounts, count_findings


@dataclass(frozen=True, slots=True)
class ControlPolicy:
    """A policy that a control selects; `bound` if a binding puts it into force."""

    language: str
    name: str
    bound: bool

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

    `objects` is the number of different objects that a validation or mutation of its policies was evaluated on, None if an older
    version recorded the scan. `findings` are those of its policies in force, and `score` counts their checks, waived ones included.
    """

    id: str
    title: str
    state: ControlState
    state_with_waivers: ControlState
    why: tuple[str, ...]
    policies: tuple[ControlPolicy, ...]
    unmatched: tuple[str, ...]
    objects: int | None
    findings: FindingCounts
    coverage: ControlCoverage
    score: Score
    score_with_waivers: Score


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
        """Title and version."""
        return f"{self.title} {self.version}".rstrip()


@dataclass(frozen=True, slots=True)
class _ControlNumbers:
    """The numbers of a scan that all controls share."""

    record: ScanRecord
    census: Census
    triage: Triage
    needs: Needs
    tallies: Mapping[PolicyKey, Tallies]
    objects: Mapping[PolicyKey, int] | None
    facts: ScanFacts


def frameworks_of(record: StoredScan, census: Census, triage: Triage) -> tuple[FrameworkSection, ...]:
    """The frameworks of a report, as the settings of its triage name them."""
    frameworks = triage.settings.frameworks
    if not frameworks:
        return ()
    # Languages bring the compiler of expressions, which no other part of a report needs.
    from scanner.policies.language import list_constraints  # noqa: PLC0415

    needs = needs_of(record, list_constraints)
    facts = facts_of(record, needs, triage.waived.tallies)
    numbers = _ControlNumbers(
        record, census, triage, needs, _group_by_policy(record.tallies), collect_evaluated_objects(record), facts
    )
    return tuple(_framework(framework, numbers) for framework in frameworks)


def _group_by_policy(tallies: Tallies) -> Mapping[PolicyKey, Tallies]:
    grouped: defaultdict[PolicyKey, dict[TallyKey, int]] = defaultdict(dict)
    for tally, number in tallies.items():
        grouped[tally.policy_key][tally] = number
    return grouped


def _framework(framework: Framework, numbers: _ControlNumbers) -> FrameworkSection:
    policies = [used.policy for used in numbers.record.policies]
    controls = tuple(
        _control(result, numbers) for result in evaluate_controls(framework.controls, policies, numbers.facts)
    )
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
    bound = frozenset(result.policies_in_force)
    waived, score = numbers.triage.waived.tallies, _score(bound, numbers)
    return ControlSection(
        id=result.control.id,
        title=result.control.title,
        state=result.state,
        state_with_waivers=result.state_with_waivers,
        why=result.why,
        policies=tuple(ControlPolicy(*policy, policy in bound) for policy in result.policies),
        unmatched=tuple(map(str, result.unmatched)),
        objects=_objects(bound, numbers),
        findings=_findings(bound, numbers.census),
        coverage=_coverage(_lines(bound, numbers)),
        score=score,
        score_with_waivers=_score(bound, numbers, waived) if waived else score,
    )


def _objects(policies: frozenset[PolicyKey], numbers: _ControlNumbers) -> int | None:
    if numbers.objects is None:
        return None
    together = 0
    for policy in policies:
        together |= numbers.objects.get(policy, 0)
    return together.bit_count()


def _findings(policies: frozenset[PolicyKey], census: Census) -> FindingCounts:
    return count_findings(
        (bucket, number)
        for bucket, number in census.items()
        if bucket.policy in policies and bucket.status not in SINGLE_SCAN_STATUSES
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


def _score(policies: frozenset[PolicyKey], numbers: _ControlNumbers, waived: Tallies | None = None) -> Score:
    """The score of a control: that of a scan of its policies alone. Waived checks are left out."""
    record = numbers.record
    alone = replace(
        record,
        policies=tuple(used for used in record.policies if used.policy.key in policies),
        tallies={
            tally: number for policy in sorted(policies) for tally, number in numbers.tallies.get(policy, {}).items()
        },
        coverage=_lines(policies, numbers),
        gaps=tuple(sorted({gap for policy in policies for gap in numbers.needs[policy].gaps})),
    )
    return Scores(alone, numbers.triage.severity, waived).score_scan()
