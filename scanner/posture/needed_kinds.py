"""The kinds of which a policy may match objects, as far as its rules show without the discovery of its cluster.

Upstream: `matchConstraints` of `admissionregistration.k8s.io/v1`, and `matchPolicy: Equivalent`, by which a rule also matches the same
resource in other versions and groups. The answer is yes where the rules leave a doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from scanner.model.policy import ADMISSION_API, Policy, Rule

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
