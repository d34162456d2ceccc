"""The Protocol by which a policy language evaluates a request, and the evaluator of the validating policies of the admission API.

A policy language decides how its policies evaluate a request; the rest of an audit is the same for all languages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.evaluate import evaluate, make_check_inputs
from scanner.admission.request import Request
from scanner.model.outcome import Check, CheckResult
from scanner.model.resource import Kind, Resource


class Skip:
    """The result of a test for an object of which no check is evaluated, because a condition excludes it."""


SKIPPED: Final = Skip()
ObjectTest: TypeAlias = Callable[[Mapping[str, object]], "bool | Skip"]
"""Returns True for the inputs of an object that simply passes, or SKIPPED; the latter only as the only test of a policy."""


class OwnForm(Struct, frozen=True):
    """A language's replacement for the admission API: the inputs of its expressions, and their results.

    `inputs` are the values that expressions may name, without the variables. `check_results` are the results for an object that
    does not pass every expression, given these inputs.
    """

    inputs: Callable[[Request], dict[str, object]]
    check_results: Callable[[CompiledPolicy, Mapping[str, object]], tuple[CheckResult, ...]]


class FastForm(Struct, frozen=True):
    """The form in which the fast path may evaluate a policy: an object that passes every expression and test passes the policy.

    `tests` follow the expressions. An object that does not pass one of them needs the evaluator. Without an `own` form the
    expressions have the inputs of the admission API, and decide as in it.
    """

    tests: tuple[ObjectTest, ...] = ()
    own: OwnForm | None = None


class Evaluator(Protocol):
    """The evaluation of matched requests in a policy language."""

    @property
    def reads_whole_object(self) -> bool:
        """Return whether fields outside the access paths of its expressions may decide, including the data of a Secret."""
        ...

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """Every check of a matched invocation. Raises SchemaUnknown and AuthorizerFailed."""
        ...

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> Mapping[str, object]:
        """The inputs of a check's expressions, with variables: to evaluate them again."""
        ...

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        """The form in which the fast path may evaluate a policy for objects of a kind; None if only `evaluate` can decide."""
        ...


class AdmissionEvaluator(Struct, frozen=True):
    """Evaluates as `validating.Validator` of kube-apiserver 1.36."""

    reads_whole_object: bool = False

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """See Evaluator."""
        return evaluate(compiled, request, param)

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        """See Evaluator."""
        return make_check_inputs(compiled, request, param, check)

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        """See Evaluator: the expressions alone decide."""
        del compiled, kind
        return FastForm()


ADMISSION: Evaluator = AdmissionEvaluator()
