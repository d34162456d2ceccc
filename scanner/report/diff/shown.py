"""The parts of a difference that a page shows: each cause with its numbers, its first problems and the rules that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from scanner.model.scans.cause import CauseKind
from scanner.posture.history.scan_diff import DifferingProblem, RuleDifference, RuleKind, ScanDiff
from scanner.report.diff.words import DIFF_CAUSES, RULE_TITLES, cut_lines, rule_change, rule_lines

RULES: Final = 50
"""The rules that a page shows."""
LINES: Final = 200
"""The lines of one rule's difference."""
_CAUSES: Final[Mapping[RuleKind, CauseKind]] = {
    RuleKind.POLICY: CauseKind.POLICY,
    RuleKind.BINDING: CauseKind.BINDING,
    RuleKind.PARAM: CauseKind.PARAM,
    RuleKind.EXCEPTION: CauseKind.EXCEPTION,
    RuleKind.GLOBAL_CONTEXT: CauseKind.PARAM,
    RuleKind.NAMESPACE_LABELS: CauseKind.NAMESPACE,
    RuleKind.CONFIGURATION: CauseKind.EXCEPTION,
}


class ShownRule(NamedTuple):
    """A rule that differs: its change, its title, and the lines of the difference, of which `more` are not shown."""

    change: str
    title: str
    name: str
    lines: list[str]
    more: int


class ShownCause(NamedTuple):
    """A cause with its first problems, new ones first, of `total`, and with the rules of its kind that differ."""

    kind: CauseKind
    title: str
    problems: tuple[DifferingProblem, ...]
    total: int
    rules: tuple[ShownRule, ...]


def list_causes(diff: ScanDiff, most: int, kinds: Sequence[CauseKind] | None = None) -> Iterator[ShownCause]:
    """The causes of a difference in their order, or some of these, each with so many problems at most."""
    for kind in diff.causes if kinds is None else kinds:
        problems = tuple(diff.list_problems(kind, most))
        rules = tuple(map(show_rule, [each for each in diff.rules if _CAUSES[each.kind] is kind][:RULES]))
        yield ShownCause(kind, DIFF_CAUSES[kind], problems, diff.problems_of(kind), rules)


def list_rules(diff: ScanDiff, *, besides: tuple[ShownCause, ...] = ()) -> list[ShownRule]:
    """The rules that differ, without those of causes that are shown."""
    shown = {cause.kind for cause in besides}
    return [show_rule(each) for each in [each for each in diff.rules if _CAUSES[each.kind] not in shown][:RULES]]


def show_rule(difference: RuleDifference) -> ShownRule:
    """A rule with the lines of its difference."""
    lines, more = cut_lines(rule_lines(difference), LINES)
    return ShownRule(rule_change(difference).value, RULE_TITLES[difference.kind], difference.name, lines, more)
