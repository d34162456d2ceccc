"""matchConstraints of policies and matchResources of bindings, with their rules and selectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scanner.model.json import Json, as_list, as_text, dig, text_map, texts
from scanner.policies.api_validation import names
from scanner.policies.api_validation.fields import (
    choice,
    duplicate,
    each,
    forbidden,
    invalid,
    invalid_json,
    label_faults,
    required,
    unsupported,
)

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")


def match_faults(path: str, value: Json, *, rules_needed: bool) -> Iterator[str]:
    """The field errors of match constraints; a policy needs them, and at least one rule in them.

    Mirrors `validateMatchResources` of `pkg/apis/admissionregistration/validation`.
    """
    if value is None:
        yield from [required(path)] if rules_needed else []
        return
    yield from choice(f"{path}.matchPolicy", dig(value, "matchPolicy"), ("Equivalent", "Exact"))
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_faults(f"{path}.{name}", dig(value, name))
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(as_list(dig(value, name))):
            yield from _rule_faults(f"{path}.{name}[{index}]", rule)
    if rules_needed and not as_list(dig(value, "resourceRules")):
        yield required(f"{path}.resourceRules")


def selector_faults(path: str, value: Json) -> Iterator[str]:
    """The field errors of a label selector (`ValidateLabelSelector`)."""
    yield from label_faults(f"{path}.matchLabels", text_map(dig(value, "matchLabels")))
    for index, item in enumerate(as_list(dig(value, "matchExpressions"))):
        yield from _requirement_faults(f"{path}.matchExpressions[{index}]", item)


def _requirement_faults(path: str, item: Json) -> Iterator[str]:
    key, operator, values = as_text(dig(item, "key")), as_text(dig(item, "operator")), texts(dig(item, "values"))
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif operator in ("In", "NotIn") and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    yield from each(f"{path}.key", key, names.qualified(key))
    for number, value in enumerate(values):
        yield from each(f"{path}.values[{number}]", value, names.label(value))


def _rule_faults(path: str, rule: Json) -> Iterator[str]:
    yield from _name_faults(f"{path}.resourceNames", texts(dig(rule, "resourceNames")))
    yield from _operation_faults(f"{path}.operations", texts(dig(rule, "operations")))
    yield from _wildcard_faults(f"{path}.apiGroups", texts(dig(rule, "apiGroups")), "API groups")
    versions = texts(dig(rule, "apiVersions"))
    yield from _wildcard_faults(f"{path}.apiVersions", versions, "API versions")
    yield from (required(f"{path}.apiVersions[{index}]") for index, value in enumerate(versions) if not value)
    yield from _resource_faults(f"{path}.resources", texts(dig(rule, "resources")))
    yield from choice(f"{path}.scope", dig(rule, "scope"), _SCOPES)


def _name_faults(path: str, values: Sequence[str]) -> Iterator[str]:
    for index, value in enumerate(values):
        yield from each(f"{path}[{index}]", value, names.segment(value))
        if value in values[:index]:
            yield duplicate(f"{path}[{index}]", value)


def _operation_faults(path: str, values: Sequence[str]) -> Iterator[str]:
    yield from _wildcard_faults(path, values, "operations")
    for index, value in enumerate(values):
        if value not in _OPERATIONS:
            yield unsupported(f"{path}[{index}]", value, _OPERATIONS)


def _wildcard_faults(path: str, values: Sequence[str], what: str) -> Iterator[str]:
    if not values:
        yield required(path)
    if "*" in values and len(values) > 1:
        yield invalid_json(path, list(values), f"if '*' is present, must not specify other {what}")


def _resource_faults(path: str, values: Sequence[str]) -> Iterator[str]:
    """The errors of resources that an earlier wildcard includes; a wildcard after them causes no error.

    Beside `*`, only the last resource without a subresource counts (`validateResources`).
    """
    if not values:
        yield required(path)
    whole: set[str] = set()
    everywhere: set[str] = set()
    for index, value in enumerate(values):
        resource, slash, subresource = value.partition("/")
        if not value:
            yield required(f"{path}[{index}]")
        if not slash:
            continue
        if resource in whole:
            yield invalid(f"{path}[{index}]", value, f"if '{resource}/*' is present, must not specify {value}")
        if subresource in everywhere:
            yield invalid(f"{path}[{index}]", value, f"if '*/{subresource}' is present, must not specify {value}")
        whole |= {resource} if subresource == "*" else set()
        everywhere |= {subresource} if resource == "*" else set()
    if "*/*" in values and len(values) > 1:
        yield invalid_json(path, list(values), "if '*/*' is present, must not specify other resources")
    without_param = [value for value in values if value and "/" not in value]
    if "*" in without_param and without_param[-1] != "*":
        yield invalid_json(
            path, list(values), "if '*' is present, must not specify other resources without subresources"
        )
