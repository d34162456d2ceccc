"""Reads Kyverno's policies from their manifests, and has the schema of ValidatingPolicy and NamespacedValidatingPolicy.

Source of truth: the types of `policies.kyverno.io` v1, v1beta1 and v1alpha1, which have one schema, and the rules for which
Kyverno's policy webhook rejects a manifest. The API sets no defaults; Kyverno's code does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from scanner.errors import InvalidManifest
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, text_map, texts
from scanner.model.policy import Action, Policy, PolicyKey
from scanner.model.release import Minor
from scanner.policies import manifest
from scanner.policies.api_validation import unknown_metadata
from scanner.policies.kyverno.autogen import Resolve, Variant, ignored, unresolved, variants
from scanner.policies.kyverno.kinds import ENTRIES_GROUP, ENTRY, GROUP, VERSIONS, KyvernoKind, versions_of
from scanner.policies.kyverno.releases import NEWEST
from scanner.policies.kyverno.schema import LABELS, TEXTS, Schema, named_faults, repeated_faults, schema_faults
from scanner.policies.manifest import UnknownField, make_unknown_field

DISABLED = "reports.kyverno.io/disabled"
_ELSEWHERE = {
    "JSON": "it evaluates JSON payloads (evaluation.mode JSON), not objects of the cluster",
    "HTTP": "it evaluates HTTP requests (evaluation.mode HTTP), not objects of the cluster",
    "Envoy": "it evaluates requests to Envoy (evaluation.mode Envoy), not objects of the cluster",
}
NAMED: Schema = [{"expression": "string!", "name": "string!"}]
_LISTS = ("apiGroups", "apiVersions", "operations", "resources", "resourceNames")
_RULES: Schema = [{**dict.fromkeys(_LISTS, TEXTS), "scope": "string"}]
_SELECTOR: Schema = {
    "matchLabels": LABELS,
    "matchExpressions": [{"key": "string!", "operator": "string!", "values": TEXTS}],
}
_ENABLED: Schema = {"enabled": "boolean"}
_DOCUMENT = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC: Schema = {
    "auditAnnotations": [{"key": "string!", "valueExpression": "string!"}],
    "autogen": {"podControllers": {"controllers": TEXTS}, "validatingAdmissionPolicy": _ENABLED},
    "evaluation": {"admission": _ENABLED, "background": {"enabled": "boolean", "interval": "string"}, "mode": "string"},
    "failurePolicy": "Ignore|Fail",
    "matchConditions": NAMED,
    "matchConstraints": {
        "excludeResourceRules": _RULES,
        "matchPolicy": "string",
        "namespaceSelector": _SELECTOR,
        "objectSelector": _SELECTOR,
        "resourceRules": _RULES,
    },
    "validationActions": ["Deny|Audit|Warn"],
    "validations": [{"expression": "string!", "message": "string", "messageExpression": "string", "reason": "string"}],
    "variables": NAMED,
    "webhookConfiguration": {"timeoutSeconds": "int32"},
}
VALIDATING = KyvernoKind(
    cluster_wide="ValidatingPolicy",
    namespaced="NamespacedValidatingPolicy",
    served=(
        *versions_of(GROUP, VERSIONS, "ValidatingPolicy", "validatingpolicies"),
        *versions_of(
            GROUP, VERSIONS[:2], "NamespacedValidatingPolicy", "namespacedvalidatingpolicies", namespaced=True
        ),
    ),
    schema=_SPEC,
    report_source="KyvernoValidatingPolicy",
)


@dataclass(frozen=True, slots=True)
class KyvernoPolicy:
    """A policy with Kyverno's fields beyond the admission API. `namespace` is empty for a cluster-wide policy.

    `name` is the name in the manifest; results and reports call a namespaced policy `namespace/name`. `elsewhere` is the reason
    why the policy cannot evaluate stored objects, or empty. `unknown` are the paths of fields that no version has.
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
        """The name in Kyverno's reports."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def key(self) -> PolicyKey:
        """The key that identifies the policy among all policies."""
        return self.kind, self.full_name

    @property
    def enforced(self) -> tuple[Action, ...]:
        """The actions for a request that fails; only a report if the webhook does not evaluate the policy."""
        return self.actions if self.admission else ("Audit",)

    @property
    def has_webhook(self) -> bool:
        """Return whether Kyverno registers a webhook: not if an admission policy that it generated enforces the policy."""
        return self.admission and not self.is_generated

    @property
    def is_generated(self) -> bool:
        """Return whether Kyverno generated an admission policy, which the API server evaluates instead."""
        return dig(self.document, "status", "generated") is True

    @property
    def unscored(self) -> bool:
        """Return whether its failures are only warnings in reports."""
        return text_map(dig(self.document, "metadata", "annotations")).get("policies.kyverno.io/scored") == "false"

    @property
    def disabled(self) -> bool:
        """Return whether its results are left out of reports; the label's value does not matter."""
        return DISABLED in as_object(dig(self.document, "metadata", "labels"))

    def unauditable(self) -> str:
        """The reason why a scan of stored objects cannot evaluate the policy, or an empty string."""
        if self.elsewhere:
            return self.elsewhere
        if not self.background:
            return "it is not meant for stored objects: evaluation.background.enabled is false"
        if self.disabled:
            return f"its results are kept out of reports: it has the label {DISABLED}"
        if not as_object(dig(self.document, "spec", "matchConstraints")):
            return "it has no match constraints, and so matches nothing"
        return ""

    def variants(self, release: Minor = NEWEST, resolve: Resolve = unresolved) -> tuple[tuple[Variant, Policy], ...]:
        """Each form in which a release of Kyverno evaluates it, as a policy whose constraints name exact versions."""
        forms = variants(as_object(self.document.get("spec")), release, resolve)
        return tuple((variant, self._policy(variant)) for variant in forms)

    def ignored_controllers(self, release: Minor, resolve: Resolve) -> tuple[str, ...]:
        """The names of controllers that a release of Kyverno ignores."""
        return ignored(as_object(self.document.get("spec")), release, resolve)

    def written(self) -> Policy:
        """The policy in its original form."""
        return self._policy(Variant("", as_object(self.document.get("spec"))))

    def _policy(self, variant: Variant) -> Policy:
        read = manifest.read_policy({**self.document, "spec": variant.spec}, language=self.kind, source=self.source)
        is_exact = read.match and read.match.match_policy == "Exact"
        return replace(
            read,
            name=self.full_name,
            match=read.match and replace(read.match, match_policy="Exact" if is_exact else "Equivalent"),
            manifest=self.document,
            digest=manifest.digest(self.document),
        )


