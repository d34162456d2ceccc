"""The simulated admission request, and the documents that expressions read: `request`, `object`, `namespaceObject`, `params`.

Source of truth: `admission.k8s.io/v1 AdmissionRequest` and `cel.CreateAdmissionRequest` of kube-apiserver 1.36.

Rules: `docs/semantics/cel-environment.md#request`, `docs/semantics/cel-environment.md#namespace`,
`docs/semantics/cel-environment.md#objects`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from scanner import cel
from scanner.admission.cost_budget import (
    BudgetUse,
)
from scanner.model.json import JsonObject, as_object, dig
from scanner.model.policy import MatchResources, Operation, Policy
from scanner.model.resource import Kind, Resource, UserInfo

_NAMESPACE_METADATA = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
)

_MOST_NAMESPACES = 1024


class Request(NamedTuple):
    """A simulated admission request on an object. `matched` is the kind in which the object is evaluated.

    `decider` answers the permission checks of expressions; without a decider such expressions are not auditable. `current` is the
    object after the mutations so far, None before any. `narrowing` is the match of the binding, which narrows that of the policy.
    `budget_use` records the largest share of a cost limit that the evaluation used. `old` is the object that an UPDATE replaces; None
    if it changes nothing.
    """

    operation: Operation
    original: Kind
    matched: Kind
    resource: Resource
    namespace: str
    namespace_object: JsonObject | None
    user: UserInfo
    decider: cel.Decider | None = None
    current: JsonObject | None = None
    budget_use: BudgetUse | None = None
    narrowing: MatchResources | None = None
    old: Resource | None = None

    @property
    def old_body(self) -> JsonObject:
        """The object before an UPDATE."""
        return self.resource.body if self.old is None else self.old.body

    def on(self, resource: Resource) -> Request:
        """The same request on another object."""
        kind = resource.kind
        return self._replace(original=kind, matched=kind, resource=resource, namespace=resource.namespace, old=None)


def make_activation(policy: Policy, request: Request, param: Resource | None) -> dict[str, object]:
    """Return the inputs of a policy's expressions, except `variables` and `authorizer`."""
    body = request.resource.body
    activation: dict[str, object] = {
        "object": body if request.current is None else request.current,
        "oldObject": request.old_body if request.operation == "UPDATE" else None,
        "request": make_request_map(request),
        "namespaceObject": None,
    }
    if policy.param_kind is not None:
        activation["params"] = None if param is None else param.body
    return activation


def make_authorization(request: Request) -> dict[str, object]:
    """The variables that read the authorizer, by name; none without a decider.

    Messages and audit annotations do not have these variables.
    """
    if request.decider is None:
        return {}
    user, kind = request.user, request.original
    authorizer = cel.Authorizer(
        request.decider, cel.AuthorizerSubject(user.username, user.groups, user.uid, user.extra)
    )
    resource = authorizer.request_resource(
        group=kind.group, resource=kind.plural, namespace=request.namespace, name=request.resource.name
    )
    return {"authorizer": authorizer, "authorizer.requestResource": resource}


class RequestForm(Struct, frozen=True):
    """The part of `request` that is the same for all objects of a kind."""

    before: Mapping[str, object]
    after: Mapping[str, object]

    def fill(self, name: str, namespace: str) -> dict[str, object]:
        """`request` for one object: most empty strings are absent keys, as in the API server's conversion."""
        form = dict(self.before)
        if name:
            form["name"] = name
        if namespace:
            form["namespace"] = namespace
        form.update(self.after)
        return form


@lru_cache(maxsize=64)
def make_request_form(operation: Operation, matched: Kind, original: Kind, user: UserInfo) -> RequestForm:
    """The form of all requests on objects of a kind.

    `uid`, `object` and `oldObject` are there, never filled and not declared: only `dyn(request)` reaches them. All requests share the
    parts of the form, which nothing changes.
    """
    options = f"{operation.capitalize()}Options"
    before = {
        "uid": "",
        **make_request_kinds(matched, original),
    }
    after = {
        "operation": operation,
        "userInfo": make_user_info(user),
        "object": None,
        "oldObject": None,
        "dryRun": True,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]},
    }
    return RequestForm(before, after)


def make_request_map(request: Request) -> dict[str, object]:
    """The value of `request`: an AdmissionRequest as nested maps, in which `object` and `oldObject` are null."""
    form = make_request_form(request.operation, request.matched, request.original, request.user)
    return form.fill(request.resource.name, request.namespace)


def make_request_kinds(matched: Kind, original: Kind) -> dict[str, object]:
    """The keys of `request` that name kinds.

    `kind` and `resource` are of the kind that is evaluated, `requestKind` and `requestResource` of the kind that is requested.
    """
    return {
        "kind": _make_group_version_kind(matched),
        "resource": make_group_version_resource(matched),
        "requestKind": _make_group_version_kind(original),
        "requestResource": make_group_version_resource(original),
    }


def make_user_info(user: UserInfo) -> dict[str, object]:
    """`request.userInfo`: empty fields are absent keys."""
    extra = {key: list(values) for key, values in user.extra}
    fields = {"username": user.username, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in fields.items() if value}


def _make_group_version_kind(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def make_group_version_resource(kind: Kind) -> dict[str, str]:
    """The value of `request.resource`: the keys `group`, `version` and `resource`, the plural."""
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


class _TypedNamespaces:
    """The namespaces without the parts that a typed object of an informer lacks; the same object for the same namespace."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[JsonObject, JsonObject]] = {}

    def of(self, namespace: JsonObject) -> JsonObject:
        """See read_typed_namespace."""
        known_namespace = self._known.get(id(namespace))
        if known_namespace is None or known_namespace[0] is not namespace:
            if len(self._known) >= _MOST_NAMESPACES:
                self._known.clear()
            known_namespace = self._known[id(namespace)] = namespace, read_typed_object(namespace)
        return known_namespace[1]


_TYPED = _TypedNamespaces()


def read_typed_namespace(namespace: JsonObject | None) -> JsonObject | None:
    """A Namespace as the API server holds it for expressions: without apiVersion, kind and managedFields.

    Mirrors the informers of kube-apiserver, whose objects have no TypeMeta and lose their managed fields (`trim`).
    """
    return None if namespace is None else _TYPED.of(namespace)


def read_typed_object(body: JsonObject) -> JsonObject:
    """An object of a built-in kind as an informer of the API server holds it."""
    typed = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    if dig(body, "metadata", "managedFields") is not None:
        metadata = as_object(body["metadata"])
        typed["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    return typed


def filter_namespace(namespace: JsonObject | None) -> JsonObject | None:
    """The part of a Namespace that validations may read, or None without a Namespace.

    Mirrors `CreateNamespaceObject` of apiserver's `plugin/cel`.
    """
    if namespace is None:
        return None
    metadata = as_object(dig(namespace, "metadata"))
    kept_metadata = {key: metadata[key] for key in _NAMESPACE_METADATA if key in metadata}
    return {"metadata": kept_metadata, **{key: namespace[key] for key in ("spec", "status") if key in namespace}}
