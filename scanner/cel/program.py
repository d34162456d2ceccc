"""From text to something that can be evaluated: the passes in their order, and their errors in upstream's words (E7)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from scanner.cel import exact, parser, reads
from scanner.cel.checker import check
from scanner.cel.depth import with_room
from scanner.cel.errors import CompileError, InstantiationError
from scanner.cel.exact import MISSING
from scanner.cel.folding import fold
from scanner.cel.lexer import UnknownCharacter
from scanner.cel.parser import NotInGrammar, TooDeep
from scanner.cel.source import NOWHERE, Issue, Source
from scanner.cel.validators import validate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scanner.cel.checker import Checked
    from scanner.cel.env import Environment
    from scanner.cel.tree import Node
    from scanner.cel.type_system import Type
    from scanner.cel.values import Value


class Program:
    """A compiled expression.

    `reads`: the access paths it reads, as tuples of names beginning with a variable.
    """

    __slots__ = ("_planned", "_room", "reads", "result_type", "text")

    def __init__(self, text: str, planned: exact.Planned, result_type: Type, paths: frozenset[reads.Path]) -> None:
        self.text = text
        self.result_type = result_type
        self.reads = paths
        self._planned = planned
        self._room: list[Value] = [None] * (planned.size - len(planned.roots))

    def evaluate(self, activation: Mapping[str, object]) -> Value:
        """Return the value for these variables; raise `EvaluationError` with upstream's text."""
        planned = self._planned
        read = activation.get
        frame = [read(name, MISSING) for name in planned.roots] + self._room
        try:
            return planned.evaluate(frame)
        except RecursionError:
            return with_room(lambda: planned.evaluate(frame))


@lru_cache(maxsize=8192)
def compile(text: str, env: Environment) -> Program:  # noqa: A001 (the verb of the language, as in re.compile)
    """Return the program of an expression; raise `CompileError` when the API would refuse it."""
    return with_room(lambda: _compile(text, env))


def _compile(text: str, env: Environment) -> Program:
    source = Source(text)
    root = _parse(source, env)
    checked = check(root, env)
    issues = checked.issues or validate(root, checked, env)
    if issues:
        raise _failed(source, issues)
    result_type = checked.types[root.id]
    _reject_other_results(result_type, env.results)
    names = frozenset(name for name, _ in env.variables)
    return Program(text, _plan(root, checked, env), result_type, reads.paths(root, checked, names))


def _plan(root: Node, checked: Checked, env: Environment) -> exact.Planned:
    try:
        return exact.plan(root, checked, fold(root, checked, env), env)
    except InstantiationError as error:
        message = f"program instantiation failed: {error}"
        raise CompileError(message, message) from None


def _parse(source: Source, env: Environment) -> Node:
    issue = parser.too_long(source.text)
    if issue is not None:
        raise _failed(source, [issue])
    try:
        root, issues = parser.parse(source.text, env.version, env.features, env.macros)
    except UnknownCharacter as unknown:
        character = source.text[unknown.offset]
        message = f"Syntax error: token recognition error at: '{character}'"
        raise _failed(source, [Issue(unknown.offset, message)]) from None
    except NotInGrammar as unexpected:
        raise _failed(source, [Issue(unexpected.position, "Syntax error: mismatched input")]) from None
    except TooDeep as deep:
        raise _failed(source, [Issue(NOWHERE, str(deep))]) from None
    if issues:
        raise _failed(source, issues)
    return root


def _failed(source: Source, issues: list[Issue]) -> CompileError:
    described = source.describe(issues)
    return CompileError(described, f"compilation failed: {described}")


def _reject_other_results(actual: Type, allowed: tuple[Type, ...] | None) -> None:
    if allowed is None or actual in allowed:
        return
    expected = (
        allowed[0].full_name() if len(allowed) == 1 else f"one of [{' '.join(one.full_name() for one in allowed)}]"
    )
    message = f"must evaluate to {expected} but got {actual.full_name()}"
    raise CompileError(message, message)