def is_policy(document: JsonObject, api: KyvernoKind = VALIDATING) -> bool:
    """Return whether a document is a policy of a kind, in any of its versions."""
    return document.get("kind") in api.names and in_group(document)


def is_entry(document: JsonObject) -> bool:
    """Return whether a document is a GlobalContextEntry, which expressions read."""
    group = as_text(document.get("apiVersion")).partition("/")[0]
    return group == ENTRIES_GROUP and document.get("kind") == ENTRY


def in_group(document: JsonObject) -> bool:
    """Return whether a document is of a known version of Kyverno's policy group."""
    group, _, version = as_text(document.get("apiVersion")).partition("/")
    return group == GROUP and version in VERSIONS


def read_policy(
    document: JsonObject, api: KyvernoKind = VALIDATING, *, source: str = "cluster", namespace: str = "default"
) -> KyvernoPolicy:
    """The policy of a manifest; `namespace` is the namespace of a namespaced one that has none in the manifest.

    Raises InvalidManifest for one from a file (`source` is not `cluster`) that the API or Kyverno's webhook would reject.
    """
    spec = dig(document, "spec")
    kind = as_text(document.get("kind"))
    metadata = dig(document, "metadata")
    mode = as_text(dig(spec, "evaluation", "mode"))
    policy = KyvernoPolicy(
        kind=kind,
        name=as_text(dig(metadata, "name")),
        namespace=(as_text(dig(metadata, "namespace")) or namespace) if kind == api.namespaced else "",
        document=document,
        actions=cast("tuple[Action, ...]", texts(dig(spec, "validationActions")) or ("Deny",)),
        failure_policy=as_text(dig(spec, "failurePolicy")) or "Fail",
        background=dig(spec, "evaluation", "background", "enabled") is not False,
        elsewhere=_ELSEWHERE.get(mode, ""),
        unknown=tuple(unknown.path for unknown in unknown_in(spec, api.schema, "spec")),
        source=source,
        admission=dig(spec, "evaluation", "admission", "enabled") is not False,
    )
    faults = () if source == "cluster" else tuple(_faults(policy, spec, api.schema))
    if faults:
        raise InvalidManifest(faults)
    return policy


def policy_of(policy: Policy, api: KyvernoKind = VALIDATING) -> KyvernoPolicy:
    """The Kyverno policy of a policy that was read before."""
    read = read_policy(policy.manifest, api, namespace=policy.name.rpartition("/")[0])
    return replace(read, source=policy.source)


def unknown_fields(document: JsonObject, schema: Schema) -> tuple[UnknownField, ...]:
    """The fields that a policy must not have, in its metadata and its spec."""
    others = (key for key in document if key not in _DOCUMENT)
    return (
        *(make_unknown_field(key, key, _DOCUMENT) for key in others),
        *unknown_metadata(document),
        *unknown_in(document.get("spec"), schema, "spec"),
    )


def unknown_in(value: Json, schema: Schema, path: str) -> Iterator[UnknownField]:
    """The fields that the schema does not have."""
    if isinstance(schema, list):
        for index, item in enumerate(as_list(value)):
            yield from unknown_in(item, schema[0], f"{path}[{index}]")
    if isinstance(schema, Mapping):
        for key, item in as_object(value).items():
            where = f"{path}.{key}"
            if key in schema:
                yield from unknown_in(item, schema[key], where)
            else:
                yield make_unknown_field(where, key, schema)


def _faults(policy: KyvernoPolicy, spec: Json, schema: Schema) -> Iterator[str]:
    """The errors for which the API server rejects the policy; if there are none, those of Kyverno's webhook."""
    if not policy.name:
        yield "metadata.name: Required value: name or generateName is required"
    wrong = ["spec: Required value"] if spec is None else [*schema_faults(spec, schema, "spec")]
    for name in ("matchConditions", "variables"):
        wrong += named_faults(dig(spec, name), f"spec.{name}")
    wrong += repeated_faults(dig(spec, "validationActions"), "spec.validationActions")
    yield from wrong
    if not wrong and not policy.elsewhere and not as_list(dig(spec, "matchConstraints", "resourceRules")):
        yield "spec.matchConstraints: Required value: a matchConstraints with at least one resource rule is required"
