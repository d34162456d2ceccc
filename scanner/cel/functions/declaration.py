"""The declaration of a function: its overloads, its implementations, the cost of calls, and the facts that the passes need.

Mirrors cel-go's function declarations. A call that the checker has resolved to one overload runs that one, after a check of
the arguments' types; any other call tries the overloads in their order. `shared` replaces both for the operators, which check
their operands themselves.

All facts about a function are in its declaration. Only the operators that do not evaluate all their operands, and the
indexes, are handled by name elsewhere: they are syntax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.errors import EvaluationError
from scanner.cel.values.values import Duration, KeyedMap, Timestamp, type_of

if TYPE_CHECKING:
    from scanner.cel.functions.pricing import Cost, Price
    from scanner.cel.functions.python_forms import PythonForm
    from scanner.cel.functions.result_sizes import ResultSize
    from scanner.cel.releases import ReleaseChange, Version
    from scanner.cel.syntax.macros import Macro
    from scanner.cel.types.type_system import Type
    from scanner.cel.values.values import Value

Run: TypeAlias = "Callable[..., Value]"


class ArgumentFlow(Enum):
    """The flow of a call's arguments into its result."""

    COMPUTES = "the result is computed from them"
    PASSES = "the result is one of them, or what is inside of one"
    CARRIES = "the result is put together from them"
    SORTS = "the result has the elements of the first, and is computed from the others"
    READS = "the result is a part of the first, which the others choose"
    COUNTS = "only their shape counts"


@dataclass(frozen=True, slots=True)
class Tracker:
    """The argument that upstream's cost tracker asserts to be a list or an int, without a check of its type."""

    argument: int
    type: type[list[object] | int]


_RECEIVERS = frozenset({str, Timestamp, Duration})
"""Types whose values raise their own errors for operators that they lack."""


@dataclass(frozen=True, slots=True)
class Overload:
    """A signature. The receiver of a member call is the first of `arguments`.

    `run` takes the arguments as values; it may trust their types. None: the evaluator has its own way (logic, indexes).
    `price` replaces that of the function in calls that the checker has resolved to this overload.
    """

    id: str
    arguments: tuple[Type, ...]
    result: Type
    run: Run | None = None
    member: bool = False
    price: Price | None = None
    tracker: Tracker | None = None

    def list_free_types(self) -> tuple[Type, ...]:
        """Return the type parameters of the signature, without repetition."""
        return _list_free_types((*self.arguments, self.result))

    def accepts(self, values: tuple[Value, ...]) -> bool:
        """Return whether the arguments have the declared run-time types."""
        return len(values) == len(self.arguments) and all(map(is_assignable_at_run_time, self.arguments, values))


