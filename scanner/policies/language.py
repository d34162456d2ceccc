"""A policy of any language, compiled: each language has an environment of its own."""

from __future__ import annotations

from scanner.admission.compiled import CompiledPolicy, compile_policy
from scanner.model.policy import Policy
from scanner.model.release import Minor
from scanner.policies.kyverno import compile as kyverno

_NAMESPACED = "NamespacedValidatingPolicy"
_KYVERNO = frozenset({"ValidatingPolicy", _NAMESPACED})


def compiled(policy: Policy, rules: Minor) -> CompiledPolicy:
    """Compile a policy by the rules of a Kubernetes release; Kyverno's have rules of their own."""
    if policy.language in _KYVERNO:
        return kyverno.compile_policy(policy, namespaced=policy.language == _NAMESPACED)
    return compile_policy(policy, rules)
