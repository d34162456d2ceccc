"""What a scan has to be allowed to read, known before it reads it: the rights behind its lists, and nothing beyond.

Source of truth: the requests that the line makes (`scanner.scan.run`), and how RBAC sees them (k8s.io/apiserver,
RequestInfo): a list of all namespaces needs a ClusterRole, a list within one namespace a Role in it, and a Namespace
object belongs to the namespace of its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from scanner.admission.dispatch import BoundPolicy
from scanner.model.outcome import Gap
from scanner.model.reading import Auditability
from scanner.model.resource import Kind
from scanner.policies.kyverno.modes import MODES
from scanner.policies.plan import plan
from scanner.policies.validating.bind import bind
from scanner.policies.webhooks import webhook_kinds
from scanner.scan.documents import policy_kinds
from scanner.scan.edges import Cluster
from scanner.scan.options import Options
from scanner.scan.param_table import ParamTable
from scanner.scan.prepare import PreparedScan, prepare

_NAMESPACES: Final = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
_REVIEWS: Final = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
_HOME: Final = "kube-system"
_ANY_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Rights do not depend on the time, as a policy exception does."""


@dataclass(frozen=True, slots=True, order=True)
class Need:
    """One right: a verb on a resource, in one namespace or (empty) everywhere, on one object or (empty) on all.

    `why` says what needs it. Without an `optional` one a scan is complete all the same.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""
    why: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """The rights that a scan makes use of, in order; `gaps` are what kept the policies from being known in full."""

    rights: tuple[Need, ...]
    gaps: tuple[Gap, ...]


def needs(cluster: Cluster, options: Options) -> Needs:
    """What a scan with these options needs. Raises like a scan that has not yet begun to judge."""
    seen = prepare(cluster, options, _ANY_MOMENT)
    kinds = cluster.discover().kinds
    operations, rules = seen.context.operations, seen.context.rules
    bound = (*bind(seen.rules.policies, seen.rules.bindings, operations, rules), *seen.kyverno)
    wanted = [
        *_documents(kinds, options),
        *_identity(),
        *_namespaces(options.scope.namespaces),
        *_params(kinds, bound, options.scope.namespaces),
        *_authorizer(bound),
        *_inventory(seen),
        *_kyverno_configuration(seen, options),
    ]
    for line in plan(kinds, bound, operations):
        if not seen.listing.left_out(line.kind):
            names = sorted({entry.policy.name for entry, _ in line.policies})
            wanted.extend(_lists(line.kind, seen.listing.namespaces, f"policy {', '.join(names)}"))
    return Needs(_merged(wanted), seen.gaps)


def _documents(kinds: tuple[Kind, ...], options: Options) -> Iterator[Need]:
    if options.cluster_policies:
        for kind in policy_kinds(kinds):
            yield from _lists(kind, ("",), "policies and bindings")
    for kind in webhook_kinds(kinds):
        why = "to name the webhooks that a scan does not evaluate"
        yield Need(kind.group, kind.plural, "list", why=why, optional=True)


def _identity() -> Iterator[Need]:
    why = "to know the cluster again under another name"
    yield Need("", _NAMESPACES.plural, "get", _HOME, _HOME, why, optional=True)


def _namespaces(names: tuple[str, ...]) -> Iterator[Need]:
    why = "every object's namespace"
    if not names:
        yield Need("", _NAMESPACES.plural, "list", why=why)
    for name in names:
        yield Need("", _NAMESPACES.plural, "get", name, name, why)


def _params(kinds: tuple[Kind, ...], bound: Iterable[BoundPolicy], within: tuple[str, ...]) -> Iterator[Need]:
    table = ParamTable(kinds)
    for kind, entries in table.needed(bound).items():
        names = ", ".join(entry.policy.name for entry in entries)
        yield from _lists(kind, table.namespaces(kind, entries, within), f"params of policy {names}")


def _authorizer(bound: Iterable[BoundPolicy]) -> Iterator[Need]:
    asking = [entry.policy.name for entry in bound if Auditability.AUTHORIZER in entry.reading.classes]
    if asking:
        why = f"policy {', '.join(asking)} asks the authorizer"
        yield Need(_REVIEWS.group, _REVIEWS.plural, "create", why=why, optional=True)


def _inventory(seen: PreparedScan) -> Iterator[Need]:
    """What the expressions of Kyverno's policies read of the cluster."""
    for entry in seen.kyverno:
        for kind, places in seen.inventory.wanted(entry).items() if not entry.reading.reason else ():
            yield from _lists(kind, places, f"expressions of policy {entry.policy.name}")


def _kyverno_configuration(seen: PreparedScan, options: Options) -> Iterator[Need]:
    """The ConfigMap that tells which objects Kyverno's webhook never sees."""
    asked = options.kyverno_configuration
    if asked.wanted(seen.rules, MODES[options.kyverno_compat]):
        yield Need("", "configmaps", "list", asked.place[0], why="the resource filters of Kyverno")


def _lists(kind: Kind, namespaces: Iterable[str], why: str) -> Iterator[Need]:
    for namespace in namespaces if kind.namespaced else ("",):
        yield Need(kind.group, kind.plural, "list", namespace, why=why)


def _merged(wanted: Iterable[Need]) -> tuple[Need, ...]:
    """Each right once, with every reason for it; a right in one namespace is part of the same right everywhere."""
    reasons: dict[tuple[str, str, str, str, str], list[Need]] = {}
    for need in wanted:
        reasons.setdefault((need.group, need.resource, need.verb, need.namespace, need.name), []).append(need)
    return tuple(
        sorted(
            Need(
                *right, why="; ".join(dict.fromkeys(it.why for it in found)), optional=all(it.optional for it in found)
            )
            for right, found in reasons.items()
            if not right[3] or (*right[:3], "", "") not in reasons
        )
    )
