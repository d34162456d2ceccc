"""A policy that treats all objects of a kind in a namespace alike, evaluated without counting the cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from scanner import cel
from scanner.admission import cost_budget
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.context import EvaluationContext
from scanner.admission.cost_budget import Variables, run
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.evaluate import evaluate_uncounted, find_unmet_condition
from scanner.admission.evaluator import SKIPPED, FastForm
from scanner.admission.request import Request, filter_namespace, make_request_form, read_typed_namespace
from scanner.admission.results import decide_validation
from scanner.audit.findings import FindingForms
from scanner.model.json import JsonObject
from scanner.model.outcome import Check, CheckResult
from scanner.model.policy import Binding, Invocation, Operation, Validation
from scanner.model.resource import Kind, Resource
from scanner.model.scans.tally import OutcomeName, TallyKey

Inputs: TypeAlias = "dict[str, object]"


Passes: TypeAlias = "Callable[[Inputs], object]"
"""Returns True for the inputs of an object that simply passes; returns another value or raises for all other inputs."""


_NAMES = cel.SizeBound(64.0, 1024.0, 64.0)
"""The size that the names of an object add to a request."""


class PassTest(NamedTuple):
    """A policy and its test for passing objects.

    `size_bound` bounds an object whose parts must be measured first; None if no object can reach a cost limit.
    """

    passes: Passes
    fast_policy: FastPolicy
    size_bound: cel.SizeBound | None


class NotPassed(NamedTuple):
    """A policy that an object does not simply pass, the inputs of its expressions, and the answer of the test, None if it raised."""

    test: PassTest
    inputs: Inputs
    answer: object


class BindingChoice(NamedTuple):
    """The bindings, the operation and the param with which a policy evaluates objects."""

    operation: Operation
    bindings: tuple[Binding, ...]
    param: Resource | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """The identity of this choice among the choices of the same policy."""
        param = (self.param.namespace, self.param.name) if self.param else None
        return (self.operation, tuple(binding.key for binding in self.bindings), param)


class FastPolicy:
    """A policy that evaluates all objects of a kind in a namespace alike, without counting the cost."""

    def __init__(
        self,
        bound: BoundPolicy,
        original: Kind,
        choice: BindingChoice,
        kind: Kind,
        namespace: str,
        context: EvaluationContext,
    ) -> None:
        """Build the functions of a policy for the objects of a kind in a namespace.

        Raises TypeError for a policy with an expression that was not compiled: `fast_eligibility` excludes these.
        """
        compiled = bound.compiled
        evaluated = tuple(compiled.list_evaluated())
        messages = tuple(message for _, _, message in compiled.validations if message is not None)
        self._compiled = compiled
        self._conditions = tuple(_generate_test(expression) for _, expression in compiled.conditions)
        self._validations = tuple(_generate_test(expression) for _, expression, _ in compiled.validations)
        self._values = tuple(_generate_test(expression) for expression in compiled.annotations)
        self._variable_functions = generate_functions(compiled.variables)
        fast = bound.evaluator.fast_form(compiled, kind) or FastForm()
        self._further_tests, self._own_evaluation = fast.tests, fast.own
        object_paths = (
            path
            for expression in (*evaluated, *messages)
            for path in expression.paths
            if path[0] in ("object", "oldObject")
        )
        self._paths = _select_outermost(path[1:] for path in object_paths)
        self._ranges = tuple(sorted(compiled.cost_bounds.ranges)) if compiled.cost_bounds else ()
        self._fits_by_lengths: dict[tuple[object, ...], bool] = {}
        self._tests: dict[int, PassTest] = {}
        self._reads_request = any(expression.reads("request") for expression in evaluated)
        self._messages_read_request = any(message.reads("request") for message in messages)
        self._user = context.user
        wants_namespace = reads_namespace(compiled)
        self._whole_namespace = read_typed_namespace(
            context.find_namespace(namespace) if namespace and wants_namespace else None
        )
        self._namespace = filter_namespace(self._whole_namespace)
        self._form = make_request_form(choice.operation, kind, original, context.user)
        self._fixed_sizes = {
            "request": _add_sizes(cel.find_document_extent(self._form.fill("", "")), _NAMES),
            "namespaceObject": cel.find_document_extent(self._whole_namespace),
            "params": cel.find_document_extent(choice.param.body if choice.param else None),
        }
        self._params = {"params": choice.param.body if choice.param else None} if bound.policy.param_kind else {}
        self.bound, self.original, self.param = bound, original, choice.param
        self.operation, self.bindings = choice.operation, choice.bindings
        self.invocations = tuple(Invocation(bound.policy, binding, choice.param) for binding in choice.bindings)
        self.forms = tuple(FindingForms(invocation, compiled.checks) for invocation in self.invocations)
        self.checks = compiled.checks
        self._sole = self._find_sole_validation()
        self.violation = self._make_violation()
        further_inputs = (self._reads_request, self._own_evaluation is not None, wants_namespace)
        self.needs = (choice.operation, original, *further_inputs, id(bound) if self._params else None)

    def use_fallback(self) -> None:
        """Call the programs, which have several forms, instead of their first generated functions."""
        self._conditions = tuple(_get_fallback(expression) for _, expression in self._compiled.conditions)
        self._validations = tuple(_get_fallback(expression) for _, expression, _ in self._compiled.validations)
        self._values = tuple(map(_get_fallback, self._compiled.annotations))
        self._tests.clear()

    def make_test(self, size: int) -> PassTest:
        """The test for objects whose JSON text has at most `size` bytes."""
        tests = (*self._validations, *self._further_tests)
        is_one = len(tests) == 1 and not (self._conditions or self._values)
        passes: Passes = tests[0] if is_one else self._all_hold
        holds = partial(self._holds, passes) if self._compiled.variables else passes
        size_bound = cel.SizeBound(size / 2, float(size), size / 2)
        if self._fits(size_bound):
            return PassTest(holds, self, None)
        return PassTest(partial(self._is_small_and_holds, holds, size_bound), self, size_bound)

    def leaves(self, resource: Resource, current: JsonObject, size: int) -> bool:
        """Return whether the policy certainly leaves `current` unchanged, which is the object after the changes of other policies.

        The JSON text of both objects has at most `size` bytes. False if the object would have to be measured.
        """
        test = self._tests.get(size) or self._tests.setdefault(size, self.make_test(size))
        if test.size_bound is not None:
            return False
        try:
            answer = test.passes({**self.make_inputs(resource), "object": current})
        except Exception:  # noqa: BLE001 - a later evaluation raises any error again and records it
            return False
        return answer is True or answer is SKIPPED

    def make_inputs(self, resource: Resource) -> Inputs:
        """The inputs of the expressions by name, except variables; `request` is None if no expression reads it."""
        if self._own_evaluation is not None:
            return self._own_evaluation.inputs(self.make_request(resource))
        body = resource.body
        return {
            "object": body,
            "oldObject": body if self.operation == "UPDATE" else None,
            "request": self._form.fill(resource.name, resource.namespace) if self._reads_request else None,
            "namespaceObject": self._namespace,
            **self._params,
        }

    def evaluate_checks(self, resource: Resource, not_passed: NotPassed) -> tuple[CheckResult, ...] | None:
        """The results of all checks for an object that did not simply pass.

        None if the cost must be counted, or if the policy would change the object: then `evaluate_object` decides.
        """
        compiled, inputs, size_bound = self._compiled, not_passed.inputs, not_passed.test.size_bound
        if size_bound is not None and not self._is_small(inputs, size_bound):
            return None
        if not_passed.answer is False and self._sole is not None:
            return self.violation or self._report_violation(self._sole, resource, inputs)
        if self._own_evaluation is not None:
            return self._own_evaluation.check_results(compiled, inputs)
        if compiled.conditions and (stopped := find_unmet_condition(compiled, inputs)):
            return stopped
        if self._further_tests:
            return None
        return evaluate_uncounted(compiled, inputs, self._make_message_inputs(resource, inputs), inputs)

    def _make_message_inputs(self, resource: Resource, inputs: Inputs) -> Inputs:
        """The inputs of the messages, which are the same dict unless the messages alone read the request."""
        if self._reads_request or not self._messages_read_request:
            return inputs
        return {**inputs, "request": self._form.fill(resource.name, resource.namespace)}

    def _report_violation(
        self, sole: tuple[Validation, Expression, Expression | None], resource: Resource, inputs: Inputs
    ) -> tuple[CheckResult, ...]:
        """The results for an object for which the only validation is false: its message alone is left to evaluate."""
        validation, _, message = sole
        activation = self._compiled.make_activation(self._make_message_inputs(resource, inputs))
        outcome = decide_validation(
            self._compiled, validation, value=False, text=lambda: None if message is None else run(message, activation)
        )
        return (CheckResult(self._compiled.checks[0], outcome),)

    def make_request(self, resource: Resource) -> Request:
        """The simulated request for an object."""
        return Request(
            operation=self.operation,
            original=self.original,
            matched=resource.kind,
            resource=resource,
            namespace=resource.namespace,
            namespace_object=self._whole_namespace,
            user=self._user,
        )

    def make_tally_key(
        self, binding: Binding, check: Check, outcome: OutcomeName, kind: Kind, namespace: str
    ) -> TallyKey:
        """The key under which outcomes of the policy are counted."""
        bound, param = self.bound, self.param
        policy = bound.policy
        param_names = (param.namespace, param.name) if param else ("", "")
        object_names = kind.api_version, kind.kind, namespace
        requester = bool(bound.requester) and check in bound.requester
        return TallyKey(
            policy.name, binding.name, *param_names, check, *object_names, outcome, requester, policy.language
        )

    def _find_sole_validation(self) -> tuple[Validation, Expression, Expression | None] | None:
        """The validation of a policy whose only expression, besides messages and variables, it is. Its test is that of the policy."""
        compiled = self._compiled
        if self._own_evaluation is not None or self._further_tests or compiled.conditions or compiled.watch is not None:
            return None
        return compiled.validations[0] if len(compiled.checks) == len(compiled.validations) == 1 else None

    def _make_violation(self) -> tuple[CheckResult, ...]:
        """The results for every object for which the only validation is false, if its message is fixed. Else empty."""
        if self._sole is None or self._sole[2] is not None:
            return ()
        outcome = decide_validation(self._compiled, self._sole[0], value=False, text=lambda: None)
        return (CheckResult(self._compiled.checks[0], outcome),)

    def _fits(self, size_bound: cel.SizeBound, lengths: dict[tuple[str, ...], float] | None = None) -> bool:
        """Return whether no object within this size bound can reach a cost limit."""
        cost_bounds = self._compiled.cost_bounds
        sizes = {"object": size_bound, "oldObject": size_bound, **self._fixed_sizes}
        return cost_bounds is not None and cost_bounds.is_within(sizes, lengths)

    def _is_small_and_holds(self, holds: Passes, size_bound: cel.SizeBound, inputs: Inputs) -> object:
        return self._is_small(inputs, size_bound) and holds(inputs)

    def _is_small(self, inputs: Inputs, size_bound: cel.SizeBound) -> bool:
        """Return whether this object cannot reach a limit: by the lengths of its lists, or by the size of its read parts."""
        lengths = tuple([(cel.count_entries(inputs, path) - 1).bit_length() for path in self._ranges])
        key = (size_bound, lengths)
        fits = self._fits_by_lengths.get(key)
        if fits is None:
            list_lengths = {path: float(1 << length) for path, length in zip(self._ranges, lengths, strict=True)}
            fits = self._fits_by_lengths[key] = self._fits(size_bound, list_lengths)
        return fits or self._fits(cel.find_document_extent([_get_part(inputs["object"], path) for path in self._paths]))

    def _holds(self, passes: Passes, inputs: Inputs) -> object:
        return passes(
            {**inputs, "variables": FastVariables(self._compiled.variables, inputs, self._variable_functions)}
        )

    def _all_hold(self, inputs: Inputs) -> object:
        for holds in self._conditions:
            met = holds(inputs)
            if met is not True:
                return SKIPPED if met is False and self._own_evaluation is None else False
        for holds in self._validations:
            if holds(inputs) is not True:
                return False
        for passes in self._further_tests:
            if not passes(inputs):
                return False
        for value in self._values:
            annotation = value(inputs)
            if annotation.__class__ is not str and (annotation is not None or self._own_evaluation is not None):
                return False
        return True


def reads_namespace(compiled: CompiledPolicy) -> bool:
    """Return whether an expression of the policy reads the Namespace object."""
    return any(expression.reads("namespaceObject") for _, expression in compiled.expressions())


def _generate_test(expression: Expression) -> Passes:
    program = expression.program
    if program is None:
        raise TypeError
    return program.generate() or program.evaluate


def _get_fallback(expression: Expression) -> Passes:
    program = expression.program
    if program is None:
        raise TypeError
    return program.evaluate


def _select_outermost(paths: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The paths that are not inside another path."""
    outermost: list[tuple[str, ...]] = []
    for path in sorted(set(paths)):
        if not any(path[: len(outer)] == outer for outer in outermost):
            outermost.append(path)
    return tuple(outermost)


