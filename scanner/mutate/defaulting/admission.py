"""Defaults of webhooks and admission policies: `pkg/apis/admissionregistration/*/defaults.go`."""

from __future__ import annotations

from scanner.mutate.defaulting.rules import when_absent, when_zero
from scanner.mutate.walk import Rules, in_order

_V1 = "io.k8s.api.admissionregistration.v1."
_ALPHA = "io.k8s.api.admissionregistration.v1alpha1."
_BETA = "io.k8s.api.admissionregistration.v1beta1."
_VERSIONS = (_V1, _ALPHA, _BETA)

_selectors = when_absent(namespaceSelector={}, objectSelector={})
_webhook = in_order(when_absent(failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10), _selectors)
_beta_webhook = in_order(
    when_absent(failurePolicy="Ignore", matchPolicy="Exact", sideEffects="Unknown", timeoutSeconds=30),
    _selectors,
    when_zero(admissionReviewVersions=["v1beta1"]),
)
_never_again = when_absent(reinvocationPolicy="Never")
_fail = when_absent(failurePolicy="Fail")
_match = in_order(when_absent(matchPolicy="Equivalent"), _selectors)
_rule = when_absent(scope="*")

RULES: Rules = {
    f"{_V1}ValidatingWebhook": _webhook,  # SetDefaults_ValidatingWebhook
    f"{_V1}MutatingWebhook": in_order(_webhook, _never_again),  # SetDefaults_MutatingWebhook
    f"{_V1}RuleWithOperations": _rule,  # SetDefaults_Rule
    f"{_V1}ServiceReference": when_absent(port=443),
    f"{_BETA}ValidatingWebhook": _beta_webhook,
    f"{_BETA}MutatingWebhook": in_order(_beta_webhook, _never_again),
    f"{_BETA}RuleWithOperations": _rule,
    f"{_BETA}ServiceReference": when_absent(port=443),
    **{f"{version}NamedRuleWithOperations": _rule for version in _VERSIONS},
    **{f"{version}ValidatingAdmissionPolicySpec": _fail for version in _VERSIONS},
    **{f"{version}MutatingAdmissionPolicySpec": _fail for version in _VERSIONS},
    **{f"{version}MatchResources": _match for version in _VERSIONS},
    f"{_ALPHA}ParamRef": when_absent(parameterNotFoundAction="Deny"),
}
