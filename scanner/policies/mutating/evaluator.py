"""The evaluation of a request by mutating policies, and the fast path for objects that they do not change.

Source of truth: `mutating.dispatcher` of kube-apiserver 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from msgspec import Struct

from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.evaluate import make_check_inputs
from scanner.admission.evaluator import FastForm, ObjectTest
from scanner.admission.request import Request
from scanner.cel.releases import WRAPPED_OBJECTS
from scanner.cel.stack import run_with_room
from scanner.model.json import JsonObject
from scanner.model.outcome import Check, CheckResult, Errored
from scanner.model.policy import Invocation, Mutation
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.mutate.schema import NO_SCHEMAS, Schema, Schemas
from scanner.mutate.unchanged import (
    Holds,
    find_copied_lists,
    is_configured,
    is_patched,
    make_copied_test,
    make_holds_test,
)
from scanner.policies.mutating.mutation import INVALID, predict

_OF_THE_POLICY = "failed to configure policy: "


class Mutator(Struct, frozen=True):
    """Evaluates mutating policies by the schemas of a cluster and the rules of a Kubernetes release."""

    schemas: Schemas
    rules: Minor
    reads_whole_object: bool = True

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """Evaluate every mutation of a matched invocation. Raises SchemaUnknown."""
        return run_with_room(lambda: predict(compiled, request, param, self.schemas, self.rules)).check_results

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        """See Evaluator."""
        return make_check_inputs(compiled, request, param, check)

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        """See Evaluator: an object passes if no mutation changes it."""
        schema = self.schemas.schema(kind)
        if schema is None or WRAPPED_OBJECTS.holds(self.rules) or compiled.policy.param_kind or not compiled.mutations:
            return None
        if any(expression.program is None or expression.reads("namespaceObject") for expression in compiled.mutations):
            return None
        pairs = zip(compiled.policy.mutations, compiled.mutations, strict=True)
        return FastForm(tuple(_make_test(mutation, expression, schema) for mutation, expression in pairs))


def make_evaluator(schemas: Schemas | None, rules: Minor) -> Mutator:
    """The evaluator of mutating policies by the schemas of a cluster and the rules of a release."""
    return Mutator(schemas or NO_SCHEMAS, rules)


def get_mutator(bound: BoundPolicy) -> Mutator | None:
    """The evaluator of a mutating policy, which holds its schemas and rules; None for other policies."""
    return bound.evaluator if isinstance(bound.evaluator, Mutator) else None


def _make_test(mutation: Mutation, expression: Expression, schema: Schema) -> ObjectTest:
    program = expression.program
    if program is None:
        raise TypeError
    evaluate = program.evaluate
    if not program.reads and mutation.patch_type == "ApplyConfiguration":
        return _SameValueTest(lambda: make_holds_test(schema, evaluate({})))
    if mutation.patch_type == "JSONPatch":
        return lambda given: is_patched(cast("JsonObject", given["object"]), evaluate(given))
    if lists := find_copied_lists(program.analysis.root):
        return _SameValueTest(lambda: make_copied_test(schema, program, lists))
    return lambda given: is_configured(schema, cast("JsonObject", given["object"]), evaluate(given))


class _SameValueTest:
    """The test of a mutation that writes the same value into every object or list element: it is created once."""

    def __init__(self, make: Callable[[], Holds]) -> None:
        self._make = make
        self._holds: Holds | None = None

    def __call__(self, inputs: Mapping[str, object]) -> bool:
        if self._holds is None:
            self._holds = self._make()
        return self._holds(inputs["object"])


def write_refusal(invocation: Invocation, error: Errored) -> str:
    """The message of the API server when it denies a request because a mutation failed (`mutating.dispatcher`).

    Later parts of the server do not name the policy.
    """
    message = error.message
    if error.code == INVALID:
        return message
    if message.startswith(_OF_THE_POLICY):
        return f'policy "{invocation.policy.name}" denied request: {message}'
    return f"policy '{invocation.policy.name}' with binding '{invocation.binding.name}' denied request: {message}"
