"""Further errors of an expression with syntax errors: reserved names, literals and macros in the recognised parts.

Mirrors the visitor of cel-go's `parser/parser.go`: it walks the broken tree too, and its errors are listed with the syntax errors.
"""

from __future__ import annotations

from collections.abc import Iterator

from scanner.cel.syntax.lexer import END, Token
from scanner.cel.syntax.parser import DEEPEST, RESERVED, TOO_DEEP_TO_VISIT, Parser
from scanner.cel.syntax.source import BEFORE, NOWHERE, Issue
from scanner.cel.syntax.syntax_errors import Tree
from scanner.cel.syntax.tree import Identifier, ListLiteral, Literal, MapLiteral, Node, Select, StructLiteral

_GLOBAL_CALL, _STRUCT = 1, 5
_COUNTED = frozenset({"expr", "relation", "calc"})
_CONSTANTS = frozenset({"int", "uint", "float", "string", "bytes"})


def complaints(tree: Tree, parser: Parser) -> list[Issue]:
    """Return the visitor's errors in the parts of a broken tree. The parser makes the nodes and collects the issues."""
    root = _Visitor(parser).visit(tree)
    if root.depth > DEEPEST:
        return [Issue(NOWHERE, TOO_DEEP_TO_VISIT), *parser.issues]
    return parser.issues


