"""ValidatingPolicy and NamespacedValidatingPolicy out of their manifests.

Source of truth: the types of `policies.kyverno.io` v1, v1beta1 and v1alpha1, which have one schema, and what Kyverno's policy
webhook refuses. The API defaults nothing; Kyverno's code does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from scanner.errors import InvalidManifest
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, text_map, texts
from scanner.model.policy import Action, Policy, PolicyKey
from scanner.policies import manifest
from scanner.policies.kyverno.autogen import Variant, variants

GROUP = "policies.kyverno.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
CLUSTER_WIDE = "ValidatingPolicy"
NAMESPACED = "NamespacedValidatingPolicy"
KINDS = (CLUSTER_WIDE, NAMESPACED)
PLURALS = ("validatingpolicies", "namespacedvalidatingpolicies")
ENTRIES_GROUP = "kyverno.io"
ENTRIES = "globalcontextentries"
DISABLED = "reports.kyverno.io/disabled"
_ACTIONS = ("Deny", "Audit", "Warn")
_ELSEWHERE = {
    "JSON": "it judges JSON payloads (evaluation.mode JSON), not objects of the cluster",
    "HTTP": "it judges HTTP requests (evaluation.mode HTTP), not objects of the cluster",
    "Envoy": "it judges requests to Envoy (evaluation.mode Envoy), not objects of the cluster",
}
_NAMED = {"name": None, "expression": None}
_RULE = dict.fromkeys(("apiGroups", "apiVersions", "operations", "resources", "resourceNames", "scope"))
_SELECTOR = {"matchLabels": ..., "matchExpressions": dict.fromkeys(("key", "operator", "values"))}
Known = dict[str, "object"]
_MATCH: Known = {
    "resourceRules": _RULE,
    "excludeResourceRules": _RULE,
    "namespaceSelector": _SELECTOR,
    "objectSelector": _SELECTOR,
    "matchPolicy": None,
}
_SPEC: Known = {
    "matchConstraints": _MATCH,
    "matchConditions": _NAMED,
    "variables": _NAMED,
    "validations": dict.fromkeys(("expression", "message", "messageExpression", "reason")),
    "auditAnnotations": {"key": None, "valueExpression": None},
    "failurePolicy": None,
    "validationActions": None,
    "autogen": {"podControllers": {"controllers": None}, "validatingAdmissionPolicy": {"enabled": None}},
    "evaluation": {"mode": None, "admission": {"enabled": None}, "background": {"enabled": None, "interval": None}},
    "webhookConfiguration": {"timeoutSeconds": None},
}


@dataclass(frozen=True, slots=True)
class KyvernoPolicy:
    """A policy with what Kyverno knows beyond the admission API. `namespace` is empty for a cluster-wide policy.

    `name` is the one in the manifest; results and reports call a namespaced policy `namespace/name`. `elsewhere` says why no
    stored object can be judged by it, and is empty otherwise. `unknown` are the paths of fields that no version has.
    """

    kind: str
    name: str
    namespace: str
    document: JsonObject
    actions: tuple[Action, ...]
    failure_policy: str
    background: bool
    elsewhere: str
    unknown: tuple[str, ...]
    source: str = "cluster"
    admission: bool = True

    @property
    def full_name(self) -> str:
        """As Kyverno's reports call it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def key(self) -> PolicyKey:
        """What tells it from every other policy."""
        return self.kind, self.full_name

    @property
    def enforced(self) -> tuple[Action, ...]:
        """What happens to a request that fails: where the webhook does not ask the policy, nothing but a report."""
        return self.actions if self.admission else ("Audit",)

    @property
    def unscored(self) -> bool:
        """Whether its failures are only warnings in reports."""
        return text_map(dig(self.document, "metadata", "annotations")).get("policies.kyverno.io/scored") == "false"

    @property
    def disabled(self) -> bool:
        """Whether its results are kept out of reports; the label's value does not matter."""
        return DISABLED in as_object(dig(self.document, "metadata", "labels"))

    def unauditable(self) -> str:
        """Why a scan of stored objects does not judge by it, or an empty string."""
        if self.elsewhere:
            return self.elsewhere
        if not self.background:
            return "it is not meant for stored objects: evaluation.background.enabled is false"
        if self.disabled:
            return f"its results are kept out of reports: it has the label {DISABLED}"
        if not as_object(dig(self.document, "spec", "matchConstraints")):
            return "it has no match constraints, and so matches nothing"
        return ""

    def variants(self) -> tuple[tuple[Variant, Policy], ...]:
        """Each form in which it is evaluated, as a policy whose constraints name exact versions."""
        return tuple((variant, self._policy(variant)) for variant in variants(as_object(self.document.get("spec"))))

    def _policy(self, variant: Variant) -> Policy:
        read = manifest.read_policy({**self.document, "spec": variant.spec}, language=self.kind, source=self.source)
        match = read.match and replace(read.match, match_policy="Exact")
        return replace(
            read,
            name=self.full_name,
            match=match,
            manifest=self.document,
            digest=manifest.digest(self.document),
        )


