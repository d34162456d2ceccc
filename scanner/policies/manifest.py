"""Reads policies and bindings from their manifests, with the API's defaults.

Source of truth: `admissionregistration.k8s.io` v1, v1beta1 and v1alpha1 with `SetDefaults_*` of Kubernetes 1.36. All three
versions convert to one shape; only v1alpha1 defaults `parameterNotFoundAction`.

Rules: `docs/semantics/api-validation.md#defaults-of-policies`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple, cast

from scanner.model.json import Json, JsonObject, as_list, as_text, dig, texts
from scanner.model.nearest import find_nearest
from scanner.model.policy import (
    Action,
    AuditAnnotation,
    Binding,
    FailurePolicy,
    MatchResources,
    Mutation,
    NamedExpression,
    ParamKind,
    ParamRef,
    PatchType,
    Policy,
    ReinvocationPolicy,
    Rule,
    Validation,
)
from scanner.model.selector import parse_selector

GROUP = "admissionregistration.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")


def is_a(document: JsonObject, kind: str) -> bool:
    """Return whether a document is of a kind of the admissionregistration API, in any of its versions."""
    group, _, version = as_text(document.get("apiVersion")).partition("/")
    return document.get("kind") == kind and group == GROUP and version in VERSIONS


def read_policy(document: JsonObject, *, language: str, source: str = "cluster") -> Policy:
    """The policy of a manifest; a missing or malformed field is read as absent."""
    spec = dig(document, "spec")
    return Policy(
        language=language,
        name=as_text(dig(document, "metadata", "name")),
        match=read_match(dig(spec, "matchConstraints")),
        param_kind=_read_param_kind(dig(spec, "paramKind")),
        match_conditions=_read_named_expressions(dig(spec, "matchConditions")),
        variables=_read_named_expressions(dig(spec, "variables")),
        validations=tuple(_read_validation(item) for item in as_list(dig(spec, "validations"))),
        audit_annotations=tuple(_read_annotation(item) for item in as_list(dig(spec, "auditAnnotations"))),
        failure_policy=cast("FailurePolicy", as_text(dig(spec, "failurePolicy")) or "Fail"),
        manifest=document,
        digest=digest(document),
        source=source,
        mutations=tuple(_read_mutation(item) for item in as_list(dig(spec, "mutations"))),
        reinvocation_policy=cast("ReinvocationPolicy", as_text(dig(spec, "reinvocationPolicy")) or "Never"),
    )


def read_binding(document: JsonObject, *, language: str, source: str = "cluster") -> Binding:
    """The binding of a manifest; a missing or malformed field is read as absent."""
    spec = dig(document, "spec")
    alpha = as_text(document.get("apiVersion")).endswith("/v1alpha1")
    return Binding(
        language=language,
        name=as_text(dig(document, "metadata", "name")),
        policy_name=as_text(dig(spec, "policyName")),
        param_ref=_read_param_ref(dig(spec, "paramRef"), missing="Deny" if alpha else ""),
        match=read_match(dig(spec, "matchResources")),
        actions=cast("tuple[Action, ...]", texts(dig(spec, "validationActions"))),
        manifest=document,
        digest=digest(document),
        source=source,
    )


def digest(document: JsonObject) -> str:
    """SHA-256 (hex) of the fields that decide verdicts: the kind, the name and the spec, with the keys in any order."""
    decisive = [document.get("kind"), dig(document, "metadata", "name"), document.get("spec")]
    text = json.dumps(decisive, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read_match(value: Json) -> MatchResources | None:
    """The match constraints of a value; a missing or malformed field is read as absent, and None without constraints."""
    if not isinstance(value, dict):
        return None
    return MatchResources(
        rules=_read_rules(value.get("resourceRules")),
        exclude_rules=_read_rules(value.get("excludeResourceRules")),
        namespace_selector=parse_selector(value.get("namespaceSelector")),
        object_selector=parse_selector(value.get("objectSelector")),
        match_policy=as_text(value.get("matchPolicy")) or "Equivalent",
    )


def _read_rules(value: Json) -> tuple[Rule, ...]:
    return tuple(_read_rule(item) for item in as_list(value))


def _read_rule(value: Json) -> Rule:
    return Rule(
        operations=texts(dig(value, "operations")),
        api_groups=texts(dig(value, "apiGroups")),
        api_versions=texts(dig(value, "apiVersions")),
        resources=texts(dig(value, "resources")),
        scope=as_text(dig(value, "scope")) or "*",
        resource_names=texts(dig(value, "resourceNames")),
    )


def _read_param_kind(value: Json) -> ParamKind | None:
    if not isinstance(value, dict):
        return None
    return ParamKind(as_text(value.get("apiVersion")), as_text(value.get("kind")))


def _read_param_ref(value: Json, *, missing: str) -> ParamRef | None:
    if not isinstance(value, dict):
        return None
    selector = value.get("selector")
    return ParamRef(
        name=as_text(value.get("name")),
        namespace=as_text(value.get("namespace")),
        selector=None if selector is None else parse_selector(selector),
        parameter_not_found_action=as_text(value.get("parameterNotFoundAction")) or missing,
    )


def _read_named_expressions(value: Json) -> tuple[NamedExpression, ...]:
    return tuple(
        NamedExpression(as_text(dig(item, "name")), as_text(dig(item, "expression"))) for item in as_list(value)
    )


def _read_validation(value: Json) -> Validation:
    return Validation(
        expression=as_text(dig(value, "expression")),
        message=as_text(dig(value, "message")),
        message_expression=as_text(dig(value, "messageExpression")),
        reason=as_text(dig(value, "reason")),
    )


def _read_annotation(value: Json) -> AuditAnnotation:
    return AuditAnnotation(as_text(dig(value, "key")), as_text(dig(value, "valueExpression")))


def _read_mutation(value: Json) -> Mutation:
    patch_type = as_text(dig(value, "patchType"))
    body = "jsonPatch" if patch_type == "JSONPatch" else "applyConfiguration"
    return Mutation(cast("PatchType", patch_type), as_text(dig(value, body, "expression")))


# Unknown fields of manifests: misspelled names that kubectl refuses, and that the API server drops with a warning.
#
# Source of truth: `fieldValidation` of kube-apiserver: kubectl sends `Strict`, and most other clients send `Warn`.

_SHOWN: Final = 10
_LONGEST: Final = 100


class UnknownField(NamedTuple):
    """A field that its type does not have: `path`, such as `spec.variables[0].type`, and the most similar field, or empty."""

    path: str
    alike: str = ""

    def __str__(self) -> str:
        """The path, and the field that the author may have meant."""
        path = self.path if len(self.path) <= _LONGEST else f"{self.path[:_LONGEST]}…"
        return f"{path} (did you mean {self.alike}?)" if self.alike else path


def make_unknown_field(path: str, name: str, known: Iterable[str]) -> UnknownField:
    """The unknown field `name` at a path, whose type has the `known` fields."""
    return UnknownField(path, find_nearest(name, known))


def write_unknown_fields(fields: Sequence[UnknownField]) -> str:
    """Unknown fields as a list; of many, the first ones and the number of the others."""
    names = ", ".join(map(str, islice(fields, _SHOWN)))
    return f"{names} and {len(fields) - _SHOWN:,} more" if len(fields) > _SHOWN else names


# Specs of policies without their texts.


def remove_texts(spec: JsonObject, *, fields: Collection[str], of_validations: Collection[str]) -> JsonObject:
    """A spec without some of its fields, and without some fields of its validations."""
    kept_fields = {key: value for key, value in spec.items() if key not in fields}
    if "validations" in kept_fields:
        kept_fields["validations"] = [
            _remove_text(validation, of_validations) for validation in as_list(kept_fields["validations"])
        ]
    return kept_fields


def _remove_text(validation: Json, fields: Collection[str]) -> Json:
    if not isinstance(validation, dict):
        return validation
    return {key: value for key, value in validation.items() if key not in fields}
