"""The state of the cluster, besides the object, that the evaluation of an object needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from msgspec import Struct

from scanner.admission.auditability import AUDITABLE
from scanner.admission.cost_budget import BudgetUse
from scanner.admission.match import MatchTarget
from scanner.admission.params import ParamSource
from scanner.cel import Decider
from scanner.model.json import JsonObject
from scanner.model.policy import Operation
from scanner.model.resource import Kind, Resource, UserInfo


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """The state of the cluster, besides the object, that the evaluation of an object needs.

    `namespaces` maps names to Namespace objects; with `implied_namespaces` (files) an absent Namespace counts as existing, with
    its name label only. `equivalents` maps a kind to the same objects' other served kinds; those of `relabelled` differ in the
    apiVersion alone, and are evaluated on the list of the version of the request. `authorizer` answers the permission
    checks of expressions; without an authorizer such expressions are not auditable. `budget_use` records the largest share of
    a cost limit that evaluations used. An UPDATE replaces the object `old`; without one it changes nothing.
    """

    params: ParamSource
    namespaces: Mapping[str, JsonObject]
    implied_namespaces: bool = False
    equivalents: Mapping[Kind, tuple[Kind, ...]] = field(default_factory=dict)
    relabelled: frozenset[Kind] = frozenset()
    user: UserInfo = field(default_factory=UserInfo)
    operations: tuple[Operation, ...] = AUDITABLE
    authorizer: Decider | None = None
    budget_use: BudgetUse | None = None
    old: Resource | None = None

    def replace_operations(self, operations: tuple[Operation, ...]) -> EvaluationContext:
        """The same context for other operations."""
        return replace(self, operations=operations)

    def find_namespace(self, name: str) -> JsonObject | None:
        """The Namespace object of a name, or None when there is none."""
        namespace = self.namespaces.get(name)
        if namespace is None and self.implied_namespaces and name:
            labels = {"kubernetes.io/metadata.name": name}
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        return namespace


class Selection(Struct, frozen=True):
    """A request that policy and binding match, or would match if their configuration had no `fault`."""

    target: MatchTarget
    matched: Kind
    fault: str = ""
