"""ValidatingAdmissionPolicy: its manifests, and policies joined to the bindings that put them into force."""

from __future__ import annotations

from collections.abc import Sequence

from scanner.admission.auditability import AUDITABLE, reading
from scanner.admission.compiled import CompiledPolicy, compile_policy
from scanner.admission.dispatch import BoundPolicy, Evaluator
from scanner.admission.evaluate import evaluate
from scanner.cel.releases import WRAPPED_OBJECTS
from scanner.errors import InvalidManifest
from scanner.model.json import EMPTY, JsonObject
from scanner.model.policy import Action, Binding, Operation, Policy
from scanner.model.reading import Auditability
from scanner.model.release import NEWEST, Minor
from scanner.policies import api_validation, manifest
from scanner.policies.validating import wrapped
from scanner.policies.validating.wrapped import Schemas

LANGUAGE = "ValidatingAdmissionPolicy"


POLICIES = "validatingadmissionpolicies"


BINDINGS = "validatingadmissionpolicybindings"


def read_policy(document: JsonObject, *, source: str = "cluster", rules: Minor = NEWEST) -> Policy:
    """The policy of a manifest.

    Raises InvalidManifest for one from a file (`source` is not `cluster`) that the API would refuse.
    """
    if source == "cluster":
        return manifest.read_policy(document, language=LANGUAGE, source=source)
    taken = api_validation.decoded(document)
    policy = manifest.read_policy(taken, language=LANGUAGE, source=source)
    _refuse(api_validation.policy_faults(taken, api_validation.written(policy, rules)))
    return policy


def read_binding(document: JsonObject, *, source: str = "cluster") -> Binding:
    """The binding of a manifest. Raises InvalidManifest as `read_policy` does."""
    if source == "cluster":
        return manifest.read_binding(document, language=LANGUAGE, source=source)
    taken = api_validation.decoded(document)
    _refuse(api_validation.binding_faults(taken))
    return manifest.read_binding(taken, language=LANGUAGE, source=source)


def _refuse(faults: tuple[str, ...]) -> None:
    """The server tells the same fault once (`ErrorList.ToAggregate`)."""
    if faults:
        raise InvalidManifest(tuple(dict.fromkeys(faults)))


def assume_bound(policy: Policy, action: Action) -> Binding:
    """The binding that `--assume-bound` makes up: the whole policy, without a param."""
    return Binding(
        language=LANGUAGE,
        name=f"assumed:{policy.name}",
        policy_name=policy.name,
        param_ref=None,
        match=None,
        actions=(action,),
        manifest=EMPTY,
        digest="",
        source="--assume-bound",
        assumed=True,
    )


def bind(
    policies: Sequence[Policy],
    bindings: Sequence[Binding],
    operations: tuple[Operation, ...] = AUDITABLE,
    rules: Minor = NEWEST,
    schemas: Schemas | None = None,
) -> tuple[BoundPolicy, ...]:
    """Policies that some binding puts into force, compiled, ordered by name, to be asked about some operations.

    `rules` is the Kubernetes release that evaluates them; `schemas` tells it which values are native, from 1.37 on.
    """
    decide = (
        evaluate if not WRAPPED_OBJECTS.holds(rules) or schemas is None else wrapped.WrappedEvaluator(schemas, rules)
    )
    return bound_by(policies, bindings, operations, rules, decide)


def bound_by(
    policies: Sequence[Policy],
    bindings: Sequence[Binding],
    operations: tuple[Operation, ...],
    rules: Minor,
    decide: Evaluator,
) -> tuple[BoundPolicy, ...]:
    """Policies of any language whose bindings, params and rules work as here; `decide` judges what they match."""
    joined = {policy.key: [b for b in bindings if b.joins(policy)] for policy in policies}
    return tuple(
        _bound(compile_policy(policy, rules), joined[policy.key], operations, decide)
        for policy in sorted(policies, key=lambda policy: policy.name)
        if joined[policy.key]
    )


def _bound(
    compiled: CompiledPolicy, bindings: Sequence[Binding], operations: tuple[Operation, ...], decide: Evaluator
) -> BoundPolicy:
    read = reading(compiled, operations)
    requester = frozenset(it.check for it in read.checks if Auditability.REQUESTER in it.classes)
    return BoundPolicy(compiled, tuple(sorted(bindings, key=lambda binding: binding.name)), read, requester, decide)
