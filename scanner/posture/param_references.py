"""The params that a binding refers to, among the rule objects of a scan.

Source of truth: `generic.CollectParams` of kube-apiserver 1.36, as in `admission.params`: a reference without a namespace
looks in that of the request.
"""

from __future__ import annotations

from dataclasses import dataclass

from scanner.model.json import dig, text_map
from scanner.model.policy import Binding, ParamKind, ParamRef, Policy
from scanner.model.rule import RuleObject


@dataclass(frozen=True, slots=True)
class ParamReference:
    """The reference of a binding to params of a kind."""

    kind: ParamKind
    reference: ParamRef

    def selects(self, param: RuleObject, namespace: str) -> bool:
        """Return whether this refers to a param, for a request in a namespace. Withheld labels may be any."""
        kind, _, place = param.name.rpartition(" ")
        where, _, name = place.rpartition("/")
        group = self.kind.api_version.rpartition("/")[0]
        if kind != "/".join(filter(None, (group, self.kind.kind))):
            return False
        if where and where != (self.reference.namespace or namespace):
            return False
        if self.reference.name:
            return name == self.reference.name
        selector = self.reference.selector
        if selector is None or selector.fault():
            return False
        return param.masked or selector.matches(text_map(dig(param.document, "metadata", "labels")))


def reference_of(policy: Policy | None, binding: Binding | None) -> ParamReference | None:
    """The params to which a binding refers; None if its policy is evaluated without params, or one of both is not known."""
    if policy is None or binding is None or policy.param_kind is None or binding.param_ref is None:
        return None
    return ParamReference(policy.param_kind, binding.param_ref)
