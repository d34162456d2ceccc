"""The compilation of Python nodes to a function, whose tracebacks show the CEL text.

The generator is imported with the first function: a short command evaluates most expressions too seldom to generate any.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from scanner.cel.generation.python_calls import Unforeseen
from scanner.cel.syntax.source import Source

if TYPE_CHECKING:
    from scanner.cel.analysis.constants import FoldedTree
    from scanner.cel.checking.checker import CheckedTree
    from scanner.cel.checking.env import Environment
    from scanner.cel.errors import EvaluationError
    from scanner.cel.generation.codegen import GeneratedModule
    from scanner.cel.syntax.tree import Node
    from scanner.cel.values.values import Value

Fast: TypeAlias = "Callable[[Mapping[str, object]], Value]"
"""A function that returns the value for these variables, or raises any exception when the closures have to decide."""
Refusal: TypeAlias = "Callable[[Mapping[str, object]], EvaluationError | None]"
"""A function that returns the error of an evaluation, or None, or raises any exception, when the closures have to decide."""
_TRIAL = 64
_UNPRINTABLE = re.compile(r"[^ -~]")


class Watch:
    """A counter of the exceptions of a function; a function that raises for most objects is no longer used."""

    __slots__ = ("_fallen", "_function", "_hits", "_on_trial")

    def __init__(self, function: Fast | None) -> None:
        self._function = function
        self._fallen = 0
        self._hits = 0
        self._on_trial = False

    def count_fallback(self) -> Fast | None:
        """Record that the closures had to decide; return the function to call the next time, or None for no further call.

        After every `_TRIAL` exceptions a trial begins or ends. Successes are counted only during a trial, so that they cost nothing
        otherwise.
        """
        self._fallen += 1
        if self._fallen < _TRIAL:
            return self._count_hit if self._on_trial else self._function
        self._fallen = 0
        if self._on_trial and self._hits < _TRIAL:
            return None
        self._on_trial = not self._on_trial
        self._hits = 0
        return self._count_hit if self._on_trial else self._function

    def _count_hit(self, activation: Mapping[str, object]) -> Value:
        if self._function is None:
            raise Unforeseen
        value = self._function(activation)
        self._hits += 1
        return value


class _Text:
    """The CEL text, which `linecache` shows in tracebacks: a module's loader."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, _name: str) -> str:
        """Return the CEL text; `linecache` asks the loader of a module for it."""
        return self._text


def write_python(text: str, root: Node, checked: CheckedTree, folded: FoldedTree, environment: Environment) -> str:
    """Return the Python text of an expression's function; empty when only the closures can evaluate it."""
    generated = _generate_module(text, root, checked, folded, environment)
    return "" if generated is None else ast.unparse(generated.module)


def build(
    text: str,
    root: Node,
    checked: CheckedTree,
    folded: FoldedTree,
    environment: Environment,
    *,
    absorbing: bool = False,
) -> Fast | None:
    """Return the function of an expression, or None when only the closures can evaluate it.

    With `absorbing`, None also when the absorbing form would be the same function.
    """
    from scanner.cel.generation.writer import can_absorb  # noqa: PLC0415 - see above

    if absorbing and not can_absorb(root, folded):
        return None
    generated = _generate_module(text, root, checked, folded, environment, absorbing=absorbing)
    return None if generated is None else _compile_module(text, generated)


def build_refusal(
    text: str, root: Node, checked: CheckedTree, folded: FoldedTree, environment: Environment
) -> Refusal | None:
    """Return the function that has the error of an expression whose first path is absent; None where there is no such function."""
    from scanner.cel.generation.codegen import generate_refusal  # noqa: PLC0415 - see above

    generated = generate_refusal(root, checked, folded, environment, Source(text))
    if generated is None:
        return None
    ast.fix_missing_locations(generated.module)
    return cast("Refusal | None", _compile_module(text, generated))


def _compile_module(text: str, generated: GeneratedModule) -> Fast | None:
    from scanner.cel.generation.codegen import FUNCTION  # noqa: PLC0415 - see above

    names = {**generated.names, "__name__": "cel", "__loader__": _Text(text)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # a policy may contain 1.5['a'], an error when it runs
            code = compile(generated.module, f"cel: {_UNPRINTABLE.sub('?', text[:60])}", "exec", dont_inherit=True)
    except (SyntaxError, RecursionError, MemoryError):
        return None
    exec(code, names)  # noqa: S102 - generated nodes: no text of a policy was parsed as Python
    return cast("Fast", names[FUNCTION])


def _generate_module(
    text: str,
    root: Node,
    checked: CheckedTree,
    folded: FoldedTree,
    environment: Environment,
    *,
    absorbing: bool = False,
) -> GeneratedModule | None:
    from scanner.cel.generation.codegen import generate  # noqa: PLC0415 - see above
    from scanner.cel.generation.writer import NotGenerated  # noqa: PLC0415 - see above

    try:
        generated = generate(root, checked, folded, environment, Source(text), absorbing=absorbing)
        ast.fix_missing_locations(generated.module)
    except (NotGenerated, RecursionError):
        return None
    return generated
