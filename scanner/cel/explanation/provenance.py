"""The origin of a value: its place in a document, if it is a part of one, and every place from which it was computed.

The notes of one evaluation give the origins, so that a place has the element's index: `object.spec.containers[2].image`. Lists
that were joined, filtered or mapped lead back to the origins of their elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.cel.analysis.go_values import is_selection
from scanner.cel.errors import EvaluationError
from scanner.cel.explanation.places import NOWHERE, VARIABLES, Origin, list_containers, locate_unchanged
from scanner.cel.explanation.trace import Note, Noting, plan_notes
from scanner.cel.syntax.tree import Call, Comprehension, Identifier, Node, Select
from scanner.cel.syntax.unparse import unparse
from scanner.cel.values.values import KeyedMap, Optional

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scanner.cel.explanation.places import Place, Scope
    from scanner.cel.program import Program
    from scanner.cel.values.values import Value

_ONE_VARIABLE = 2


class Tracer:
    """The evaluations of one explanation: of the expression, and of each policy variable at its first use."""

    def __init__(self, activation: Mapping[str, object], variables: Mapping[str, Program]) -> None:
        self._activation = activation
        self._trace_variables = variables
        self._origins: dict[str, Origins] = {}
        self.origins_of_variables: dict[str, Origin] = {}
        self._places: dict[int, Place] | None = None

    def trace_origins(self, noting: Noting, program: Program) -> Origins:
        """Evaluate an expression, and return the origins of its values."""
        return Origins(self, noting, program, noting.take(self._activation))

    def variable(self, name: str) -> Origins | None:
        """Return the evaluation of a policy variable; None for a variable that does not exist or does not compile."""
        program = self._trace_variables.get(name)
        if program is None:
            return None
        if name not in self._origins:
            self._origins[name] = self.trace_origins(plan_notes(program.analysis), program)
        return self._origins[name]

    def names(self) -> Iterator[str]:
        """Yield the names of the policy variables."""
        yield from self._trace_variables

    def locate(self, value: Value) -> Origin:
        """Return the place of a list or map that is a part of a document itself; `NOWHERE` for any other value."""
        if type(value) is not dict and type(value) is not list:
            return NOWHERE
        if self._places is None:
            self._places = dict(list_containers(self._activation))
        place = self._places.get(id(value))
        return NOWHERE if place is None else locate_unchanged(place)


class Origins:
    """The origins of the values in one evaluation. `first` is the note of the whole expression."""

    def __init__(self, tracer: Tracer, noting: Noting, program: Program, first: Note) -> None:
        self.tracer = tracer
        self.first = first
        self.checked = noting.analysis.checked
        self.constants = noting.analysis.folded.constants
        self._program = program
        self._chains = noting.chains
        self._texts = noting.texts
        # A note is taken once, in one round of each loop around it: its scope is always the same.
        self._origins: dict[int, Origin] = {}
        self._read: dict[int, frozenset[Place]] = {}

    def text(self, node: Node) -> str:
        """Return the CEL text of a part of the expression."""
        text = self._texts.get(node.id)
        if text is None:
            text = self._texts[node.id] = unparse(node)
        return text

    # --- one value

    def of(self, note: Note, scope: Scope) -> Origin:
        """Return the origin of a note's value."""
        origin = self._origins.get(id(note))
        if origin is None:
            origin = self._origins[id(note)] = self._trace(note, scope)
        return origin

    def _trace(self, note: Note, scope: Scope) -> Origin:
        node = note.node
        if node.id in self.constants:
            return NOWHERE
        if self.is_path(node):
            return self._trace_path(note, scope)
        if node.id in self.checked.names:
            return self._trace_name(node, scope)
        kept_part = self._find_kept(note, scope)
        if kept_part is not None:
            part, inner, reads = kept_part
            return self.of(part, inner).add_reads(reads)
        located = self.tracer.locate(note.outcome) if _may_hand_on(node) else NOWHERE
        return located if located.place else Origin((), self.reads(note, scope))

    def is_path(self, node: Node) -> bool:
        """Return whether a node is a selection or a presence test."""
        return is_selection(node, self.checked) or (isinstance(node, Select) and node.test)

    def _trace_name(self, node: Node, scope: Scope) -> Origin:
        name = self.checked.names[node.id]
        if isinstance(node, Identifier) and node.id not in self.checked.globals and name in scope:
            return scope[name]
        if name == VARIABLES:
            return Origin(
                (name,), frozenset().union(*(self._trace_variable(variable).reads for variable in self.tracer.names()))
            )
        return locate_unchanged((name,))

    def _trace_variable(self, name: str) -> Origin:
        """Return the origin of a policy variable's value: its place in a document, or the variable's own name."""
        origins = self.tracer.origins_of_variables
        if name not in origins:
            other = self.tracer.variable(name)
            origin = NOWHERE if other is None else other.of(other.first, {})
            origins[name] = origin if origin.is_unchanged else Origin((VARIABLES, name), origin.reads)
        return origins[name]

    def find_variable(self, note: Note) -> str:
        """Return the name of the policy variable that a path begins with; empty for any other path."""
        base, steps = self._split_path(note.node)
        is_variables = self.checked.names.get(base.id) == VARIABLES
        return steps[0] if is_variables and steps and isinstance(steps[0], str) else ""

    def _descend(self, origin: Origin, key: Value) -> Origin:
        """Return the origin of an element; for a list that a policy variable has built, the element's earlier origin."""
        below = origin.below(key)
        is_variable = origin.place[:1] == (VARIABLES,) and len(origin.place) == _ONE_VARIABLE
        other = self.tracer.variable(str(origin.place[1])) if is_variable else None
        if other is None:
            return below
        element = other.element(other.first, key, {})
        return element if element.place else Origin(below.place, element.reads or below.reads)

    def _split_path(self, node: Node) -> tuple[Node, list[Node | str]]:
        """Return the root of a path, and its steps: a field's name, or the node of a key."""
        chain = self._chains.get(node.id)
        if chain is None:
            chain = self._chains[node.id] = self._follow_back(node)
        return chain

    def _follow_back(self, node: Node) -> tuple[Node, list[Node | str]]:
        steps: list[Node | str] = []
        while self.is_path(node):
            match node:
                case Select(operand=operand, field=name):
                    steps.append(name)
                    node = operand
                case Call(arguments=(operand, key)):
                    steps.append(key)
                    node = operand
                case _:
                    break
        return node, steps[::-1]

    def _trace_path(self, note: Note, scope: Scope) -> Origin:
        """Follow a path from the origin of its root."""
        _, steps = self._split_path(note.node)
        parts = iter(note.parts)
        below = next(parts, None)
        keys = [step if isinstance(step, str) else self._read_key(step, parts) for step in steps]
        computed = frozenset().union(*(self.reads(part, scope) for part in note.parts[1:]))
        name = self.find_variable(note)
        if name:
            origin, keys = self._trace_variable(name), keys[1:]
        elif below is None:
            return NOWHERE
        elif keys:
            origin = self.element(below, keys.pop(0), scope)
        else:
            origin = self.of(below, scope)
        for key in keys:
            origin = self._descend(origin, key)
        return (origin if origin.place else self._locate_or(note, origin)).add_reads(computed)

    def _locate_or(self, note: Note, otherwise: Origin) -> Origin:
        located = self.tracer.locate(note.outcome)
        return located if located.place else otherwise

    def _read_key(self, node: Node, parts: Iterator[Note]) -> Value | EvaluationError:
        """Return the value of a key. A conditional key has notes of its condition and its branch."""
        if node.id in self.constants:
            return self.constants[node.id]
        part = next(parts, None)
        if isinstance(node, Call) and node.function == "_?_:_":
            _, yes, no = node.arguments
            branch = yes if part is not None and part.outcome is True else no
            return self._read_key_of_branch(branch, parts)
        return None if part is None else part.outcome

    def _read_key_of_branch(self, node: Node, parts: Iterator[Note]) -> Value | EvaluationError:
        if isinstance(node, Call) and node.function == "_?_:_":
            return self._read_key(node, parts)
        part = next(parts, None)
        return None if part is None else part.outcome

    def _find_kept(self, note: Note, scope: Scope) -> tuple[Note, Scope, frozenset[Place]] | None:
        """Return the part that an operation returns unchanged, the scope of that part, and the places that decided."""
        match note.node, note.parts:
            case Call(function="_?_:_"), [condition, branch]:
                return branch, scope, self.reads(condition, scope)
            case Call(function="or" | "orValue" | "value"), [part]:
                return part, scope, frozenset()
            case Call(function="or" | "orValue"), [_, other]:
                return other, scope, frozenset()
            case Call(function="dyn" | "optional.of" | "optional.ofNonZeroValue"), [part]:
                return part, scope, frozenset()
            case Comprehension(fold="bind", accumulator=name), [start, result]:
                return result, {**scope, name: self.of(start, scope)}, frozenset()
            case _:
                return None

    # --- elements

    def element(self, note: Note, key: Value, scope: Scope) -> Origin:
        """Return the origin of an element of a list or map."""
        origin = self.of(note, scope)
        if origin.place:
            return self._descend(origin, key)
        element = self._follow_element(note, key, scope) or origin
        if element.place:
            return element
        located = self.tracer.locate(_get_element(note.outcome, key))
        return located if located.place else Origin((), element.reads)

    def _follow_element(self, note: Note, key: Value, scope: Scope) -> Origin | None:
        """Trace an element through the operation that built the list."""
        kept_part = self._find_kept(note, scope)
        if kept_part is not None:
            part, inner, reads = kept_part
            return self.element(part, key, inner).add_reads(reads)
        if type(key) is not int:
            return None
        match note.node, note.parts:
            case Call(function="_+_"), [left, right] if isinstance(left.outcome, list):
                length = len(left.outcome)
                return self.element(left, key, scope) if key < length else self.element(right, key - length, scope)
            case Comprehension(fold="map" | "filter" | "transformList") as node, _ if note.complete:
                return self._follow_collected(node, note, key, scope)
            case _:
                return None

    def _follow_collected(self, node: Comprehension, note: Note, key: int, scope: Scope) -> Origin | None:
        collected_rounds = [
            (part, at)
            for at, parts in enumerate(self.list_rounds(node, note))
            for part in parts
            if part.node is node.body
        ]
        if key >= len(collected_rounds):
            return None
        part, at = collected_rounds[key]
        return self.of(part, self.enter_round(node, note, at, scope))

    # --- loops

    def list_rounds(self, node: Comprehension, note: Note) -> list[list[Note]]:
        """Return the notes of each round of a loop, in order."""
        _, *noted = note.parts
        begins = node.body if node.predicate is None else node.predicate
        turns: list[list[Note]] = []
        for part in noted:
            if part.node is begins or not turns:
                turns.append([])
            turns[-1].append(part)
        return turns

    def enter_round(self, node: Comprehension, note: Note, at: int, scope: Scope) -> Scope:
        """Return the scope of a round, counted from 0: the outer scope and the origins of its variables."""
        return {**scope, **self._trace_variables(node, note.parts[0], at, scope)}

    def _trace_variables(self, node: Comprehension, over: Note, at: int, scope: Scope) -> dict[str, Origin]:
        """Return the origins of the variables of one round."""
        ranged = over.outcome.value if isinstance(over.outcome, Optional) else over.outcome
        if isinstance(ranged, list):
            element = self.element(over, at, scope)
            return _name_variables(node, NOWHERE, element)
        keys = list(ranged) if isinstance(ranged, dict | KeyedMap) else []
        if at >= len(keys):
            return _name_variables(node, self.of(over, scope), self.of(over, scope))
        element = self.element(over, keys[at], scope)
        return _name_variables(node, element, element)

    # --- everything that a value was computed from

    def reads(self, note: Note, scope: Scope) -> frozenset[Place]:
        """Return the places whose content may be in a value. The existence and the number of values are not content."""
        places = self._read.get(id(note))
        if places is None:
            places = self._read[id(note)] = self._list_read(note, scope)
        return places

    def _list_read(self, note: Note, scope: Scope) -> frozenset[Place]:
        node = note.node
        if node.id in self.constants or (isinstance(node, Select) and node.test):
            return frozenset()
        if not note.complete:
            return self.list_all_reads()
        if self.is_path(node) or node.id in self.checked.names:
            return self.of(note, scope).reads
        match node:
            case Call(function="size") if note.parts and self._is_unchanged(note.parts[0], scope):
                return frozenset()
            case Comprehension(fold="bind", accumulator=name) if note.parts:
                inner = {**scope, name: self.of(note.parts[0], scope)}
                return self.reads(note.parts[-1], inner)
            case Comprehension() if note.parts:
                return self._list_reads_of_loop(node, note, scope)
            case _:
                return frozenset().union(*(self.reads(part, scope) for part in note.parts))

    def _is_unchanged(self, note: Note, scope: Scope) -> bool:
        return type(note.outcome) in (list, dict) and self.of(note, scope).is_unchanged

    def _list_reads_of_loop(self, node: Comprehension, note: Note, scope: Scope) -> frozenset[Place]:
        over = note.parts[0]
        places = frozenset() if self._is_unchanged(over, scope) else self.reads(over, scope)
        for at, parts in enumerate(self.list_rounds(node, note)):
            inner = self.enter_round(node, note, at, scope)
            places = places.union(*(self.reads(part, inner) for part in parts))
        return places

    def list_all_reads(self) -> frozenset[Place]:
        """Return all places that the expression reads, in any evaluation."""
        places: set[Place] = {path for path in self._program.reads if path[0] != VARIABLES}
        used = {path[1] for path in self._program.reads if path[0] == VARIABLES and len(path) > 1}
        if (VARIABLES,) in self._program.reads:
            used |= set(self.tracer.names())
        for name in sorted(used):
            other = self.tracer.variable(name)
            places |= frozenset() if other is None else other.list_all_reads()
        return frozenset(places)


def _may_hand_on(node: Node) -> bool:
    """Return whether the result of an operation may be a list or map that existed before."""
    return isinstance(node, Call) and not node.function.startswith("_")


def _name_variables(node: Comprehension, first: Origin, second: Origin) -> dict[str, Origin]:
    """Return the variables of a loop: one, which is the element of a list or the key of a map, or two."""
    if node.second_variable is None:
        return {node.variable: second}
    return {node.variable: first, node.second_variable: second}


def _get_element(value: Value, key: Value) -> Value:
    if isinstance(value, Optional):
        value = value.value
    if type(value) is list and type(key) is int and 0 <= key < len(value):
        return value[key]
    return value.get(key) if type(value) is dict and type(key) is str else None
