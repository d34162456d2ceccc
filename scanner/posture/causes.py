"""What changed between two scans in everything that decides about one finding, besides its object.

Without such a change, a finding that is gone was fixed. Otherwise nothing is known about the object: its rules changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from scanner.model.json import as_list, as_text, dig
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.rule import RuleObject, RuleType


class CauseKind(StrEnum):
    """The parts of a decision, in the order in which they explain a change."""

    POLICY = "policy"
    BINDING = "binding"
    PARAM = "param"
    EXCEPTION = "exception"
    NAMESPACE = "namespace"
    SERVER = "server"
    ASSAY = "assay"
    OPTIONS = "options"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that decides in one scan besides objects. Values are digests or versions; equal ones mean the same decisions."""

    policies: Mapping[PolicyKey, str]
    bindings: Mapping[BindingKey, str]
    rules: tuple[RuleObject, ...]
    server: str
    assay: str
    options: tuple[str, ...]


class Coordinates(NamedTuple):
    """The parts of a decision that concern one finding."""

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    namespace: str


def changes(before: Circumstances, now: Circumstances, finding: Coordinates) -> tuple[CauseKind, ...]:
    """What changed for a finding between two scans, in the order of `CauseKind`."""
    return tuple(kind for kind, differs in _compared(before, now, finding) if differs)


def _compared(before: Circumstances, now: Circumstances, finding: Coordinates) -> Iterator[tuple[CauseKind, bool]]:
    policy = finding.language, finding.policy
    yield CauseKind.POLICY, before.policies.get(policy) != now.policies.get(policy)
    binding = *policy, finding.binding
    yield CauseKind.BINDING, before.bindings.get(binding) != now.bindings.get(binding)
    yield CauseKind.PARAM, _params(before, finding) != _params(now, finding)
    yield CauseKind.EXCEPTION, _exceptions(before, finding.policy) != _exceptions(now, finding.policy)
    yield CauseKind.NAMESPACE, _labels(before, finding.namespace) != _labels(now, finding.namespace)
    yield CauseKind.SERVER, before.server != now.server
    yield CauseKind.ASSAY, before.assay != now.assay
    yield CauseKind.OPTIONS, before.options != now.options


def _params(scan: Circumstances, finding: Coordinates) -> frozenset[str]:
    """The digests of the param of a finding. Two kinds of params may have one name: a policy reads one of them."""
    if not finding.param_name:
        return frozenset()
    place = "/".join(filter(None, (finding.param_namespace, finding.param_name)))
    return frozenset(_identity(rule) for rule in scan.rules if _is(rule, RuleType.PARAM, f" {place}"))


def _is(rule: RuleObject, kind: RuleType, ending: str) -> bool:
    return rule.type is kind and rule.name.endswith(ending)


def _exceptions(scan: Circumstances, policy: str) -> frozenset[str]:
    """The digests of the exceptions that name a policy, and of what any policy of Kyverno may read."""
    return frozenset(
        _identity(rule)
        for rule in scan.rules
        if rule.type is RuleType.GLOBAL_CONTEXT or (rule.type is RuleType.EXCEPTION and policy in _excepted(rule))
    )


def _excepted(rule: RuleObject) -> frozenset[str]:
    references = as_list(dig(rule.document, "spec", "policyRefs"))
    return frozenset(as_text(dig(reference, "name")) for reference in references)


def _labels(scan: Circumstances, namespace: str) -> frozenset[str]:
    return frozenset(
        rule.digest for rule in scan.rules if rule.type is RuleType.NAMESPACE_LABELS and rule.name == namespace
    )


def _identity(rule: RuleObject) -> str:
    """The digest of a rule object; with its name, because two objects may have equal content."""
    return f"{rule.name} {rule.digest}"
