"""Defaults of the kinds that configure the API server: admission, definitions, flow control, roles, certificates."""

from __future__ import annotations

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.mutate.walk import Rules, apply_when_set, apply_within, chain_rules, fill_absent, fill_zero

_V1 = "io.k8s.api.admissionregistration.v1."
_ALPHA = "io.k8s.api.admissionregistration.v1alpha1."
_BETA = "io.k8s.api.admissionregistration.v1beta1."
_VERSIONS = (_V1, _ALPHA, _BETA)

_selectors = fill_absent(namespaceSelector={}, objectSelector={})
_webhook = chain_rules(fill_absent(failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10), _selectors)
_beta_webhook = chain_rules(
    fill_absent(failurePolicy="Ignore", matchPolicy="Exact", sideEffects="Unknown", timeoutSeconds=30),
    _selectors,
    fill_zero(admissionReviewVersions=["v1beta1"]),
)
_never_again = fill_absent(reinvocationPolicy="Never")
_fail = fill_absent(failurePolicy="Fail")
_match = chain_rules(fill_absent(matchPolicy="Equivalent"), _selectors)
_rule = fill_absent(scope="*")

ADMISSION_RULES: Rules = {
    f"{_V1}ValidatingWebhook": _webhook,  # SetDefaults_ValidatingWebhook
    f"{_V1}MutatingWebhook": chain_rules(_webhook, _never_again),  # SetDefaults_MutatingWebhook
    f"{_V1}RuleWithOperations": _rule,  # SetDefaults_Rule
    f"{_V1}ServiceReference": fill_absent(port=443),
    f"{_BETA}ValidatingWebhook": _beta_webhook,
    f"{_BETA}MutatingWebhook": chain_rules(_beta_webhook, _never_again),
    f"{_BETA}RuleWithOperations": _rule,
    f"{_BETA}ServiceReference": fill_absent(port=443),
    **{f"{version}NamedRuleWithOperations": _rule for version in _VERSIONS},
    **{f"{version}ValidatingAdmissionPolicySpec": _fail for version in _VERSIONS},
    **{f"{version}MutatingAdmissionPolicySpec": _fail for version in _VERSIONS},
    **{f"{version}MatchResources": _match for version in _VERSIONS},
    f"{_ALPHA}ParamRef": fill_absent(parameterNotFoundAction="Deny"),
}


# Defaults of CustomResourceDefinitions and APIServices.
#
# `apiextensions/v1/defaults.go` of apiextensions-apiserver and `apiregistration/v1/defaults.go` of kube-aggregator.

_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_API = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1."

_port = fill_absent(port=443)  # SetDefaults_ServiceReference


def _default_names(names: JsonObject) -> JsonObject:
    """`SetDefaults_CustomResourceDefinitionSpec`."""
    kind = as_text(names.get("kind"))
    return fill_zero(singular=kind.lower(), listKind=f"{kind}List")(names) if kind else names


def _add_stored_version(definition: JsonObject) -> JsonObject:
    """The version that is stored was stored (`SetDefaults_CustomResourceDefinition`)."""
    if dig(definition, "status", "storedVersions"):
        return definition
    versions = as_list(dig(definition, "spec", "versions"))
    stored_version: list[Json] = [
        as_object(version).get("name") for version in versions if dig(version, "storage") is True
    ][:1]
    return (
        apply_within("status", fill_zero(storedVersions=stored_version))(definition) if stored_version else definition
    )


EXTENSION_RULES: Rules = {
    f"{_CRD}CustomResourceDefinition": chain_rules(
        apply_within(
            "spec", chain_rules(apply_within("names", _default_names), fill_absent(conversion={"strategy": "None"}))
        ),
        _add_stored_version,
    ),
    f"{_CRD}ServiceReference": _port,
    f"{_API}ServiceReference": _port,
}


# Defaults of API priority and fairness: `pkg/apis/flowcontrol/*/defaults.go`.

_FLOW_V1 = "io.k8s.api.flowcontrol.v1."
_FLOW_BETA = "io.k8s.api.flowcontrol.v1beta3."
_ZERO_SHARES = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_SHARES = 30

_queuing = fill_zero(handSize=8, queues=64, queueLengthLimit=50)
_exempt = fill_absent(nominalConcurrencyShares=0, lendablePercent=0)
_schema = fill_zero(matchingPrecedence=1000)


def _keep_beta_shares(level: JsonObject) -> JsonObject:
    """Keep zero shares where an annotation marks them as intended (`SetDefaults_PriorityLevelConfiguration`)."""
    if dig(level, "metadata", "annotations", _ZERO_SHARES) is not None:
        return level
    return apply_within("spec", apply_when_set("limited", fill_zero(nominalConcurrencyShares=_SHARES)))(level)


FLOWCONTROL_RULES: Rules = {
    f"{_FLOW_V1}FlowSchemaSpec": _schema,
    f"{_FLOW_V1}LimitedPriorityLevelConfiguration": fill_absent(nominalConcurrencyShares=_SHARES, lendablePercent=0),
    f"{_FLOW_V1}ExemptPriorityLevelConfiguration": _exempt,
    f"{_FLOW_V1}QueuingConfiguration": _queuing,
    f"{_FLOW_BETA}FlowSchemaSpec": _schema,
    f"{_FLOW_BETA}PriorityLevelConfiguration": _keep_beta_shares,
    f"{_FLOW_BETA}LimitedPriorityLevelConfiguration": fill_absent(lendablePercent=0),
    f"{_FLOW_BETA}ExemptPriorityLevelConfiguration": _exempt,
    f"{_FLOW_BETA}QueuingConfiguration": _queuing,
}


# Defaults of role bindings: `pkg/apis/rbac/*/defaults.go`.

_RBAC = "io.k8s.api.rbac.v1."
_GROUP = "rbac.authorization.k8s.io"

_binding = apply_within(
    "roleRef", fill_zero(apiGroup=_GROUP)
)  # SetDefaults_RoleBinding, SetDefaults_ClusterRoleBinding


def _default_subject(subject: JsonObject) -> JsonObject:
    """`SetDefaults_Subject`."""
    return fill_zero(apiGroup=_GROUP)(subject) if subject.get("kind") in ("User", "Group") else subject


RBAC_RULES: Rules = {
    f"{_RBAC}RoleBinding": _binding,
    f"{_RBAC}ClusterRoleBinding": _binding,
    f"{_RBAC}Subject": _default_subject,
}


# Defaults of certificate requests: `+default` in `certificates/v1beta1/types.go`.

CERTIFICATES_RULES: Rules = {
    f"io.k8s.api.certificates.{version}.PodCertificateRequestSpec": fill_absent(maxExpirationSeconds=86400)
    for version in ("v1alpha1", "v1beta1")
}
