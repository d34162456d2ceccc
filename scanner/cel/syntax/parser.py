"""Tokens to a tree: recursive descent over cel-go's grammar.

The grammar's limits are counted as upstream counts them: 250 levels of each rule that can nest, chains of operators and
selections included. The first token that is not in the grammar ends the parse, and `scanner.cel.syntax.syntax_errors` words it.

Rules: `docs/semantics/cel-syntax.md#grammar`, `docs/semantics/cel-syntax.md#limits-of-the-parser`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING

from scanner.cel.errors import ExpressionTooLarge
from scanner.cel.releases import KNOWN_BACKQUOTES, QUOTED_FIELDS, VALID_CODE_POINTS, Version
from scanner.cel.syntax import lexer, macros
from scanner.cel.syntax.lexer import END, Token
from scanner.cel.syntax.literals import (
    BadLiteral,
    parse_bytes,
    parse_double,
    parse_integer,
    parse_string,
    parse_string_leniently,
    parse_unsigned,
)
from scanner.cel.syntax.source import NOWHERE, Issue, Source
from scanner.cel.syntax.syntax_errors import explain_unexpected
from scanner.cel.syntax.tree import (
    Call,
    FieldEntry,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scanner.cel.values.values import Value

LONGEST = 100_000
DEEPEST = 250
LARGEST = 100_000
"""The limit of nodes; Assay's own. Each optMap of an optMap doubles the tree, upstream until memory ends."""
RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_RELATIONS = {
    "<": "_<_",
    "<=": "_<=_",
    ">=": "_>=_",
    ">": "_>_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "@in",
}
_OPERAND, _SUM_OPERAND, _PRODUCT_OPERAND = 2, 2, 3
_NO_MACROS: Mapping[tuple[str, int, bool], macros.Expand] = MappingProxyType({})
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}
_CONSTANTS: dict[str, Callable[[str], Value]] = {
    "int": parse_integer,
    "uint": parse_unsigned,
    "float": parse_double,
    "string": parse_string,
    "bytes": parse_bytes,
}
_KEYWORDS: dict[str, Value] = {"true": True, "false": False, "null": None}


class InvalidSyntax(Exception):
    """A text is not in the grammar or exceeds its limits; `issues` are its first errors, in the order of the text."""

    def __init__(self, *issues: Issue) -> None:
        super().__init__(*issues)
        self.issues = list(issues)


def find_excess_length(text: str) -> Issue | None:
    """Return the issue with an expression of more than 100,000 code points; None for a shorter one."""
    if len(text) <= LONGEST:
        return None
    return Issue(NOWHERE, f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}")


def parse(
    text: str,
    version: Version = (1, 36),
    features: Version = (1, 36),
    more: Mapping[tuple[str, int, bool], macros.Expand] = _NO_MACROS,
) -> tuple[Node, list[Issue]]:
    """Return the tree of an expression and its errors beyond the grammar, for a Kubernetes release.

    `features` is the release whose macros may be used; `more` are the macros of one environment.
    Raises `InvalidSyntax`, and `ExpressionTooLarge` for a tree of more than `LARGEST` nodes.
    """
    parser = _Parser(text, version, features, more)
    root = parser.parse()
    if root.depth > DEEPEST:
        raise InvalidSyntax(Issue(NOWHERE, "max recursion depth exceeded"))
    return root, parser.issues


