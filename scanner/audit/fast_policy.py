"""A policy that treats all objects of a kind in a namespace alike, evaluated without counting the cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, TypeAlias

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.conditions import unmet
from scanner.admission.context import EvaluationContext
from scanner.admission.cost_budget import Variables
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.evaluate import uncounted
from scanner.admission.evaluator import FastForm
from scanner.admission.request import Request, filtered_namespace, request_form
from scanner.model.json import JsonObject
from scanner.model.outcome import Check, CheckResult
from scanner.model.policy import Binding, Invocation, Operation
from scanner.model.resource import Kind, Resource
from scanner.model.scan import OutcomeName, TallyKey

Inputs: TypeAlias = "dict[str, object]"


Passes: TypeAlias = "Callable[[Inputs], object]"
"""Returns True for the inputs of an object that simply passes; returns another value or raises for all other inputs."""


_NAMES = cel.SizeBound(64.0, 1024.0, 64.0)
"""The size that the names of an object add to a request."""


class PassTest(NamedTuple):
    """A policy, its test for passing objects, and the size bound of an object whose parts must be measured first, else None."""

    passes: Passes
    quick: FastPolicy
    extent: cel.SizeBound | None


class NotPassed(NamedTuple):
    """A policy that an object does not simply pass, and the inputs of its expressions."""

    test: PassTest
    inputs: Inputs


class _Skip:
    """The result of a test for an object that a match condition excludes."""


SKIPS = _Skip()


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
        chosen: BindingChoice,
        kind: Kind,
        namespace: str,
        world: EvaluationContext,
    ) -> None:
        """Build the functions of a policy."""
        compiled = bound.compiled
        asked = tuple(compiled.evaluated())
        messages = tuple(message for _, _, message in compiled.validations if message is not None)
        self._compiled = compiled
        self._conditions = tuple(_function(expression) for _, expression in compiled.conditions)
        self._validations = tuple(_function(expression) for _, expression, _ in compiled.validations)
        self._values = tuple(_function(expression) for expression in compiled.annotations)
        fast = bound.evaluator.fast_form(compiled, kind) or FastForm()
        self._further_tests, self._own = fast.tests, fast.own
        read = (path for one in (*asked, *messages) for path in one.paths if path[0] in ("object", "oldObject"))
        self._paths = _outermost(path[1:] for path in read)
        self._ranges = tuple(sorted(compiled.cost_bounds.ranges)) if compiled.cost_bounds else ()
        self._answers: dict[tuple[object, ...], bool] = {}
        self._tests: dict[int, PassTest] = {}
        self._reads_request = any(expression.reads("request") for expression in asked)
        self._messages_read_request = any(message.reads("request") for message in messages)
        self._user = world.user
        wants_namespace = reads_namespace(compiled)
        self._whole_namespace = world.namespace(namespace) if namespace and wants_namespace else None
        self._namespace = filtered_namespace(self._whole_namespace)
        self._form = request_form(chosen.operation, kind, original, world.user)
        self._fixed = {
            "request": _added(cel.extent_of_document(self._form.filled("", "")), _NAMES),
            "namespaceObject": cel.extent_of_document(self._whole_namespace),
            "params": cel.extent_of_document(chosen.param.body if chosen.param else None),
        }
        self._params = {"params": chosen.param.body if chosen.param else None} if bound.policy.param_kind else {}
        self.bound, self.original, self.param = bound, original, chosen.param
        self.operation, self.bindings = chosen.operation, chosen.bindings
        self.invocations = tuple(Invocation(bound.policy, binding, chosen.param) for binding in chosen.bindings)
        self.checks = compiled.checks
        read_too = (self._reads_request, self._own is not None, wants_namespace)
        self.needs = (chosen.operation, original, *read_too, id(bound) if self._params else None)

    def use_fallback(self) -> None:
        """Call the programs, which have several forms, instead of their first generated functions."""
        self._conditions = tuple(_evaluating(expression) for _, expression in self._compiled.conditions)
        self._validations = tuple(_evaluating(expression) for _, expression, _ in self._compiled.validations)
        self._values = tuple(map(_evaluating, self._compiled.annotations))
        self._tests.clear()

    def test(self, size: int) -> PassTest:
        """The test for objects whose JSON text has at most `size` bytes."""
        asked = (*self._validations, *self._further_tests)
        is_one = len(asked) == 1 and not (self._compiled.variables or self._conditions or self._values)
        several = self._holds if self._compiled.variables else self._all_hold
        holds: Passes = asked[0] if is_one else several
        extent = cel.SizeBound(size / 2, float(size), size / 2)
        if self._fits(extent):
            return PassTest(holds, self, None)
        return PassTest(partial(self._is_small_and_holds, holds, extent), self, extent)

    def leaves(self, resource: Resource, current: JsonObject, size: int) -> bool:
        """Return whether the policy certainly leaves `current` unchanged, the object after the changes of other policies.

        The JSON text of both objects has at most `size` bytes; False if the object would have to be measured.
        """
        test = self._tests.get(size) or self._tests.setdefault(size, self.test(size))
        if test.extent is not None:
            return False
        try:
            answer = test.passes({**self.inputs(resource), "object": current})
        except Exception:  # noqa: BLE001 - a later evaluation raises any error again and records it
            return False
        return answer is True or answer is SKIPS

    def inputs(self, resource: Resource) -> Inputs:
        """The inputs of the expressions, except variables; `request` is None if no expression reads it."""
        if self._own is not None:
            return self._own.inputs(self.request(resource))
        body = resource.body
        return {
            "object": body,
            "oldObject": body if self.operation == "UPDATE" else None,
            "request": self._form.filled(resource.name, resource.namespace) if self._reads_request else None,
            "namespaceObject": self._namespace,
            **self._params,
        }

    def check_results(self, resource: Resource, held: NotPassed) -> tuple[CheckResult, ...] | None:
        """The results for an object that did not simply pass; None if its cost must be counted, or it would be changed."""
        compiled, inputs, extent = self._compiled, held.inputs, held.test.extent
        if extent is not None and not self._is_small(inputs, extent):
            return None
        if self._own is not None:
            return self._own.check_results(compiled, inputs)
        if compiled.conditions and (stopped := unmet(compiled, inputs)):
            return stopped
        if self._further_tests:
            return None
        for_messages = inputs
        if self._messages_read_request and not self._reads_request:
            for_messages = {**inputs, "request": self._form.filled(resource.name, resource.namespace)}
        return uncounted(compiled, inputs, for_messages, inputs)

    def request(self, resource: Resource) -> Request:
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

    def key(self, binding: Binding, check: Check, outcome: OutcomeName, kind: Kind, namespace: str) -> TallyKey:
        """The key under which outcomes of the policy are counted."""
        return TallyKey(
            policy=self.bound.policy.name,
            binding=binding.name,
            param_namespace=self.param.namespace if self.param else "",
            param_name=self.param.name if self.param else "",
            check=check,
            api_version=kind.api_version,
            kind=kind.kind,
            namespace=namespace,
            outcome=outcome,
            requester=check in self.bound.requester,
            language=self.bound.policy.language,
        )

    def _fits(self, extent: cel.SizeBound, lengths: dict[tuple[str, ...], float] | None = None) -> bool:
        """Return whether no object within this size bound can reach a cost limit."""
        cost_bounds = self._compiled.cost_bounds
        extents = {"object": extent, "oldObject": extent, **self._fixed}
        return cost_bounds is not None and cost_bounds.is_within(extents, lengths)

    def _is_small_and_holds(self, holds: Passes, extent: cel.SizeBound, inputs: Inputs) -> object:
        return self._is_small(inputs, extent) and holds(inputs)

    def _is_small(self, inputs: Inputs, extent: cel.SizeBound) -> bool:
        """Return whether this object cannot reach a limit: by the lengths of its lists, or by the size of its read parts."""
        lengths = tuple((cel.entries_at(inputs, path) - 1).bit_length() for path in self._ranges)
        key = (extent, lengths)
        if key not in self._answers:
            known = {path: float(1 << length) for path, length in zip(self._ranges, lengths, strict=True)}
            self._answers[key] = self._fits(extent, known)
        return self._answers[key] or self._fits(
            cel.extent_of_document([_part(inputs["object"], path) for path in self._paths])
        )

    def _holds(self, inputs: Inputs) -> object:
        return self._all_hold({**inputs, "variables": Variables(self._compiled.variables, inputs)})

    def _all_hold(self, inputs: Inputs) -> object:
        for holds in self._conditions:
            met = holds(inputs)
            if met is not True:
                return SKIPS if met is False and self._own is None else False
        for holds in self._validations:
            if holds(inputs) is not True:
                return False
        for passes in self._further_tests:
            if not passes(inputs):
                return False
        for value in self._values:
            annotation = value(inputs)
            if annotation.__class__ is not str and (annotation is not None or self._own is not None):
                return False
        return True


def reads_namespace(compiled: CompiledPolicy) -> bool:
    """Return whether an expression of the policy reads the Namespace object."""
    return any(expression.reads("namespaceObject") for _, expression in compiled.expressions())


def _function(expression: Expression) -> Passes:
    program = expression.program
    if program is None:
        raise TypeError
    return program.generate() or program.evaluate


def _evaluating(expression: Expression) -> Passes:
    program = expression.program
    if program is None:
        raise TypeError
    return program.evaluate


def _outermost(paths: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The paths that are not inside another path."""
    found: list[tuple[str, ...]] = []
    for path in sorted(set(paths)):
        if not any(path[: len(outer)] == outer for outer in found):
            found.append(path)
    return tuple(found)


def _part(value: object, path: tuple[str, ...]) -> object:
    """The value at a path, or the whole list that the path leads through."""
    for key in path:
        if not isinstance(value, dict):
            return value
        value = value.get(key)
    return value


def _added(one: cel.SizeBound, other: cel.SizeBound) -> cel.SizeBound:
    return cel.SizeBound(*(left + right for left, right in zip(one, other, strict=True)))
