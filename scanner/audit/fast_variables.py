"""The variables of a policy for one object, by generated functions where these have a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from scanner import cel
from scanner.admission import cost_budget
from scanner.admission.compiled import Expression
from scanner.admission.cost_budget import Variables

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

    def _evaluated(self, name: str, expression: cost_budget.Expression) -> cel.Value:
        function = self._functions.get(name)
        if function is None or (self._failures and name in self._failures):
            return super()._evaluated(name, expression)
        try:
            return function(self._inputs)
        except Exception:  # noqa: BLE001 - the program raises any error again
            return super()._evaluated(name, expression)


def functions_of(variables: Mapping[str, Expression]) -> dict[str, Function]:
    """The generated functions of variables that read no other variables; names that may be escaped have none."""
    functions = {name: _function(expression) for name, expression in variables.items() if "__" not in name}
    return {name: function for name, function in functions.items() if function is not None}


def _function(expression: Expression) -> Function | None:
    if expression.program is None or expression.reads("variables"):
        return None
    return expression.program.generate()
