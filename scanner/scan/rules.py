"""The rule objects of a scan: the params, exceptions, entries and namespace labels that decided with its policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


def rules_of(
    languages: Iterable[BoundLanguage],
    evaluable: Iterable[BoundPolicy],
    params: ParamTable,
    namespaces: Iterable[JsonObject],
) -> tuple[RuleObject, ...]:
    """The rule objects of the policies in force, sorted by type and name; of policies that are not evaluable, no params.

    A namespace without a label that a selector reads has no rule object.
    """
    bound = tuple(languages)
    rules = (
        *_params(evaluable, params),
        *(rule_object(*document) for language in bound for document in language.rules()),
        *_namespace_labels(bound, namespaces),
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


def _namespace_labels(languages: Iterable[BoundLanguage], namespaces: Iterable[JsonObject]) -> Iterator[RuleObject]:
    selectors = (selector for language in languages for selector in language.namespace_selectors())
    keys = {requirement.key for selector in selectors for requirement in selector.requirements} - {_NAME_LABEL}
    for namespace in namespaces if keys else ():
        labels = text_map(dig(namespace, "metadata", "labels"))
        read = {key: labels[key] for key in sorted(keys & labels.keys())}
        if read:
            yield rule_object(
                RuleType.NAMESPACE_LABELS, as_text(dig(namespace, "metadata", "name")), _reduced(namespace, read)
            )


def _reduced(namespace: JsonObject, labels: JsonObject) -> JsonObject:
    """A Namespace with some of its labels, and with its version in case that one of these is withheld."""
    metadata = {key: dig(namespace, "metadata", key) for key in ("name", "uid", "resourceVersion")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**metadata, "labels": labels}}