def is_policy(document: JsonObject) -> bool:
    """Whether a document is a policy of these kinds, in any of its versions."""
    return document.get("kind") in KINDS and in_group(document)


def is_entry(document: JsonObject) -> bool:
    """Whether a document is a GlobalContextEntry, from which expressions read."""
    group = as_text(document.get("apiVersion")).partition("/")[0]
    return group == ENTRIES_GROUP and document.get("kind") == "GlobalContextEntry"


def in_group(document: JsonObject) -> bool:
    """Whether a document is of a known version of Kyverno's policy group."""
    group, _, version = as_text(document.get("apiVersion")).partition("/")
    return group == GROUP and version in VERSIONS


def read_policy(document: JsonObject, *, source: str = "cluster", namespace: str = "default") -> KyvernoPolicy:
    """The policy of a manifest; `namespace` is where a namespaced one is applied that does not say so.

    From a file (`source` is not `cluster`), InvalidManifest when the API or Kyverno's webhook would refuse it.
    """
    spec = dig(document, "spec")
    kind = as_text(document.get("kind"))
    metadata = dig(document, "metadata")
    mode = as_text(dig(spec, "evaluation", "mode"))
    policy = KyvernoPolicy(
        kind=kind,
        name=as_text(dig(metadata, "name")),
        namespace=(as_text(dig(metadata, "namespace")) or namespace) if kind == NAMESPACED else "",
        document=document,
        actions=cast("tuple[Action, ...]", texts(dig(spec, "validationActions")) or ("Deny",)),
        failure_policy=as_text(dig(spec, "failurePolicy")) or "Fail",
        background=dig(spec, "evaluation", "background", "enabled") is not False,
        elsewhere=_ELSEWHERE.get(mode, ""),
        unknown=tuple(unknown_fields(spec, _SPEC, "spec")),
        source=source,
        admission=dig(spec, "evaluation", "admission", "enabled") is not False,
    )
    faults = () if source == "cluster" else tuple(_faults(policy, spec))
    if faults:
        raise InvalidManifest(faults)
    return policy


def unknown_fields(value: Json, known: object, path: str) -> Iterator[str]:
    """The paths of fields that the schema does not have; `...` stands for any content."""
    if not isinstance(known, dict):
        return
    for index, item in enumerate(as_list(value)):
        yield from unknown_fields(item, known, f"{path}[{index}]")
    for key, item in as_object(value).items():
        if key not in known:
            yield f"{path}.{key}"
        else:
            yield from unknown_fields(item, known[key], f"{path}.{key}")


def _faults(policy: KyvernoPolicy, spec: Json) -> Iterator[str]:
    if not policy.name:
        yield "metadata.name: Required value: name or generateName is required"
    if not policy.elsewhere and not as_list(dig(spec, "matchConstraints", "resourceRules")):
        yield "spec.matchConstraints: Required value: a matchConstraints with at least one resource rule is required"
    if policy.failure_policy not in ("Fail", "Ignore"):
        yield _unsupported("spec.failurePolicy", policy.failure_policy, ("Fail", "Ignore"))
    for index, action in enumerate(policy.actions):
        if action not in _ACTIONS:
            yield _unsupported(f"spec.validationActions[{index}]", action, _ACTIONS)


def _unsupported(path: str, value: str, supported: tuple[str, ...]) -> str:
    shown = ", ".join(f'"{one}"' for one in supported)
    return f'{path}: Unsupported value: "{value}": supported values: {shown}'
