"""How a policy language evaluates a request: one Protocol, and the evaluator of the admission API's validating policies.

A policy language decides what its policies make of a request; everything else of an audit is the same for all languages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.evaluate import evaluate, inputs_of
from scanner.admission.request import Request
from scanner.model.outcome import Check, CheckResult
from scanner.model.resource import Kind, Resource

ObjectTest: TypeAlias = Callable[[Mapping[str, object]], bool]
"""Returns True for the inputs of an object that simply passes."""


@dataclass(frozen=True, slots=True)
class OwnForm:
    """What a language does in place of the admission API: the inputs of its expressions, and their results.

    `inputs` are what expressions may name, but the variables. `check_results` are those of an object that does not pass
    every expression, given these inputs.
    """

    inputs: Callable[[Request], dict[str, object]]
    check_results: Callable[[CompiledPolicy, Mapping[str, object]], tuple[CheckResult, ...]]


@dataclass(frozen=True, slots=True)
class FastForm:
    """How the fast path may evaluate a policy: an object that passes every expression and every test passes the policy.

    `tests` come after the expressions. An object that does not pass one of them needs the evaluator. Without an `own` form the
    expressions see what the admission API shows them, and decide as there.
    """

    tests: tuple[ObjectTest, ...] = ()
    own: OwnForm | None = None


class Evaluator(Protocol):
    """How the policies of a language evaluate what they match."""

    @property
    def reads_whole_object(self) -> bool:
        """Whether more of an object than the access paths of its expressions may decide, the data of a Secret included."""
        ...

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """Every check of a matched invocation. Raises SchemaUnknown and AuthorizerFailed."""
        ...

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> Mapping[str, object]:
        """What the expressions of a check see, variables included: to evaluate them once more."""
        ...

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        """How the fast path may evaluate a policy for objects of a kind; None where only `evaluate` can tell."""
        ...


@dataclass(frozen=True, slots=True)
class AdmissionEvaluator:
    """Evaluates as `validating.Validator` of kube-apiserver 1.36."""

    reads_whole_object: bool = False

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """See Evaluator."""
        return evaluate(compiled, request, param)

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        """See Evaluator."""
        return inputs_of(compiled, request, param, check)

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        """See Evaluator: the expressions alone decide."""
        del compiled, kind
        return FastForm()


ADMISSION: Evaluator = AdmissionEvaluator()
