"""The difference of two scans of one cluster, with what a page shows of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from scanner.errors import UsageError
from scanner.model.cause import CauseKind
from scanner.model.policy import PolicyKey
from scanner.posture.scan_diff import DifferingProblem, RuleDifference, ScanDiff
from scanner.posture.score import SeverityOf
from scanner.posture.settings import Settings
from scanner.posture.severity import Severity, describe, described
from scanner.posture.waiving import WaiverChanges, waiver_changes
from scanner.report.diff.words import RULE_TITLES, cut_lines, rule_change, rule_lines
from scanner.store import SqlReader
from scanner.web.refusals import BadRequest
from scanner.web.scan_counts import triage_of

PROBLEMS: Final = 50
"""The problems of each cause that a page shows, and the waivers."""
MOST_PROBLEMS: Final = 1_000
"""The problems of one cause that a page of that cause shows."""
RULES: Final = 50
LINES: Final = 200
"""The lines of one rule's difference."""


@dataclass(frozen=True)
class Comparison:
    """A difference with the severities of policies as the later scan used them, and the waivers of both days."""

    diff: ScanDiff
    severity: SeverityOf
    waivers: WaiverChanges

    def problems(self, kind: CauseKind, most: int) -> list[DifferingProblem]:
        """The first problems of a cause, new ones first."""
        return list(self.diff.listed(kind, most))


class ShownRule(NamedTuple):
    """A rule that differs: its change, its title, and the lines of the difference, of which `more` are not shown."""

    change: str
    title: str
    name: str
    lines: list[str]
    more: int


def comparison_of(reader: SqlReader, settings: Settings, before: str, now: str) -> Comparison:
    """Compare two scans of a cluster by their full ids, the earlier one first. Raises BadRequest for scans that have no difference."""
    try:
        diff = reader.diff(before, now)
        records = reader.record(before), reader.record(now)
    except UsageError as error:
        raise BadRequest(str(error)) from error
    waived = [triage_of(reader, settings, record).waived for record in records]
    used = (each.policy for record in records for each in record.policies)
    severities = {policy.key: describe(policy, settings.descriptions).severity for policy in used}

    def severity(policy: PolicyKey) -> Severity:
        return severities.get(policy) or described(policy, {}, settings.descriptions).severity

    return Comparison(diff, severity, waiver_changes(*records, *waived))


def shown_rules(diff: ScanDiff, most: int = RULES) -> Iterator[ShownRule]:
    """The rules that differ, with the lines of their texts."""
    return map(_shown_rule, diff.rules[:most])


def _shown_rule(difference: RuleDifference) -> ShownRule:
    lines, more = cut_lines(rule_lines(difference), LINES)
    return ShownRule(rule_change(difference).value, RULE_TITLES[difference.kind], difference.name, lines, more)
