"""The param objects that a binding selects for a request.

Source of truth: `generic.CollectParams` of kube-apiserver 1.36. Every param is one separate evaluation; an empty
answer means that the binding evaluates nothing.

Rules: `docs/semantics/params.md#when-there-are-params`, `docs/semantics/params.md#lookup`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from scanner.errors import ConfigurationError
from scanner.model.policy import Binding, ParamKind, ParamRef, Policy
from scanner.model.resource import Kind, Resource


class ParamSource(Protocol):
    """The source of param objects."""

    def find_kind(self, param_kind: ParamKind) -> Kind | None:
        """The served kind of a policy's paramKind, or None when the cluster does not serve it."""
        ...

    def get(self, kind: Kind, namespace: str, name: str) -> Resource | None:
        """One param object, or None; the namespace is empty for cluster-scoped kinds."""
        ...

    def list_all(self, kind: Kind, namespace: str) -> Iterable[Resource]:
        """Every param object of a namespace, or of the cluster for cluster-scoped kinds."""
        ...


def explain_unserved(policy: Policy, source: ParamSource) -> str:
    """The configuration error of a policy whose paramKind is not served, or an empty string."""
    if policy.param_kind is None or source.find_kind(policy.param_kind):
        return ""
    group, _, version = policy.param_kind.api_version.rpartition("/")
    return f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={policy.param_kind.kind}'"


def resolve_params(
    policy: Policy, binding: Binding, namespace: str, source: ParamSource
) -> tuple[Resource | None, ...]:
    """The params of a binding for a request, ordered by namespace and name; `None` stands for an evaluation without a param.

    `namespace` is the request's. Mirrors `CollectParams` of `plugin/policy/generic`. Raises ConfigurationError with the API
    server's text: for a paramKind that is not served, an invalid paramRef, and for missing params with the action Deny.
    """
    if policy.param_kind is None or binding.param_ref is None:
        return (None,)
    kind = source.find_kind(policy.param_kind)
    if kind is None:
        raise ConfigurationError(explain_unserved(policy, source))
    params = _find(binding.param_ref, kind, namespace, source)
    if not params and binding.param_ref.parameter_not_found_action == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return params


def _find(ref: ParamRef, kind: Kind, namespace: str, source: ParamSource) -> tuple[Resource, ...]:
    where = _get_namespace(ref, kind, namespace)
    if ref.name and ref.selector is not None:
        raise ConfigurationError("paramRef.name and paramRef.selector are mutually exclusive")
    if ref.name:
        param = source.get(kind, where, ref.name)
        return (param,) if param else ()
    if ref.selector is None:
        raise ConfigurationError("one of name or selector must be provided")
    ref.selector.reject_unparsable()
    selected = (param for param in source.list_all(kind, where) if ref.selector.matches(param.labels))
    return tuple(sorted(selected, key=lambda param: (param.namespace, param.name)))


def _get_namespace(ref: ParamRef, kind: Kind, namespace: str) -> str:
    if not kind.namespaced:
        if ref.namespace:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    where = ref.namespace or namespace
    if not where:
        raise ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return where
