"""The paper of one control over a period, as data: the files and the page render it, and add no facts of their own."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Final, NamedTuple, TextIO

from scanner.errors import UsageError
from scanner.model.policy import PolicyKey
from scanner.model.population import ObjectIds
from scanner.model.scans.finding_period import FindingOfPeriod, PeriodChange
from scanner.posture.history.daily import Day
from scanner.posture.history.scan_diff import RuleDifference, RuleKind
from scanner.posture.run_register import RegisterEntry, RunState
from scanner.proof.sampling import ID_COLUMNS, Sample, SampleOf
from scanner.report.document.by_control import ControlSection, FrameworkSection
from scanner.report.document.document import Document
from scanner.report.document.rules_in_force import BINDING, POLICY, RuleInForce, list_rules
from scanner.report.formats import csv

_QUARTER: Final = re.compile(r"([0-9]{4})-[Qq]([1-4])")
_MONTH: Final = re.compile(r"([0-9]{4})-([0-9]{2})")
_YEAR: Final = re.compile(r"[0-9]{4}")
_LAST_MONTH: Final = 12
_LONGEST: Final = 3660


class Period(NamedTuple):
    """The days of a paper in UTC, both included, and the text that names them."""

    text: str
    first: date
    last: date

    @property
    def begin(self) -> datetime:
        """The first moment."""
        return datetime.combine(self.first, time(), UTC)

    @property
    def end(self) -> datetime:
        """The last moment."""
        return datetime.combine(self.last + timedelta(days=1), time(), UTC) - timedelta(microseconds=1)


def parse_period(text: str) -> Period:
    """The period of a text such as `2026-Q4`, `2026-10`, `2026` or `2026-10-01..2026-12-31`. Raises UsageError."""
    try:
        first, last = _parse_days(text.strip())
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--period {text[:100]}: write a quarter such as 2026-Q4, a month such as 2026-10, a year, or two dates such as "
            "2026-10-01..2026-12-31"
        ) from error
    if first > last:
        raise UsageError(f"--period {text}: the first day is later than the last one")
    if (last - first).days >= _LONGEST or last == date.max:
        raise UsageError(f"--period {text}: a period has at most {_LONGEST:,} days")
    return Period(text.strip(), first, last)


def _parse_days(text: str) -> tuple[date, date]:
    if match := _QUARTER.fullmatch(text):
        year, quarter = int(match[1]), int(match[2])
        return date(year, 3 * quarter - 2, 1), _last_of_month(year, 3 * quarter)
    if match := _MONTH.fullmatch(text):
        return date(int(match[1]), int(match[2]), 1), _last_of_month(int(match[1]), int(match[2]))
    if match := _YEAR.fullmatch(text):
        return date(int(match[0]), 1, 1), _last_of_month(int(match[0]), _LAST_MONTH)
    first, _, last = text.partition("..")
    return date.fromisoformat(first), date.fromisoformat(last)


def _last_of_month(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


class ChosenControl(NamedTuple):
    """A control in the report of a scan, with its framework."""

    framework: FrameworkSection
    control: ControlSection

    @property
    def name(self) -> str:
        """The name by which a user chooses the control."""
        return f"{self.framework.name}/{self.control.id}"


def find_control(document: Document, name: str) -> ChosenControl:
    """The control with a name: its id, or `framework/id`. Raises UsageError for an unknown and for an ambiguous one."""
    every = [ChosenControl(framework, control) for framework in document.controls for control in framework.controls]
    found = [each for each in every if name in (each.name, each.control.id)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"--control {name}: name one of {', '.join(each.name for each in found)}")
    raise UsageError(
        f"--control {name[:100]}: the mappings have no such control. `assay controls --controls PATH` lists the controls"
    )


class WaiverOfPeriod(NamedTuple):
    """A waiver of a policy of the control, with its states at both ends; empty where it was not there."""

    name: str
    policy: str
    scope: str
    at_begin: str
    at_end: str
    findings: int
    reason: str
    approved_by: str
    until: date


@dataclass(frozen=True)
class ControlPaper:
    """The paper of a control.

    `document` is the report of the last scan that ended in the period, and `before` that of the last scan before the period; None if
    there was none, or if it was pruned: then `before_id` alone is known. `findings` are those of the control's checks, in both scans.
    `runs` are the runs that began in the period, the oldest first, `days` the days with a complete scan of the whole cluster, with the
    digests of their tallies. `changes` are the differences of rules between both scans; `population` is the file from which `sample` was
    drawn, and `sample` None if no object was evaluated. `made_at` is the time of the paper.
    """

    period: Period
    chosen: ChosenControl
    document: Document
    before: Document | None
    before_id: str
    findings: tuple[FindingOfPeriod, ...]
    runs: tuple[RegisterEntry, ...]
    days: tuple[tuple[Day, str], ...]
    changes: tuple[RuleDifference, ...]
    population: bytes
    sample: Sample | None
    made_at: datetime

    @property
    def cluster(self) -> str:
        """The name of the cluster."""
        return self.document.provenance.cluster.name

    @cached_property
    def policies(self) -> frozenset[PolicyKey]:
        """The policies that serve the control in one of both scans."""
        return policies_of(self.chosen, self.before)

    @cached_property
    def run_states(self) -> Mapping[RunState, int]:
        """The number of runs in each state."""
        return Counter(entry.state for entry in self.runs)

    @property
    def covered_until(self) -> date:
        """The last day of the period that has begun."""
        return min(self.period.last, self.made_at.astimezone(UTC).date())

    @cached_property
    def missing_days(self) -> tuple[date, ...]:
        """The days of the period that have begun, without a complete scan of the whole cluster."""
        there = {day.day for day, _ in self.days}
        number = (self.covered_until - self.period.first).days + 1
        return tuple(day for place in range(number) if (day := self.period.first + timedelta(days=place)) not in there)

    @cached_property
    def numbers(self) -> FindingNumbers:
        """The numbers of findings."""
        return count_findings(self.findings)

    @cached_property
    def by_policy(self) -> Mapping[PolicyKey, FindingNumbers]:
        """The numbers of findings by policy."""
        return {
            key: count_findings([each for each in self.findings if each.finding.policy_key == key])
            for key in sorted(self.policies)
        }

    @cached_property
    def rules(self) -> tuple[RuleInForce, ...]:
        """The rules in force at the end: the policies of the control and their bindings, and all other rules."""
        return tuple(each for each in list_rules(self.document.stored) if self._serves(each))

    def _serves(self, rule: RuleInForce) -> bool:
        name = {POLICY: rule.name, BINDING: rule.policy}.get(rule.type)
        return name is None or (rule.language, name) in self.policies

    def changed_in_period(self, rule: RuleInForce) -> tuple[datetime, ...]:
        """The ends of the scans of the period that found another content of a rule."""
        return tuple(moment for moment in rule.changed if self.period.begin <= moment <= self.period.end)

    @cached_property
    def waivers(self) -> tuple[WaiverOfPeriod, ...]:
        """The waivers of policies of the control at both ends."""
        return tuple(_list_waivers(self.document, self.before, {name for _, name in self.policies}))


class FindingNumbers(NamedTuple):
    """Open at the begin, and every begin without every end, is open at the end: the numbers add up."""

    open_at_begin: int
    new: int
    reopened: int
    continued: int
    resolved: int
    replaced: int
    open_at_end: int
    not_checked: int


def count_findings(findings: Sequence[FindingOfPeriod]) -> FindingNumbers:
    """The numbers of findings: of open ones, and of changes, of which a finding can have several."""
    changes = Counter(event.change for each in findings for event in each.events)
    return FindingNumbers(
        open_at_begin=sum(each.open_at_begin for each in findings),
        new=changes[PeriodChange.NEW],
        reopened=changes[PeriodChange.REOPENED],
        continued=changes[PeriodChange.CONTINUED],
        resolved=changes[PeriodChange.RESOLVED],
        replaced=changes[PeriodChange.REPLACED],
        open_at_end=sum(each.open_at_end for each in findings),
        not_checked=sum(each.open_at_end and not each.checked for each in findings),
    )


def policies_of(chosen: ChosenControl, before: Document | None) -> frozenset[PolicyKey]:
    """The policies that serve a control in a scan, or in an earlier one."""
    return frozenset(policy for section in _sections(chosen, before) for policy in section.checks.own)


def _sections(chosen: ChosenControl, before: Document | None) -> Iterator[ControlSection]:
    yield chosen.control
    for framework in before.controls if before else ():
        if framework.name == chosen.framework.name:
            yield from (control for control in framework.controls if control.id == chosen.control.id)


def keep_findings(
    findings: Collection[FindingOfPeriod], chosen: ChosenControl, before: Document | None
) -> tuple[FindingOfPeriod, ...]:
    """The findings of checks that serve a control in one of both scans."""
    sections = [*_sections(chosen, before)]
    return tuple(
        each for each in findings if any(section.checks.has(*each.finding.severity_key) for section in sections)
    )


def keep_changes(changes: Collection[RuleDifference], policies: Collection[PolicyKey]) -> tuple[RuleDifference, ...]:
    """The changes of policies of the control and of their bindings, and those of all other rules."""
    return tuple(each for each in changes if _concerns(each, policies))


def _concerns(change: RuleDifference, policies: Collection[PolicyKey]) -> bool:
    match change.kind:
        case RuleKind.POLICY:
            return (change.language, change.name) in policies
        case RuleKind.BINDING:
            return (change.language, change.name.partition("/")[0]) in policies
        case _:
            return True


def _list_waivers(now: Document, before: Document | None, policies: Collection[str]) -> Iterator[WaiverOfPeriod]:
    at_begin = {line.name: line for line in before.waivers.lines} if before and before.waivers else {}
    at_end = {line.name: line for line in now.waivers.lines} if now.waivers else {}
    for name in sorted(at_begin.keys() | at_end.keys()):
        earlier, later = at_begin.get(name), at_end.get(name)
        line = later or earlier
        if line is None or line.policy not in policies:
            continue
        yield WaiverOfPeriod(
            name,
            line.policy,
            line.scope,
            earlier.state.value if earlier else "",
            later.state.value if later else "",
            later.findings if later else 0,
            line.reason,
            line.approved_by,
            line.until,
        )


# The population of the sample: the objects on which a check of the control was evaluated at the end of the period.

POPULATION_TITLES: Final = (*ID_COLUMNS[SampleOf.OBJECTS], "outcome")


def write_population(
    document: Document, control: ControlSection, findings: Iterable[FindingOfPeriod], out: TextIO
) -> None:
    """Write a heading and a line for each object: it `failed`, is `excepted`, or `passed` every check that was evaluated on it."""
    by_kind: defaultdict[tuple[str, str], list[ObjectIds]] = defaultdict(list)
    for each in document.stored.evaluated_objects():
        if control.checks.has((each.language, each.policy), each.check.expression):
            by_kind[each.api_version, each.kind].append(each.evaluated)
    outcomes: dict[tuple[str, str, str, str], str] = {}
    for found in findings:
        if found.open_at_end:
            finding = found.finding
            key = finding.kind, finding.namespace, finding.name, finding.uid
            if not finding.excepted_by or key not in outcomes:
                outcomes[key] = "excepted" if finding.excepted_by else "failed"
    rows = (
        (
            *(item.api_version, item.kind, item.namespace, item.name, item.uid),
            outcomes.get((item.kind, item.namespace, item.name, item.uid), "passed"),
        )
        for item in document.stored.population()
        if any(item.id in evaluated for evaluated in by_kind.get((item.api_version, item.kind), ()))
    )
    csv.write(out, POPULATION_TITLES, rows)
