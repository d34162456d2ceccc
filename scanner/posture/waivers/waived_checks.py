"""Compare the check of a waiver with the check that the author of the waiver accepted.

A check keeps its id from version to version of its policy, also when it asks about something else. A waiver is about what was
asked: about the question that its digest names, or else about that of the first scan that used the waiver and had its check.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, assert_never

from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import Policy, PolicyKey
from scanner.model.waiver import WaivedCheck, Waiver
from scanner.posture.problem_ids import list_expressions, split_tokens

# The question that a check asks, as a digest: what a person accepts who waives the findings of the check.
#
# The question is the expression, without spaces and comments, with the variables of the policy that the expression
# uses. Names, messages, reasons and the objects that the policy matches are no part of it: after a change of these,
# the same is asked.

CheckPlace: TypeAlias = tuple[CheckKind, int]
"""The kind and the position of a check in its policy."""

_VARIABLES: Final = "variables"


def question_of(policy: Policy, place: CheckPlace) -> str:
    """The digest of the question of a check: `sha256:` and 64 hex digits. Files of waivers have it, so its form never changes."""
    kind, _ = place
    texts = [split_tokens(text.strip()) for text in _texts(policy, place)]
    declared = {variable.name: split_tokens(variable.expression.strip()) for variable in policy.variables}
    return f"sha256:{_digest((kind.value, texts, sorted(_find_used(texts, declared).items()))).hex()}"


def form_of(policy: Policy, place: CheckPlace) -> bytes:
    """The digest of a check as its policy has it, with spaces and comments: checks with equal forms ask the same.

    It needs no compiler, whose import takes as long as many commands.
    """
    kind, _ = place
    declared = [(variable.name, variable.expression) for variable in policy.variables]
    return _digest((kind.value, list(_texts(policy, place)), declared))


def _digest(content: object) -> bytes:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).digest()


def _texts(policy: Policy, place: CheckPlace) -> Iterator[str]:
    """The expressions that decide a check."""
    kind, index = place
    match kind:
        case CheckKind.VALIDATION:
            yield policy.validations[index].expression
        case CheckKind.AUDIT_ANNOTATION:
            yield policy.audit_annotations[index].value_expression
        case CheckKind.MUTATION:
            yield policy.mutations[index].expression
        case CheckKind.CONDITIONS:
            yield from (condition.expression for condition in policy.match_conditions)
        case CheckKind.CONFIGURATION:
            yield from _list_all_expressions(policy)
        case _ as never:
            assert_never(never)


def _list_all_expressions(policy: Policy) -> Iterator[str]:
    """All that can make a policy unusable: it has no param, one of its expressions does not compile, or all cost too much."""
    if policy.param_kind is not None:
        yield policy.param_kind.api_version
        yield policy.param_kind.kind
    yield from (condition.expression for condition in policy.match_conditions)
    yield from (variable.expression for variable in policy.variables)
    yield from (validation.expression for validation in policy.validations)
    yield from (annotation.value_expression for annotation in policy.audit_annotations)
    yield from (mutation.expression for mutation in policy.mutations)


def _find_used(
    texts: Iterable[tuple[str, ...]], declared: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    """The variables that expressions use, themselves or in other variables, with their expressions."""
    used: dict[str, tuple[str, ...]] = {}
    stack = list(texts)
    while stack:
        for name in _names(stack.pop(), declared):
            if name not in used:
                used[name] = declared[name]
                stack.append(declared[name])
    return used


def _names(text: tuple[str, ...], declared: Iterable[str]) -> Iterator[str]:
    """The variables that an expression names. Where it names none that can be known, it may read each of them."""
    if len(text) == 1 and _VARIABLES in text[0]:
        # It may be a text that is no expression.
        yield from declared
    for place, token in enumerate(text):
        if token != _VARIABLES:
            continue
        match text[place + 1 : place + 3]:
            case (".", name) if name.strip("`").isidentifier():
                yield from (each for each in declared if each == name.strip("`"))
            case _:
                yield from declared


_CheckOfPolicy: TypeAlias = tuple[PolicyKey, CheckPlace]


def waiver_key(waiver: Waiver) -> bytes:
    """The digest of a waiver without its file: a waiver that moves is the same, and an edited one is another.

    Databases have it, so its form never changes. A field that is added later is part of it only if it is not empty.
    """
    requirements = [(each.key, each.operator, each.values) for each in waiver.selector.requirements]
    names = waiver.name, waiver.policy, waiver.check, waiver.cluster, waiver.namespace, waiver.workload, waiver.object
    people = waiver.reason, waiver.requested_by, waiver.approved_by, waiver.ticket, waiver.control
    days = f"{waiver.since or ''}", f"{waiver.until}"
    content = [*names, requirements, *people, *days, *filter(None, [waiver.check_digest])]
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).digest()


class NamedChecks:
    """The checks of the policies of a scan, by the id or the expression with which waivers name them."""

    def __init__(
        self,
        policies: Iterable[Policy],
        check_ids: Mapping[tuple[PolicyKey, Check], str],
        evaluated: Iterable[tuple[PolicyKey, Check]],
    ) -> None:
        """`evaluated` are checks with the expressions that were evaluated, which Kyverno rewrites. They are read if need be."""
        self._policies = {policy.key: policy for policy in policies}
        self._named: defaultdict[tuple[str, str], set[_CheckOfPolicy]] = defaultdict(set)
        self._known: set[_CheckOfPolicy] = set()
        for key, policy in self._policies.items():
            for kind, texts in list_expressions(policy):
                for index, text in enumerate(texts):
                    self._known.add((key, (CheckKind(kind), index)))
                    self._add(key, Check(CheckKind(kind), index, text))
        for (key, check), name in check_ids.items():
            self._named[key[1], name].add((key, (check.kind, check.index)))
        self._evaluated = iter(evaluated)

    def _add(self, policy: PolicyKey, check: Check) -> None:
        if expression := check.expression.strip():
            self._named[policy[1], expression].add((policy, (check.kind, check.index)))

    def find(self, policy: str, check: str) -> Sequence[tuple[Policy, CheckPlace]]:
        """The checks of the policies of a name that have this id or expression: several if policies have equal ones."""
        name = policy, check
        if name not in self._named:
            for key, evaluated in self._evaluated:
                self._add(key, evaluated)
        named = self._known.intersection(self._named.get(name, ()))
        return [(self._policies[key], place) for key, place in sorted(named)]


class ReplacedCheck(NamedTuple):
    """The check of a waiver asks something else: digests of the questions that the waiver accepts, and of those that are asked."""

    accepted: frozenset[str]
    asked: frozenset[str]


def find_replaced_checks(
    waivers: Iterable[Waiver], named: NamedChecks, waived: Iterable[WaivedCheck]
) -> Mapping[str, ReplacedCheck]:
    """The replaced checks of waivers, by the name of the waiver.

    `waived` are the checks of earlier scans that used these waivers. A waiver without a digest that no scan used is about the
    checks of this scan. A waiver that names several checks is about all of them.
    """
    questions: dict[bytes, str] = {}
    first: dict[bytes, tuple[int, set[str]]] = {}
    for each in sorted(waived, key=lambda each: each.since):
        questions[each.form] = each.question
        since, questions_asked = first.setdefault(each.waiver, (each.since, set()))
        if each.since == since:
            questions_asked.add(each.question)
    replaced: dict[str, ReplacedCheck] = {}
    for waiver in waivers:
        accepted = {waiver.check_digest} if waiver.check_digest else first.get(waiver_key(waiver), (0, set()))[1]
        if not accepted:
            continue
        checks = named.find(waiver.policy, waiver.check)
        now = {questions.get(form_of(*check)) or question_of(*check) for check in checks}
        if not now <= accepted:
            replaced[waiver.name] = ReplacedCheck(frozenset(accepted), frozenset(now))
    return replaced
