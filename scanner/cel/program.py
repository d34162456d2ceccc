"""From text to something that can be evaluated: the passes in their order, and their errors: in upstream's words, those of syntax in Assay's own.

Rules: `docs/semantics/messages.md#errors-of-expressions`.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from scanner.cel.analysis import deep_reads, flows, reads
from scanner.cel.analysis.analysis import Analysis
from scanner.cel.analysis.constants import fold
from scanner.cel.checking.checker import check
from scanner.cel.checking.validators import validate
from scanner.cel.cost import bounds, metered
from scanner.cel.cost.meter import PER_CALL_LIMIT, Meter
from scanner.cel.errors import (
    CompileError,
    CostExceeded,
    EvaluationError,
    ExpressionTooLarge,
    InstantiationError,
    Interrupted,
)
from scanner.cel.evaluation import exact
from scanner.cel.evaluation.frame import MISSING
from scanner.cel.generation import fast
from scanner.cel.releases import RESULT_TYPES, TYPED_PAIRS
from scanner.cel.stack import run_with_room
from scanner.cel.syntax import parser, syntax_errors
from scanner.cel.syntax.source import Source
from scanner.cel.types.type_system import is_untyped
from scanner.cel.values.exact_only import EXACT_ONLY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scanner.cel.checking.checker import CheckedTree
    from scanner.cel.checking.env import Environment
    from scanner.cel.cost.bounds import Bound
    from scanner.cel.syntax.tree import Node
    from scanner.cel.types.type_system import Type
    from scanner.cel.values.extent import SizeBound
    from scanner.cel.values.values import Value


_UNTYPED = "unexpected compilation error: missing type conversion to proto: "
_LARGEST_TYPE = 300
"""The limit of nesting, Assay's own; a single expression nests less."""
_WORTH_GENERATING = 3
"""The number of evaluations by closures before the function is generated: many expressions are evaluated only a few times."""


class Measurement(NamedTuple):
    """The result of a measured evaluation: its value or error, and its cost in CEL's cost units."""

    outcome: Value | EvaluationError
    cost: int


