"""The checks of a scan that serve a control: a mapping selects policies with all their checks, or checks by themselves.

A check is named by its policy and its expression, trimmed as a fingerprint has it. The checks of an invocation as a whole, its match
conditions and its configuration, have no expression: they belong to every control that has a check of the policy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeAlias, assert_never

from scanner.model.json import dig, text_map
from scanner.model.outcome import Check
from scanner.model.policy import Policy, PolicyKey
from scanner.posture.problem_ids import list_expressions

CheckIds: TypeAlias = Mapping[tuple[PolicyKey, Check], str]
"""The ids of the checks of a scan."""

POD_SECURITY = "PodSecurity"
"""The language whose checks are those of Pod Security admission; their expressions are the names of these checks."""
WHOLE_INVOCATION = ""
"""The expression of the match conditions and of the configuration of a policy."""


class SelectorKind(StrEnum):
    """The parts of a policy by which a mapping selects."""

    NAME = "name"
    GLOB = "glob"
    LABEL = "label"
    ANNOTATION = "annotation"


@dataclass(frozen=True, slots=True, order=True)
class PolicySelector:
    """Selects policies by name, by a glob of names, or by a label or annotation.

    `text` is the name, the glob or the key. `value` is that of the label or annotation; None stands for any value. An empty
    `language` stands for every language. An `optional` selector need not select a policy.
    """

    by: SelectorKind
    text: str
    value: str | None = None
    language: str = ""
    optional: bool = False

    def selects(self, policy: Policy) -> bool:
        """Return whether a policy is selected."""
        if self.language not in ("", policy.language):
            return False
        match self.by:
            case SelectorKind.NAME:
                return policy.name == self.text
            case SelectorKind.GLOB:
                return fnmatchcase(policy.name, self.text)
            case SelectorKind.LABEL:
                return self._has(policy, "labels")
            case SelectorKind.ANNOTATION:
                return self._has(policy, "annotations")
            case _ as never:
                assert_never(never)

    def _has(self, policy: Policy, field_name: str) -> bool:
        pairs = text_map(dig(policy.manifest, "metadata", field_name))
        return self.text in pairs and self.value in (None, pairs[self.text])

    def __str__(self) -> str:
        """The selector in words: `name host-access`, `label example.com/control=5.2.2`."""
        value = "" if self.value is None else f"={self.value}"
        language = f" ({self.language})" if self.language else ""
        return f"{self.by} {self.text}{value}{language}"


class CheckSelectorKind(StrEnum):
    """The facts of a check by which a mapping selects."""

    ID = "id"
    POD_SECURITY = "podSecurity"
    EXPRESSION = "expression"


_CHECK_WORDS = {
    CheckSelectorKind.ID: "check",
    CheckSelectorKind.POD_SECURITY: "Pod Security check",
    CheckSelectorKind.EXPRESSION: "check",
}
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True, order=True)
class CheckSelector:
    """Selects checks by id, by the name of a Pod Security check, or by the text of the expression.

    `policy` narrows it to policies. Of a Pod Security check, `names` are the checks that the text names, and `replaced_by` those by
    which a stricter level replaces them. An `optional` selector need not select a check. With `stricter`, a check demands more than
    the control: an object that passes it meets the control, and one that fails it shows nothing. `level` is the lowest level of Pod
    Security that demands the check.
    """

    by: CheckSelectorKind
    text: str
    policy: PolicySelector | None = None
    names: tuple[str, ...] = ()
    replaced_by: tuple[str, ...] = ()
    optional: bool = False
    stricter: bool = False
    level: str = ""

    def select(self, policy: Policy, ids: CheckIds) -> tuple[frozenset[str], frozenset[str]]:
        """The trimmed expressions of the selected checks of a policy: those of the control, and those that demand more."""
        if self.policy is not None and not self.policy.selects(policy):
            return frozenset(), frozenset()
        named, stricter = frozenset(self._list_named(policy, ids)), self._list_replacing(policy)
        return (frozenset(), named | stricter) if self.stricter else (named, stricter)

    def _list_named(self, policy: Policy, ids: CheckIds) -> Iterator[str]:
        match self.by:
            case CheckSelectorKind.ID:
                texts = (
                    check.expression.strip()
                    for (key, check), name in ids.items()
                    if key == policy.key and name == self.text
                )
                yield from filter(None, texts)
            case CheckSelectorKind.POD_SECURITY:
                yield from list_texts(policy).intersection(self.names) if policy.language == POD_SECURITY else ()
            case CheckSelectorKind.EXPRESSION:
                yield from list_texts(policy).intersection([self.text.strip()])
            case _ as never:
                assert_never(never)

    def _list_replacing(self, policy: Policy) -> frozenset[str]:
        return list_texts(policy).intersection(self.replaced_by) if policy.language == POD_SECURITY else frozenset()

    def __str__(self) -> str:
        """The selector in words: `Pod Security check privileged`, `check c-0123456789ab of the name host-access`."""
        text = self.text if len(self.text) <= _LONGEST_SHOWN else f"{self.text[: _LONGEST_SHOWN - 1]}…"
        of_policy = f" of the {self.policy}" if self.policy else ""
        return f"{_CHECK_WORDS[self.by]} {text}{of_policy}"


def list_texts(policy: Policy) -> frozenset[str]:
    """The trimmed expressions of the checks of a policy, without those of an invocation as a whole."""
    return frozenset(text.strip() for _, texts in list_expressions(policy) for text in texts) - {WHOLE_INVOCATION}


@dataclass(frozen=True, slots=True)
class Control:
    """A requirement of a framework, and the policies and checks that show together whether it is met.

    Without a selector, none does. `cannot_show` is the reason why admission cannot show the requirement; empty if it can. `example`
    names a policy of the folder of examples that would serve the control, and may be empty.
    """

    id: str
    title: str
    policies: tuple[PolicySelector, ...] = ()
    checks: tuple[CheckSelector, ...] = ()
    cannot_show: str = ""
    example: str = ""

    def list_remedies(self) -> Iterator[str]:
        """The labels and policies that would cover the control, as noun phrases."""
        levels = {check.level for check in self.checks if check.level}
        yield from (f"the Namespace label pod-security.kubernetes.io/enforce={level}" for level in sorted(levels))
        if self.example:
            yield f"the policy {self.example} of examples/policies-controls"
        for selector in self.policies:
            if selector.by is SelectorKind.ANNOTATION and not self.example:
                yield f"a policy with the {selector}"


@dataclass(frozen=True, slots=True)
class Framework:
    """A set of controls, such as a benchmark. `name` has no slash, so that `name/id` names a control among all frameworks."""

    name: str
    title: str
    version: str
    controls: tuple[Control, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ServingChecks:
    """The checks of a scan that serve a control, by policy: their trimmed expressions, or None for all checks of the policy.

    `stricter` are checks that demand more than the control. `required` are the policies that a selector which is not optional
    selects, and `unmatched` such selectors without a policy or check. `selected` has the checks of each selector of checks.
    """

    own: Mapping[PolicyKey, frozenset[str] | None] = field(default_factory=dict)
    stricter: Mapping[PolicyKey, frozenset[str]] = field(default_factory=dict)
    required: frozenset[PolicyKey] = frozenset()
    unmatched: tuple[PolicySelector | CheckSelector, ...] = ()
    selected: Sequence[tuple[CheckSelector, Mapping[PolicyKey, frozenset[str]]]] = ()

    @property
    def policies(self) -> tuple[PolicyKey, ...]:
        """The policies that have one of the checks, in order of language and name."""
        return tuple(sorted(self.own.keys() | self.stricter.keys()))

    def has(self, policy: PolicyKey, expression: str) -> bool:
        """Return whether a check belongs to the control: only such a check can violate it."""
        if policy not in self.own:
            return False
        own, text = self.own[policy], expression.strip()
        return own is None or text in own or text == WHOLE_INVOCATION

    def has_stricter(self, policy: PolicyKey, expression: str) -> bool:
        """Return whether a check demands more than the control, and is not one of the control itself."""
        return not self.has(policy, expression) and expression.strip() in self.stricter.get(policy, ())

    @property
    def whole_policies(self) -> tuple[PolicyKey, ...]:
        """The policies that are selected with all their checks, in order of language and name."""
        return tuple(sorted(policy for policy, own in self.own.items() if own is None))


def find_checks(control: Control, policies: Collection[Policy], ids: CheckIds) -> ServingChecks:
    """The checks of the policies of a scan that serve a control. The order of policies does not matter."""
    own: dict[PolicyKey, frozenset[str] | None] = {}
    stricter: defaultdict[PolicyKey, frozenset[str]] = defaultdict(frozenset)
    required: set[PolicyKey] = set()
    selected: list[tuple[CheckSelector, Mapping[PolicyKey, frozenset[str]]]] = []
    for selector in dict.fromkeys(control.checks):
        found = {policy.key: selector.select(policy, ids) for policy in policies}
        for key, (named, demanding) in found.items():
            if named:
                own[key] = (own.get(key) or frozenset()) | named
            if demanding:
                stricter[key] |= demanding
        of_selector = {key: named | demanding for key, (named, demanding) in found.items() if named or demanding}
        selected.append((selector, of_selector))
        required.update(of_selector if not selector.optional else ())
    for policy in policies:
        selecting = [each for each in control.policies if each.selects(policy)]
        if selecting:
            own[policy.key] = None
        if not all(each.optional for each in selecting):
            required.add(policy.key)
    unmatched = tuple(_list_unmatched(control, policies, selected))
    return ServingChecks(own, dict(stricter), frozenset(required), unmatched, tuple(selected))


def _list_unmatched(
    control: Control,
    policies: Collection[Policy],
    selected: Iterable[tuple[CheckSelector, Mapping[PolicyKey, frozenset[str]]]],
) -> Iterator[PolicySelector | CheckSelector]:
    for selector in dict.fromkeys(control.policies):
        if not selector.optional and not any(selector.selects(policy) for policy in policies):
            yield selector
    yield from (selector for selector, found in selected if not found and not selector.optional)


class ControlsOfChecks:
    """The controls of checks, as `framework/id`, in the order of the mappings."""

    def __init__(self, frameworks: Iterable[Framework], policies: Collection[Policy], ids: CheckIds) -> None:
        """Find the checks that serve each control."""
        self._serving = tuple(
            (f"{framework.name}/{control.id}", find_checks(control, policies, ids))
            for framework in frameworks
            for control in framework.controls
        )
        self._of_check: dict[tuple[PolicyKey, str], tuple[str, ...]] = {}

    def of_policy(self, policy: PolicyKey) -> tuple[str, ...]:
        """The controls that have a check of a policy, such as a stricter one."""
        return tuple(name for name, serving in self._serving if policy in serving.own or policy in serving.stricter)

    def of_check(self, policy: PolicyKey, expression: str) -> tuple[str, ...]:
        """The controls to which a check belongs."""
        known = self._of_check.get((policy, expression))
        if known is None:
            known = tuple(name for name, serving in self._serving if serving.has(policy, expression))
            self._of_check[policy, expression] = known
        return known
