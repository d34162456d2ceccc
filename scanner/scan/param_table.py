"""The params of a scan: the objects that bindings refer to, by kind, namespace, name and labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from scanner.admission.dispatch import BoundPolicy
from scanner.audit.rule_content import make_rule_object
from scanner.model.json import JsonObject, as_object, as_text, dig, text_map
from scanner.model.policy import ParamKind, ParamRef
from scanner.model.resource import Kind, Resource, resource_of
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.scan import Scope
from scanner.policies.bound_language import BoundLanguage


def read_param(kind: Kind, document: JsonObject, namespace: str = "default") -> Resource:
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

    def find_kind(self, param_kind: ParamKind) -> Kind | None:
        """The served kind of a paramKind, or None."""
        return self._kinds.get((param_kind.api_version, param_kind.kind))

    def get(self, kind: Kind, namespace: str, name: str) -> Resource | None:
        """The param with a namespace ("" for a cluster-scoped kind) and a name, or None."""
        return self._objects.get(kind, {}).get((namespace, name))

    def list_all(self, kind: Kind, namespace: str) -> Iterable[Resource]:
        """The params of a kind in one namespace ("" for a cluster-scoped kind), ordered by name."""
        objects = self._objects.get(kind, {})
        return tuple(objects[key] for key in sorted(objects) if key[0] == namespace)

    def list_needed(self, bound: Iterable[BoundPolicy]) -> dict[Kind, tuple[BoundPolicy, ...]]:
        """The kinds of params to list, each with the bound policies that read them; kinds that are not served are left out."""
        needed: dict[Kind, tuple[BoundPolicy, ...]] = {}
        for bound_policy in bound:
            kind = self.find_kind(bound_policy.policy.param_kind) if bound_policy.policy.param_kind else None
            if kind and any(_list_references(bound_policy)):
                needed[kind] = (*needed.get(kind, ()), bound_policy)
        return needed

    def list_namespaces(
        self, kind: Kind, policies: Iterable[BoundPolicy], within: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """The namespaces in which to list a kind of params for some policies; `("",)` stands for all of them.

        If params come from the namespace of the object, only the evaluated namespaces (`within`) are listed.
        """
        if not kind.namespaced:
            return ("",)
        namespaces = {reference.namespace for bound_policy in policies for reference in _list_references(bound_policy)}
        if "" in namespaces and within:
            namespaces = (namespaces - {""}) | {*within}
        return ("",) if "" in namespaces else tuple(sorted(namespaces))

    def keep(self, resource: Resource, policies: Iterable[BoundPolicy]) -> None:
        """Add a listed object if a binding of one of the policies can select it."""
        if any(
            _may_select(reference, resource)
            for bound_policy in policies
            for reference in _list_references(bound_policy)
        ):
            self.put(resource)

    def list_selected(self, bound_policy: BoundPolicy) -> Iterator[Resource]:
        """The params that bindings of a policy select, for an object of any namespace; none for a malformed selector."""
        kind = self.find_kind(bound_policy.policy.param_kind) if bound_policy.policy.param_kind else None
        for param in self._objects.get(kind, {}).values() if kind else ():
            if any(_selects(reference, param) for reference in _list_references(bound_policy)):
                yield param

    def add(self, document: JsonObject) -> None:
        """Add a document as a param; it replaces a listed object of the same name. A kind that is not served is left out."""
        kind = self._kinds.get((as_text(document.get("apiVersion")), as_text(document.get("kind"))))
        if kind:
            self.put(read_param(kind, document))

    def put(self, param: Resource) -> None:
        """Add an object as a param."""
        self._objects.setdefault(param.kind, {})[param.namespace, param.name] = param


def _list_references(bound_policy: BoundPolicy) -> Iterator[ParamRef]:
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
    return selector is None or (not selector.find_fault() and selector.matches(param.labels))


# The rule objects of a scan: the params, exceptions, entries and namespace labels that decided with its policies.

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label that equals the name of its namespace, and so decides nothing that the name does not."""
_READ_FIELDS: Final = ("labels", "annotations")
_EVERY_KEY: Final = ""
"""Stands for all keys of a field: an expression reads the field as a whole, or with a key that it computes."""


