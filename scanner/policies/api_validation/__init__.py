"""Validates policies and bindings from files as the API does; a cluster's policies were accepted already.

Source of truth: `pkg/apis/admissionregistration/validation` of Kubernetes 1.36. Messages, their order included, are the API's
own; `tests/policies/api_validation` has a server's responses to two hundred manifests.
"""

from scanner.policies.api_validation.common import condition_faults, match_faults
from scanner.policies.api_validation.decoding import Undecodable, decode_manifest, unknown_fields, unknown_metadata
from scanner.policies.api_validation.expressions import make_compile_check
from scanner.policies.api_validation.fields import Faults
from scanner.policies.api_validation.mutating import mutating_binding_faults, mutating_policy_faults
from scanner.policies.api_validation.names import check_qualified_name
from scanner.policies.api_validation.validating import binding_faults, policy_faults

__all__ = [
    "Faults",
    "Undecodable",
    "binding_faults",
    "check_qualified_name",
    "condition_faults",
    "decode_manifest",
    "make_compile_check",
    "match_faults",
    "mutating_binding_faults",
    "mutating_policy_faults",
    "policy_faults",
    "unknown_fields",
    "unknown_metadata",
]
