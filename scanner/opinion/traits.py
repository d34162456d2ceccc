"""What an expression uses of the language, as far as it tells what another engine can do with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from scanner.cel.functions import standard
from scanner.cel.stack import with_room
from scanner.cel.syntax import parser
from scanner.cel.syntax.tree import Call, Comprehension, Identifier, ListLiteral, MapLiteral, Node, StructLiteral, walk
from scanner.model.release import NEWEST

_STANDARD = frozenset(function.name for function in standard.LIBRARY.functions)
"""The functions of CEL's own definition; everything else is from a library."""
_OPTIONAL = frozenset({"_?._", "_[?_]"})


@dataclass(frozen=True, slots=True)
class Traits:
    """`functions` are those of libraries, `converts` tells of `string()`, `widens` of macros that came after CEL's own.

    `names_messages` tells of the messages of protobuf, made or named.
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
            return any(entry.optional for entry in entries)
        case _:
            return False


def _widens(node: Comprehension) -> bool:
    """Whether a loop has two variables, or maps what it filters, or is none: `optMap`, `sortBy`."""
    return (
        node.second_variable is not None or node.fold == "bind" or (node.fold == "map" and node.predicate is not None)
    )
