"""The common fields of policies of both native languages, and of their bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from scanner.model.json import Json, JsonObject, as_list, as_text, dig, text_map, texts
from scanner.policies.api_validation import names
from scanner.policies.api_validation.fields import (
    Faults,
    choice,
    duplicate,
    each,
    forbidden,
    invalid,
    invalid_json,
    label_faults,
    needed_choice,
    required,
    unsupported,
)

_MOST_CONDITIONS = 64
OfMatch: TypeAlias = Callable[[str, Json], Iterator[str]]
"""The other field errors of match constraints at a path."""


def find_no_faults(path: str, match: Json) -> Iterator[str]:
    """Satisfies `OfMatch`."""
    del path, match
    yield from ()


def shared_policy_faults(
    document: JsonObject, expressions: Faults, of_match: OfMatch = find_no_faults
) -> Iterator[str]:
    """The field errors of the fields that policies of both kinds have, in the order of the API.

    `of_match` gives the further errors of match constraints. Mirrors `validateValidatingAdmissionPolicySpec` and
    `validateMutatingAdmissionPolicySpec`.
    """
    spec = dig(document, "spec")
    match = dig(spec, "matchConstraints")
    yield from metadata_faults(document)
    yield from _failure_policy_faults(spec)
    yield from _param_kind_faults(dig(spec, "paramKind"))
    yield from match_faults("spec.matchConstraints", match, rules_needed=True)
    yield from of_match("spec.matchConstraints", match)
    yield from condition_faults("spec.matchConditions", as_list(dig(spec, "matchConditions")), expressions)
    yield from _variable_faults(as_list(dig(spec, "variables")), expressions)


def shared_binding_faults(document: JsonObject, of_match: OfMatch = find_no_faults) -> Iterator[str]:
    """The field errors of the fields that bindings of both kinds have, in the order of the API.

    Mirrors `validateValidatingAdmissionPolicyBindingSpec`.
    """
    spec = dig(document, "spec")
    match = dig(spec, "matchResources")
    yield from metadata_faults(document)
    yield from _policy_name_faults(spec)
    yield from _param_ref_faults(document, dig(spec, "paramRef"))
    yield from match_faults("spec.matchResources", match, rules_needed=False)
    yield from of_match("spec.matchResources", match)


def _failure_policy_faults(spec: Json) -> Iterator[str]:
    """The field errors of the failure policy."""
    return choice("spec.failurePolicy", dig(spec, "failurePolicy"), ("Fail", "Ignore"))


def _param_kind_faults(value: Json) -> Iterator[str]:
    """The field errors of the kind of the params."""
    if value is None:
        return
    yield from _group_version_faults("spec.paramKind.apiVersion", as_text(dig(value, "apiVersion")))
    kind = as_text(dig(value, "kind"))
    if not kind:
        yield required("spec.paramKind.kind")
        return
    details = (
        f"may have mixed case, but should otherwise match: {fault}"
        for fault in names.check_dns_1035_label(kind.lower())
    )
    yield from each("spec.paramKind.kind", kind, details)


def _group_version_faults(path: str, value: str) -> Iterator[str]:
    group, _, version = value.rpartition("/")
    if not value:
        yield required(path)
    elif value.count("/") > 1:
        yield invalid(path, value, f"unexpected GroupVersion string: {value}")
    else:
        yield from each(path, group, names.check_subdomain(group)) if group else ()
        yield from each(path, version, names.check_dns_1035_label(version)) if version else ()
        if not version:
            yield invalid(path, value, "version must be specified")


def condition_faults(path: str, conditions: Sequence[Json], expressions: Faults) -> Iterator[str]:
    """The field errors of match conditions."""
    if len(conditions) > _MOST_CONDITIONS:
        yield f"{path}: Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
    names_seen: set[str] = set()
    for index, item in enumerate(conditions):
        where, name = f"{path}[{index}]", as_text(dig(item, "name"))
        yield from expression_faults(f"{where}.expression", item, expressions)
        if not name:
            yield required(f"{where}.name")
            continue
        yield from each(f"{where}.name", name, names.check_qualified_name(name))
        if name in names_seen:
            yield duplicate(f"{where}.name", name)
        names_seen.add(name)


def _variable_faults(variables: Sequence[Json], expressions: Faults) -> Iterator[str]:
    """The field errors of variables. The API accepts two of one name: each must compile, and the last one counts."""
    for index, item in enumerate(variables):
        where, name = f"spec.variables[{index}]", as_text(dig(item, "name"))
        if not name.strip():
            yield required(f"{where}.name", "name is not specified")
        elif not names.is_identifier(name):
            yield invalid(f"{where}.name", name, "must be a valid CEL identifier")
        yield from expression_faults(f"{where}.expression", item, expressions, "expression is not specified")


def expression_faults(path: str, item: Json, expressions: Faults, missing: str = "") -> Iterator[str]:
    """The field errors of the expression at a path: it is missing, or does not compile."""
    if not as_text(dig(item, path.rpartition(".")[2])).strip():
        yield required(path, missing)
    elif fault := expressions(path):
        yield fault


def _policy_name_faults(spec: Json) -> Iterator[str]:
    """The field errors of the policy name in a binding."""
    name = as_text(dig(spec, "policyName"))
    yield from each("spec.policyName", name, names.check_subdomain(name)) if name else [required("spec.policyName")]


def _param_ref_faults(document: JsonObject, value: Json) -> Iterator[str]:
    """The field errors of the reference to params."""
    if value is None:
        return
    path = "spec.paramRef"
    name, selector = as_text(dig(value, "name")), dig(value, "selector")
    both = bool(name) and selector is not None
    yield from each(f"{path}.name", name, names.check_path_segment(name)) if name else ()
    if both:
        yield forbidden(f"{path}.name", "name and selector are mutually exclusive")
    yield from selector_faults(f"{path}.selector", selector)
    if both:
        yield forbidden(f"{path}.selector", "name and selector are mutually exclusive")
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    alpha = as_text(document.get("apiVersion")).endswith("/v1alpha1")
    action = dig(value, "parameterNotFoundAction")
    missing = "Deny" if alpha and action is None else as_text(action)
    yield from needed_choice(f"{path}.parameterNotFoundAction", missing, ("Deny", "Allow"))


# matchConstraints of policies and matchResources of bindings, with their rules and selectors.

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
    yield from each(f"{path}.key", key, names.check_qualified_name(key))
    for number, value in enumerate(values):
        yield from each(f"{path}.values[{number}]", value, names.check_label_value(value))


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
        yield from each(f"{path}[{index}]", value, names.check_path_segment(value))
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


# Validates the metadata of cluster-scoped objects.
#
# Source of truth: `ValidateObjectMeta` of `apimachinery/pkg/api/validation` of Kubernetes 1.36. The server silently
# clears the fields that a create request may not set: namespace, uid, generation, resourceVersion and managedFields.

_LARGEST = 256 * 1024
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_IN_A_GROUP = 1


def metadata_faults(document: JsonObject) -> Iterator[str]:
    """The field errors of an object's metadata, in the order of `ValidateObjectMeta`."""
    metadata = dig(document, "metadata")
    prefix, name = as_text(dig(metadata, "generateName")), as_text(dig(metadata, "name"))
    if prefix:
        # The server adds characters to the prefix, so the prefix may end in a character that may not end a name.
        yield from each("metadata.generateName", prefix, names.check_subdomain(_complete(prefix)))
    if name:
        yield from each("metadata.name", name, names.check_subdomain(name))
    else:
        yield required("metadata.name", "name or generateName is required")
    yield from label_faults("metadata.labels", text_map(dig(metadata, "labels")))
    yield from _annotation_faults(text_map(dig(metadata, "annotations")))
    yield from _owner_faults(as_list(dig(metadata, "ownerReferences")))
    yield from _finalizer_faults(texts(dig(metadata, "finalizers")))


