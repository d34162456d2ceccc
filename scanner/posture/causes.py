"""What changed between two scans in everything that decides about one finding.

Without a change besides the object, a finding that is gone was fixed. Otherwise nothing is known about the object: its rules
changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from scanner.model.cause import CauseKind
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.rule import RuleObject, RuleType
from scanner.posture.namespace_keys import EVERY

_Key = TypeVar("_Key")
RULES: Final = frozenset(
    {CauseKind.POLICY, CauseKind.BINDING, CauseKind.PARAM, CauseKind.EXCEPTION, CauseKind.NAMESPACE}
)
"""The kinds of rules that the digest of a policy set covers."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that decides in one scan besides objects. Values are digests or versions; equal ones mean the same decisions.

    `sources` are where the policies were read: a scan of other sources does not show that a policy was deleted.
    `namespace_keys` returns the labels and annotations of namespaces that a policy and its bindings read (see
    `namespace_keys`): by default, every one.
    """

    policies: Mapping[PolicyKey, str]
    bindings: Mapping[BindingKey, str]
    rules: tuple[RuleObject, ...]
    server: str
    assay: str
    options: tuple[str, ...]
    sources: tuple[str, ...] = ()
    namespace_keys: Callable[[PolicyKey], frozenset[str]] = field(default=lambda _: frozenset({EVERY}), compare=False)

    def keys_in_force(self) -> frozenset[str]:
        """The labels and annotations of namespaces that any bound policy reads."""
        bound = {(language, policy) for language, policy, _ in self.bindings}.intersection(self.policies)
        return frozenset[str]().union(*map(self.namespace_keys, bound))


class Coordinates(NamedTuple):
    """The parts of a decision that concern one finding."""

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    namespace: str

    @property
    def policy_key(self) -> PolicyKey:
        """The policy."""
        return self.language, self.policy

    @property
    def binding_key(self) -> BindingKey:
        """The binding."""
        return self.language, self.policy, self.binding

    @property
    def param(self) -> str:
        """The place of the param, as names of rule objects end; empty without a param."""
        return "/".join(filter(None, (self.param_namespace, self.param_name))) if self.param_name else ""


class Comparison:
    """What changed between two scans besides objects. The cost of a question does not depend on the number of rules."""

    def __init__(self, before: Circumstances, now: Circumstances) -> None:
        """Compare all parts once. `policies` and `bindings` are those that differ.

        `namespaces` has the labels and annotations that differ, by the name of the namespace. A label that no policy read
        before was not recorded then, so nothing is known of it.
        """
        self.before, self.now = before, now
        self.policies: Final = _differing(before.policies, now.policies)
        self.bindings: Final = _differing(before.bindings, now.bindings)
        self._rules = _by_type(before.rules), _by_type(now.rules)
        self._params = self._differing_rules(RuleType.PARAM)
        self._exceptions = self._differing_rules(RuleType.EXCEPTION)
        self._contexts = bool(self._differing_rules(RuleType.GLOBAL_CONTEXT))
        self._concerned: dict[tuple[PolicyKey, str], bool] = {}
        self.namespaces: Final = dict(self._differing_namespaces())
        everywhere = {
            CauseKind.SERVER: before.server != now.server,
            CauseKind.ASSAY: before.assay != now.assay,
            CauseKind.OPTIONS: before.options != now.options,
        }
        self._everywhere = tuple(kind for kind, differs in everywhere.items() if differs)

    @property
    def kinds(self) -> tuple[CauseKind, ...]:
        """What changed for any finding, in the order of `CauseKind`."""
        parts = {
            CauseKind.POLICY: self.policies,
            CauseKind.BINDING: self.bindings,
            CauseKind.PARAM: self._params,
            CauseKind.EXCEPTION: self._contexts or self._exceptions,
            CauseKind.NAMESPACE: self.namespaces,
        }
        return (*(kind for kind, differs in parts.items() if differs), *self._everywhere)

    @property
    def rules_changed(self) -> bool:
        """Return whether any part differs for any finding."""
        return bool(self.kinds)

    def changes(self, finding: Coordinates) -> tuple[CauseKind, ...]:
        """What changed for a finding, in the order of `CauseKind`."""
        return (*self._of_rules(finding), *self._everywhere)

    def has_param(self, finding: Coordinates) -> bool:
        """Return whether the param of a finding is a rule of the newer scan; true without a param."""
        return not finding.param or finding.param in self._rules[1][RuleType.PARAM]

    def renamed_binding(self, before: BindingKey, now: BindingKey) -> bool:
        """Return whether a binding is new, and has the content of one that is gone."""
        earlier, later = self.before.bindings, self.now.bindings
        gone = before in earlier and before not in later
        return gone and now in later and now not in earlier and earlier[before] == later[now]

    def renamed_param(self, before: str, now: str) -> bool:
        """Return whether a param, by its place, is new, and has the content of one that is gone."""
        earlier, later = (rules[RuleType.PARAM] for rules in self._rules)
        gone = before in earlier and before not in later
        return gone and now in later and now not in earlier and _contents(earlier[before]) == _contents(later[now])

    def _of_rules(self, finding: Coordinates) -> Iterator[CauseKind]:
        if finding.policy_key in self.policies:
            yield CauseKind.POLICY
        if finding.binding_key in self.bindings:
            yield CauseKind.BINDING
        if finding.param in self._params and self._compares_param(finding):
            yield CauseKind.PARAM
        if self._contexts or finding.policy in self._exceptions:
            yield CauseKind.EXCEPTION
        if finding.namespace in self.namespaces and self._reads_namespace(finding.policy_key, finding.namespace):
            yield CauseKind.NAMESPACE

    def _reads_namespace(self, policy: PolicyKey, namespace: str) -> bool:
        """Return whether a policy reads a label or an annotation of a namespace that differs."""
        place = policy, namespace
        if place not in self._concerned:
            reads = self.before.namespace_keys(policy) | self.now.namespace_keys(policy)
            self._concerned[place] = bool(_common(reads, self.namespaces[namespace]))
        return self._concerned[place]

    def _differing_namespaces(self) -> Iterator[tuple[str, frozenset[str]]]:
        names = self._differing_rules(RuleType.NAMESPACE_LABELS)
        if not names:
            return
        known = _common(self.before.keys_in_force(), self.now.keys_in_force())
        before, now = (rules[RuleType.NAMESPACE_LABELS] for rules in self._rules)
        for name in names:
            differing = _common(_differing_keys(before.get(name, ()), now.get(name, ())), known)
            if differing:
                yield name, differing

    def _compares_param(self, finding: Coordinates) -> bool:
        """Return whether both scans can have a param: one without policy or binding had no reason to read the param."""
        if all(finding.param in rules[RuleType.PARAM] for rules in self._rules):
            return True
        scans = self.before, self.now
        return all(finding.policy_key in scan.policies and finding.binding_key in scan.bindings for scan in scans)

    def _differing_rules(self, kind: RuleType) -> frozenset[str]:
        before, now = ({key: _identities(rules) for key, rules in each[kind].items()} for each in self._rules)
        return _differing(before, now)


_Rules = Mapping[RuleType, Mapping[str, list[RuleObject]]]


def _by_type(rules: tuple[RuleObject, ...]) -> _Rules:
    """The rules by type, and by what a finding must have for them to concern it: a param's place, a policy, a namespace."""
    sorted_rules: dict[RuleType, defaultdict[str, list[RuleObject]]] = {kind: defaultdict(list) for kind in RuleType}
    for rule in rules:
        for key in _concerned(rule):
            sorted_rules[rule.type][key].append(rule)
    return sorted_rules