class Program:
    """A compiled expression.

    `reads`: the access paths it reads, as tuples of names beginning with a variable; `roots`: the variables that it reads at all.
    `size`: its number of nodes. `evaluate` does not count the cost; `measure` does, and takes a few times as long.
    """

    __slots__ = (
        "_evaluated",
        "_fast",
        "_function",
        "_is_absorbing",
        "_is_generated",
        "_metered",
        "_planned",
        "_refusal",
        "_room",
        "_watch",
        "analysis",
        "reads",
        "result_type",
        "roots",
        "size",
        "text",
    )

    def __init__(self, text: str, analysis: Analysis, planned: exact.ExactPlan) -> None:
        root, checked, declared = analysis.root, analysis.checked, analysis.environment.variables
        self.text = text
        self.result_type: Type = checked.types[root.id]
        self.reads = reads.find_paths(root, checked, frozenset(name for name, _ in declared))
        self.size = len(checked.types)
        self.analysis = analysis
        self._evaluated = 0
        self._fast: fast.Fast | None = None
        self._function: fast.Fast | None = None
        self._refusal: fast.Refusal | None = None
        self._is_absorbing = False
        self._is_generated = False
        self._watch = fast.Watch(None)
        self._metered: metered.CountingPlan | None = None
        self._planned = planned
        self.roots = planned.roots
        self._room: list[Value] = [None] * (planned.size - len(planned.roots))

    def evaluate(self, activation: Mapping[str, object]) -> Value:
        """Return the value for these variables; raise `EvaluationError` with upstream's text.

        The values are documents and CEL values (`scanner.cel.values.values`), by the names of variables; an absent name is an error
        where the expression reads it.
        """
        if EXACT_ONLY.blocks:
            return self.evaluate_exactly(activation)
        if self._fast is not None:
            try:
                return self._fast(activation)
            except Exception:  # noqa: BLE001 - after any exception the closures decide
                self._fast = self._watch.count_fallback() or self._build_next_form()
        elif self._evaluated < _WORTH_GENERATING:
            self._evaluated += 1
            if self._evaluated == _WORTH_GENERATING:
                self.generate()
        # Most evaluations end in an error, so that the commonest error is found without the closures.
        elif self._refusal is not None:
            try:
                error = self._refusal(activation)
            except Exception:  # noqa: BLE001 - after any exception the closures decide
                error = None
            if error is not None:
                raise error
        return self.evaluate_exactly(activation)

    def generate(self) -> fast.Fast | None:
        """Return the generated function, used from now on; None for an expression that only the closures can evaluate.

        It is generated once; later calls return the same function.
        """
        if not self._is_generated:
            self._is_generated = True
            analysis = self.analysis
            self._function = fast.build(
                self.text, analysis.root, analysis.checked, analysis.folded, analysis.environment
            )
            self._fast = self._function
            self._watch = fast.Watch(self._function)
        return self._function

    @property
    def is_generated(self) -> bool:
        """True if a generated function evaluates at present; False if only the closures do."""
        return self._fast is not None

    def _build_next_form(self) -> fast.Fast | None:
        """Return the absorbing form, the first time; None when that fell back, too, so that most evaluations end in an error."""
        function = None if self._is_absorbing else self.absorbing()
        self._is_absorbing = True
        self._watch = fast.Watch(function)
        if function is None:
            self._refusal = self.refusal()
        return function

    def absorbing(self) -> fast.Fast | None:
        """Return the absorbing form of the generated function; None where it would be the usual form, or there is no function."""
        analysis = self.analysis
        return fast.build(
            self.text, analysis.root, analysis.checked, analysis.folded, analysis.environment, absorbing=True
        )

    def refusal(self) -> fast.Refusal | None:
        """Return a function that has the error of evaluations whose first path is absent; None where there is no such function."""
        analysis = self.analysis
        return fast.build_refusal(self.text, analysis.root, analysis.checked, analysis.folded, analysis.environment)

    def depths(self) -> frozenset[deep_reads.Path]:
        """Return the paths that the expression reads, through loops: tuples of names, `*` for any element, `#` for a shape."""
        declared = frozenset(name for name, _ in self.analysis.environment.variables)
        return deep_reads.find_deep_reads(self.analysis.root, self.analysis.checked, declared)

    def flow(self) -> flows.Flow:
        """Return the flow of the expression's inputs: those that it returns, and those from which it computes."""
        declared = frozenset(name for name, _ in self.analysis.environment.variables)
        return flows.find_flow(self.analysis.root, self.analysis.checked, declared)

    def python(self) -> str:
        """Return the generated function as Python text, for users to read; empty when there is none."""
        analysis = self.analysis
        return fast.write_python(self.text, analysis.root, analysis.checked, analysis.folded, analysis.environment)

    def evaluate_exactly(self, activation: Mapping[str, object]) -> Value:
        """Return the value for these variables by the closures alone; raise `EvaluationError` with upstream's text."""
        planned = self._planned
        get_value = activation.get
        # Each evaluation has a frame of its own, as evaluations of one program may nest.
        frame = [get_value(name, MISSING) for name in planned.roots] + self._room
        try:
            return planned.evaluate(frame)
        except RecursionError:
            # Expressions and documents may nest deeper than the usual stack allows.
            return run_with_room(lambda: planned.evaluate(frame))

    def measure(self, activation: Mapping[str, object], limit: int = PER_CALL_LIMIT) -> Measurement:
        """Return the value or the error for these variables, and the cost in cost units.

        The error is `CostExceeded` where the cost is above the limit. Counting comes first: an evaluation that it does not stop is
        evaluated again by the exact closures. Mirrors `CostTracker` of cel-go's `interpreter/runtimecost.go`.
        """
        meter = self.count(activation, limit)
        if isinstance(meter.stopped, CostExceeded | Interrupted):
            return Measurement(meter.stopped, meter.cost)
        try:
            return Measurement(self.evaluate(activation), meter.cost)
        except EvaluationError as error:
            return Measurement(error, meter.cost)

    def bound(
        self, extents: Mapping[str, SizeBound], lengths: Mapping[reads.Path, float] = MappingProxyType({})
    ) -> Bound:
        """Return the maximum cost of an evaluation in cost units, and the extent of its value, for inputs of these extents.

        `extents` are by name (`object`, `variables.x`); a name without an extent is unlimited. `lengths` are numbers of entries by
        the paths of `ranges`, as far as they are known. An evaluation whose bound is within the limits need not be measured.
        """
        analysis = self.analysis
        return run_with_room(
            lambda: bounds.find_bound(analysis.root, analysis.checked, analysis.folded, extents, lengths)
        )

    @property
    def ranges(self) -> frozenset[reads.Path]:
        """The paths into `object` and `oldObject` that loops run over, as tuples of names."""
        return bounds.find_ranges(self.analysis.root, self.analysis.checked)

    def count(self, activation: Mapping[str, object], limit: int = PER_CALL_LIMIT) -> Meter:
        """Return a meter that has counted an evaluation, to its end or until it stopped; `limit` is in cost units.

        It raises nothing: `Meter.outcome` has the value or error, `Meter.stopped` the error that ended the evaluation early.
        """
        planned, analysis = self._metered, self.analysis
        if planned is None:
            planned = run_with_room(
                lambda: metered.plan(analysis.root, analysis.checked, analysis.folded, analysis.environment)
            )
            self._metered = planned
        roots = [activation.get(name, MISSING) for name in planned.roots]
        return run_with_room(lambda: metered.count(planned, roots, limit))


