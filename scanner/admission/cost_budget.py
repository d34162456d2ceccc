"""The cost budget that the expressions of an invocation share, and their evaluation within the budget.

Source of truth: `evaluationActivation.Evaluate` and the limits in `apiserver/pkg/apis/cel` of kube-apiserver 1.36.
Nearly always a bound proves beforehand that no limit can be exceeded; then the cost is not counted.

Rules: `docs/semantics/cost.md#limits`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from scanner import cel
from scanner.cel import SizeBound

RUNTIME = 10_000_000
"""The budget of the validations and their messages; the audit annotations have an equal one, and so does each mutation."""
CONDITIONS = 2_500_000
EXHAUSTED = "validation failed due to running out of cost budget, no further validation rules will be run"
# An escaped field name is unescaped before the look-up, and no variable has the unescaped name.
_ESCAPED = re.compile("__[^_]+__")
_ROOTS = ("object", "oldObject", "params", "request", "namespaceObject")
_GENEROSITY = 3
"""The number of doublings of the size that are tried first, because a bound for larger documents holds for many."""
_AUTHORIZERS = ("authorizer", "authorizer.requestResource")


class BudgetUse(Struct):
    """The largest share of a limit that evaluations used: of a budget, or of the cost limit of one expression.

    A share is a fraction: 1.0 is the whole limit.
    """

    worst: float = 0.0

    def record(self, share: float) -> None:
        """Keep a share (a fraction) if it is the largest so far."""
        self.worst = max(self.worst, share)


class CostBudget:
    """The rest of a budget, in units of CEL cost."""

    __slots__ = ("_budget_use", "_whole", "left")

    def __init__(self, left: int, budget_use: BudgetUse | None = None) -> None:
        self.left = left
        self._whole = left
        self._budget_use = budget_use

    def charge(self, amount: int) -> bool:
        """Subtract an amount of CEL cost and return True, or return False if the rest is smaller."""
        if self._budget_use:
            spent = self._whole - self.left + amount
            self._budget_use.record(min(1.0, max(spent / self._whole, amount / cel.PER_CALL_LIMIT)))
        if amount > self.left:
            return False
        self.left -= amount
        return True


class ProgramSource(Protocol):
    """The text of an expression and its program, or the reason why it has none."""

    @property
    def text(self) -> str:
        """The expression as the manifest has it."""
        ...

    @property
    def program(self) -> cel.Program | None:
        """The program, or None when the expression does not compile."""
        ...

    @property
    def fault(self) -> str:
        """The compilation error, or an empty string."""
        ...


class EvaluationFault(Struct, frozen=True):
    """The reason why an expression has no value. With `ends` the budget is exhausted for all expressions that share it."""

    text: str
    ends: bool = False


class Variables(cel.Lazy):
    """The composited variables of one activation: evaluated on first use; the value or the error is kept.

    `inputs` are the values that variables may name, besides other variables. With `metered`, the cost of a variable is kept until
    the expression that reads the variable charges it to the budget.
    """

    __slots__ = ("_expressions", "_failures", "_inputs", "_owed", "metered")

    def __init__(
        self, expressions: Mapping[str, ProgramSource], inputs: Mapping[str, object], *, metered: bool = False
    ) -> None:
        self.entries = {}  # instead of a call of `super().__init__`, which takes half as long as all the rest
        self._expressions = expressions
        self._inputs = inputs
        self._failures: dict[str, str] | None = None
        self._owed = 0
        self.metered = metered

    def names(self) -> Iterable[str]:
        """The names of the variables."""
        return self._expressions

    def find(self, name: str) -> tuple[cel.Value] | None:
        """The value of a variable, or None for an unknown name. Raises EvaluationError, the same every time."""
        if name in self.entries:
            return (self.entries[name],)
        return (self.read(name),) if self._find_expression(name) else None

    def read(self, name: str) -> cel.Value:
        """The value of a variable that was not read yet. Raises KeyError for an unknown name, and EvaluationError as `find`."""
        expression = self._find_expression(name)
        if expression is None:
            raise KeyError(name)
        value = self.entries[name] = self._evaluate(name, expression)
        return value

    def _find_expression(self, name: str) -> ProgramSource | None:
        return None if "__" in name and _ESCAPED.search(name) else self._expressions.get(name)

    def take_unpaid_cost(self) -> int:
        """Return the cost of variables since the last call, in units of CEL cost, and reset it."""
        unpaid_cost, self._owed = self._owed, 0
        return unpaid_cost

    def _evaluate(self, name: str, expression: ProgramSource) -> cel.Value:
        """The value of a variable. The text of an error is kept: an exception would keep its frames and their values in memory."""
        program = expression.program
        if program is None:
            raise cel.EvaluationError(f'composited variable "{name}" fails to compile: {expression.fault}')
        if self._failures is None or name not in self._failures:
            inputs = {**self._inputs, "variables": self} if "variables" in program.roots else self._inputs
            try:
                return self._measure(program, inputs) if self.metered else program.evaluate(inputs)
            except cel.EvaluationError as error:
                self._failures = {} if self._failures is None else self._failures
                self._failures[name] = f'composited variable "{name}" fails to evaluate: {error}'
        raise cel.EvaluationError(self._failures[name])

    def _measure(self, program: cel.Program, inputs: Mapping[str, object]) -> cel.Value:
        measured = program.measure(inputs)
        self._owed += measured.cost
        if isinstance(measured.outcome, cel.EvaluationError):
            raise measured.outcome
        return measured.outcome


def run(
    expression: ProgramSource, activation: Mapping[str, object], cost_budget: CostBudget | None = None
) -> cel.Value | EvaluationFault:
    """The value of an expression, or the reason why it has none. Its cost is counted if there is a budget."""
    if expression.program is None:
        return EvaluationFault(f"compilation error: {expression.fault}")
    if cost_budget is not None:
        return _measure_paid(expression.text, expression.program, activation, cost_budget)
    try:
        return expression.program.evaluate(activation)
    except cel.EvaluationError as error:
        return _make_fault(expression.text, error)


def _measure_paid(
    text: str, program: cel.Program, activation: Mapping[str, object], cost_budget: CostBudget
) -> cel.Value | EvaluationFault:
    measured = program.measure(activation)
    variables = activation.get("variables")
    unpaid_cost = variables.take_unpaid_cost() if isinstance(variables, Variables) else 0
    if not (cost_budget.charge(unpaid_cost) and cost_budget.charge(measured.cost)):
        return EvaluationFault(EXHAUSTED, ends=True)
    if isinstance(measured.outcome, cel.EvaluationError):
        return _make_fault(text, measured.outcome)
    return measured.outcome


def _make_fault(text: str, error: cel.EvaluationError) -> EvaluationFault:
    return EvaluationFault(f"expression '{text}' resulted in error: {error}")


def run_all(
    expressions: Iterable[ProgramSource | None], activation: Mapping[str, object], cost_budget: CostBudget
) -> list[cel.Value | EvaluationFault] | EvaluationFault:
    """The value of each expression, None for an absent expression; a single fault if the budget is exhausted."""
    values: list[cel.Value | EvaluationFault] = []
    for expression in expressions:
        value = None if expression is None else run(expression, activation, cost_budget)
        if isinstance(value, EvaluationFault) and value.ends:
            return value
        values.append(value)
    return values


# --- when nothing has to be counted


class BudgetGroup(Struct, frozen=True):
    """Programs that share one budget, in units of CEL cost."""

    budget: int
    programs: tuple[cel.Program, ...]


class _LatestSizes:
    """The sizes of the latest documents: many policies evaluate the same object."""

    __slots__ = ("_extents", "_sizes")

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[object, int]] = {}
        self._extents: dict[str, tuple[object, SizeBound]] = {}

    def size(self, root: str, document: object) -> int:
        """The size of a document, by a fast estimate."""
        cached = self._sizes.get(root)
        if cached is None or cached[0] is not document:
            cached = self._sizes[root] = (document, cel.measure_document(document))
        return cached[1]

    def extent(self, root: str, document: object) -> SizeBound:
        """The size bound of a document, from a walk over all of its values."""
        cached = self._extents.get(root)
        if cached is None or cached[0] is not document:
            extent = cel.find_document_extent(document)._replace(widest=cel.find_widest(document))
            cached = self._extents[root] = (document, extent.round_up())
        return cached[1]


_LATEST = _LatestSizes()


def _is_no_more(extents: tuple[SizeBound, ...], than: tuple[SizeBound, ...]) -> bool:
    """Return whether no bound is larger than its counterpart."""
    return all(bound <= other for pair in zip(extents, than, strict=True) for bound, other in zip(*pair, strict=True))


class CostBounds:
    """Upper bounds of the cost of a policy's expressions, derived from the size of their inputs."""

    __slots__ = ("_fitting", "_largest", "_misfits", "_roots", "_shares", "_smallest_misfit", "_variables")

    def __init__(self, variables: Mapping[str, ProgramSource], shares: Sequence[BudgetGroup]) -> None:
        self._variables = {
            name: expression.program for name, expression in variables.items() if expression.program is not None
        }
        self._shares = tuple(share for share in shares if share.programs)
        roots = {path[0] for program in self._list_programs() for path in program.reads}
        self._roots = tuple(root for root in _ROOTS if root in roots)
        self._largest = -1
        self._smallest_misfit = cel.LARGEST_SIZE + 1
        self._fitting: list[tuple[SizeBound, ...]] = []
        self._misfits: list[tuple[SizeBound, ...]] = []

    def _list_programs(self) -> Iterator[cel.Program]:
        yield from self._variables.values()
        yield from (program for share in self._shares for program in share.programs)

    def is_within_limits(self, activation: Mapping[str, object]) -> bool:
        """Return whether no limit can be exceeded with these inputs; False if only counting can decide."""
        largest = self._largest
        for root in self._roots:
            if _LATEST.size(root, activation.get(root)) > largest:
                return self._is_within_closely(activation)
        return largest >= 0 or self._is_within_size(0)

    def _is_within_closely(self, activation: Mapping[str, object]) -> bool:
        documents = [(root, activation.get(root)) for root in self._roots]
        size = max(_LATEST.size(*document) for document in documents)
        return self._is_within_size(size) or self._fits(tuple(_LATEST.extent(*document) for document in documents))

    @property
    def ranges(self) -> frozenset[tuple[str, ...]]:
        """The paths into `object` and `oldObject` over whose elements loops run."""
        return frozenset().union(*(program.ranges for program in self._list_programs()))

    def is_within(
        self, extents: Mapping[str, SizeBound], lengths: Mapping[tuple[str, ...], float] | None = None
    ) -> bool:
        """Return whether no limit can be exceeded if the variables of the environment stay within these bounds.

        `extents` are size bounds by variable. `lengths` are the known lengths of `ranges`, in elements.
        """
        rounded = tuple(extents.get(root, cel.NOTHING).round_up() for root in self._roots)
        return self._adds_up(rounded, lengths) if lengths else self._fits(rounded)

    def _is_within_size(self, size: int) -> bool:
        """Return whether no limit can be exceeded with any documents of this size."""
        for larger in (min(size + _GENEROSITY, cel.LARGEST_SIZE), size):
            if self._largest < larger < self._smallest_misfit:
                if self._adds_up((cel.bound_extent(larger),) * len(self._roots)):
                    self._largest = larger
                else:
                    self._smallest_misfit = larger
        return size <= self._largest

    def _fits(self, extents: tuple[SizeBound, ...]) -> bool:
        """Return whether these bounds stay within the limits. Much larger bounds are tried first, to answer for more objects."""
        if any(_is_no_more(extents, fitting) for fitting in self._fitting):
            return True
        for larger in (tuple(extent.times(1 << _GENEROSITY) for extent in extents), extents):
            if any(_is_no_more(misfit, larger) for misfit in self._misfits):
                continue
            if self._adds_up(larger):
                self._fitting.append(larger)
                return True
            self._misfits.append(larger)
        return False

    def _adds_up(self, inputs: tuple[SizeBound, ...], lengths: Mapping[tuple[str, ...], float] | None = None) -> bool:
        known_lengths = lengths or {}
        extents = dict(zip(self._roots, inputs, strict=True)) | dict.fromkeys(_AUTHORIZERS, cel.NOTHING)
        common = list(self._bound_variables(extents, known_lengths))
        total = sum(common)
        for share in self._shares:
            costs = [program.bound(extents, known_lengths).cost for program in share.programs]
            # Twice, as validations and their messages share a budget and evaluate the variables in an activation each.
            if max(costs) > cel.PER_CALL_LIMIT or sum(costs) + 2 * total > share.budget:
                return False
        return max(common, default=0.0) <= cel.PER_CALL_LIMIT

    def _bound_variables(
        self, extents: dict[str, SizeBound], lengths: Mapping[tuple[str, ...], float]
    ) -> Iterator[float]:
        """Yield the cost of each variable, and add the size bound of its value to `extents` for the expressions after it."""
        for name, program in self._variables.items():
            cost, extents[f"variables.{name}"] = program.bound(extents, lengths)
            yield cost