def list_rule_objects(
    languages: Iterable[BoundLanguage],
    evaluable: Iterable[BoundPolicy],
    params: ParamTable,
    namespaces: Iterable[JsonObject],
) -> tuple[RuleObject, ...]:
    """The rule objects of the policies in force, sorted by type and name; of policies that are not evaluable, no params.

    A namespace without a label or an annotation that decides has no rule object.
    """
    bound, in_force = tuple(languages), tuple(evaluable)
    rules = (
        *_list_param_rules(in_force, params),
        *(make_rule_object(*document) for language in bound for document in language.rules()),
        *_list_namespace_rules(bound, in_force, namespaces),
    )
    distinct = {(rule.type.value, rule.name, rule.digest): rule for rule in rules}
    return tuple(distinct[key] for key in sorted(distinct))


def _list_param_rules(evaluable: Iterable[BoundPolicy], params: ParamTable) -> Iterator[RuleObject]:
    selected: dict[tuple[Kind, str, str], tuple[Resource, bool]] = {}
    for bound_policy in evaluable:
        selected_params = tuple(params.list_selected(bound_policy))
        with_status = bool(selected_params) and _may_read_status(bound_policy)
        for param in selected_params:
            key = (param.kind, param.namespace, param.name)
            selected[key] = param, with_status or selected.get(key, (param, False))[1]
    for param, with_status in selected.values():
        yield make_rule_object(RuleType.PARAM, _name_param(param), param.body, with_status=with_status)


def _may_read_status(bound_policy: BoundPolicy) -> bool:
    """Return whether an expression reads the status of params, or the params whole: other status is no rule."""
    expressions = bound_policy.compiled.expressions()
    return any(path[:2] in (("params",), ("params", "status")) for _, each in expressions for path in each.paths)


def _name_param(param: Resource) -> str:
    kind = "/".join(filter(None, (param.kind.group, param.kind.kind)))
    return f"{kind} {'/'.join(filter(None, (param.namespace, param.name)))}"


def _list_namespace_rules(
    languages: Iterable[BoundLanguage], evaluable: Iterable[BoundPolicy], namespaces: Iterable[JsonObject]
) -> Iterator[RuleObject]:
    """The labels and annotations of namespaces that decide whether a policy applies, or that expressions read."""
    read_keys = {("labels", key) for language in languages for key in language.namespace_labels()}
    for bound_policy in evaluable:
        for _, expression in bound_policy.compiled.expressions():
            read_keys.update(_find_read_keys(expression.paths))
    read_keys.discard(("labels", _NAME_LABEL))
    for namespace in namespaces if read_keys else ():
        texts = {field: _select_texts(namespace, field, read_keys) for field in _READ_FIELDS}
        if any(texts.values()):
            name = as_text(dig(namespace, "metadata", "name"))
            yield make_rule_object(RuleType.NAMESPACE_LABELS, name, _reduce_namespace(namespace, texts))


def _find_read_keys(paths: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Fields of the metadata of a namespace, and keys in them, that paths of an expression lead to."""
    for path in paths:
        for field in _READ_FIELDS:
            place = ("namespaceObject", "metadata", field)
            if path[: len(place)] == place[: len(path)]:
                key = "".join(path[len(place) : len(place) + 1])
                # Keys of labels and annotations begin with a letter or a digit, marks in paths do not.
                yield field, key if key[:1].isalnum() else _EVERY_KEY


def _select_texts(namespace: JsonObject, field: str, read_keys: Collection[tuple[str, str]]) -> JsonObject:
    texts = text_map(dig(namespace, "metadata", field))
    whole = (field, _EVERY_KEY) in read_keys
    return {key: texts[key] for key in sorted(texts) if key != _NAME_LABEL and (whole or (field, key) in read_keys)}


def _reduce_namespace(namespace: JsonObject, texts: JsonObject) -> JsonObject:
    """A Namespace with some of its labels and annotations, and with its version in case that one of these is withheld."""
    metadata = {key: dig(namespace, "metadata", key) for key in ("name", "uid", "resourceVersion")}
    fields = {field: value for field, value in texts.items() if value}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**metadata, **fields}}
