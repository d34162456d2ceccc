"""The language features of an expression that decide whether another engine can evaluate it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from scanner.cel.functions import standard
from scanner.cel.stack import with_room
from scanner.cel.syntax import parser
from scanner.cel.syntax.tree import Call, Comprehension, Identifier, ListLiteral, MapLiteral, Node, StructLiteral, walk
from scanner.model.release import NEWEST

_STANDARD = frozenset(function.name for function in standard.LIBRARY.functions)
"""The functions of CEL's own definition; all other functions are from libraries."""
_OPTIONAL = frozenset({"_?._", "_[?_]"})


@dataclass(frozen=True, slots=True)
class Traits:
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
def traits_of(text: str) -> Traits:
    """The traits of an expression that compiles."""
    nodes = tuple(walk(with_room(lambda: parser.parse(text, NEWEST, NEWEST)[0])))
    called = {node.function for node in nodes if isinstance(node, Call)}
    return Traits(
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
