"""Whether the check of a waiver still asks what the author of the waiver accepted.

A check keeps its id from version to version of its policy, also when it asks about something else. A waiver is about what was
asked: about the question that its digest names, or else about that of the first scan that used the waiver and had its check.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import Policy, PolicyKey
from scanner.model.waiver import WaivedCheck, Waiver
from scanner.posture.check_names import expressions
from scanner.posture.questions import CheckPlace, form_of, question_of

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
            for kind, texts in expressions(policy):
                for index, text in enumerate(texts):
                    self._known.add((key, (CheckKind(kind), index)))
                    self._add(key, Check(CheckKind(kind), index, text))
        for (key, check), name in check_ids.items():
            self._named[key[1], name].add((key, (check.kind, check.index)))
        self._evaluated = iter(evaluated)

    def _add(self, policy: PolicyKey, check: Check) -> None:
        if expression := check.expression.strip():
            self._named[policy[1], expression].add((policy, (check.kind, check.index)))

    def of(self, policy: str, check: str) -> Sequence[tuple[Policy, CheckPlace]]:
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


def replaced_checks(
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
        since, asked = first.setdefault(each.waiver, (each.since, set()))
        if each.since == since:
            asked.add(each.question)
    replaced: dict[str, ReplacedCheck] = {}
    for waiver in waivers:
        accepted = {waiver.check_digest} if waiver.check_digest else first.get(waiver_key(waiver), (0, set()))[1]
        if not accepted:
            continue
        checks = named.of(waiver.policy, waiver.check)
        now = {questions.get(form_of(*check)) or question_of(*check) for check in checks}
        if not now <= accepted:
            replaced[waiver.name] = ReplacedCheck(frozenset(accepted), frozenset(now))
    return replaced
