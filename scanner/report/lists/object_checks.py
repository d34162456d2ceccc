"""Every check of an object, or of the objects of a workload, with its outcome: passed = matched, without those not evaluated and those of findings.

The store keeps which objects passed, not what they contained.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from scanner.model.outcome import SkipReason
from scanner.model.policy import PolicyKey
from scanner.model.population import CheckKey, ExaminedObject
from scanner.model.scans.stored_finding import StoredFinding
from scanner.posture.triage import Triage
from scanner.report.lists.problem_facts import effect_of_finding
from scanner.report.text.names import param_name
from scanner.report.text.titles import check_title

PASSED: Final = "passed"
NOT_STORED: Final = "The database keeps which objects passed a check, and not what they contained: only findings have a message and values."
_NOT_EVALUATED: Final[Mapping[str, str]] = {
    SkipReason.CONDITION_FALSE: "skipped: a match condition is false",
    SkipReason.NOT_AUDITABLE: "not auditable",
    SkipReason.EXCEPTION: "skipped: a policy exception",
    SkipReason.REDACTED: "not evaluated: the data is withheld",
    SkipReason.NOT_REACHED: "not reached: an earlier check decided",
}


class CheckLine(NamedTuple):
    """A check of an invocation with the numbers of objects by outcome, the failing outcomes first.

    `since` is the beginning of the oldest open finding, and `worst` the finding of an object that would be refused, if there is one;
    both are None if no object has an open finding.
    """

    policy: PolicyKey
    binding: str
    param: str
    check: str
    outcomes: tuple[tuple[str, int], ...]
    since: datetime | None
    worst: StoredFinding | None

    @property
    def words(self) -> str:
        """The outcomes, with numbers if objects differ."""
        if len(self.outcomes) == 1:
            return self.outcomes[0][0]
        return ", ".join(f"{number:,} {outcome}" for outcome, number in self.outcomes)


class _Line(NamedTuple):
    outcomes: Counter[str]
    findings: list[StoredFinding]


def check_lines(
    objects: Sequence[ExaminedObject], findings: Iterable[StoredFinding], triage: Triage
) -> list[CheckLine]:
    """The checks of some objects, those with findings first; `findings` are the unresolved ones of these objects."""
    by_object: defaultdict[tuple[str, str, str, str], list[StoredFinding]] = defaultdict(list)
    for stored in findings:
        finding = stored.finding
        by_object[finding.kind, finding.namespace, finding.name, finding.uid].append(stored)
    lines: defaultdict[CheckKey, _Line] = defaultdict(lambda: _Line(Counter(), []))
    for each in objects:
        item = each.object
        own = {_key(known): known for known in by_object[item.kind, item.namespace, item.name, item.uid]}
        for matched in each.checks:
            _add(lines[matched.key], own.pop(matched.key, None), matched.reason, triage)
        for key, unchecked in own.items():
            lines[key].outcomes["not checked by this scan"] += 1
            lines[key].findings.append(unchecked)
    return sorted(_build(lines), key=_order)


def _add(line: _Line, stored: StoredFinding | None, reason: str, triage: Triage) -> None:
    if stored is not None:
        waived = ", waived" if triage.waiver(stored) else ""
        line.outcomes[f"{effect_of_finding(stored.finding)}{waived}"] += 1
        line.findings.append(stored)
    else:
        line.outcomes[_NOT_EVALUATED.get(reason, reason) if reason else PASSED] += 1


def _key(stored: StoredFinding) -> CheckKey:
    finding = stored.finding
    return (
        finding.language,
        finding.policy,
        finding.binding,
        finding.param_namespace,
        finding.param_name,
        finding.check,
    )


def _build(lines: Mapping[CheckKey, _Line]) -> Iterator[CheckLine]:
    for (language, policy, binding, namespace, name, check), line in lines.items():
        worst = min(line.findings, key=lambda stored: not stored.finding.denies, default=None)
        since = min((stored.opened_at or stored.first_seen for stored in line.findings), default=None)
        outcomes = sorted(line.outcomes.items(), key=lambda pair: (pair[0] == PASSED, pair[0]))
        param = param_name(namespace, name)
        yield CheckLine((language, policy), binding, param, check_title(check), tuple(outcomes), since, worst)


def _order(line: CheckLine) -> tuple[object, ...]:
    is_passed = [outcome for outcome, _ in line.outcomes] == [PASSED]
    refused = line.worst is not None and line.worst.finding.denies
    return (
        line.worst is None,
        not refused,
        is_passed,
        line.policy[1],
        line.policy[0],
        line.binding,
        line.param,
        line.check,
    )


def count_outcomes(lines: Iterable[CheckLine]) -> str:
    """The numbers of checks by outcome: `12 passed, 1 refused`."""
    numbers: Counter[str] = Counter()
    for line in lines:
        numbers.update(dict(line.outcomes))
    return ", ".join(f"{number:,} {outcome}" for outcome, number in numbers.most_common())