class _Parser:
    """One pass over the tokens of one expression; `issues` are the errors that do not end it."""

    def __init__(
        self,
        text: str,
        version: Version,
        features: Version,
        more: Mapping[tuple[str, int, bool], macros.Expand],
    ) -> None:
        self._text = text
        self._tokens = lexer.tokenize(text, quotes=KNOWN_BACKQUOTES.holds(version))
        self._features = features
        self._more = more
        self._version = version
        self._is_lenient = not VALID_CODE_POINTS.holds(version)
        self._at = 0
        self._kind = self._tokens[0].kind
        self._open = {"expr": 0, "relation": 0, "calc": 0, "member": 0}
        self._last_id = 0
        self.issues: list[Issue] = []

    def parse(self) -> Node:
        """Return the tree of all tokens. Raises InvalidSyntax."""
        root = self._parse_expression()
        self._take(END, "an operator or the end of the expression")
        return root

    def _parse_expression(self) -> Node:
        """Parse `or ['?' or ':' expression]`."""
        self._enter("expr")
        node = self._parse_chain("||", "_||_", self._parse_conjunction)
        if self._kind == "?":
            mark = self._take_token()
            number = self._take_id()
            yes = self._parse_chain("||", "_||_", self._parse_conjunction)
            self._take(":", "an operator or ':'")
            no = self._parse_expression()
            node = self._make_call(number, mark.offset, "_?_:_", (node, yes, no), counted=True)
        self._leave("expr")
        return node

    def _parse_conjunction(self) -> Node:
        return self._parse_chain("&&", "_&&_", self._parse_relation)

    def _parse_chain(self, sign: str, function: str, term: Callable[[], Node]) -> Node:
        """Parse a chain of one logical operator; upstream balances it, so that it does not nest deeply."""
        first = term()
        if self._kind != sign:
            return first
        terms = [first]
        operators: list[tuple[int, int]] = []
        while self._kind == sign:
            offset = self._take_token().offset
            terms.append(term())
            operators.append((self._take_id(), offset))
        return self._balance(function, terms, operators)

    def _balance(self, function: str, terms: list[Node], operators: list[tuple[int, int]]) -> Node:
        if not operators:
            return terms[0]
        middle = len(operators) // 2
        number, offset = operators[middle]
        left = self._balance(function, terms[: middle + 1], operators[:middle])
        right = self._balance(function, terms[middle + 1 :], operators[middle + 1 :])
        return self._make_call(number, offset, function, (left, right))

    def _parse_relation(self, precedence: int = 0) -> Node:
        """Parse `calc (sign relation)*`; the operand on the right has no signs of its own."""
        self._enter("relation")
        node = self._parse_calc(0)
        links = 0
        while precedence == 0 and self._kind in _RELATIONS:
            links += 1
            self._link("relation")
            sign, number = self._take_token(), self._take_id()
            right = self._parse_relation(_OPERAND)
            node = self._make_call(number, sign.offset, _RELATIONS[sign.kind], (node, right), counted=True)
        self._leave("relation", links)
        return node

    def _parse_calc(self, precedence: int) -> Node:
        """Parse arithmetic: products bind more tightly than sums, and both lean to the left."""
        self._enter("calc")
        node = self._parse_unary()
        links = 0
        while True:
            if self._kind in _PRODUCTS and precedence <= _SUM_OPERAND:
                functions, operand = _PRODUCTS, _PRODUCT_OPERAND
            elif self._kind in _SUMS and precedence == 0:
                functions, operand = _SUMS, _SUM_OPERAND
            else:
                self._leave("calc", links)
                return node
            links += 1
            self._link("calc")
            sign, number = self._take_token(), self._take_id()
            right = self._parse_calc(operand)
            node = self._make_call(number, sign.offset, functions[sign.kind], (node, right), counted=True)

    def _parse_unary(self) -> Node:
        if self._kind == "!":
            return self._parse_prefix("!", "!_")
        if self._kind == "-" and self._look_ahead(1) not in ("int", "float"):
            return self._parse_prefix("-", "-_")
        return self._parse_member()

    def _parse_prefix(self, sign: str, function: str) -> Node:
        first = self._take_token()
        count = 1
        while self._kind == sign:
            self._take_token()
            count += 1
        if count % 2 == 0:
            return self._parse_member()
        number = self._take_id()
        operand = self._parse_member()
        return self._make_call(number, first.offset, function, (operand,))

    def _parse_member(self) -> Node:
        self._enter("member")
        node = self._parse_primary()
        links = 0
        while True:
            match self._kind:
                case ".":
                    links += 1
                    self._link("member")
                    node = self._parse_after_dot(node)
                case "[":
                    links += 1
                    self._link("member")
                    node = self._parse_index(node)
                case _:
                    self._leave("member", links)
                    return node

    def _parse_after_dot(self, operand: Node) -> Node:
        dot = self._take_token()
        if self._kind == "?":
            self._take_token()
            number = self._take_id()
            name = self._parse_field()
            key = Literal(self._take_id(), name.offset, name.text)
            return Call(number, dot.offset, "_?._", (operand, key), depth=operand.depth + 1)
        name = self._parse_field()
        if self._kind == "(" and name.kind == "name":
            bracket = self._take_token()
            number = self._take_id()
            arguments = self._parse_arguments()
            return self._make_macro_or_call(number, bracket.offset, name.text, operand, arguments)
        return Select(self._take_id(), dot.offset, operand, name.text, depth=operand.depth + 1)

    def _parse_field(self, at: int | None = None) -> Token:
        """Return the token of a field's name, without quotes; `at` is the place of an error."""
        token = self._take_token() if self._kind == "quoted" else self._take("name", "a field name")
        if self._is_field_name(token, token.offset if at is None else at) and token.kind == "quoted":
            return Token(token.kind, token.text[1:-1], token.offset)
        return token

    def _is_field_name(self, token: Token, at: int) -> bool:
        """Return whether a token may name a field; quotes are an issue, at offset `at`, in releases without quoted names."""
        if token.kind != "quoted" or QUOTED_FIELDS.holds(self._version):
            return True
        self.issues.append(Issue(at, "unsupported syntax: '`'"))
        return False

    def _parse_index(self, operand: Node) -> Node:
        bracket = self._take_token()
        optional = self._take_if("?")
        number = self._take_id()
        key = self._parse_expression()
        self._take("]", "an operator or ']'", bracket)
        return self._make_call(number, bracket.offset, "_[?_]" if optional else "_[_]", (operand, key), counted=True)

    def _parse_primary(self) -> Node:
        match self._kind:
            case "name":
                return self._parse_name("", self._tokens[self._at].offset)
            case ".":
                return self._parse_name(".", self._take_token().offset)
            case "(":
                bracket = self._take_token()
                node = self._parse_expression()
                self._take(")", "an operator or ')'", bracket)
                return node
            case "[":
                return self._parse_list()
            case "{":
                return self._parse_map()
            case "-":
                return self._parse_negative()
            case _:
                return self._parse_constant()

    def _parse_constant(self) -> Node:
        if self._kind in _KEYWORDS:
            token = self._take_token()
            return Literal(self._take_id(), token.offset, _KEYWORDS[token.kind])
        if self._kind not in _CONSTANTS:
            raise self._make_unexpected("a value")
        token = self._take_token()
        return self._make_literal(token.offset, token.text, token.kind)

    def _parse_negative(self) -> Node:
        if self._look_ahead(1) not in ("int", "float"):
            self._take_token()
            raise self._make_unexpected("a number")
        sign = self._take_token()
        number = self._take_token()
        return self._make_literal(sign.offset, "-" + number.text, number.kind)

    def _make_literal(self, offset: int, text: str, kind: str) -> Node:
        """Return the constant of a token of this kind; a malformed constant is an issue and becomes null."""
        constant = parse_string_leniently if kind == "string" and self._is_lenient else _CONSTANTS[kind]
        try:
            return Literal(self._take_id(), offset, constant(text))
        except BadLiteral as bad:
            self.issues.append(Issue(offset, str(bad)))
            return Literal(self._take_id(), offset, None)

    def _parse_name(self, dot: str, offset: int) -> Node:
        name = self._take("name", "a name")
        if self._is_struct():
            return self._parse_struct(dot, name)
        if name.text in RESERVED:
            return self._report_reserved(name, offset)
        if self._kind != "(":
            return Identifier(self._take_id(), name.offset, dot + name.text)
        bracket = self._take_token()
        number = self._take_id()
        arguments = self._parse_arguments()
        return self._make_macro_or_call(number, bracket.offset, dot + name.text, None, arguments)

    def _report_reserved(self, name: Token, offset: int) -> Node:
        """Report a reserved name; errors in its arguments are not reported then."""
        self.issues.append(Issue(offset, f"reserved identifier: {name.text}"))
        issue_count = len(self.issues)
        if self._take_if("("):
            self._parse_arguments()
        del self.issues[issue_count:]
        return Literal(self._take_id(), offset, None)

    def _parse_arguments(self) -> tuple[Node, ...]:
        bracket = self._tokens[self._at - 1]
        if self._take_if(")"):
            return ()
        arguments = [self._parse_expression()]
        while self._take_if(","):
            arguments.append(self._parse_expression())
        self._take(")", "an operator, ',' or ')'", bracket)
        return tuple(arguments)

    def _parse_list(self) -> Node:
        bracket = self._take_token()
        number = self._take_id()
        elements: list[Node] = []
        optional: list[int] = []
        while self._kind not in ("]", ","):
            if self._take_if("?"):
                optional.append(len(elements))
            elements.append(self._parse_expression())
            if not self._take_if(","):
                break
        else:
            if not elements:
                self._take_if(",")
        self._end_list("]", bracket, "a value" if elements else "")
        depth = max((element.depth for element in elements), default=0)
        return ListLiteral(number, bracket.offset, tuple(elements), frozenset(optional), depth=depth)

    def _parse_map(self) -> Node:
        brace = self._take_token()
        number = self._take_id()
        entries: list[MapEntry] = []
        while self._kind not in ("}", ","):
            optional = self._take_if("?")
            key = self._parse_expression()
            colon = self._take(":", "an operator or ':'")
            entries.append(MapEntry(self._take_id(), colon.offset, key, self._parse_expression(), optional))
            if not self._take_if(","):
                break
        else:
            if not entries:
                self._take_if(",")
        self._end_list("}", brace, "a key" if entries else "")
        depth = max((max(entry.key.depth, entry.value.depth) for entry in entries), default=0)
        return MapLiteral(number, brace.offset, tuple(entries), depth=depth)

    def _is_struct(self) -> bool:
        """Return whether the dotted name that has begun ends in a brace."""
        at = self._at
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == "name":
            at += 2
        return self._tokens[at].kind == "{"

    def _parse_struct(self, dot: str, first: Token) -> Node:
        names = [first.text]
        while self._take_if("."):
            names.append(self._take_token().text)
        brace = self._take_token()
        number = self._take_id()
        start = self._tokens[self._at].offset
        entries: list[FieldEntry] = []
        while self._kind not in ("}", ","):
            optional = self._take_if("?")
            before = len(self.issues)
            name = self._parse_field(start)
            issue_count = len(self.issues)
            colon = self._take(":", "':'")
            entries.append(FieldEntry(self._take_id(), colon.offset, name.text, self._parse_expression(), optional))
            if issue_count > before:
                del self.issues[issue_count:]
            if not self._take_if(","):
                break
        else:
            if not entries:
                self._take_if(",")
        self._end_list("}", brace, "a field name" if entries else "")
        depth = max((entry.value.depth for entry in entries), default=0)
        return StructLiteral(number, brace.offset, dot + ".".join(names), tuple(entries), depth=depth)

    def _make_macro_or_call(
        self, number: int, offset: int, function: str, target: Node | None, arguments: tuple[Node, ...]
    ) -> Node:
        """Return the expansion of a macro call, or the call; an argument that the macro rejects is an issue.

        `offset` is in code points. Mirrors `expandMacro` of cel-go's `parser/parser.go`.
        """
        member = target is not None
        expand = self._find_extra_macro(function, len(arguments), member=member) if self._more else None
        expand = expand or macros.find_macro(function, len(arguments), self._features, member=member)
        if expand is not None:
            return self._expand(expand, number, offset, target, arguments)
        return self._make_call(number, offset, function, arguments, target, counted=target is not None)

    def _find_extra_macro(self, function: str, size: int, *, member: bool) -> macros.Expand | None:
        return self._more.get((function, size, member)) or self._more.get((function, macros.ANY_NUMBER, member))

    def _expand(
        self, expand: macros.Expand, number: int, offset: int, target: Node | None, arguments: tuple[Node, ...]
    ) -> Node:
        writer = macros.NodeWriter(self._take_id, offset, self._version)
        operands = arguments if target is None else (target, *arguments)
        try:
            node = expand(writer, target or arguments[0], arguments)
        except macros.BadMacro as bad:
            self.issues.append(Issue(bad.offset, str(bad)))
            return Literal(number, bad.offset, None)
        node.depth = max(operand.depth for operand in operands) + (target is not None)
        return node

    def _make_call(
        self,
        number: int,
        offset: int,
        function: str,
        arguments: tuple[Node, ...],
        target: Node | None = None,
        *,
        counted: bool = False,
    ) -> Node:
        """Return a call; `counted` when upstream's visitor counts its level."""
        depth = max((argument.depth for argument in arguments), default=0)
        if target is not None:
            depth = max(depth, target.depth)
        return Call(number, offset, function, arguments, target, depth + counted)

    def _take_id(self) -> int:
        """Return a number that no node of this tree has. Raises ExpressionTooLarge if the tree has too many nodes."""
        self._last_id += 1
        if self._last_id > LARGEST:
            raise ExpressionTooLarge(f"an expression expands to more than {LARGEST:,} nodes")
        return self._last_id

    def _enter(self, rule: str) -> None:
        self._open[rule] += 1
        if self._open[rule] > DEEPEST:
            message = f"Syntax error: the expression nests more than {DEEPEST} levels deep"
            raise InvalidSyntax(*self.issues[:1], Issue(self._tokens[self._at].offset, message))

    def _link(self, rule: str) -> None:
        """Begin another link of a chain: upstream leaves the rule and enters it again."""
        self._leave(rule)
        self._enter(rule)

    def _leave(self, rule: str, links: int = 0) -> None:
        """Leave a rule; upstream leaves it once more for each link, and its count never falls below zero."""
        self._open[rule] = max(self._open[rule] - 1 - links, 0)

    def _take_token(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        self._kind = self._tokens[self._at].kind if self._at < len(self._tokens) else END
        return token

    def _look_ahead(self, distance: int) -> str:
        at = self._at + distance
        return self._tokens[at].kind if at < len(self._tokens) else END

    def _take_if(self, kind: str) -> bool:
        if self._kind != kind:
            return False
        self._take_token()
        return True

    def _take(self, kind: str, expected: str, opening: Token | None = None) -> Token:
        """Return the next token, of this kind; `expected` names what fits, `opening` is the bracket that the token closes."""
        if self._kind != kind:
            raise self._make_unexpected(expected, opening)
        return self._take_token()

    def _end_list(self, sign: str, opening: Token, item: str) -> None:
        """Read the closing bracket of a list, a map or a message; `item` names an item that may follow a comma."""
        if self._tokens[self._at - 1].kind != ",":
            expected = f"an operator, ',' or '{sign}'"
        else:
            expected = f"{item} or '{sign}'" if item else f"'{sign}'"
        self._take(sign, expected, opening)

    def _make_unexpected(self, expected: str, opening: Token | None = None) -> InvalidSyntax:
        """Return the error of the next token, after the first one of those that did not end the parse."""
        source = Source(self._text)
        return InvalidSyntax(*self.issues[:1], explain_unexpected(source, self._tokens, self._at, expected, opening))
