"""Would the API store this policy or binding? Asked of manifests from files; a cluster's were accepted already.

Source of truth: `pkg/apis/admissionregistration/validation` of Kubernetes 1.36; messages are the API's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from scanner.cel.text import quoted
from scanner.model.json import Json, JsonObject, as_list, as_text, dig, texts
from scanner.model.policy import STATIC

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_BODIES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_MOST_CONDITIONS = 64
_MOST_ANNOTATIONS = 20
_LONGEST_NAME = 253


def policy_faults(document: JsonObject) -> tuple[str, ...]:
    """Field errors of a ValidatingAdmissionPolicy, apart from those of its expressions; empty when it would be stored."""
    spec = dig(document, "spec")
    return (
        *_name_faults(document),
        *_choice("spec.failurePolicy", as_text(dig(spec, "failurePolicy")), ("Fail", "Ignore"), required=False),
        *_param_kind_faults(dig(spec, "paramKind")),
        *_match_faults("spec.matchConstraints", dig(spec, "matchConstraints"), rules_required=True),
        *_condition_faults(as_list(dig(spec, "matchConditions"))),
        *_variable_faults(as_list(dig(spec, "variables"))),
        *_check_faults(spec),
        *_static_policy_faults(document, spec),
    )


def binding_faults(document: JsonObject) -> tuple[str, ...]:
    """Field errors of a ValidatingAdmissionPolicyBinding."""
    spec = dig(document, "spec")
    policy_name = as_text(dig(spec, "policyName"))
    return (
        *_name_faults(document),
        *((_required("spec.policyName"),) if not policy_name else _subdomain_faults("spec.policyName", policy_name)),
        *_param_ref_faults(document, dig(spec, "paramRef")),
        *_binding_match_faults(dig(spec, "matchResources")),
        *_action_faults(texts(dig(spec, "validationActions"))),
        *_static_binding_faults(document, spec),
    )


def _static_policy_faults(document: JsonObject, spec: Json) -> Iterator[str]:
    """What a control plane refuses in its own manifests."""
    if as_text(dig(document, "metadata", "name")).endswith(STATIC) and dig(spec, "paramKind") is not None:
        yield "spec.paramKind: Forbidden: spec.paramKind is not supported in a static manifest"


def _static_binding_faults(document: JsonObject, spec: Json) -> Iterator[str]:
    name, policy_name = as_text(dig(document, "metadata", "name")), as_text(dig(spec, "policyName"))
    if name.endswith(STATIC) and dig(spec, "paramRef") is not None:
        yield "spec.paramRef: Forbidden: spec.paramRef is not supported in a static manifest"
    if name.endswith(STATIC) and not policy_name.endswith(STATIC):
        yield _invalid("spec.policyName", policy_name, f'must end with "{STATIC}"')
    if policy_name.endswith(STATIC) and not name.endswith(STATIC):
        yield _invalid("metadata.name", name, f'must have a name ending with "{STATIC}", like the policy')


def mutating_policy_faults(document: JsonObject) -> tuple[str, ...]:
    """Field errors of a MutatingAdmissionPolicy, apart from those of its expressions; empty when it would be stored."""
    spec = dig(document, "spec")
    return (
        *_name_faults(document),
        *_choice("spec.failurePolicy", as_text(dig(spec, "failurePolicy")), ("Fail", "Ignore"), required=False),
        *_param_kind_faults(dig(spec, "paramKind")),
        *_match_faults("spec.matchConstraints", dig(spec, "matchConstraints"), rules_required=True),
        *_mutable_operations("spec.matchConstraints", dig(spec, "matchConstraints")),
        *_condition_faults(as_list(dig(spec, "matchConditions"))),
        *_variable_faults(as_list(dig(spec, "variables"))),
        *_mutation_faults(as_list(dig(spec, "mutations"))),
        *_choice("spec.reinvocationPolicy", as_text(dig(spec, "reinvocationPolicy")), ("IfNeeded", "Never")),
    )


def mutating_binding_faults(document: JsonObject) -> tuple[str, ...]:
    """Field errors of a MutatingAdmissionPolicyBinding."""
    spec = dig(document, "spec")
    policy_name = as_text(dig(spec, "policyName"))
    return (
        *_name_faults(document),
        *((_required("spec.policyName"),) if not policy_name else _subdomain_faults("spec.policyName", policy_name)),
        *_param_ref_faults(document, dig(spec, "paramRef")),
        *_binding_match_faults(dig(spec, "matchResources")),
        *_mutable_operations("spec.matchResources", dig(spec, "matchResources")),
    )


def _mutable_operations(path: str, match: Json) -> Iterator[str]:
    """Only what is written can be mutated."""
    for rule in as_list(dig(match, "resourceRules")):
        for operation in texts(dig(rule, "operations")):
            yield from _choice(f"{path}.resourceRules.operations", operation, ("*", "CONNECT", "CREATE", "UPDATE"))


def _mutation_faults(mutations: Sequence[Json]) -> Iterator[str]:
    if not mutations:
        yield _required("spec.mutations", "mutations must contain at least one item")
    for index, item in enumerate(mutations):
        path = f"spec.mutations[{index}]"
        patch_type = as_text(dig(item, "patchType"))
        yield from _choice(f"{path}.patchType", patch_type, tuple(_BODIES))
        if patch_type in _BODIES:
            yield from _body_faults(path, item, patch_type)


def _body_faults(path: str, item: Json, patch_type: str) -> Iterator[str]:
    """A mutation has the body that its type names, and no other."""
    for other, body in _BODIES.items():
        present = dig(item, body) is not None
        if other != patch_type:
            if present:
                detail = f"must not be specified when patchType is {patch_type}"
                yield _invalid(f"{path}.{body}", f"{{{body}}}", detail)
        elif not present:
            yield _required(f"{path}.{body}", f"must be specified when patchType is {patch_type}")
        elif not as_text(dig(item, body, "expression")).strip():
            yield _required(f"{path}.{body}.expression")


def _required(path: str, detail: str = "") -> str:
    return f"{path}: Required value" + (f": {detail}" if detail else "")


def _invalid(path: str, value: str, detail: str) -> str:
    return f"{path}: Invalid value: {quoted(value)}: {detail}"


def _choice(path: str, value: str, choices: Sequence[str], *, required: bool = True) -> Iterator[str]:
    if not value and required:
        yield _required(path)
    if value and value not in choices:
        supported = ", ".join(f'"{choice}"' for choice in choices)
        yield f'{path}: Unsupported value: "{value}": supported values: {supported}'


def _name_faults(document: JsonObject) -> Iterator[str]:
    name = as_text(dig(document, "metadata", "name"))
    if not name:
        yield _required("metadata.name", "name or generateName is required")
        return
    yield from _subdomain_faults("metadata.name", name)


def _subdomain_faults(path: str, value: str) -> Iterator[str]:
    if len(value) > _LONGEST_NAME:
        yield _invalid(path, value, f"must be no more than {_LONGEST_NAME} bytes")
    if not _SUBDOMAIN.fullmatch(value):
        yield _invalid(path, value, _SUBDOMAIN_RULE)


def _param_kind_faults(value: Json) -> Iterator[str]:
    if value is None:
        return
    api_version = as_text(dig(value, "apiVersion"))
    if not api_version:
        yield _required("spec.paramKind.apiVersion")
    elif api_version.count("/") > 1:
        yield _invalid("spec.paramKind.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    if not as_text(dig(value, "kind")):
        yield _required("spec.paramKind.kind")


def _match_faults(path: str, value: Json, *, rules_required: bool) -> Iterator[str]:
    if value is None:
        yield _required(path)
        return
    yield from _choice(
        f"{path}.matchPolicy", as_text(dig(value, "matchPolicy")), ("Equivalent", "Exact"), required=False
    )
    for name in ("namespaceSelector", "objectSelector"):
        yield from _selector_faults(f"{path}.{name}", dig(value, name))
    rules = as_list(dig(value, "resourceRules"))
    if rules_required and not rules:
        yield _required(f"{path}.resourceRules")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(as_list(dig(value, name))):
            yield from _rule_faults(f"{path}.{name}[{index}]", rule)


def _binding_match_faults(value: Json) -> Iterator[str]:
    if value is not None:
        yield from _match_faults("spec.matchResources", value, rules_required=False)


def _selector_faults(path: str, value: Json) -> Iterator[str]:
    for index, item in enumerate(as_list(dig(value, "matchExpressions"))):
        where = f"{path}.matchExpressions[{index}]"
        operator = as_text(dig(item, "operator"))
        values = texts(dig(item, "values"))
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            yield _invalid(f"{where}.operator", operator, "not a valid selector operator")
        elif operator in ("In", "NotIn") and not values:
            yield _required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            yield f"{where}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def _rule_faults(path: str, rule: Json) -> Iterator[str]:
    operations = texts(dig(rule, "operations"))
    if not operations:
        yield _required(f"{path}.operations")
    if "*" in operations and len(operations) > 1:
        yield _invalid_list(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        yield from _choice(f"{path}.operations[{index}]", operation, _OPERATIONS)
    yield from _wildcard_faults(f"{path}.apiGroups", texts(dig(rule, "apiGroups")), "API groups")
    yield from _wildcard_faults(f"{path}.apiVersions", texts(dig(rule, "apiVersions")), "API versions")
    yield from _resource_faults(f"{path}.resources", texts(dig(rule, "resources")))
    yield from _choice(f"{path}.scope", as_text(dig(rule, "scope")), _SCOPES, required=False)
    names = texts(dig(rule, "resourceNames"))
    yield from _duplicates(f"{path}.resourceNames", names)


def _invalid_list(path: str, values: Iterable[str], detail: str) -> str:
    shown = ",".join(f'"{value}"' for value in values)
    return f"{path}: Invalid value: [{shown}]: {detail}"


def _wildcard_faults(path: str, values: tuple[str, ...], what: str) -> Iterator[str]:
    if not values:
        yield _required(path)
    if "*" in values and len(values) > 1:
        yield _invalid_list(path, values, f"if '*' is present, must not specify other {what}")
    if what == "API versions":
        yield from (_required(f"{path}[{index}]") for index, value in enumerate(values) if not value)


def _resource_faults(path: str, values: tuple[str, ...]) -> Iterator[str]:
    if not values:
        yield _required(path)
    yield from (_required(f"{path}[{index}]") for index, value in enumerate(values) if not value)
    if "*/*" in values and len(values) > 1:
        yield _invalid_list(path, values, "if '*/*' is present, must not specify other resources")
    if "*" in values and any("/" not in value for value in values if value != "*"):
        yield _invalid_list(path, values, "if '*' is present, must not specify other resources without subresources")
    for index, value in enumerate(values):
        resource, slash, subresource = value.partition("/")
        if not slash or subresource == "*" or resource == "*":
            continue
        if f"{resource}/*" in values:
            yield _invalid(f"{path}[{index}]", value, f"if '{resource}/*' is present, must not specify {value}")
        if f"*/{subresource}" in values:
            yield _invalid(f"{path}[{index}]", value, f"if '*/{subresource}' is present, must not specify {value}")


def _duplicates(path: str, values: Sequence[str], field: str = "") -> Iterator[str]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value and value in seen:
            yield f'{path}[{index}]{field}: Duplicate value: "{value}"'
        seen.add(value)


def _condition_faults(conditions: Sequence[Json]) -> Iterator[str]:
    path = "spec.matchConditions"
    if len(conditions) > _MOST_CONDITIONS:
        yield f"{path}: Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
    for index, item in enumerate(conditions):
        if not as_text(dig(item, "name")):
            yield _required(f"{path}[{index}].name")
        if not as_text(dig(item, "expression")).strip():
            yield _required(f"{path}[{index}].expression")
    yield from _duplicates(path, [as_text(dig(item, "name")) for item in conditions], ".name")


def _variable_faults(variables: Sequence[Json]) -> Iterator[str]:
    path = "spec.variables"
    for index, item in enumerate(variables):
        name = as_text(dig(item, "name"))
        if not name.strip():
            yield _required(f"{path}[{index}].name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name):
            yield _invalid(f"{path}[{index}].name", name, "must be a valid CEL identifier")
        if not as_text(dig(item, "expression")).strip():
            yield _required(f"{path}[{index}].expression", "expression is not specified")
    yield from _duplicates(path, [as_text(dig(item, "name")) for item in variables], ".name")


def _check_faults(spec: Json) -> Iterator[str]:
    validations = as_list(dig(spec, "validations"))
    annotations = as_list(dig(spec, "auditAnnotations"))
    if not validations and not annotations:
        detail = "validations or auditAnnotations must contain at least one item"
        yield _required("spec.validations", detail)
        yield _required("spec.auditAnnotations", detail)
    for index, item in enumerate(validations):
        yield from _validation_faults(f"spec.validations[{index}]", item)
    if len(annotations) > _MOST_ANNOTATIONS:
        yield _invalid("spec.auditAnnotations", str(len(annotations)), "must not have more than 20 auditAnnotations")
    for index, item in enumerate(annotations):
        yield from _annotation_faults(f"spec.auditAnnotations[{index}]", item)
    yield from _duplicates("spec.auditAnnotations", [as_text(dig(item, "key")) for item in annotations], ".key")


def _validation_faults(path: str, item: Json) -> Iterator[str]:
    if not as_text(dig(item, "expression")).strip():
        yield _required(f"{path}.expression", "expression is not specified")
    message = as_text(dig(item, "message"))
    if message and not message.strip():
        yield _invalid(f"{path}.message", message, "must be non-empty if specified")
    if "\n" in message.strip() or "\r" in message.strip():
        yield _invalid(f"{path}.message", message, "must not contain line breaks")
    template = as_text(dig(item, "messageExpression"))
    if template and not template.strip():
        yield _invalid(f"{path}.messageExpression", template, "must be non-empty if specified")
    reasons = ("Forbidden", "Invalid", "RequestEntityTooLarge")
    yield from _choice(f"{path}.reason", as_text(dig(item, "reason")), reasons, required=False)


def _annotation_faults(path: str, item: Json) -> Iterator[str]:
    key = as_text(dig(item, "key"))
    if not key:
        yield _required(f"{path}.key")
    elif not _QUALIFIED.fullmatch(key):
        yield _invalid(f"{path}.key", key, "name part must consist of alphanumeric characters, '-', '_' or '.'")
    if not as_text(dig(item, "valueExpression")).strip():
        yield _required(f"{path}.valueExpression", "valueExpression is not specified")


def _param_ref_faults(document: JsonObject, value: Json) -> Iterator[str]:
    if value is None:
        return
    path = "spec.paramRef"
    name, selector = as_text(dig(value, "name")), dig(value, "selector")
    if name and selector is not None:
        yield f"{path}.name: Forbidden: name and selector are mutually exclusive"
    if not name and selector is None:
        yield _required(path, "one of name or selector must be specified")
    yield from _selector_faults(f"{path}.selector", selector)
    alpha = as_text(document.get("apiVersion")).endswith("/v1alpha1")
    action = as_text(dig(value, "parameterNotFoundAction"))
    yield from _choice(f"{path}.parameterNotFoundAction", action, ("Allow", "Deny"), required=not alpha)


def _action_faults(actions: tuple[str, ...]) -> Iterator[str]:
    path = "spec.validationActions"
    if not actions:
        yield _required(path, "at least one validation action is required")
    for index, action in enumerate(actions):
        yield from _choice(f"{path}[{index}]", action, ("Audit", "Deny", "Warn"))
    yield from _duplicates(path, actions)
    if "Deny" in actions and "Warn" in actions:
        yield _invalid_list(
            path,
            actions,
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
            "and headers serves no purpose)",
        )
