"""The Go types of policies and bindings, as data: the JSON that each type decodes, and its name in errors.

Source of truth: `k8s.io/api/admissionregistration` v1, v1beta1 and v1alpha1, and `metav1.ObjectMeta` of Kubernetes 1.36. Versions
have the same fields; names that v1beta1 and v1alpha1 only alias are those of v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, a number or a bool; `name` is the name of the type in Go, `takes` the name in JSON."""

    name: str
    takes: str = "string"


@dataclass(frozen=True, slots=True)
class Time:
    """A `metav1.Time`, which has its own decoder."""

    name: str = "string"


@dataclass(frozen=True, slots=True)
class Anything:
    """JSON without a type."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    """A map of texts."""

    name: str = "map[string]string"


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of one type."""

    item: Scalar | Struct

    @property
    def name(self) -> str:
        """The name of the type in Go."""
        return f"[]{self.item.name}"


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct; `embedded` maps its fields from embedded structs to the path in errors."""

    name: str
    fields: Mapping[str, Type]
    embedded: Mapping[str, str]

    @property
    def bare_name(self) -> str:
        """The name without the package."""
        return self.name.rpartition(".")[2]


Type: TypeAlias = Scalar | Time | Anything | Labels | Listed | Struct


def _struct(go_name: str, /, **fields: Type) -> Struct:
    return Struct(go_name, fields, {})


_TEXT = Scalar("string")
_TEXTS = Listed(_TEXT)
_BOOL = Scalar("bool", "bool")
_INT64 = Scalar("int64", "number")
_UID = Scalar("types.UID")
_OWNER = _struct(
    "v1.OwnerReference",
    apiVersion=_TEXT,
    kind=_TEXT,
    name=_TEXT,
    uid=_UID,
    controller=_BOOL,
    blockOwnerDeletion=_BOOL,
)
_MANAGED = _struct(
    "v1.ManagedFieldsEntry",
    manager=_TEXT,
    operation=Scalar("v1.ManagedFieldsOperationType"),
    apiVersion=_TEXT,
    time=Time(),
    fieldsType=_TEXT,
    fieldsV1=Anything(),
    subresource=_TEXT,
)
METADATA = _struct(
    "v1.ObjectMeta",
    name=_TEXT,
    generateName=_TEXT,
    namespace=_TEXT,
    selfLink=_TEXT,
    uid=_UID,
    resourceVersion=_TEXT,
    generation=_INT64,
    creationTimestamp=Time(),
    deletionTimestamp=Time(),
    deletionGracePeriodSeconds=_INT64,
    labels=Labels(),
    annotations=Labels(),
    ownerReferences=Listed(_OWNER),
    finalizers=_TEXTS,
    managedFields=Listed(_MANAGED),
)
_SELECTOR = _struct(
    "v1.LabelSelector",
    matchLabels=Labels(),
    matchExpressions=Listed(
        _struct("v1.LabelSelectorRequirement", key=_TEXT, operator=Scalar("v1.LabelSelectorOperator"), values=_TEXTS)
    ),
)
_RULE = ("apiGroups", "apiVersions", "resources", "scope")
_CONDITION = _struct(
    "v1.Condition",
    type=_TEXT,
    status=Scalar("v1.ConditionStatus"),
    observedGeneration=_INT64,
    lastTransitionTime=Time(),
    reason=_TEXT,
    message=_TEXT,
)


@cache
def kinds(version: str) -> Mapping[str, Struct]:
    """The four kinds in a version of the API."""
    return {
        **_kind("ValidatingAdmissionPolicy", version, _validating(version), _status(version)),
        **_kind("MutatingAdmissionPolicy", version, _mutating(version)),
        **_kind(
            "ValidatingAdmissionPolicyBinding",
            version,
            {**_binding(version), "validationActions": Listed(Scalar(f"{version}.ValidationAction"))},
        ),
        **_kind("MutatingAdmissionPolicyBinding", version, _binding(version)),
    }


def _kind(name: str, version: str, spec: Mapping[str, Type], status: Struct | None = None) -> Mapping[str, Struct]:
    fields: dict[str, Type] = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": METADATA}
    fields["spec"] = Struct(f"{version}.{name}Spec", spec, {})
    return {name: _struct(f"{version}.{name}", **fields, **({"status": status} if status else {}))}


def _validating(version: str) -> Mapping[str, Type]:
    return {
        **_of_policies(version),
        "validations": Listed(
            _struct(
                f"{version}.Validation",
                expression=_TEXT,
                message=_TEXT,
                reason=Scalar("v1.StatusReason"),
                messageExpression=_TEXT,
            )
        ),
        "auditAnnotations": Listed(_struct(f"{version}.AuditAnnotation", key=_TEXT, valueExpression=_TEXT)),
    }


def _mutating(version: str) -> Mapping[str, Type]:
    return {
        **_of_policies(version),
        "mutations": Listed(
            _struct(
                f"{version}.Mutation",
                patchType=Scalar(f"{version}.PatchType"),
                applyConfiguration=_struct(f"{version}.ApplyConfiguration", expression=_TEXT),
                jsonPatch=_struct(f"{version}.JSONPatch", expression=_TEXT),
            )
        ),
        "reinvocationPolicy": Scalar("v1.ReinvocationPolicyType"),
    }


def _of_policies(version: str) -> Mapping[str, Type]:
    return {
        "paramKind": _struct(f"{version}.ParamKind", apiVersion=_TEXT, kind=_TEXT),
        "matchConstraints": _match(version),
        "matchConditions": Listed(_struct(f"{version}.MatchCondition", name=_TEXT, expression=_TEXT)),
        "variables": Listed(_struct(f"{version}.Variable", name=_TEXT, expression=_TEXT)),
        "failurePolicy": Scalar(f"{version}.FailurePolicyType"),
    }


def _binding(version: str) -> Mapping[str, Type]:
    return {
        "policyName": _TEXT,
        "paramRef": _struct(
            f"{version}.ParamRef",
            name=_TEXT,
            namespace=_TEXT,
            selector=_SELECTOR,
            parameterNotFoundAction=Scalar(f"{version}.ParameterNotFoundActionType"),
        ),
        "matchResources": _match(version),
    }


def _match(version: str) -> Struct:
    rule = Struct(
        f"{version}.NamedRuleWithOperations",
        {
            "resourceNames": _TEXTS,
            "operations": Listed(Scalar("v1.OperationType")),
            **dict.fromkeys(_RULE[:-1], _TEXTS),
            "scope": Scalar("v1.ScopeType"),
        },
        {"operations": "RuleWithOperations.operations", **{name: f"RuleWithOperations.Rule.{name}" for name in _RULE}},
    )
    return _struct(
        f"{version}.MatchResources",
        namespaceSelector=_SELECTOR,
        objectSelector=_SELECTOR,
        resourceRules=Listed(rule),
        excludeResourceRules=Listed(rule),
        matchPolicy=Scalar(f"{version}.MatchPolicyType"),
    )


def _status(version: str) -> Struct:
    warning = _struct(f"{version}.ExpressionWarning", fieldRef=_TEXT, warning=_TEXT)
    return _struct(
        f"{version}.ValidatingAdmissionPolicyStatus",
        observedGeneration=_INT64,
        typeChecking=_struct(f"{version}.TypeChecking", expressionWarnings=Listed(warning)),
        conditions=Listed(_CONDITION),
    )
