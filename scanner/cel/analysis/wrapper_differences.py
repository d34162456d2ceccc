"""The places where an expression can distinguish the values of Kubernetes 1.37 from those of earlier releases.

Mirrors `common.SchemalessTypedToVal` of apiserver 1.37: objects of compiled-in kinds, `request` and `namespaceObject` are no
longer plain maps and lists but wrappers of Go values. They hold the same data, and differ where an expression compares them with
values of another kind, looks up a key of another type, compares two of them, or tests whether one is empty.
With their types declared, the checker's types give these places. An untyped value (`dyn`) counts as no difference.

Rules: `docs/semantics/releases.md#native-values-in-137`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from scanner.cel.analysis.go_values import OBJECTS
from scanner.cel.checking.checker import check
from scanner.cel.functions.declaration import ArgumentFlow
from scanner.cel.protobuf.messages import MESSAGES
from scanner.cel.stack import run_with_room
from scanner.cel.syntax import parser
from scanner.cel.syntax.parser import InvalidSyntax
from scanner.cel.syntax.tree import (
    Call,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    children,
    walk,
)
from scanner.cel.types.type_system import DYN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scanner.cel.checking.checker import CheckedTree
    from scanner.cel.checking.env import Environment
    from scanner.cel.releases import Version
    from scanner.cel.types.type_system import Type

_SELECTIONS = frozenset({"_[_]", "_[?_]", "_?._"})
_EQUALITIES = {"_==_": "==", "_!=_": "!="}
_ODD_KEYS = frozenset({"int", "uint", "double", "bool", "object", "map", "list"})
_ODD_INDEXES = frozenset({"uint", "double"})


class WrapperDifference(NamedTuple):
    """An observable difference, as text. `evaluated`: an evaluation with wrapped values has the result of 1.37."""

    text: str
    evaluated: bool = True


def find_wrapper_differences(text: str, environment: Environment) -> tuple[Type, tuple[WrapperDifference, ...]]:
    """Return the type of an expression whose roots are typed, and the nodes that could distinguish wrappers from plain values.

    A text that does not parse has the type dyn and no nodes. Raises `ExpressionTooLarge` for a tree of too many nodes.
    """
    try:
        return run_with_room(lambda: _find_differences(text, environment))
    except InvalidSyntax:
        return DYN, ()


def _find_differences(text: str, environment: Environment) -> tuple[Type, tuple[WrapperDifference, ...]]:
    root = _parse(text, environment.version, environment.features)
    checked = check(root, environment)
    finder = _Finder(checked, environment)
    return checked.types.get(root.id, DYN), tuple(
        dict.fromkeys(difference for node in walk(root) for difference in finder.find_differences(node))
    )


@lru_cache(maxsize=2048)
def _parse(text: str, version: Version, features: Version) -> Node:
    """Parse once for all the kinds for which an expression is checked."""
    return parser.parse(text, version, features)[0]


class _Finder:
    def __init__(self, checked: CheckedTree, environment: Environment) -> None:
        self._types = checked.types
        self._structs = environment.structs
        self._environment = environment

    def find_differences(self, node: Node) -> Iterator[WrapperDifference]:
        """Yield the differences at one node."""
        match node:
            case Call(function="_==_" | "_!=_" as sign, arguments=(left, right)):
                yield from self._find_in_equality(_EQUALITIES[sign], left, right)
            case Call(function="@in", arguments=(element, container)):
                yield from self._find_in_membership(element, container)
            case Call(function="_[_]" | "_[?_]", arguments=(container, key)):
                yield from self._find_in_lookup(container, key)
            case Call(function="ofNonZeroValue", target=Identifier(name="optional"), arguments=(value,)):
                if self._is_read(value) and self._get_kind(self._get_type(value)) in ("object", "list"):
                    yield WrapperDifference(f"optional.ofNonZeroValue of {_print_type(self._get_type(value))}")
            case StructLiteral(type_name=name, entries=entries) if name.removeprefix(".") in MESSAGES:
                for entry in entries:
                    yield from self._find_in_conversion(name, entry.name, entry.value)
            case _:
                pass

    def _find_in_conversion(self, message: str, field: str, value: Node) -> Iterator[WrapperDifference]:
        """Yield the operand of a protobuf message's field, where it may be or contain a wrapper."""
        types = (self._get_type(value), *self._list_content(value))
        if self._reads(value) and any(self._get_kind(type_) in ("object", "map", "list") for type_ in types):
            yield WrapperDifference(f"{message}{{{field}: {_print_type(types[0])}}}")

    def _find_in_equality(self, sign: str, left: Node, right: Node) -> Iterator[WrapperDifference]:
        text = f"{_print_type(self._get_type(left))} {sign} {_print_type(self._get_type(right))}"
        if _is_mirrored(left, right):
            return
        if self._compares_structures(left, right):
            yield WrapperDifference(text, evaluated=False)
        elif self._fields_differ(left, right) or self._kinds_differ(left, right):
            yield WrapperDifference(text)

    def _compares_structures(self, left: Node, right: Node) -> bool:
        """Return whether structures are compared with each other: free-form parts are compared as the bytes that were sent."""
        left_type, right_type = self._get_type(left), self._get_type(right)
        both = (
            self._is_read(left) and self._is_read(right) and self._is_object(left_type) and self._is_object(right_type)
        )
        pairs = ((held, beside) for held in self._list_content(left) for beside in self._list_content(right))
        return both or (
            (self._reads(left) or self._reads(right)) and any(self._are_structures(*pair) for pair in pairs)
        )

    def _kinds_differ(self, left: Node, right: Node) -> bool:
        if self._is_read(left) and self._rejects(self._get_type(left), self._get_type(right)):
            return True
        pairs = ((held, beside) for held in self._list_content(left) for beside in self._list_content(right))
        inside = (self._is_mixed(held, beside) or self._is_mixed(beside, held) for held, beside in pairs)
        return (self._reads(left) or self._reads(right)) and any(inside)

    def _rejects(self, left: Type, right: Type) -> bool:
        """Return whether a wrapper on the left rejects a value of another kind on the right."""
        kinds = self._get_kind(left), self._get_kind(right)
        if kinds[1] in ("dyn", "null"):
            return False
        return (kinds[0] in ("object", "map") and kinds[1] not in ("object", "map")) or (
            kinds[0] == "list" and kinds[1] != "list"
        )

    def _fields_differ(self, left: Node, right: Node) -> bool:
        """Return whether a structure is compared with a literal that has a value of another kind in a field."""
        structure, literal = self._get_type(left), right
        if self._structs is None or not self._is_object(structure) or not isinstance(literal, MapLiteral):
            return False
        named_values = ((entry.key.value, entry.value) for entry in literal.entries if isinstance(entry.key, Literal))
        fields = ((self._structs.field(structure.name, str(key)), value) for key, value in named_values)
        return any(field is not None and self._rejects(field, self._get_type(value)) for field, value in fields)

    def _list_content(self, node: Node) -> Iterator[Type]:
        """Yield the types of the content of a list or map."""
        match node:
            case ListLiteral(elements=elements):
                yield from map(self._get_type, elements)
            case MapLiteral(entries=entries):
                yield from (self._get_type(entry.value) for entry in entries)
            case Call(function="_+_", arguments=(left, right)):
                yield from self._list_content(left)
                yield from self._list_content(right)
            case _:
                type_ = self._get_type(node)
                yield from type_.parameters[-1:] if type_.family in ("list", "map") else ()

    def _is_mixed(self, left: Type, right: Type) -> bool:
        """Return whether one of two neighbours in a list or map is a wrapper, and the other is of another kind."""
        if self._rejects(left, right):
            return True
        both = left.family == right.family and left.family in ("list", "map")
        return both and self._is_mixed(left.parameters[-1], right.parameters[-1])

    def _are_structures(self, left: Type, right: Type) -> bool:
        """Return whether two wrappers of structures are compared, for which upstream does not compare field by field."""
        if left.family == right.family and left.family in ("list", "map"):
            return self._are_structures(left.parameters[-1], right.parameters[-1])
        return self._is_object(left) and self._is_object(right)

    def _find_in_membership(self, element: Node, container: Node) -> Iterator[WrapperDifference]:
        element_type, within = self._get_type(element), self._get_type(container)
        if self._is_read(container) and self._get_kind(within) in ("object", "map"):
            if self._get_kind(element_type) not in ("string", "dyn"):
                yield WrapperDifference(f"{_print_type(element_type)} in {_print_type(within)}")
        elif self._reads(element) and any(self._lists_differ(element, held) for held in self._list_content(container)):
            structures = any(self._are_structures(element_type, held) for held in self._list_content(container))
            yield WrapperDifference(f"{_print_type(element_type)} in {_print_type(within)}", evaluated=not structures)

    def _lists_differ(self, element: Node, held: Type) -> bool:
        """Return whether the search for an element in a list could differ, given the types of their content."""
        inner = held.parameters[-1] if held.family in ("list", "map") else None
        within = inner is not None and any(
            self._is_mixed(part, inner) or self._is_mixed(inner, part) for part in self._list_content(element)
        )
        return within or self._are_structures(self._get_type(element), held)

    def _find_in_lookup(self, container: Node, key: Node) -> Iterator[WrapperDifference]:
        within, at = self._get_type(container), self._get_type(key)
        odd = _ODD_INDEXES if self._get_kind(within) == "list" else _ODD_KEYS
        if (
            self._is_read(container)
            and self._get_kind(within) in ("object", "map", "list")
            and self._get_kind(at) in odd
        ):
            yield WrapperDifference(f"{_print_type(within)}[{_print_type(at)}]")

    def _is_read(self, node: Node) -> bool:
        """Return whether a value comes unchanged from the request."""
        match node:
            case Identifier():
                return True
            case Select(test=test):
                return not test
            case Call(function=function) if function in _SELECTIONS:
                return True
            case Call(function="_?_:_", arguments=(_, yes, no)):
                return self._is_read(yes) or self._is_read(no)
            case Call():
                passed = self._get_passed(node)
                return passed is not None and self._is_read(passed)
            case _:
                return False

    def _get_passed(self, node: Call) -> Node | None:
        """Return the operand that a call returns unchanged, or its content."""
        function = self._environment.function(node.function)
        if function is None or function.flow is not ArgumentFlow.PASSES:
            return None
        return next(children(node), None)

    def _reads(self, node: Node) -> bool:
        """Return whether any part of a value comes unchanged from the request."""
        return any(self._is_read(part) for part in walk(node))

    def _get_type(self, node: Node) -> Type:
        """Return the type of a node, unwrapped from `dyn` and optionals."""
        while isinstance(node, Call) and node.function == "dyn" and len(node.arguments) == 1:
            node = node.arguments[0]
        type_ = self._types.get(node.id, DYN)
        while type_.name == "optional_type" and type_.parameters:
            type_ = type_.parameters[0]
        return type_

    def _get_kind(self, type_: Type) -> str:
        if type_.family in ("dyn", "any", "error", "parameter"):
            return "dyn"
        if type_.family == "object":
            return "object" if self._is_object(type_) or type_.name.startswith("kubernetes.") else type_.name
        return type_.name if type_.family in ("primitive", "opaque") else type_.family

    def _is_object(self, type_: Type) -> bool:
        return (
            type_.family == "object" and self._structs is not None and self._structs.find_type(type_.name) is not None
        )


def _is_mirrored(left: Node, right: Node) -> bool:
    """Return whether both sides are the same place of the object, before and after: they are equal when nothing changes."""
    place, counterpart = _find_place(left), _find_place(right)
    return place is not None and place == counterpart


def _find_place(node: Node) -> tuple[str, ...] | None:
    match node:
        case Identifier(name=name):
            return ("object",) if name in OBJECTS else (name,)
        case Select(operand=operand, field=field, test=False):
            before = _find_place(operand)
            return None if before is None else (*before, field)
        case _:
            return None


def _print_type(type_: Type) -> str:
    """Return a type as a report names it."""
    match type_.family:
        case "object":
            return "object"
        case "list" | "map":
            return type_.family
        case "error":
            return "mixed"
        case _:
            return str(type_)
