"""The common fields of policies of both native languages, and of their bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from scanner.policies.api_validation import names
from scanner.policies.api_validation.fields import (
    Faults,
    choice,
    duplicate,
    each,
    forbidden,
    invalid,
    needed_choice,
    required,
)
from scanner.policies.api_validation.matching import match_faults, selector_faults
from scanner.policies.api_validation.metadata import metadata_faults

_MOST_CONDITIONS = 64
OfMatch: TypeAlias = Callable[[str, Json], Iterator[str]]
"""The other field errors of match constraints at a path."""


def nothing_else(path: str, match: Json) -> Iterator[str]:
    """Satisfies `OfMatch`."""
    del path, match
    yield from ()


def shared_policy_faults(document: JsonObject, expressions: Faults, of_match: OfMatch = nothing_else) -> Iterator[str]:
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
    yield from _condition_faults(as_list(dig(spec, "matchConditions")), expressions)
    yield from _variable_faults(as_list(dig(spec, "variables")), expressions)


def shared_binding_faults(document: JsonObject, of_match: OfMatch = nothing_else) -> Iterator[str]:
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
    details = (f"may have mixed case, but should otherwise match: {fault}" for fault in names.dns_1035(kind.lower()))
    yield from each("spec.paramKind.kind", kind, details)


def _group_version_faults(path: str, value: str) -> Iterator[str]:
    group, _, version = value.rpartition("/")
    if not value:
        yield required(path)
    elif value.count("/") > 1:
        yield invalid(path, value, f"unexpected GroupVersion string: {value}")
    else:
        yield from each(path, group, names.subdomain(group)) if group else ()
        yield from each(path, version, names.dns_1035(version)) if version else ()
        if not version:
            yield invalid(path, value, "version must be specified")


def _condition_faults(conditions: Sequence[Json], expressions: Faults) -> Iterator[str]:
    """The field errors of match conditions."""
    path = "spec.matchConditions"
    if len(conditions) > _MOST_CONDITIONS:
        yield f"{path}: Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
    names_seen: set[str] = set()
    for index, item in enumerate(conditions):
        where, name = f"{path}[{index}]", as_text(dig(item, "name"))
        yield from expression_faults(f"{where}.expression", item, expressions)
        if not name:
            yield required(f"{where}.name")
            continue
        yield from each(f"{where}.name", name, names.qualified(name))
        if name in names_seen:
            yield duplicate(f"{where}.name", name)
        names_seen.add(name)


def _variable_faults(variables: Sequence[Json], expressions: Faults) -> Iterator[str]:
    """The field errors of variables. The API accepts two of one name: each must compile, and the last one counts."""
    for index, item in enumerate(variables):
        where, name = f"spec.variables[{index}]", as_text(dig(item, "name"))
        if not name.strip():
            yield required(f"{where}.name", "name is not specified")
        elif not names.identifier(name):
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
    yield from each("spec.policyName", name, names.subdomain(name)) if name else [required("spec.policyName")]


def _param_ref_faults(document: JsonObject, value: Json) -> Iterator[str]:
    """The field errors of the reference to params."""
    if value is None:
        return
    path = "spec.paramRef"
    name, selector = as_text(dig(value, "name")), dig(value, "selector")
    both = bool(name) and selector is not None
    yield from each(f"{path}.name", name, names.segment(name)) if name else ()
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
