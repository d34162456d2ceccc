"""Two clusters compared by content: their policies, and the problems that are open in one of them alone, by cause.

Two texts that differ in the order of keys or in defaults are equal, and so are two problems of one workload with equal checks of
one policy: digests and ids may differ between clusters although nothing else does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from scanner.model.json import JsonObject
from scanner.model.policy import PolicyKey
from scanner.posture.history.scan_diff import RuleDifference, RuleKind
from scanner.posture.problem_ids import problem_id, split_tokens
from scanner.report.diff.shown import ShownRule, show_rule
from scanner.report.diff.words import RULE_TITLES
from scanner.report.text.titles import name_actions
from scanner.store import SqlReader
from scanner.store.read.open_problems import OpenProblem
from scanner.web.views.fleet_policies import sort_key
from scanner.web.views.scan_counts import CountedBinding, CountedPolicy, CountedScan

NOT_RECORDED: Final = "@@ one of the scans did not record this text @@"


class PairCause(StrEnum):
    """The reasons why a problem is open in one of two clusters alone, in the order of a list."""

    LEFT_ONLY = "the policy is bound on the left only"
    RIGHT_ONLY = "the policy is bound on the right only"
    RULES = "the policy or a binding differs"
    OTHERS = "policy and bindings are equal: the objects, params or labels of namespaces differ"

    @property
    def anchor(self) -> str:
        """The id of the section about the cause."""
        return f"cause-{self.name.lower().replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class PolicyPair:
    """A policy in both clusters, None where it is missing. `rules` are its texts that differ in content, with their differences."""

    key: PolicyKey
    left: CountedPolicy | None
    right: CountedPolicy | None
    rules: tuple[ShownRule, ...] = ()

    @property
    def cause(self) -> PairCause:
        """The cause of problems with the policy that are open in one cluster alone."""
        bound = [bool(policy and policy.bindings_in_force) for policy in (self.left, self.right)]
        if bound == [True, False]:
            return PairCause.LEFT_ONLY
        if bound == [False, True]:
            return PairCause.RIGHT_ONLY
        return PairCause.RULES if self.difference else PairCause.OTHERS

    @property
    def difference(self) -> str:
        """The difference in words, empty if there is none besides problems."""
        bound = [bool(policy and policy.bindings_in_force) for policy in (self.left, self.right)]
        if bound == [True, False]:
            return "bound on the left only"
        if bound == [False, True]:
            return "bound on the right only"
        if self.left is None or self.right is None or bound == [False, False]:
            return ""
        return ", ".join(_list_differences(self.left, self.right, self.rules))


def _list_differences(left: CountedPolicy, right: CountedPolicy, rules: Sequence[ShownRule]) -> Iterator[str]:
    titles = {rule.title for rule in rules}
    if RULE_TITLES[RuleKind.POLICY] in titles:
        yield "another spec"
    if left.actions != right.actions:
        yield f"{_join(left.actions)} on the left, {_join(right.actions)} on the right"
    if RULE_TITLES[RuleKind.BINDING] in titles:
        yield "other bindings"


def _join(actions: Sequence[str]) -> str:
    return " and ".join(name_actions(actions)) or "no action"


def pair_policies(reader: SqlReader, left: CountedScan, right: CountedScan) -> list[PolicyPair]:
    """The policies of both scans by name, those that differ first."""
    keys = sorted({*left.policies, *right.policies}, key=sort_key)
    pairs = [_make_pair(reader, key, left.policies.get(key), right.policies.get(key)) for key in keys]
    return sorted(pairs, key=lambda pair: not pair.difference)


def _make_pair(
    reader: SqlReader, key: PolicyKey, left: CountedPolicy | None, right: CountedPolicy | None
) -> PolicyPair:
    if left is None or right is None or not left.bindings_in_force or not right.bindings_in_force:
        return PolicyPair(key, left, right)
    return PolicyPair(key, left, right, tuple(_list_rules(reader, left, right)))


def _list_rules(reader: SqlReader, left: CountedPolicy, right: CountedPolicy) -> Iterator[ShownRule]:
    """The spec and the bindings in force that differ in content. Texts are read only where digests differ."""
    key = left.key
    if left.digest != right.digest:
        specs = reader.policy_specs(key, {left.digest, right.digest})
        yield from _compare(RuleKind.POLICY, key, key[1], specs.get(left.digest), specs.get(right.digest))
    bindings = [{each.name: each for each in policy.bindings_in_force} for policy in (left, right)]
    digests = {binding.digest for side in _select_differing(*bindings) for binding in side if binding}
    texts = reader.binding_specs(key, digests) if digests else {}
    for before, now in _select_differing(*bindings):
        if before and now:
            both = (texts.get((each.name, each.digest)) for each in (before, now))
            yield from _compare(RuleKind.BINDING, key, before.name, *both)
        elif binding := before or now:
            text = texts.get((binding.name, binding.digest), {})
            yield show_rule(
                _difference(RuleKind.BINDING, key, binding.name, *((text, None) if before else (None, text)))
            )


_BindingPair: TypeAlias = tuple[CountedBinding | None, CountedBinding | None]


def _select_differing(
    left: Mapping[str, CountedBinding], right: Mapping[str, CountedBinding]
) -> Iterator[_BindingPair]:
    """The bindings whose digests differ, by name; None for one that a cluster does not have."""
    for name in sorted({*left, *right}):
        pair = left.get(name), right.get(name)
        if len({each.digest if each else None for each in pair}) > 1:
            yield pair


def _compare(
    kind: RuleKind, key: PolicyKey, name: str, left: JsonObject | None, right: JsonObject | None
) -> Iterator[ShownRule]:
    """The rule, if its texts differ in content."""
    if left is None or right is None:
        yield ShownRule("changed", RULE_TITLES[kind], name, [NOT_RECORDED], 0)
        return
    shown = show_rule(_difference(kind, key, name, left, right))
    if shown.lines:
        yield shown


def _difference(
    kind: RuleKind, key: PolicyKey, name: str, left: JsonObject | None, right: JsonObject | None
) -> RuleDifference:
    return RuleDifference(kind, key[0], name, left, right)


# The problems of two clusters.


class OneSidedProblem(NamedTuple):
    """A problem that is open in one of the clusters: `side` is 0 for the left one. Without a message, `check` tells it apart: an expression."""

    workload: str
    message: str
    check: str
    side: int
    id: str


@dataclass(frozen=True, slots=True)
class PolicyProblems:
    """The problems with a policy that are open in one cluster alone, by workload, and the number of those that are open in both."""

    pair: PolicyPair
    one_sided: tuple[OneSidedProblem, ...]
    both: int

    def count(self, side: int) -> int:
        """The number of problems that only a side has."""
        return sum(problem.side == side for problem in self.one_sided)


@dataclass(frozen=True, slots=True)
class CauseOfProblems:
    """A cause, with the problems of each policy that it explains."""

    cause: PairCause
    policies: tuple[PolicyProblems, ...]

    def count(self, side: int) -> int:
        """The number of problems that only a side has."""
        return sum(policy.count(side) for policy in self.policies)


_Content: TypeAlias = tuple[str, tuple[str, ...], str, str, str]
_Found: TypeAlias = tuple[list[OpenProblem], list[OpenProblem]]


def compare_problems(
    pairs: Sequence[PolicyPair], left: Iterator[OpenProblem], right: Iterator[OpenProblem]
) -> list[PolicyProblems]:
    """The problems of each policy that has some, in the order of the pairs."""
    found: defaultdict[PolicyKey, dict[_Content, _Found]] = defaultdict(dict)
    for side, problems in enumerate((left, right)):
        for each in problems:
            content = each.check.value, split_tokens(each.expression), each.namespace, each.name, each.kind
            found[each.policy].setdefault(content, ([], []))[side].append(each)
    return [_split(pair, found[pair.key].values()) for pair in pairs if pair.key in found]


def _split(pair: PolicyPair, found: Iterable[_Found]) -> PolicyProblems:
    """The problems of a policy, those that both clusters have apart. A policy may have a check several times."""
    one_sided: list[OneSidedProblem] = []
    both = 0
    for sides in found:
        shared = min(map(len, sides))
        both += shared
        for side, problems in enumerate(sides):
            one_sided += [_make_one_sided(each, side) for each in problems[shared:]]
    return PolicyProblems(pair, tuple(sorted(one_sided)), both)


def _make_one_sided(problem: OpenProblem, side: int) -> OneSidedProblem:
    workload = f"{problem.kind} {'/'.join(filter(None, (problem.namespace, problem.name)))}"
    return OneSidedProblem(workload, problem.message, problem.expression, side, problem_id(problem.number))


def group_by_cause(problems: Sequence[PolicyProblems]) -> list[CauseOfProblems]:
    """The causes of problems that one cluster alone has, in their order."""
    groups = [
        CauseOfProblems(cause, tuple(each for each in problems if each.one_sided and each.pair.cause is cause))
        for cause in PairCause
    ]
    return [group for group in groups if group.policies]