def _concerned(rule: RuleObject) -> Collection[str]:
    match rule.type:
        case RuleType.PARAM:
            # Two kinds of params may have one name: a policy reads one of them.
            return (rule.name.rpartition(" ")[2],)
        case RuleType.EXCEPTION:
            references = as_list(dig(rule.document, "spec", "policyRefs"))
            return {as_text(dig(reference, "name")) for reference in references}
        case _:
            return (rule.name,)


def _identities(rules: Collection[RuleObject]) -> frozenset[tuple[str, str]]:
    """Names and digests; with the names, because two objects may have equal content."""
    return frozenset((rule.name, rule.digest) for rule in rules)


def _differing_keys(before: Collection[RuleObject], now: Collection[RuleObject]) -> frozenset[str]:
    """The labels and annotations of a namespace that differ; every one if a part of them is withheld."""
    if any(rule.masked for rule in (*before, *now)):
        return frozenset({EVERY})
    return _differing(*(_texts(rules) for rules in (before, now))) or frozenset({EVERY})


def _texts(rules: Collection[RuleObject]) -> dict[str, Json]:
    return {
        f"{part}/{key}": value
        for rule in rules
        for part in ("labels", "annotations")
        for key, value in as_object(dig(rule.document, "metadata", part)).items()
    }


def _common(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
    """The keys that both sets have, of which one may have every key."""
    if EVERY in first:
        return second
    return first if EVERY in second else first & second


_NAMED: Final = frozenset({"name", "namespace"})


def _contents(rules: Collection[RuleObject]) -> list[JsonObject]:
    """The content of rule objects besides their names."""
    return [
        {
            **rule.document,
            "metadata": {
                key: value for key, value in as_object(dig(rule.document, "metadata")).items() if key not in _NAMED
            },
        }
        for rule in rules
    ]


def _differing(before: Mapping[_Key, object], now: Mapping[_Key, object]) -> frozenset[_Key]:
    return frozenset(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
