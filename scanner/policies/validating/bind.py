"""ValidatingAdmissionPolicy: its manifests, and policies joined to the bindings that put them into force."""

from __future__ import annotations

from collections.abc import Sequence

from scanner.admission.auditability import AUDITABLE
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.evaluator import ADMISSION, Evaluator
from scanner.admission.plugin import VALIDATING
from scanner.cel.releases import WRAPPED_OBJECTS
from scanner.model.policy import Binding, Operation, Policy
from scanner.model.release import NEWEST, Minor
from scanner.mutate.schema import Schemas
from scanner.policies import api_validation
from scanner.policies.admission_api import PolicyKind
from scanner.policies.validating import wrapped

LANGUAGE = "ValidatingAdmissionPolicy"
API = PolicyKind(
    language=LANGUAGE,
    policies="validatingadmissionpolicies",
    bindings="validatingadmissionpolicybindings",
    plugin=VALIDATING,
    policy_faults=api_validation.policy_faults,
    binding_faults=api_validation.binding_faults,
)
read_policy = API.read_policy
read_binding = API.read_binding


def bind(
    policies: Sequence[Policy],
    bindings: Sequence[Binding],
    operations: tuple[Operation, ...] = AUDITABLE,
    rules: Minor = NEWEST,
    schemas: Schemas | None = None,
) -> tuple[BoundPolicy, ...]:
    """The policies that some binding puts into force, compiled, ordered by name, for some operations.

    `rules` is the Kubernetes release that evaluates the policies; `schemas` identifies native values, from 1.37 on.
    """
    wraps = WRAPPED_OBJECTS.holds(rules) and schemas is not None
    evaluator: Evaluator = wrapped.WrappedEvaluator(schemas, rules) if schemas is not None and wraps else ADMISSION
    return API.bind(policies, bindings, operations, rules, evaluator)
