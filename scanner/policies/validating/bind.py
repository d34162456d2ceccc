"""ValidatingAdmissionPolicy: its names and its rules in the admission API.

Source of truth: `admissionregistration.k8s.io` v1 of Kubernetes 1.36.
"""

from __future__ import annotations

from scanner.admission.plugin import VALIDATING
from scanner.policies import api_validation
from scanner.policies.admission_api import PolicyKind
from scanner.policies.validating.wrapped import evaluator_of

LANGUAGE = "ValidatingAdmissionPolicy"
API = PolicyKind(
    language=LANGUAGE,
    policies="validatingadmissionpolicies",
    plugin=VALIDATING,
    evaluator=evaluator_of,
    policy_faults=api_validation.policy_faults,
    binding_faults=api_validation.binding_faults,
)
read_policy, read_binding, bind = API.read_policy, API.read_binding, API.bind