def _complete(prefix: str) -> str:
    return f"{prefix[:-1]}a" if prefix.endswith("-") and len(prefix) > 1 else prefix


def _annotation_faults(annotations: Mapping[str, str]) -> Iterator[str]:
    path = "metadata.annotations"
    for key in sorted(annotations):
        yield from each(path, key, names.check_qualified_name(key.lower()))
    if sum(len(text.encode("utf-8", "surrogatepass")) for pair in annotations.items() for text in pair) > _LARGEST:
        yield f"{path}: Too long: may not be more than {_LARGEST} bytes"


def _owner_faults(owners: Sequence[Json]) -> Iterator[str]:
    path, controller = "metadata.ownerReferences", ""
    for owner in owners:
        version, kind, name = (as_text(dig(owner, field)) for field in ("apiVersion", "kind", "name"))
        if not _has_version(version):
            yield invalid(f"{path}.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not as_text(dig(owner, field)):
                yield invalid(f"{path}.{field}", "", "must not be empty")
        if (version, kind) == ("v1", "Event"):
            yield invalid_json(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        if dig(owner, "controller") is True and controller:
            yield invalid_json(path, owners, _write_two_controllers(controller, f"{kind}/{name}"))
        elif dig(owner, "controller") is True:
            controller = f"{kind}/{name}"


def _has_version(text: str) -> bool:
    """Return whether a text has a version, alone or after a group."""
    return bool(text.rpartition("/")[2]) and text.count("/") <= _IN_A_GROUP


def _write_two_controllers(first: str, second: str) -> str:
    return f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'


def _finalizer_faults(finalizers: Sequence[str]) -> Iterator[str]:
    path = "metadata.finalizers"
    for finalizer in finalizers:
        yield from each(path, finalizer, names.check_qualified_name(finalizer))
    if {_ORPHAN, _FOREGROUND} <= {*finalizers}:
        yield invalid_json(path, [*finalizers], f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set")
