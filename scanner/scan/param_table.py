"""The params of a scan: the objects that bindings refer to, by kind, namespace, name and labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scanner.admission.dispatch import BoundPolicy
from scanner.model.json import JsonObject, as_object, as_text
from scanner.model.policy import ParamKind, ParamRef
from scanner.model.resource import Kind, Resource, resource_of
from scanner.model.scans.scan import Scope


def param_of(kind: Kind, document: JsonObject, namespace: str = "default") -> Resource:
    """A document as an object of its kind; `namespace` is the namespace of a document without one."""
    param = resource_of(kind, document)
    if not kind.namespaced or param.namespace:
        return param
    body = {**document, "metadata": {**as_object(document.get("metadata")), "namespace": namespace}}
    return resource_of(kind, body)


def default_namespace(scope: Scope) -> str:
    """The namespace of documents without one: the namespace that `-n` names, or `default`."""
    return scope.namespaces[0] if len(scope.namespaces) == 1 else "default"


class ParamTable:
    """Param objects by kind, those that some binding can select. Satisfies `ParamSource`."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        """An empty table for params of the served kinds."""
        self._kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._objects: dict[Kind, dict[tuple[str, str], Resource]] = {}

    def kind(self, param_kind: ParamKind) -> Kind | None:
        """The served kind of a paramKind, or None."""
        return self._kinds.get((param_kind.api_version, param_kind.kind))

    def get(self, kind: Kind, namespace: str, name: str) -> Resource | None:
        """The param with a namespace ("" for a cluster-scoped kind) and a name, or None."""
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: Kind, namespace: str) -> Iterable[Resource]:
        """The params of a kind in one namespace ("" for a cluster-scoped kind), ordered by name."""
        objects = self._objects.get(kind, {})
        return tuple(objects[key] for key in sorted(objects) if key[0] == namespace)

    def needed(self, bound: Iterable[BoundPolicy]) -> dict[Kind, tuple[BoundPolicy, ...]]:
        """The kinds of params to list, each with the bound policies that read them; kinds that are not served are left out."""
        needed: dict[Kind, tuple[BoundPolicy, ...]] = {}
        for bound_policy in bound:
            kind = self.kind(bound_policy.policy.param_kind) if bound_policy.policy.param_kind else None
            if kind and any(_references(bound_policy)):
                needed[kind] = (*needed.get(kind, ()), bound_policy)
        return needed

    def namespaces(self, kind: Kind, policies: Iterable[BoundPolicy], within: Iterable[str] = ()) -> tuple[str, ...]:
        """The namespaces in which to list a kind of params for some policies; `("",)` stands for all of them.

        If params come from the namespace of the object, only the evaluated namespaces (`within`) are listed.
        """
        if not kind.namespaced:
            return ("",)
        named = {reference.namespace for bound_policy in policies for reference in _references(bound_policy)}
        if "" in named and within:
            named = (named - {""}) | {*within}
        return ("",) if "" in named else tuple(sorted(named))

    def keep(self, resource: Resource, policies: Iterable[BoundPolicy]) -> None:
        """Add a listed object if a binding of one of the policies can select it."""
        if any(
            _may_select(reference, resource) for bound_policy in policies for reference in _references(bound_policy)
        ):
            self.put(resource)

    def selected(self, bound_policy: BoundPolicy) -> Iterator[Resource]:
        """The params that bindings of a policy select, for an object of any namespace; none for a malformed selector."""
        kind = self.kind(bound_policy.policy.param_kind) if bound_policy.policy.param_kind else None
        for param in self._objects.get(kind, {}).values() if kind else ():
            if any(_selects(reference, param) for reference in _references(bound_policy)):
                yield param

    def add(self, document: JsonObject) -> None:
        """Add a document as a param; it replaces a listed object of the same name. A kind that is not served is left out."""
        kind = self._kinds.get((as_text(document.get("apiVersion")), as_text(document.get("kind"))))
        if kind:
            self.put(param_of(kind, document))

    def put(self, param: Resource) -> None:
        """Add an object as a param."""
        self._objects.setdefault(param.kind, {})[param.namespace, param.name] = param


def _references(bound_policy: BoundPolicy) -> Iterator[ParamRef]:
    return (binding.param_ref for binding in bound_policy.bindings if binding.param_ref)


def _may_select(reference: ParamRef, resource: Resource) -> bool:
    if reference.namespace and resource.namespace and reference.namespace != resource.namespace:
        return False
    # The evaluation reports a selector that the server cannot parse, so every object is kept here.
    return not reference.name or reference.name == resource.name


def _selects(reference: ParamRef, param: Resource) -> bool:
    if not _may_select(reference, param):
        return False
    selector = reference.selector
    return selector is None or (not selector.fault() and selector.matches(param.labels))