def _get_part(value: object, path: tuple[str, ...]) -> object:
    """The value at a path, or the whole list that the path leads through."""
    for key in path:
        if not isinstance(value, dict):
            return value
        value = value.get(key)
    return value


def _add_sizes(size_bound: cel.SizeBound, other: cel.SizeBound) -> cel.SizeBound:
    return cel.SizeBound(*(left + right for left, right in zip(size_bound, other, strict=True)))


# The variables of a policy for one object, by generated functions where these have a value.

Function: TypeAlias = "Callable[[Mapping[str, object]], cel.Value]"
"""Returns the value of a variable for some inputs, or raises any exception where only its program has the outcome."""


class FastVariables(Variables):
    """The variables of a policy for one object. Where a function raises, the program of the variable decides."""

    __slots__ = ("_functions",)

    def __init__(
        self, expressions: Mapping[str, Expression], inputs: Mapping[str, object], functions: Mapping[str, Function]
    ) -> None:
        """Take the variables, the inputs that they read, and the functions of some of them."""
        super().__init__(expressions, inputs)
        self._functions = functions

    def _evaluate(self, name: str, expression: cost_budget.ProgramSource) -> cel.Value:
        function = self._functions.get(name)
        if function is None or (self._failures and name in self._failures):
            return super()._evaluate(name, expression)
        try:
            return function(self._inputs)
        except Exception:  # noqa: BLE001 - the program raises any error again
            return super()._evaluate(name, expression)


def generate_functions(variables: Mapping[str, Expression]) -> dict[str, Function]:
    """The generated functions of variables that read no other variables; names that may be escaped have none."""
    functions = {name: _generate_function(expression) for name, expression in variables.items() if "__" not in name}
    return {name: function for name, function in functions.items() if function is not None}


def _generate_function(expression: Expression) -> Function | None:
    if expression.program is None or expression.reads("variables"):
        return None
    return expression.program.generate()
