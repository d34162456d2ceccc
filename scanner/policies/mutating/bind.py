"""MutatingAdmissionPolicy: what it would do to a stored object today.

Source of truth: `mutating.plugin` of kube-apiserver 1.36. Each invocation is judged on the stored object (`mutation`), whatever
others would do to it before; what all of them do is another question (`together`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from scanner.admission.auditability import AUDITABLE
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.request import Request
from scanner.cel.releases import WRAPPED_OBJECTS
from scanner.cel.stack import with_room
from scanner.errors import InvalidManifest
from scanner.model.json import EMPTY, JsonObject
from scanner.model.outcome import CheckResult
from scanner.model.policy import Binding, Invocation, Mutation, Operation, Policy
from scanner.model.release import NEWEST, Minor
from scanner.model.resource import Kind, Resource
from scanner.mutate.copied import copied_lists, holds_copied
from scanner.mutate.schema import Schema
from scanner.mutate.unchanged import Holds, holds, is_configured, is_patched
from scanner.policies import api_validation, manifest
from scanner.policies.mutating.mutation import Schemas, predict
from scanner.policies.validating.bind import bound_by

LANGUAGE = "MutatingAdmissionPolicy"
POLICIES = "mutatingadmissionpolicies"
BINDINGS = "mutatingadmissionpolicybindings"
_OF_THE_POLICY = "failed to configure policy: "


class NoSchemas:
    """Knows none."""

    def schema(self, kind: Kind) -> Schema | None:
        """None, whatever the kind is."""
        del kind
        return None


def read_policy(document: JsonObject, *, source: str = "cluster", rules: Minor = NEWEST) -> Policy:
    """The policy of a manifest. From a file (`source` is not `cluster`), InvalidManifest when the API would refuse it."""
    if source == "cluster":
        return manifest.read_policy(document, language=LANGUAGE, source=source)
    taken = api_validation.decoded(document)
    policy = manifest.read_policy(taken, language=LANGUAGE, source=source)
    _refuse(api_validation.mutating_policy_faults(taken, api_validation.written(policy, rules)))
    return policy


def read_binding(document: JsonObject, *, source: str = "cluster") -> Binding:
    """The binding of a manifest, with the same promise as `read_policy`."""
    if source == "cluster":
        return manifest.read_binding(document, language=LANGUAGE, source=source)
    taken = api_validation.decoded(document)
    _refuse(api_validation.mutating_binding_faults(taken))
    return manifest.read_binding(taken, language=LANGUAGE, source=source)


def _refuse(faults: tuple[str, ...]) -> None:
    """The server tells the same fault once (`ErrorList.ToAggregate`)."""
    if faults:
        raise InvalidManifest(tuple(dict.fromkeys(faults)))


def assume_bound(policy: Policy) -> Binding:
    """The binding that `--assume-bound` makes up: the whole policy, without a param."""
    return Binding(
        language=LANGUAGE,
        name=f"assumed:{policy.name}",
        policy_name=policy.name,
        param_ref=None,
        match=None,
        actions=(),
        manifest=EMPTY,
        digest="",
        source="--assume-bound",
        assumed=True,
    )


def bind(
    policies: Sequence[Policy],
    bindings: Sequence[Binding],
    schemas: Schemas,
    operations: tuple[Operation, ...] = AUDITABLE,
    rules: Minor = NEWEST,
) -> tuple[BoundPolicy, ...]:
    """Policies that some binding puts into force, compiled, ordered by name, to be asked about some operations."""
    return bound_by(policies, bindings, operations, rules, Mutator(schemas, rules))


Leaves: TypeAlias = Callable[[Mapping[str, object]], bool]
"""Returns True when a mutation leaves the object among what its expression may name as it is."""


@dataclass(frozen=True, slots=True)
class Mutator:
    """How mutating policies judge a request: by the schemas of a cluster and the rules of a Kubernetes release."""

    schemas: Schemas
    rules: Minor

    def __call__(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """Every mutation of a matched invocation. Raises SchemaUnknown."""
        return with_room(lambda: predict(compiled, request, param, self.schemas, self.rules)).check_results

    def tests(self, compiled: CompiledPolicy, kind: Kind) -> tuple[Leaves, ...]:
        """How to tell of each mutation that it leaves an object of a kind as it is; nothing where only the whole way tells."""
        schema = self.schemas.schema(kind)
        if schema is None or WRAPPED_OBJECTS.holds(self.rules):
            return ()
        if any(expression.program is None or expression.reads("namespaceObject") for expression in compiled.mutations):
            return ()
        pairs = zip(compiled.policy.mutations, compiled.mutations, strict=True)
        return tuple(_leaves(mutation, expression, schema) for mutation, expression in pairs)


def _leaves(mutation: Mutation, expression: Expression, schema: Schema) -> Leaves:
    program = expression.program
    if program is None:
        raise TypeError
    evaluate = program.evaluate
    if not program.reads and mutation.patch_type == "ApplyConfiguration":
        return _Once(lambda: holds(schema, evaluate({})))
    if mutation.patch_type == "JSONPatch":
        return lambda given: is_patched(cast("JsonObject", given["object"]), evaluate(given))
    if lists := copied_lists(program.analysis.root):
        return _Once(lambda: holds_copied(schema, program, lists))
    return lambda given: is_configured(schema, cast("JsonObject", given["object"]), evaluate(given))


class _Once:
    """A mutation that writes the same into every object, or into every element of a list: its test is made once."""

    def __init__(self, make: Callable[[], Holds]) -> None:
        self._make = make
        self._holds: Holds | None = None

    def __call__(self, given: Mapping[str, object]) -> bool:
        if self._holds is None:
            self._holds = self._make()
        return self._holds(given["object"])


def refusal(invocation: Invocation, message: str) -> str:
    """The message with which the API server refuses a request because of a mutation that failed."""
    if message.startswith(_OF_THE_POLICY):
        return f'policy "{invocation.policy.name}" denied request: {message}'
    return f"policy '{invocation.policy.name}' with binding '{invocation.binding.name}' denied request: {message}"