class _Visitor:
    """One method for each relevant rule; a missing part becomes an empty node."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser

    def visit(self, tree: Tree | None) -> Node:
        """Return the node of a rule; of a missing part, an empty node."""
        match tree:
            case None:
                return self._nothing()
            case Tree(rule="member"):
                return self._member(tree)
            case Tree(rule="primary"):
                return self._primary(tree)
            case Tree(rule="literal"):
                return self._literal(tree)
            case _:
                return self._operators(tree)

    def _nothing(self, offset: int = BEFORE) -> Node:
        return Literal(self._parser.new_id(), offset, None)

    def _operators(self, tree: Tree) -> Node:
        """Visit a rule that contains others: either it is a single part, or it is a call."""
        nodes = tuple(self.visit(part) for part in _trees(tree))
        signs = [token for token in _tokens(tree) if token.kind != END and tree.rule != "optExpr"]
        twice = tree.rule == "unary" and len(signs) % 2 == 0
        if len(nodes) == 1 and (twice or not signs):
            return nodes[0]
        node = self._parser.call(self._parser.new_id(), _root(tree, signs), "", nodes)
        if tree.rule in _COUNTED:
            node.depth = max(part.depth for part in nodes) + max(len(signs) * (tree.rule != "expr"), 1)
        return node

    def _member(self, tree: Tree) -> Node:
        node = self.visit(next(_trees(tree), None))
        for suffix in _suffixes(tree):
            node = self._suffix(node, suffix)
        return node

    def _suffix(self, operand: Node, suffix: Tree) -> Node:
        start = next(_tokens(suffix))
        name = next((token for token in _tokens(suffix) if token.kind == "name"), None)
        inner = next(_trees(suffix), None)
        if start.kind == "[":
            key = self.visit(inner)
            return self._parser.call(self._parser.new_id(), start.offset, "", (operand, key), counted=True)
        if name is not None:
            return self._call(suffix, name.text, operand)
        if inner is None:
            return self._nothing(suffix.offset)
        field = self._field(inner)
        if any(token.kind == "?" for token in _tokens(suffix)):
            return self._parser.call(self._parser.new_id(), start.offset, "_?._", (operand,), counted=True)
        return Select(self._parser.new_id(), start.offset, operand, field, depth=operand.depth + 1)

    def _field(self, tree: Tree) -> str:
        token = next(_tokens(tree), None)
        if token is None:
            self._complain_of_name(tree.offset)
            return ""
        self._parser.is_field_name(token, tree.offset)
        return token.text

    def _call(self, tree: Tree, function: str, target: Node | None) -> Node:
        bracket = next((token for token in _tokens(tree) if token.kind == "("), None)
        listed = next(_trees(tree), None)
        arguments = () if listed is None else tuple(self.visit(argument) for argument in _trees(listed))
        offset = tree.offset if bracket is None else bracket.offset
        return self._parser.macro_or_call(self._parser.new_id(), offset, function, target, arguments)

    def _primary(self, tree: Tree) -> Node:
        choice = tree.choices[0] if tree.choices else None
        signs = {token.kind: token for token in _tokens(tree)}
        inner = next(_trees(tree), None)
        if "name" in signs and choice != _STRUCT:
            return self._name(tree, signs["name"], called=choice == _GLOBAL_CALL)
        if "[" in signs:
            elements = () if inner is None else tuple(self.visit(element) for element in _trees(inner))
            return ListLiteral(self._parser.new_id(), tree.offset, elements)
        if "{" in signs:
            return self._map(tree, inner) if choice != _STRUCT else self._struct(signs["{"], inner)
        return self._nothing() if choice is None else self.visit(inner)

    def _name(self, tree: Tree, name: Token, *, called: bool) -> Node:
        if name.text in RESERVED:
            self._complain(tree.offset, f"reserved identifier: {name.text}")
            return self._nothing(tree.offset)
        text = f".{name.text}" if next(_tokens(tree)).kind == "." else name.text
        return self._call(tree, text, None) if called else Identifier(self._parser.new_id(), name.offset, text)

    def _map(self, tree: Tree, entries: Tree | None) -> Node:
        for inner in () if entries is None else _complete_entries(entries):
            self.visit(inner)
        return MapLiteral(self._parser.new_id(), tree.offset, ())

    def _struct(self, brace: Token, entries: Tree | None) -> Node:
        every = () if entries is None else tuple(_complete_entries(entries))
        for name, value in zip(every[::2], every[1::2], strict=True):
            if self._initialized(name, every[0].offset):
                self.visit(value)
            elif not self._parser.has_quotes:
                break
        return StructLiteral(self._parser.new_id(), brace.offset, "", ())

    def _initialized(self, field: Tree, at: int) -> bool:
        """Return whether a field has a name; an error in it is reported for the whole list."""
        name = next(_trees(field), None)
        token = None if name is None else next(_tokens(name), None)
        if token is None:
            self._complain_of_name(at)
            return False
        return self._parser.is_field_name(token, at)

    def _literal(self, tree: Tree) -> Node:
        tokens = list(_tokens(tree))
        if tokens and tokens[-1].kind in _CONSTANTS:
            return self._parser.literal(tree.offset, "".join(token.text for token in tokens), tokens[-1].kind)
        return self._nothing(tree.offset)

    def _complain_of_name(self, offset: int) -> None:
        """Report that a field has no name; without names in backquotes the grammar has no rule that could be empty."""
        if self._parser.has_quotes:
            self._complain(offset, "unsupported ident kind")

    def _complain(self, offset: int, message: str) -> None:
        self._parser.issues.append(Issue(offset, message))


def _root(tree: Tree, signs: list[Token]) -> int:
    """Return the offset of the root operator: chains lean to the left, those of the logical operators are balanced."""
    if not signs:
        return tree.offset
    if tree.rule in ("relation", "calc"):
        return signs[-1].offset
    return signs[len(signs) // 2].offset if tree.rule.startswith("conditional") else signs[0].offset


def _trees(tree: Tree) -> Iterator[Tree]:
    return (child for child in tree.children if isinstance(child, Tree))


def _tokens(tree: Tree) -> Iterator[Token]:
    return (child for child in tree.children if isinstance(child, Token))


def _suffixes(member: Tree) -> list[Tree]:
    """Return the suffixes of a member's first part, one tree for each selection, index or call."""
    suffixes: list[Tree] = []
    for child in member.children[1:]:
        if isinstance(child, Token) and child.kind in (".", "["):
            suffixes.append(Tree("suffix", child.offset))
        if suffixes:
            suffixes[-1].children.append(child)
    return suffixes


def _complete_entries(entries: Tree) -> Iterator[Tree]:
    """Return the keys and values, in turn, as far as both are there."""
    every = list(_trees(entries))
    return iter(every[: len(every) // 2 * 2])