@dataclass(frozen=True, slots=True)
class Function:
    """All overloads of one name.

    - `shared`: the implementation of all of them; `operands`: the classes of the first argument there (None: all).
      `guarded=False`: the overload itself rejects wrong types.
    - `cost`: the price of calls and its bound. None: a call costs 1, as upstream, and an evaluation with one is always counted.
    - `result`: the maximum extent of a result that is not a number, bool or the like. None: unlimited.
    - `flow`: the flow of the arguments into the result.
    - `folds`: a call with a constant argument is a constant; when it fails, so does the expression.
    - `with_pattern`: runs a call whose second argument is a constant pattern, compiled beforehand.
    - `on_joined`: replaces the comparison where its first argument is a list that `+` has joined.
    - `python`: the Python operation that replaces it.
    - `in_turn`: upstream evaluates no argument of a call after one that fails, however few there are.
    - `parses`: makes a value of a text, always an equal one; `only_reads`: leaves its arguments as they are.
    """

    name: str
    overloads: tuple[Overload, ...]
    shared: Run | None = None
    operands: frozenset[type] | None = None
    guarded: bool = True
    cost: Cost | None = None
    result: ResultSize | None = None
    flow: ArgumentFlow = ArgumentFlow.COMPUTES
    folds: bool = False
    with_pattern: Run | None = None
    on_joined: Run | None = None
    python: PythonForm | None = None
    in_turn: bool = False
    parses: bool = False
    only_reads: bool = False

    def merge(self, other: Function) -> Function:
        """Return this function with another library's overloads added.

        Raises `ValueError` where the libraries declare different things of the function.
        """
        if replace(self, overloads=()) != replace(other, overloads=()):
            message = f"two libraries declare different things of {self.name}"
            raise ValueError(message)
        return replace(self, overloads=(*self.overloads, *other.overloads))

    def find_run(self, overload_ids: tuple[str, ...]) -> Run:
        """Return the implementation of a call with these candidate overloads; it raises EvaluationError for other arguments."""
        if self.shared is not None:
            return self._guard_shared(self.shared)
        if len(overload_ids) == 1:
            return self._guard_single(next(overload for overload in self.overloads if overload.id == overload_ids[0]))
        return self._dispatch

    def find_overload(self, overload_ids: tuple[str, ...]) -> Overload | None:
        """Return the overload of a call with these candidates; None where several are possible."""
        if len(overload_ids) != 1:
            return None
        return next((overload for overload in self.overloads if overload.id == overload_ids[0]), None)

    def find_unguarded_run(self, overload_ids: tuple[str, ...]) -> Run | None:
        """Return the implementation of a call's overload without checks, for arguments that certainly have its types.

        None where several overloads are possible, and for an overload without an implementation of its own.
        """
        overload = self.find_overload(overload_ids)
        return None if overload is None else overload.run

    def price(self, overload_ids: tuple[str, ...], version: Version) -> Price | None:
        """Return the price of a call with these candidate overloads in a Kubernetes release; None: it costs 1."""
        overload = self.find_overload(overload_ids)
        own_price = None if overload is None or overload.price is None else overload.price.price_in(version)
        return own_price if own_price is not None or self.cost is None else self.cost.price.price_in(version)

    def _guard_shared(self, shared: Run) -> Run:
        operands = self.operands
        if operands is None:
            return shared

        def run(*values: Value) -> Value:
            if type(values[0]) in operands:
                return shared(*values)
            if type(values[0]) in _RECEIVERS:
                raise EvaluationError("no such overload")
            raise EvaluationError(f"no such overload: {self.name}")

        return run

    def _guard_single(self, overload: Overload) -> Run:
        run = overload.run
        if run is None or not self.guarded:
            return run or self._dispatch

        def guarded(*values: Value) -> Value:
            if overload.accepts(values):
                return run(*values)
            raise self._make_no_overload(values)

        return guarded

    def _dispatch(self, *values: Value) -> Value:
        for overload in self.overloads:
            if overload.run is not None and (not self.guarded or overload.accepts(values)):
                return overload.run(*values)
        raise self._make_no_overload(values)

    def _make_no_overload(self, values: tuple[Value, ...]) -> EvaluationError:
        names = ", ".join(type_of(value).name for value in values)
        return EvaluationError(f"no such overload: {self.name}({names})")


@cache
def _list_free_types(types: tuple[Type, ...]) -> tuple[Type, ...]:
    parameters: dict[Type, None] = {}
    for type_ in types:
        if type_.family == "parameter":
            parameters[type_] = None
        parameters.update(dict.fromkeys(_list_free_types(type_.parameters)))
    return tuple(parameters)


def is_assignable_at_run_time(declared: Type, value: Value) -> bool:
    """Return whether a value may be an argument of a declared type; of lists and maps the first entry decides."""
    match declared.family:
        case "dyn" | "any" | "parameter":
            return True
        case "list":
            return type(value) is list and (not value or is_assignable_at_run_time(declared.parameters[0], value[0]))
        case "map":
            return _is_map_of(declared, value)
        case _:
            return declared.name == type_of(value).name


def _is_map_of(declared: Type, value: Value) -> bool:
    if type(value) is not dict and type(value) is not KeyedMap:
        return False
    for key, item in value.items():
        return is_assignable_at_run_time(declared.parameters[0], key) and is_assignable_at_run_time(
            declared.parameters[1], item
        )
    return True


def declare_member(
    id_: str,
    arguments: tuple[Type, ...],
    result: Type,
    run: Run | None = None,
    *,
    price: Price | None = None,
    tracker: Tracker | None = None,
) -> Overload:
    """Return the overload of a member call `first.name(rest)`."""
    return Overload(id_, arguments, result, run, member=True, price=price, tracker=tracker)


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """The functions that one file adds to the environment.

    `types`: those whose names expressions may use. `since`: the Kubernetes minor version that brought it; `brought_by` and
    `ended_by`: the changes of cel-go that did. A `gated` one came with Kubernetes and not with cel-go. `macros`: name, number of
    arguments (`ANY_NUMBER`), whether it is a member call, and the expansion. Libraries are compared as objects: environments are
    keys.
    """

    name: str
    functions: tuple[Function, ...]
    types: tuple[Type, ...] = ()
    since: Version = (1, 0)
    brought_by: ReleaseChange | None = None
    ended_by: ReleaseChange | None = None
    gated: bool = True
    macros: tuple[Macro, ...] = ()

    def is_part_of(self, version: Version, features: Version) -> bool:
        """Return whether a version has the library; `features` is the version whose gated libraries may be used."""
        if self.brought_by is not None and not self.brought_by.holds(version):
            return False
        if self.ended_by is not None and self.ended_by.holds(version):
            return False
        return self.since <= (features if self.gated else version)
