"""Everything of one scan, as a replay keeps it: the cluster, the question and the findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

from scanner.model.outcome import Finding

GROUPS = {"Pod": "", "ReplicaSet": "apps", "Deployment": "apps", "Widget": "example.com"}

Workload: TypeAlias = tuple[str, str, str, str]
"""Group, kind, namespace and name."""


class Rule(NamedTuple):
    """A policy: its expressions, and the kinds that it matches."""

    expressions: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def reads_namespaces(self) -> bool:
        """Whether an expression reads a label of the namespace."""
        return any("namespaceObject" in text for text in self.expressions)


class Bound(NamedTuple):
    """The content of a binding: whether it has params, and whether it selects namespaces of one environment.

    `demands` tells that missing params are an error, `denies` that violations are denied.
    """

    with_params: bool
    of_production: bool
    demands: bool = False
    denies: bool = False


class Owner(NamedTuple):
    """A reference to a controller: an object of that name may have another UID."""

    kind: str
    name: str
    uid: str


class Item(NamedTuple):
    """An object. `template` is its label pod-template-hash."""

    kind: str
    namespace: str
    name: str
    uid: str
    version: int
    x: int
    owner: Owner | None
    template: str = ""

    @property
    def itself(self) -> Workload:
        """The object as a workload."""
        return GROUPS[self.kind], self.kind, self.namespace, self.name


@dataclass(frozen=True)
class Kept:
    """Everything of a scan: the cluster, the question, and the findings by fingerprint."""

    at: datetime
    policies: Mapping[str, Rule]
    bindings: Mapping[tuple[str, str], Bound]
    params: Mapping[str, str]
    environments: Mapping[str, str]
    items: tuple[Item, ...]
    namespaces: tuple[str, ...]
    operation: str
    server: str
    assay: str
    listed: frozenset[str]
    metadata: frozenset[str]
    served: frozenset[str]
    evaluated: frozenset[str]
    findings: Mapping[str, Finding]

    def covers(self, namespace: str) -> bool:
        """Whether objects of a namespace were in the scope."""
        return not self.namespaces or namespace in self.namespaces

    def sees(self, item: Item) -> bool:
        """Whether the scan shows whether an object is there."""
        return (item.kind in self.listed or item.kind not in self.served) and self.covers(item.namespace)

    def would_have(self, finding: Finding) -> bool:
        """Whether the scan would have found a finding. It keeps nothing about kinds that are not served."""
        rules = finding.policy in self.policies and (finding.policy, finding.binding) in self.bindings
        return rules and finding.kind in self.listed and self.covers(finding.namespace)

    def examined(self, uid: str) -> bool:
        """Whether an object was listed."""
        return any(item.uid == uid for item in self.of_kinds(self.listed))

    def item(self, uid: str) -> Item:
        """The object with a UID."""
        return next(item for item in self.items if item.uid == uid)

    def of_kinds(self, kinds: frozenset[str]) -> list[Item]:
        """The objects of some kinds in the scope."""
        return [item for item in self.items if item.kind in kinds and self.covers(item.namespace)]

    @property
    def read(self) -> list[Item]:
        """The objects that were read, to evaluate them or for the workloads of others."""
        return self.of_kinds(self.listed | self.metadata)

    def top(self, item: Item) -> tuple[Workload, bool]:
        """The workload of an object by its chain of controllers, and whether it is derived."""
        while item.owner is not None:
            kind, name, uid = item.owner
            above = next((each for each in self.read if (each.kind, each.uid) == (kind, uid)), None)
            if above is None:
                deployment = name.removesuffix(f"-{item.template}") if item.template else name
                if kind == "ReplicaSet" and deployment != name:
                    kind, name = "Deployment", deployment
                return (GROUPS[kind], kind, item.namespace, name), True
            item = above
        return item.itself, False

    @property
    def bound(self) -> dict[tuple[str, str], Bound]:
        """The bindings whose policies exist."""
        return {key: bound for key, bound in self.bindings.items() if key[0] in self.policies}

    @property
    def read_params(self) -> Mapping[str, str]:
        """The params, if a binding has params."""
        return self.params if any(bound.with_params for bound in self.bound.values()) else {}

    @property
    def readers(self) -> frozenset[str]:
        """The policies that read the label of namespaces, or have a binding that does."""
        own = self.bound.items()
        return frozenset(
            policy for (policy, _), bound in own if bound.of_production or self.policies[policy].reads_namespaces
        )

    def matches(self, policy: str, binding: str, namespace: str, kind: str) -> bool:
        """Whether a policy matches objects of a kind in a namespace through a binding."""
        selected = not self.bindings[policy, binding].of_production or self.environments[namespace] == "prod"
        return selected and kind in self.policies[policy].kinds
