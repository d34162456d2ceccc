"""The types of every node, the overloads of every call, and the type errors.

One walk over the tree, in upstream's order, because the order decides the types that free type parameters are bound to, and the
order of the errors.

Rules: `docs/semantics/cel-types.md#rules-of-the-checker`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scanner.cel.protobuf.messages import ALIASES
from scanner.cel.releases import OPTIONAL_TYPE, STRICT_NAMES, TYPED_PAIRS
from scanner.cel.syntax.source import Issue
from scanner.cel.syntax.tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    walk,
)
from scanner.cel.types.assignability import Substitution, assign, choose_more_general, substitute
from scanner.cel.types.type_system import (
    BOOL,
    DYN,
    ERROR,
    INT,
    STRING,
    UNTYPED,
    Type,
    list_of,
    map_of,
    name_optionals_as_before,
    optional_of,
    parameter,
)
from scanner.cel.values.values import type_of

if TYPE_CHECKING:
    from scanner.cel.checking.env import Environment
    from scanner.cel.functions.declaration import Function, Overload


_LOGIC = frozenset({"_&&_", "_||_"})
_MESSAGE_FAMILIES = frozenset({"object", "any", "dyn", "null", "timestamp", "duration"})
"""The families of types that can be made by their name, or that protobuf has a message for."""


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """The meaning of a call: its function, the ids of its candidate overloads, and the arguments to evaluate, a receiver first."""

    function: Function
    overload_ids: tuple[str, ...]
    arguments: tuple[Node, ...]


@dataclass(slots=True)
class CheckedTree:
    """The results of the checker, by node id.

    `types`: the type of each node. `names`: the variable or type that an identifier or a dotted name denotes; `globals`: the nodes
    of those whose name no variable of a macro may shadow. `calls`: the resolution of each call. `issues`: the type errors.
    """

    types: dict[int, Type] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    globals: set[int] = field(default_factory=set)
    calls: dict[int, ResolvedCall] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)


def check(root: Node, environment: Environment) -> CheckedTree:
    """Return the types and resolutions of a tree; its `issues` are empty when it is well typed.

    Mirrors `Check` of cel-go's `checker/checker.go`.
    """
    checker = _Checker(environment)
    checker.check(root)
    checked = checker.checked
    checked.types = {id_: substitute(checker.bindings, type_, free_to_dyn=True) for id_, type_ in checked.types.items()}
    return checked


def get_qualified_name(node: Node) -> str | None:
    """Return `a.b.c` as one name, or None when a node is not a chain of names."""
    match node:
        case Identifier(name=name):
            return name
        case Select(operand=operand, field=field_, test=False):
            prefix = get_qualified_name(operand)
            return None if prefix is None else f"{prefix}.{field_}"
        case _:
            return None


def is_optional(type_: Type) -> bool:
    """Return whether a type is an optional."""
    return type_.family == "opaque" and type_.name == "optional_type"


def _unwrap(type_: Type) -> tuple[Type, bool]:
    return (type_.parameters[0], True) if is_optional(type_) else (type_, False)


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._strict = STRICT_NAMES.holds(environment.version)
        self._second = DYN if TYPED_PAIRS.holds(environment.version) else UNTYPED
        self._scopes: list[dict[str, Type]] = []
        self._free = 0
        self.bindings: Substitution = {}
        self.checked = CheckedTree()

    def check(self, node: Node) -> Type:
        """Record and return the type of a node."""
        match node:
            case Literal():
                type_ = type_of(node.value)
            case Identifier():
                type_ = self._check_identifier(node)
            case Select():
                type_ = self._check_select(node)
            case Call():
                type_ = self._check_call(node)
            case ListLiteral():
                type_ = self._check_list(node)
            case MapLiteral():
                type_ = self._check_map(node)
            case StructLiteral():
                type_ = self._check_struct(node)
            case Comprehension():
                type_ = self._check_comprehension(node)
        self.checked.types[node.id] = type_
        return type_

    # --- names

    def _look_up(self, name: str) -> Type | None:
        """Return the declaration of a name; until 1.36 a macro's variable shadows a name with a leading dot too."""
        if self._strict and name.startswith("."):
            return self._environment.find_identifier(name[1:])
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return self._environment.find_identifier(name)

    def _check_identifier(self, node: Identifier) -> Type:
        type_ = self._look_up(node.name)
        if type_ is None:
            self._report_undeclared(node.offset, node.name)
            return ERROR
        self._record_name(node, node.name)
        return type_

    def _record_name(self, node: Node, name: str) -> None:
        self.checked.names[node.id] = name.removeprefix(".")
        if self._strict and name.startswith("."):
            self.checked.globals.add(node.id)

    def _is_local(self, name: str) -> bool:
        """Return whether a dotted name begins with a macro's variable, which from 1.37 on hides longer names."""
        first = name.partition(".")[0]
        return self._strict and any(first in scope for scope in self._scopes)

    def _check_select(self, node: Select) -> Type:
        name = get_qualified_name(node)
        type_ = None if name is None or self._is_local(name) else self._look_up(name)
        if name is not None and type_ is not None:
            self._record_name(node, name)
            return type_
        selected = self._check_field(node, node.operand, node.field, optional=False)
        return BOOL if node.test else self._substitute(selected)

    def _check_field(self, node: Node, operand: Node, name: str, *, optional: bool) -> Type:
        operand_type = self._substitute(self.check(operand))
        target, was_optional = _unwrap(operand_type)
        result = self._find_field_type(node, target, name)
        return optional_of(result) if was_optional or optional else result

    def _find_field_type(self, node: Node, target: Type, name: str) -> Type:
        match target.family:
            case "map":
                return target.parameters[1]
            case "object":
                return self._find_declared_field(node.offset, target.name, name)
            case "parameter":
                self._assign(DYN, target)
                return DYN
            case "dyn" | "any" | "error":
                return DYN
            case _:
                self._report(node.offset, f"type '{self._print_type(target)}' does not support field selection")
                return DYN

    def _find_declared_field(self, offset: int, type_name: str, name: str) -> Type:
        if not self._environment.has_fields(type_name):
            self._report(offset, f"unexpected failed resolution of '{type_name}'")
            return ERROR
        type_ = self._environment.field(type_name, name)
        if type_ is None:
            self._report(offset, f"undefined field '{name}'")
            return ERROR
        return type_

    # --- calls

    def _check_call(self, node: Call) -> Type:
        if node.function == "_?._":
            return self._check_optional_select(node)
        for argument in node.arguments:
            self.check(argument)
        if node.target is None:
            return self._check_global_call(node, node.function, node.arguments)
        prefix = get_qualified_name(node.target)
        if prefix is not None and self._environment.function(f"{prefix}.{node.function}".removeprefix(".")) is not None:
            return self._check_global_call(node, f"{prefix}.{node.function}", node.arguments)
        self.check(node.target)
        function = self._environment.function(node.function)
        if function is None:
            self._report_undeclared(node.offset, node.function)
            return ERROR
        return self._resolve(node, function, (node.target, *node.arguments), member=True)

    def _check_global_call(self, node: Call, name: str, arguments: tuple[Node, ...]) -> Type:
        function = self._environment.function(name.removeprefix("."))
        if function is None:
            self._report_undeclared(node.offset, name)
            return ERROR
        return self._resolve(node, function, arguments, member=False)

    def _check_optional_select(self, node: Call) -> Type:
        operand, key = node.arguments
        name = key.value if isinstance(key, Literal) else None
        return self._substitute(self._check_field(node, operand, str(name), optional=True))

    def _check_logic(self, node: Call, function: Function) -> Type:
        """Check a logical operator: every operand that cannot be a bool is a separate issue."""
        wrong = [argument for argument in node.arguments if not self._assign(self.checked.types[argument.id], BOOL)]
        for argument in wrong:
            self._report_mismatch(argument.offset, BOOL, self.checked.types[argument.id])
        if wrong:
            return ERROR
        self.checked.calls[node.id] = ResolvedCall(function, (function.overloads[0].id,), node.arguments)
        return BOOL

    def _resolve(self, node: Call, function: Function, arguments: tuple[Node, ...], *, member: bool) -> Type:
        if function.name in _LOGIC:
            return self._check_logic(node, function)
        types = tuple(self.checked.types[argument.id] for argument in arguments)
        candidates: list[str] = []
        result: Type | None = None
        for overload in function.overloads:
            if overload.member is not member:
                continue
            overload_result = self._fits(overload, types)
            if overload_result is None:
                continue
            candidates.append(overload.id)
            if result is None:
                result = overload_result
            elif not result.is_dyn and overload_result != result:
                result = DYN
        if result is None:
            self._report_no_overload(node, function.name, types, member=member)
            return ERROR
        self.checked.calls[node.id] = ResolvedCall(function, tuple(candidates), arguments)
        return result

    def _fits(self, overload: Overload, types: tuple[Type, ...]) -> Type | None:
        """Return the result of an overload for arguments of these types, or None when it does not accept them."""
        fresh = {free: self._make_parameter() for free in overload.list_free_types()}
        if len(types) != len(overload.arguments):
            return None
        expected = (
            tuple(substitute(fresh, argument) for argument in overload.arguments) if fresh else overload.arguments
        )
        if not assign(self.bindings, types, expected):
            return None
        return substitute(self.bindings, substitute(fresh, overload.result))

    def _report_no_overload(self, node: Call, name: str, types: tuple[Type, ...], *, member: bool) -> None:
        shown = [self._print_type(substitute(self.bindings, type_, free_to_dyn=True)) for type_ in types]
        signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
        self._report(node.offset, f"found no matching overload for '{name}' applied to '{signature}'")

    # --- literals

    def _check_list(self, node: ListLiteral) -> Type:
        joined: Type | None = None
        for position, element in enumerate(node.elements):
            type_ = self.check(element)
            if position in node.optional:
                type_ = self._check_optional_entry(element, type_)
            joined = self._join(joined, type_)
        return list_of(joined or self._make_parameter())

    def _check_map(self, node: MapLiteral) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            keys = self._join(keys, self.check(entry.key))
            type_ = self.check(entry.value)
            if entry.optional:
                type_ = self._check_optional_entry(entry.value, type_)
            values = self._join(values, type_)
        if keys is None:
            return map_of(self._make_parameter(), self._make_parameter())
        return map_of(keys, values or UNTYPED)

    def _check_optional_entry(self, node: Node, type_: Type) -> Type:
        inner, was_optional = _unwrap(type_)
        if not was_optional and not inner.is_dyn:
            self._report_mismatch(node.offset, optional_of(inner), inner)
        return inner

    def _join(self, previous: Type | None, current: Type) -> Type | None:
        """Return a type that accepts both; upstream does not distinguish a part without a type from an absent part."""
        if previous is None:
            return None if current == UNTYPED else current
        return choose_more_general(previous, current) if self._assign(previous, current) else DYN

    def _check_struct(self, node: StructLiteral) -> Type:
        declared = self._look_up(node.type_name)
        if declared is None:
            self._report_undeclared(node.offset, node.type_name)
            return ERROR
        result = self._find_struct_type(node, declared)
        name = self.checked.names[node.id] = node.type_name.removeprefix(".")
        fields_of = name if result.family == "error" else ALIASES.get(name, name)
        for entry in node.entries:
            type_ = self.check(entry.value)
            expected = self._find_declared_field(entry.offset, fields_of, entry.name)
            if entry.optional:
                type_ = self._check_optional_entry(entry.value, type_)
            if not self._assign(expected, type_):
                self._report(
                    entry.offset,
                    f"expected type of field '{entry.name}' is '{self._print_type(expected)}'"
                    f" but provided type is '{self._print_type(type_)}'",
                )
        return result

    def _find_struct_type(self, node: StructLiteral, declared: Type) -> Type:
        if declared.family != "type":
            self._report(node.offset, f"'{declared.declared_name()}' is not a type")
            return ERROR
        struct = declared.parameters[0]
        if struct.nullable or struct.family in _MESSAGE_FAMILIES or struct in (list_of(DYN), map_of(STRING, DYN)):
            return struct
        self._report(node.offset, f"'{struct.declared_name()}' is not a message type")
        return ERROR

    # --- comprehensions

    def _check_comprehension(self, node: Comprehension) -> Type:
        self.check(node.range)
        accumulator = self.check(node.start)
        if node.twin is not None and isinstance(node.start, Call) and node.start.target is not None:
            self._compare_twins(node.twin, node.start.target)
        over = self._substitute(self.checked.types[node.range.id])
        self._scopes.append({node.accumulator: accumulator})
        self._scopes.append(self._type_variables(node, over))
        self._require(node.condition, BOOL)
        self._require(node.step, accumulator)
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        return self._substitute(result)

    def _type_variables(self, node: Comprehension, over: Type) -> dict[str, Type]:
        first, second = self._find_range_types(node, over)
        if node.second_variable is None:
            return {node.variable: second if over.family == "list" else first}
        return {node.variable: first, node.second_variable: second}

    def _find_range_types(self, node: Comprehension, over: Type) -> tuple[Type, Type]:
        """Return the types of index and element, or of key and value."""
        match over.family:
            case "list":
                return INT, over.parameters[0]
            case "map":
                return over.parameters[0], over.parameters[1]
            case "dyn" | "error" | "parameter":
                self._assign(DYN, over)
                return DYN, self._second
            case _:
                message = (
                    f"expression of type '{self._print_type(over)}' cannot be range of a comprehension"
                    " (must be list, map, or dynamic)"
                )
                self._report(node.range.offset, message)
                return ERROR, ERROR if self._second == DYN else UNTYPED

    def _compare_twins(self, first: Node, again: Node) -> None:
        """Report a node that is checked twice, because it is one node upstream, with a different type each time."""
        for before, after in zip(walk(first), walk(again), strict=True):
            old, new = self.checked.types.get(before.id), self.checked.types.get(after.id)
            if old is not None and new is not None and old != new:
                shown = f"({before.id}) old:{self._print_type(old)}, new:{self._print_type(new)}"
                self._report(after.offset, f"incompatible type already exists for expression: {shown}")

    def _require(self, node: Node, expected: Type) -> None:
        actual = self.check(node)
        if not self._assign(expected, actual):
            self._report_mismatch(node.offset, expected, actual)

    # --- bookkeeping

    def _assign(self, target: Type, type_: Type) -> bool:
        return assign(self.bindings, (target,), (type_,))

    def _substitute(self, type_: Type) -> Type:
        return substitute(self.bindings, type_)

    def _make_parameter(self) -> Type:
        free = parameter(f"_var{self._free}")
        self._free += 1
        return free

    def _report(self, offset: int, message: str) -> None:
        self.checked.issues.append(Issue(offset, message))

    def _report_mismatch(self, offset: int, expected: Type, actual: Type) -> None:
        self._report(offset, f"expected type '{self._print_type(expected)}' but found '{self._print_type(actual)}'")

    def _print_type(self, type_: Type) -> str:
        return str(type_ if OPTIONAL_TYPE.holds(self._environment.version) else name_optionals_as_before(type_))

    def _report_undeclared(self, offset: int, name: str) -> None:
        self._report(offset, f"undeclared reference to '{name}' (in container '')")
