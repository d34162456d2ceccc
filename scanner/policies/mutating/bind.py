"""MutatingAdmissionPolicy: its names and its rules in the admission API.

Source of truth: `admissionregistration.k8s.io` v1 of Kubernetes 1.36.
"""

from __future__ import annotations

from scanner.admission.plugin import MUTATING
from scanner.policies import api_validation
from scanner.policies.admission_api import PolicyKind
from scanner.policies.mutating.evaluator import evaluator_of
from scanner.policies.mutating.together import IN_ONE_REQUEST

LANGUAGE = "MutatingAdmissionPolicy"
API = PolicyKind(
    language=LANGUAGE,
    policies="mutatingadmissionpolicies",
    plugin=MUTATING,
    evaluator=evaluator_of,
    combination=IN_ONE_REQUEST,
    policy_faults=api_validation.mutating_policy_faults,
    binding_faults=api_validation.mutating_binding_faults,
)
read_policy, read_binding, bind = API.read_policy, API.read_binding, API.bind
