"""MutatingAdmissionPolicy: the change that it would make to a stored object now.

Source of truth: `mutating.plugin` of kube-apiserver 1.36. Each invocation is evaluated on the stored object (`mutation`),
independently of the others; `together` computes the result of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from scanner.admission.auditability import AUDITABLE
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.plugin import MUTATING
from scanner.model.policy import Binding, Operation, Policy
from scanner.model.release import NEWEST, Minor
from scanner.mutate.schema import Schemas
from scanner.policies import api_validation
from scanner.policies.admission_api import PolicyKind
from scanner.policies.mutating.evaluator import Mutator
from scanner.policies.mutating.together import IN_ONE_REQUEST

LANGUAGE = "MutatingAdmissionPolicy"
API = PolicyKind(
    language=LANGUAGE,
    policies="mutatingadmissionpolicies",
    bindings="mutatingadmissionpolicybindings",
    plugin=MUTATING,
    policy_faults=api_validation.mutating_policy_faults,
    binding_faults=api_validation.mutating_binding_faults,
)
read_policy = API.read_policy
read_binding = API.read_binding


def bind(
    policies: Sequence[Policy],
    bindings: Sequence[Binding],
    schemas: Schemas,
    operations: tuple[Operation, ...] = AUDITABLE,
    rules: Minor = NEWEST,
) -> tuple[BoundPolicy, ...]:
    """The policies that some binding puts into force, compiled, ordered by name, for some operations."""
    return API.bind(policies, bindings, operations, rules, Mutator(schemas, rules), IN_ONE_REQUEST)