@lru_cache(maxsize=8192)
def compile(text: str, env: Environment) -> Program:  # noqa: A001 (the verb of the language, as in re.compile)
    """Return the program of an expression. The last 8,192 programs are cached.

    Raises `CompileError` when the API would reject the expression, and `ExpressionTooLarge` when it exceeds a limit of Assay.
    Mirrors `CompileCELExpression` of apiserver's `pkg/admission/plugin/cel/compile.go`.
    """
    return run_with_room(lambda: _compile(text, env))


def _compile(text: str, env: Environment) -> Program:
    source = Source(text)
    root = _parse(source, env)
    checked = check(root, env)
    issues = checked.issues or validate(root, checked, env)
    if issues:
        raise _make_compile_error(source.describe(issues))
    _reject_large(checked.types[root.id])
    _reject_other_results(checked.types[root.id], env)
    if not TYPED_PAIRS.holds(env.version) and any(map(is_untyped, checked.types.values())):
        raise CompileError(_UNTYPED, _UNTYPED)
    return _make_program(text, root, checked, env)


def _make_program(text: str, root: Node, checked: CheckedTree, env: Environment) -> Program:
    try:
        analysis = Analysis(root, checked, fold(root, checked, env), env)
        return Program(text, analysis, exact.plan(root, checked, analysis.folded, env))
    except InstantiationError as error:
        message = f"program instantiation failed: {error}"
        raise CompileError(message, message) from None


def _parse(source: Source, env: Environment) -> Node:
    issue = parser.find_excess_length(source.text)
    if issue is not None:
        raise _make_compile_error(source.describe([issue]))
    try:
        root, issues = parser.parse(source.text, env.version, env.features, env.macros)
    except parser.InvalidSyntax as error:
        raise _make_compile_error(syntax_errors.describe(source, error.issues)) from None
    if issues:
        raise _make_compile_error(source.describe(issues))
    return root


def _make_compile_error(described: str) -> CompileError:
    return CompileError(described, f"compilation failed: {described}")


def _reject_large(result: Type) -> None:
    """Reject a type of too many parts.

    Types nest no deeper than expressions may; those of variables made of variables could, and double with each.
    """
    stack, size = [result], 0
    while stack:
        size += 1
        if size > _LARGEST_TYPE:
            raise ExpressionTooLarge(f"the type of an expression has more than {_LARGEST_TYPE} parts")
        stack.extend(stack.pop().parameters)


def _reject_other_results(actual: Type, env: Environment) -> None:
    allowed = env.results
    if allowed is None or actual in allowed:
        return
    suffix = f" but got {actual.full_name()}" if RESULT_TYPES.holds(env.version) else ""
    expected = (
        allowed[0].full_name() if len(allowed) == 1 else f"one of [{' '.join(type_.full_name() for type_ in allowed)}]"
    )
    message = f"must evaluate to {expected}{suffix}"
    raise CompileError(message, message)
