"""The values that an expression of a Kyverno policy reads: the object, the request, and the libraries.

Source of truth: `prepareK8sData` and the request map of Kyverno 1.19. The old object of a CREATE is an empty map, not null; user
data are absent rather than empty; an empty field has no key.

Rules: `docs/semantics/kyverno.md#what-kyvernos-expressions-read`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.request import Request, make_request_kinds, make_user_info
from scanner.model.json import EMPTY, Json, JsonObject
from scanner.policies.kyverno.modes import KyvernoMode

_REPLACED = ("UPDATE", "DELETE")
METERED = "@metered"
"""A key among the values if evaluations must be counted; expressions cannot name it."""


def activation(
    request: Request, mode: KyvernoMode, library_values: Mapping[str, object], absent: JsonObject | None = EMPTY
) -> dict[str, object]:
    """The values of the declared variables, without `variables` and `exceptions`.

    `absent` is the value of an object that the request does not have.
    """
    body, old = request.resource.body, request.old_body
    if mode.numbers_as_doubles:
        body, old = doubled(body), doubled(old)
    return {
        **library_values,
        "object": absent if request.operation == "DELETE" else body,
        "oldObject": old if request.operation in _REPLACED else absent,
        "request": _request_map(request, body, old, mode),
        "namespaceObject": request.namespace_object,
    }


def _request_map(request: Request, body: Json, old: Json, mode: KyvernoMode) -> dict[str, object]:
    namespace = request.namespace if mode.server else request.resource.namespace
    named = {"name": request.resource.name, "namespace": namespace}
    return {
        **make_request_kinds(request.matched, request.original),
        **{key: value for key, value in named.items() if value},
        "operation": request.operation,
        "userInfo": make_user_info(request.user),
        "object": None if request.operation == "DELETE" else body,
        "oldObject": old if request.operation in _REPLACED else None,
        "dryRun": False,
        "options": None,
    }


def doubled(value: JsonObject) -> JsonObject:
    """The object with every number a double, as Kyverno's command line reads it."""
    return {key: with_doubles(item) for key, item in value.items()}


def with_doubles(value: Json) -> Json:
    """The value with every number a double, as after another conversion to JSON and back."""
    if isinstance(value, Mapping):
        return {key: with_doubles(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_doubles(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def evaluated(program: cel.Program, values: Mapping[str, object]) -> cel.Value | cel.EvaluationError:
    """The value of a program, or its error.

    The cost is counted if it may reach the limit of one evaluation, the only limit of Kyverno's policies.
    """
    if values.get(METERED):
        return program.measure(values).outcome
    try:
        return program.evaluate(values)
    except cel.EvaluationError as error:
        return error


def with_variables(compiled: CompiledPolicy, base: Mapping[str, object]) -> dict[str, object]:
    """A new activation that evaluates each variable on its first read."""
    return {**base, "variables": _Variables(compiled.variables, base)}


class _Variables(cel.Lazy):
    """The variables of one evaluation: the value or the error of each is kept."""

    __slots__ = ("_expressions", "_known", "_values")

    def __init__(self, expressions: Mapping[str, Expression], values: Mapping[str, object]) -> None:
        super().__init__()
        self._expressions = expressions
        self._values = values
        self._known: dict[str, cel.Value | cel.EvaluationError] = {}

    def names(self) -> Iterable[str]:
        """See cel.Lazy."""
        return self._expressions

    def find(self, name: str) -> tuple[cel.Value] | None:
        """The value of a variable, or None if it does not exist. Raises EvaluationError, the same one every time."""
        if name not in self._expressions:
            return None
        if name not in self._known:
            self._known[name] = self._evaluate(self._expressions[name])
        value = self._known[name]
        if isinstance(value, cel.EvaluationError):
            raise value
        return (value,)

    def _evaluate(self, expression: Expression) -> cel.Value | cel.EvaluationError:
        if expression.program is None:
            return cel.EvaluationError(expression.fault)
        return evaluated(expression.program, {**self._values, "variables": self})
