"""What policies of both native languages have in common, and their bindings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scanner.model.json import Json, JsonObject, as_text, dig
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
from scanner.policies.api_validation.matching import selector_faults

_MOST_CONDITIONS = 64


def failure_policy_faults(spec: Json) -> Iterator[str]:
    """What is wrong with the failure policy."""
    return choice("spec.failurePolicy", dig(spec, "failurePolicy"), ("Fail", "Ignore"))


def param_kind_faults(value: Json) -> Iterator[str]:
    """What is wrong with the kind of the params."""
    if value is None:
        return
    yield from _group_version_faults("spec.paramKind.apiVersion", as_text(dig(value, "apiVersion")))
    kind = as_text(dig(value, "kind"))
    if not kind:
        yield required("spec.paramKind.kind")
        return
    details = (f"may have mixed case, but should otherwise match: {it}" for it in names.dns_1035(kind.lower()))
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


def condition_faults(conditions: Sequence[Json], expressions: Faults) -> Iterator[str]:
    """What is wrong with match conditions."""
    path = "spec.matchConditions"
    if len(conditions) > _MOST_CONDITIONS:
        yield f"{path}: Too many: {len(conditions)}: must have at most {_MOST_CONDITIONS} items"
    known: set[str] = set()
    for index, item in enumerate(conditions):
        where, name = f"{path}[{index}]", as_text(dig(item, "name"))
        yield from expression_faults(f"{where}.expression", item, expressions)
        if not name:
            yield required(f"{where}.name")
            continue
        yield from each(f"{where}.name", name, names.qualified(name))
        if name in known:
            yield duplicate(f"{where}.name", name)
        known.add(name)


def variable_faults(variables: Sequence[Json], expressions: Faults) -> Iterator[str]:
    """What is wrong with variables. Two of one name are not: each has to compile, and the last one counts."""
    for index, item in enumerate(variables):
        where, name = f"spec.variables[{index}]", as_text(dig(item, "name"))
        if not name.strip():
            yield required(f"{where}.name", "name is not specified")
        elif not names.identifier(name):
            yield invalid(f"{where}.name", name, "must be a valid CEL identifier")
        yield from expression_faults(f"{where}.expression", item, expressions, "expression is not specified")


def expression_faults(path: str, item: Json, expressions: Faults, missing: str = "") -> Iterator[str]:
    """What is wrong with the expression at a path: it is not there, or does not compile."""
    if not as_text(dig(item, path.rpartition(".")[2])).strip():
        yield required(path, missing)
    elif fault := expressions(path):
        yield fault


def policy_name_faults(spec: Json) -> Iterator[str]:
    """What is wrong with the name of the policy that a binding is for."""
    name = as_text(dig(spec, "policyName"))
    yield from each("spec.policyName", name, names.subdomain(name)) if name else [required("spec.policyName")]


def param_ref_faults(document: JsonObject, value: Json) -> Iterator[str]:
    """What is wrong with the reference to params."""
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
