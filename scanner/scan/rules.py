"""The rule objects of a scan: the params, exceptions, entries and namespace labels that decided with its policies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from scanner.admission.dispatch import BoundPolicy
from scanner.audit.rule_content import rule_object
from scanner.model.json import JsonObject, as_text, dig, text_map
from scanner.model.resource import Kind, Resource
from scanner.model.rule import RuleObject, RuleType
from scanner.policies.bound_language import BoundLanguage
from scanner.scan.param_table import ParamTable

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label that equals the name of its namespace, and so decides nothing that the name does not."""
_READ_FIELDS: Final = ("labels", "annotations")
_EVERY_KEY: Final = ""
"""Stands for all keys of a field: an expression reads the field as a whole, or with a key that it computes."""


def rules_of(
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
        *_params(in_force, params),
        *(rule_object(*document) for language in bound for document in language.rules()),
        *_namespaces(bound, in_force, namespaces),
    )
    distinct = {(rule.type.value, rule.name, rule.digest): rule for rule in rules}
    return tuple(distinct[key] for key in sorted(distinct))


def _params(evaluable: Iterable[BoundPolicy], params: ParamTable) -> Iterator[RuleObject]:
    selected: dict[tuple[Kind, str, str], tuple[Resource, bool]] = {}
    for bound_policy in evaluable:
        own = tuple(params.selected(bound_policy))
        with_status = bool(own) and _may_read_status(bound_policy)
        for param in own:
            key = (param.kind, param.namespace, param.name)
            selected[key] = param, with_status or selected.get(key, (param, False))[1]
    for param, with_status in selected.values():
        yield rule_object(RuleType.PARAM, _param_name(param), param.body, with_status=with_status)


def _may_read_status(bound_policy: BoundPolicy) -> bool:
    """Return whether an expression reads the status of params, or the params whole: other status is no rule."""
    expressions = bound_policy.compiled.expressions()
    return any(path[:2] in (("params",), ("params", "status")) for _, each in expressions for path in each.paths)


def _param_name(param: Resource) -> str:
    kind = "/".join(filter(None, (param.kind.group, param.kind.kind)))
    return f"{kind} {'/'.join(filter(None, (param.namespace, param.name)))}"


def _namespaces(
    languages: Iterable[BoundLanguage], evaluable: Iterable[BoundPolicy], namespaces: Iterable[JsonObject]
) -> Iterator[RuleObject]:
    """The labels and annotations of namespaces that decide whether a policy applies, or that expressions read."""
    read = {("labels", key) for language in languages for key in language.namespace_labels()}
    for bound_policy in evaluable:
        for _, expression in bound_policy.compiled.expressions():
            read.update(_read_by(expression.paths))
    read.discard(("labels", _NAME_LABEL))
    for namespace in namespaces if read else ():
        texts = {field: _read_texts(namespace, field, read) for field in _READ_FIELDS}
        if any(texts.values()):
            name = as_text(dig(namespace, "metadata", "name"))
            yield rule_object(RuleType.NAMESPACE_LABELS, name, _reduced(namespace, texts))


def _read_by(paths: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Fields of the metadata of a namespace, and keys in them, that paths of an expression lead to."""
    for path in paths:
        for field in _READ_FIELDS:
            place = ("namespaceObject", "metadata", field)
            if path[: len(place)] == place[: len(path)]:
                key = "".join(path[len(place) : len(place) + 1])
                # Keys of labels and annotations begin with a letter or a digit, marks in paths do not.
                yield field, key if key[:1].isalnum() else _EVERY_KEY


def _read_texts(namespace: JsonObject, field: str, read: Collection[tuple[str, str]]) -> JsonObject:
    texts = text_map(dig(namespace, "metadata", field))
    whole = (field, _EVERY_KEY) in read
    return {key: texts[key] for key in sorted(texts) if key != _NAME_LABEL and (whole or (field, key) in read)}


def _reduced(namespace: JsonObject, texts: JsonObject) -> JsonObject:
    """A Namespace with some of its labels and annotations, and with its version in case that one of these is withheld."""
    metadata = {key: dig(namespace, "metadata", key) for key in ("name", "uid", "resourceVersion")}
    fields = {field: value for field, value in texts.items() if value}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**metadata, **fields}}
