"""Checks of a well-typed tree: constant arguments, mixed literals and format strings.

Mirrors the AST validators that Kubernetes adds to its environment; all of them run, and their findings add up.

Rules: `docs/semantics/cel-types.md#checks-of-literals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.cel.errors import CompileError, EvaluationError
from scanner.cel.functions import format as formatting
from scanner.cel.functions import regex
from scanner.cel.functions.format import BadFormat
from scanner.cel.releases import CHECKED_FORMATS, EXEMPT_ANYWHERE, OPTIONAL_TYPE, STRICT_TIMESTAMPS
from scanner.cel.syntax.source import Issue
from scanner.cel.syntax.tree import Call, ListLiteral, Literal, MapLiteral, Node, children, walk
from scanner.cel.types.type_system import UNTYPED, is_untyped, name_optionals_as_before
from scanner.cel.values import conversions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scanner.cel.checking.checker import CheckedTree
    from scanner.cel.checking.env import Environment
    from scanner.cel.types.type_system import Type
    from scanner.cel.values.values import Value

_EXEMPT = "format"
_CRASH = "internal error: runtime error: index out of range [0] with length 0"
_CLAUSE_TYPES = {
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}
_STRING_TYPES = frozenset(
    [
        "list",
        "map",
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "bytes",
        "type",
        "null_type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
    ]
)


def validate(root: Node, checked: CheckedTree, environment: Environment) -> list[Issue]:
    """Return the errors in the literals of a well-typed tree, all of them, in the order of the nodes.

    Mirrors `cel/validator.go` and `ext/formatting.go` of cel-go.
    """
    knows_formats = CHECKED_FORMATS.holds(environment.version)
    exempt = _list_inside_format(root, anywhere=EXEMPT_ANYWHERE.holds(environment.version))
    issues: list[Issue] = []
    for node in walk(root):
        match node:
            case Call():
                issues.extend(_find_argument_issues(node, environment))
                issues.extend(_find_format_call_issues(node, checked) if knows_formats else ())
            case ListLiteral() if node.id not in exempt:
                issues.extend(_report_mixed(*mismatch, environment) for mismatch in _find_list_issues(node, checked))
            case MapLiteral() if node.id not in exempt:
                issues.extend(_report_mixed(*mismatch, environment) for mismatch in _find_map_issues(node, checked))
            case _:
                continue
    return issues


def _list_inside_format(root: Node, *, anywhere: bool) -> frozenset[int]:
    """Return the ids of the nodes below calls of `format` whose literals may be mixed: all, or only those in lists and maps."""
    below = walk if anywhere else _list_literal_parts
    calls = (node for node in walk(root) if isinstance(node, Call) and node.function.removeprefix(".") == _EXEMPT)
    return frozenset(part.id for call in calls for child in children(call) for part in below(child))


# --- constant arguments


def _compile_pattern(pattern: Value) -> None:
    if type(pattern) is str:
        regex.compile_pattern(pattern)


_ARGUMENTS: dict[str, Callable[[Value], object]] = {
    "duration": conversions.to_duration,
    "timestamp": conversions.to_timestamp,
    "matches": _compile_pattern,
}


def _find_argument_issues(node: Call, environment: Environment) -> Iterator[Issue]:
    name = node.function.removeprefix(".")
    check = _ARGUMENTS.get(name)
    if name == "timestamp" and STRICT_TIMESTAMPS.holds(environment.version):
        check = conversions.to_timestamp_strictly
    if check is not None and node.arguments and isinstance(node.arguments[0], Literal):
        argument = node.arguments[0]
        try:
            check(argument.value)
        except EvaluationError:
            yield Issue(argument.offset, f"invalid {name} argument")


def _find_format_call_issues(node: Call, checked: CheckedTree) -> Iterator[Issue]:
    if node.function == "format" and len(node.arguments) == 1:
        target, arguments = node.target, node.arguments[0]
        if isinstance(target, Literal) and isinstance(arguments, ListLiteral) and type(target.value) is str:
            yield from _find_format_issues(node, target.value, arguments.elements, checked)


# --- mixed literals


def _find_list_issues(node: ListLiteral, checked: CheckedTree) -> Iterator[tuple[Node, Type, Type]]:
    expected: Type | None = None
    for position, element in enumerate(node.elements):
        actual = _get_entry_type(checked.types[element.id], optional=position in node.optional)
        if expected is not None and _differ(expected, actual):
            yield element, expected, actual
            return
        expected = expected or _get_declared(actual)


def _find_map_issues(node: MapLiteral, checked: CheckedTree) -> Iterator[tuple[Node, Type, Type]]:
    keys: Type | None = None
    values: Type | None = None
    for entry in node.entries:
        key = checked.types[entry.key.id]
        value = _get_entry_type(checked.types[entry.value.id], optional=entry.optional)
        if keys is None and values is None:
            keys, values = _get_declared(key), _get_declared(value)
            continue
        if keys is None or _differ(keys, key):
            yield entry.key, keys or UNTYPED, key
        if values is None or _differ(values, value):
            yield entry.value, values or UNTYPED, value


def _get_declared(type_: Type) -> Type | None:
    """Return a type, or None for an untyped part, which upstream takes for a part that it has not visited yet."""
    return None if type_ == UNTYPED else type_


def _differ(expected: Type, actual: Type) -> bool:
    """Return whether two types differ; an untyped part differs from itself."""
    return actual != expected or is_untyped(expected)


def _get_entry_type(type_: Type, *, optional: bool) -> Type:
    """Return the type of an entry; upstream crashes on an optional entry of type dyn, so that no such policy can be stored."""
    if not optional:
        return type_
    if not type_.parameters:
        raise CompileError(_CRASH, _CRASH)
    return type_.parameters[0]


def _report_mixed(node: Node, expected: Type, actual: Type, environment: Environment) -> Issue:
    if not OPTIONAL_TYPE.holds(environment.version):
        expected, actual = name_optionals_as_before(expected), name_optionals_as_before(actual)
    return Issue(node.offset, f"expected type '{expected}' but found '{actual}'")


# --- format


class _BadArgument(BadFormat):
    """A format argument of the wrong type, and its place."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def _find_format_issues(
    node: Call, template: str, arguments: tuple[Node, ...], checked: CheckedTree
) -> Iterator[Issue]:
    def clause(argument: int, verb: str, precision: int | None) -> str:
        del precision
        bad = _find_mistyped(arguments[argument], verb, checked)
        if bad is not None:
            complaint = formatting.make_type_error(verb, checked.types[bad.id].name)
            raise _BadArgument(f"error during formatting: {complaint}", bad.offset)
        return ""

    try:
        _, used = formatting.interpolate(template, clause, lambda _argument: None, len(arguments))
    except _BadArgument as bad:
        yield Issue(bad.offset, str(bad))
        return
    except BadFormat as bad:
        yield Issue(node.offset, str(bad))
        return
    if len(arguments) > used:
        message = f"too many arguments supplied to string.format (expected {used}, got {len(arguments)})"
        yield Issue(node.offset, message)


def _find_mistyped(argument: Node, verb: str, checked: CheckedTree) -> Node | None:
    """Return the node whose static type a clause rejects, or None."""
    if verb == "s":
        return _find_unprintable(argument, checked)
    type_ = checked.types[argument.id]
    return None if type_.family == "dyn" or type_.name in _CLAUSE_TYPES[verb] else argument


def _find_unprintable(argument: Node, checked: CheckedTree) -> Node | None:
    """Return the first node, of an argument or of a literal inside it, that `%s` rejects."""
    for node in _list_literal_parts(argument):
        type_ = checked.types[node.id]
        if type_.family != "dyn" and type_.name not in _STRING_TYPES:
            return node
    return None


def _list_literal_parts(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ListLiteral | MapLiteral):
            stack.extend(reversed(tuple(children(node))))
