"""Policies and bindings as nouns: what the API stores, after its defaults, with nothing compiled.

Source of truth: `admissionregistration.k8s.io/v1` types of Kubernetes 1.36.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from scanner.model.json import EMPTY, JsonObject
from scanner.model.resource import Resource
from scanner.model.selector import Selector

VALIDATING: Final = "ValidatingAdmissionPolicy"
"""The language of the oldest of the policies: the one that nouns speak of which do not say so."""

PolicyKey: TypeAlias = tuple[str, str]
"""Language and name: what no two policies of a cluster have in common."""

BindingKey: TypeAlias = tuple[str, str, str]
"""Language, policy and binding."""

STATIC = ".static.k8s.io"
"""How the names of policies and bindings end that a control plane reads from its own manifests."""

FailurePolicy = Literal["Fail", "Ignore"]
PatchType = Literal["ApplyConfiguration", "JSONPatch"]
ReinvocationPolicy = Literal["Never", "IfNeeded"]
Action = Literal["Deny", "Warn", "Audit"]
Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of resourceRules or excludeResourceRules."""

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
    """The kind of the objects that parametrise a policy."""

    api_version: str
    kind: str


@dataclass(frozen=True, slots=True)
class ParamRef:
    """Which param objects a binding means. `selector` is None when the reference is by name."""

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
    """One entry of spec.validations; empty strings stand for absent fields."""

    expression: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AuditAnnotation:
    """One entry of spec.auditAnnotations."""

    key: str
    value_expression: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """One entry of spec.mutations."""

    patch_type: PatchType
    expression: str


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of any language. `source` is `cluster` or the path of a file; `digest` is the SHA-256 of its spec."""

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
        """What tells it from every other policy."""
        return self.language, self.name

    @property
    def static(self) -> bool:
        """Whether it is one of the control plane's own manifests, which no API lists and which know no params: from a file."""
        return self.source != "cluster" and self.name.endswith(STATIC) and self.param_kind is None


@dataclass(frozen=True, slots=True)
class Binding:
    """What puts a policy into force. `assumed` marks a binding that only `--assume-bound` made up."""

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
    def unwritten(
        cls, policy: Policy, name: str, actions: tuple[Action, ...], source: str, *, assumed: bool = False
    ) -> Binding:
        """A binding that stands in no manifest: to all that a policy matches, without a param."""
        return cls(policy.language, name, policy.name, None, None, actions, EMPTY, "", source, assumed)

    @property
    def key(self) -> BindingKey:
        """What tells it from every other binding."""
        return self.language, self.policy_name, self.name

    @property
    def policy_key(self) -> PolicyKey:
        """The policy that it puts into force."""
        return self.language, self.policy_name

    @property
    def static(self) -> bool:
        """Whether it is one of the control plane's own manifests."""
        return self.source != "cluster" and self.name.endswith(STATIC) and self.param_ref is None

    def joins(self, policy: Policy) -> bool:
        """Whether it puts a policy into force: languages, the control plane's manifests and the API's objects keep apart.

        What comes from files may be either, as the API server takes such names, too, where it reads no manifests of its own.
        """
        from_files = "cluster" not in (self.source, policy.source)
        return self.policy_key == policy.key and (from_files or self.static == policy.static)


@dataclass(frozen=True, slots=True)
class Invocation:
    """A policy, a binding and one param: Kubernetes' own word for what is evaluated against an object."""

    policy: Policy
    binding: Binding
    param: Resource | None = None
