"""The limits of cel-python and their symptoms: one table, in the order in which the limits are checked.

Measured with cel-python 0.5.0 on some 2,300 expressions whose outcomes kube-apiserver recorded. A different value is a
disagreement and no limit: a test for a field below an absent field is false there and an error in Kubernetes, bools are numbers,
texts are lists of characters, and negative indexes count from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from scanner.cel.functions import standard
from scanner.cel.stack import run_with_room
from scanner.cel.syntax import parser
from scanner.cel.syntax.tree import Call, Comprehension, Identifier, ListLiteral, MapLiteral, Node, StructLiteral, walk
from scanner.model.release import NEWEST
from scanner.opinion.engine import EngineAnswer

# The language features of an expression that decide whether another engine can evaluate it.

_STANDARD = frozenset(function.name for function in standard.LIBRARY.functions)
"""The functions of CEL's own definition; all other functions are from libraries."""
_OPTIONAL = frozenset({"_?._", "_[?_]"})


@dataclass(frozen=True, slots=True)
class ExpressionTraits:
    """The features. `functions` are library functions, `converts` marks `string()`, `widens` marks macros newer than CEL's own.

    `names_messages` marks protobuf messages that the expression creates or names.
    """

    functions: tuple[str, ...] = ()
    optional: bool = False
    converts: bool = False
    widens: bool = False
    builds: bool = False
    names_messages: bool = False


@lru_cache(maxsize=4096)
def find_traits(text: str) -> ExpressionTraits:
    """The traits of an expression that compiles."""
    nodes = tuple(walk(run_with_room(lambda: parser.parse(text, NEWEST, NEWEST)[0])))
    called = {node.function for node in nodes if isinstance(node, Call)}
    return ExpressionTraits(
        functions=tuple(sorted(name for name in called if name[0].isalpha() and name not in _STANDARD)),
        optional=bool(called & _OPTIONAL) or any(map(_has_optional_entry, nodes)),
        converts="string" in called,
        widens=any(isinstance(node, Comprehension) and _widens(node) for node in nodes),
        builds=any(isinstance(node, StructLiteral) for node in nodes),
        names_messages=any(map(_names_message, nodes)),
    )


def _names_message(node: Node) -> bool:
    match node:
        case StructLiteral(type_name=name) | Identifier(name=name):
            return name.removeprefix(".").partition(".")[0] == "google"
        case _:
            return False


def _has_optional_entry(node: Node) -> bool:
    match node:
        case ListLiteral(optional=optional):
            return bool(optional)
        case MapLiteral(entries=entries):
            return any(element.optional for element in entries)
        case _:
            return False


def _widens(node: Comprehension) -> bool:
    """Return whether a loop has two variables, maps the elements that it filters, or is no loop: `optMap`, `sortBy`."""
    return (
        node.second_variable is not None or node.fold == "bind" or (node.fold == "map" and node.predicate is not None)
    )


Shows = Callable[[ExpressionTraits, EngineAnswer, EngineAnswer], bool]
"""Return whether a limit shows in the features of an expression, in Assay's answer and in the other engine's."""
_UNDECLARED = "undeclared reference to"
_NO_OVERLOAD = ("no matching overload", "no such overload")


@dataclass(frozen=True, slots=True)
class Limit:
    """A feature that the other engine does not support. `reason` is a sentence for the report."""

    name: str
    reason: str
    shows: Shows


def _has_failed(theirs: EngineAnswer) -> bool:
    return theirs.kind in ("error", "crash", "refused")


LIMITS: tuple[Limit, ...] = (
    Limit(
        "silent",
        "It gave no answer within two seconds, or its process ended; the expression was not asked again.",
        lambda _traits, _ours, theirs: theirs.kind == "silent",
    ),
    Limit(
        "types",
        "A value has a type that only Kubernetes has: a quantity, a URL, an optional, the authorizer.",
        lambda _traits, ours, theirs: "unsayable" in (ours.kind, theirs.kind),
    ),
    Limit(
        "optionals",
        "Its grammar has no optional selection, index or entry, as in a.?b, a[?b] and {?a: b}.",
        lambda traits, _ours, theirs: traits.optional and _has_failed(theirs),
    ),
    Limit(
        "messages",
        "It knows the messages of protobuf by half: of google.protobuf.Int32Value{…} and the like it makes other values, or none.",
        lambda traits, _ours, _theirs: traits.names_messages,
    ),
    Limit(
        "objects",
        "It cannot make objects, as in Object{…} and JSONPatch{…}.",
        lambda traits, _ours, theirs: traits.builds and _has_failed(theirs),
    ),
    Limit(
        "syntax",
        "Its grammar refuses what Kubernetes' accepts: trailing commas, some escapes and quoted names.",
        lambda _traits, _ours, theirs: theirs.kind == "refused",
    ),
    Limit(
        "macros",
        "Its loops have one variable and no filter: no all(k, v, …), no map of three arguments.",
        lambda traits, _ours, theirs: traits.widens and _has_failed(theirs),
    ),
    Limit(
        "libraries",
        "It has only the functions of CEL's definition, and none of the libraries of Kubernetes.",
        lambda traits, _ours, theirs: (
            _has_failed(theirs) and (bool(traits.functions) or theirs.text.startswith(_UNDECLARED))
        ),
    ),
    Limit(
        "types apart",
        "It compares values of one type only, and fails where 1 meets 1.0, or anything meets null.",
        lambda _traits, _ours, theirs: theirs.kind == "error" and any(text in theirs.text for text in _NO_OVERLOAD),
    ),
    Limit(
        "exceptions",
        "It ends in an exception of Python's, where CEL has an error or a value.",
        lambda _traits, _ours, theirs: theirs.kind == "crash",
    ),
    Limit(
        "conversions",
        "Its string() writes doubles, bools, timestamps and durations as Python does.",
        lambda traits, ours, theirs: traits.converts and ours.kind == theirs.kind == "value",
    ),
)


def find_limit(traits: ExpressionTraits, ours: EngineAnswer, theirs: EngineAnswer) -> Limit | None:
    """The limit that explains why two answers differ; None for a disagreement."""
    return next((limit for limit in LIMITS if limit.shows(traits, ours, theirs)), None)
