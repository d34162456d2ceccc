"""The kinds that a policy can match, among those whose lists a scan recorded.

A record has the kind of a list, and rules have the plural of a resource, which no record keeps. So the plural is derived, as
`UnsafeGuessKindToResource` (apimachinery/pkg/api/meta) does. A plural that belongs to no listed kind may be that of any kind whose
derived plural no rule names. So the answer can have a kind too many, but lacks none that the policy matches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from scanner.model.policy import ADMISSION_API, MatchResources, Policy, Rule
from scanner.model.scans.scan import Coverage

# The kinds of which a policy may match objects, as far as its rules show without the discovery of its cluster.
#
# Upstream: `matchConstraints` of `admissionregistration.k8s.io/v1`, and `matchPolicy: Equivalent`, by which a rule
# also matches the same resource in other versions and groups. The answer is yes where the rules leave a doubt.

_NAMED_REGULARLY: Final = frozenset(
    {
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io"),
        *(
            "coordination.k8s.io",
            "discovery.k8s.io",
            "events.k8s.io",
            "flowcontrol.apiserver.k8s.io",
            "networking.k8s.io",
        ),
        *("node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
    }
)
"""The groups of Kubernetes itself with a dot. In other such groups, any resource may have any kind."""

_EQUIVALENT: Final = frozenset({"", "apps", "events.k8s.io", "extensions", "networking.k8s.io", "policy"})
"""Groups of Kubernetes that serve, or served, resources of each other."""
_MOVED: Final = frozenset(
    {"DaemonSet", "Deployment", "Event", "Ingress", "NetworkPolicy", "PodSecurityPolicy", "ReplicaSet", "Scale"}
)
"""The kinds of these resources."""


def may_need(policy: Policy, api_version: str, kind: str) -> bool:
    """Return whether a policy may match objects of a kind; an empty group stands for the core group."""
    if policy.language not in ADMISSION_API or policy.match is None:
        return True
    return may_match(policy.match.rules, api_version.rpartition("/")[0], kind)


def may_match(
    rules: Iterable[Rule], group: str, kind: str, *, plurals: Collection[str] = (), operations: Collection[str] = ()
) -> bool:
    """Return whether rules may match objects of a kind of a group, in any version; an empty kind stands for every kind.

    `plurals` are the resources of the kind, if they are known. Only requests with one of `operations` count, if there are any.
    """
    return any(
        _has_group(rule.api_groups, group, kind)
        and _has_operation(rule.operations, operations)
        and any(_may_be(resource, group, kind, plurals) for resource in rule.resources)
        for rule in rules
    )


def _has_operation(of_rule: tuple[str, ...], operations: Collection[str]) -> bool:
    return not operations or "*" in of_rule or not {*operations}.isdisjoint(of_rule)


def _has_group(groups: tuple[str, ...], group: str, kind: str) -> bool:
    if "*" in groups or group in groups:
        return True
    return (not kind or kind in _MOVED) and group in _EQUIVALENT and not _EQUIVALENT.isdisjoint(groups)


def _may_be(resource: str, group: str, kind: str, plurals: Collection[str]) -> bool:
    """Return whether a resource of a rule may be that of a kind. A custom resource may have any plural."""
    plural = resource.partition("/")[0]
    if plural == "*" or not kind:
        return True
    if plurals:
        return plural in plurals
    is_custom = "." in group and group not in _NAMED_REGULARLY
    return is_custom or plural in set(_plurals(kind.lower()))


def _plurals(kind: str) -> Iterator[str]:
    yield from (kind, f"{kind}s", f"{kind}es")
    if kind.endswith("y"):
        yield f"{kind[:-1]}ies"


KindKey: TypeAlias = tuple[str, str]
"""API version and kind."""

_ANY: Final = "*"
_ES: Final = ("s", "x", "ch", "sh")
_SAME: Final = ("endpoints",)
_VOWEL_Y: Final = ("ay", "ey", "oy", "uy")


class CoveredKinds:
    """The kinds of the lists of a scan, and the rules of all its policies."""

    def __init__(self, coverage: Iterable[Coverage], matches: Iterable[MatchResources]) -> None:
        """Note the plurals of the kinds that are listed, and those that rules name."""
        self.kinds = tuple(dict.fromkeys((line.api_version, line.kind) for line in coverage))
        named = {
            (group, resource.partition("/")[0])
            for match in matches
            for rule in match.rules
            for group in rule.api_groups
            for resource in rule.resources
        }
        derived = {(_group(kind), plural_of(kind[1])) for kind in self.kinds}
        self._irregular = {
            kind
            for kind in self.kinds
            if named.isdisjoint((group, plural_of(kind[1])) for group in (_group(kind), _ANY))
        }
        self._known: Mapping[str, frozenset[str]] = {
            group: frozenset(plural for plural_group, plural in derived if plural_group == group)
            for group, _ in derived
        }

    def list_matched(self, match: MatchResources) -> frozenset[KindKey]:
        """The kinds that a policy with these constraints can match."""
        return frozenset(kind for kind in self.kinds if any(self._is_possible(rule, kind) for rule in match.rules))

    def _is_possible(self, rule: Rule, kind: KindKey) -> bool:
        group, version = _group(kind), kind[0].rpartition("/")[2]
        if not (_lists(rule.api_groups, group) and _lists(rule.api_versions, version)):
            return False
        plurals = {resource.partition("/")[0] for resource in rule.resources}
        if plurals & {_ANY, plural_of(kind[1])}:
            return True
        return kind in self._irregular and not plurals <= self._known[group]


def plural_of(kind: str) -> str:
    """The plural of a kind with a regular name."""
    name = kind.lower()
    if name.endswith(_SAME):
        return name
    if name.endswith(_ES):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and not name.endswith(_VOWEL_Y) else f"{name}s"


def names_group(match: MatchResources, group: str) -> bool:
    """Return whether a rule can match a resource of an API group."""
    return any(_lists(rule.api_groups, group) for rule in match.rules)


def _group(kind: KindKey) -> str:
    return kind[0].rpartition("/")[0]


def _lists(allowed: Iterable[str], value: str) -> bool:
    return bool({_ANY, value} & set(allowed))
