"""Policies and bindings as the API stores them, with defaults, not compiled.

Source of truth: `admissionregistration.k8s.io/v1` types of Kubernetes 1.36.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from scanner.model.json import EMPTY, JsonObject
from scanner.model.resource import Resource
from scanner.model.selector import Selector

VALIDATING: Final = "ValidatingAdmissionPolicy"
"""Default language when a record does not name one."""

ADMISSION_API: Final = (VALIDATING, "MutatingAdmissionPolicy")
"""The languages of the admission API, in which the manifests of a policy and of its bindings alone state what the policy matches.

Policies of other languages may have generated rules, or a webhook with selectors. A report names these two languages instead of asking
the table of languages, which brings the compiler of expressions.
"""

PolicyKey: TypeAlias = tuple[str, str]
"""Language and name, which identify a policy."""

BindingKey: TypeAlias = tuple[str, str, str]
"""Language, policy and binding."""

NAMESPACE_LABELS: Final = "namespace labels"
"""The source of policies and bindings that no document contains: they follow from the labels of namespaces."""

STATIC = ".static.k8s.io"
"""The suffix in the names of policies and bindings that a control plane reads from its own manifests."""

FailurePolicy = Literal["Fail", "Ignore"]
PatchType = Literal["ApplyConfiguration", "JSONPatch"]
ReinvocationPolicy = Literal["Never", "IfNeeded"]
Action = Literal["Deny", "RefusePods", "Warn", "Audit"]
"""`RefusePods` is no action of a manifest: the object is admitted, and then its pods are refused. Derived bindings have it."""
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
"""The actions, the strictest first."""
WRITTEN_ACTIONS: Final[tuple[Action, ...]] = ("Deny", "Warn", "Audit")
"""The actions that a manifest can name."""
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


def policy_label(policy: PolicyKey) -> str:
    """The name of a policy in a gap: `policy NAME`, with its language unless that is ValidatingAdmissionPolicy."""
    language, name = policy
    return f"policy {name}" if language == VALIDATING else f"policy {name} ({language})"


@dataclass(frozen=True, slots=True)
class Rule:
    """An item of resourceRules or excludeResourceRules."""

    operations: tuple[str, ...]
    api_groups: tuple[str, ...]
    api_versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str = "*"
    resource_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MatchResources:
    """matchConstraints of a policy, or matchResources of a binding."""

    rules: tuple[Rule, ...]
    exclude_rules: tuple[Rule, ...]
    namespace_selector: Selector
    object_selector: Selector
    match_policy: str = "Equivalent"


@dataclass(frozen=True, slots=True)
class ParamKind:
    """The kind of a policy's params."""

    api_version: str
    kind: str


@dataclass(frozen=True, slots=True)
class ParamRef:
    """The params of a binding. `selector` is None for a reference by name."""

    name: str
    namespace: str
    selector: Selector | None
    parameter_not_found_action: str


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A match condition or a variable."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Validation:
    """An item of spec.validations; empty strings stand for absent fields."""

    expression: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AuditAnnotation:
    """An item of spec.auditAnnotations."""

    key: str
    value_expression: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """An item of spec.mutations."""

    patch_type: PatchType
    expression: str


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of any language. `source` is `cluster`, the path of a file, or `NAMESPACE_LABELS`; `digest` is the SHA-256 of its spec."""

    language: str
    name: str
    match: MatchResources | None
    param_kind: ParamKind | None
    match_conditions: tuple[NamedExpression, ...]
    variables: tuple[NamedExpression, ...]
    validations: tuple[Validation, ...]
    audit_annotations: tuple[AuditAnnotation, ...]
    failure_policy: FailurePolicy
    manifest: JsonObject
    digest: str
    source: str = "cluster"
    mutations: tuple[Mutation, ...] = ()
    reinvocation_policy: ReinvocationPolicy = "Never"

    @property
    def key(self) -> PolicyKey:
        """Language and name, which identify the policy."""
        return self.language, self.name

    @property
    def static(self) -> bool:
        """Return whether this is a manifest of the control plane, from a file: no API lists those, and they have no params."""
        return self.source != "cluster" and self.name.endswith(STATIC) and self.param_kind is None


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding, without which a policy is never evaluated. `assumed` marks a binding that `--assume-bound` added."""

    language: str
    name: str
    policy_name: str
    param_ref: ParamRef | None
    match: MatchResources | None
    actions: tuple[Action, ...]
    manifest: JsonObject
    digest: str
    source: str = "cluster"
    assumed: bool = False

    @classmethod
    def create_without_manifest(
        cls, policy: Policy, name: str, actions: tuple[Action, ...], source: str, *, assumed: bool = False
    ) -> Binding:
        """A binding that no manifest contains: to all that a policy matches, without a param."""
        return cls(policy.language, name, policy.name, None, None, actions, EMPTY, "", source, assumed)

    @property
    def key(self) -> BindingKey:
        """Language, policy and name, which identify the binding."""
        return self.language, self.policy_name, self.name

    @property
    def policy_key(self) -> PolicyKey:
        """The policy that it binds."""
        return self.language, self.policy_name

    @property
    def static(self) -> bool:
        """Return whether this is a manifest of the control plane itself."""
        return self.source != "cluster" and self.name.endswith(STATIC) and self.param_ref is None

    def joins(self, policy: Policy) -> bool:
        """Return whether it binds a policy: never across languages, nor between control plane manifests and objects of the API.

        Documents from files may be either, because an API server without manifests of its own accepts such names too.
        """
        from_files = "cluster" not in (self.source, policy.source)
        return self.policy_key == policy.key and (from_files or self.static == policy.static)


@dataclass(frozen=True, slots=True)
class Invocation:
    """A policy, a binding and one param, which Kubernetes calls an invocation when it is evaluated against an object."""

    policy: Policy
    binding: Binding
    param: Resource | None = None
