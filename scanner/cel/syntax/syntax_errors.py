"""The errors of an expression that the grammar does not allow, in the words of upstream's parser generator.

The module runs only after the real parser has failed. It walks the grammar's rules as ANTLR's generated parser does, reports
errors with ANTLR's texts and recovers with its default strategy: drop a token, insert a token, or skip to a token that may follow
a rule. cel-go's limits apply: a hundred errors, thirty recoveries, 256 tokens skipped by one of them. Texts that are not tokens
are reported when the parser first reads beyond them.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias, assert_never

from scanner.cel.syntax import lexer, lookahead
from scanner.cel.syntax.grammar import (
    END_OF_RULE,
    RULES,
    Choice,
    Invoke,
    Kinds,
    Match,
    Maybe,
    Part,
    Repeat,
    Sequence,
    first,
    look,
    look_again,
)
from scanner.cel.syntax.lexer import END, Token
from scanner.cel.syntax.lookahead import NothingFits
from scanner.cel.syntax.parser import DEEPEST, TOO_DEEP
from scanner.cel.syntax.source import MOST_ERRORS, NOWHERE, Issue

MOST_RECOVERIES = 30
MOST_SKIPPED = 256
MISSING = "<missing>"
_SYMBOLS = {
    "float": "NUM_FLOAT",
    "int": "NUM_INT",
    "uint": "NUM_UINT",
    "string": "STRING",
    "bytes": "BYTES",
    "name": "IDENTIFIER",
    "quoted": "ESC_IDENTIFIER",
}
_LITERALS = "== != in < <= >= > && || [ ] { } ( ) . , - ! ? : + * / % true false null"
_SHOWN = {END: END} | {sign: f"'{sign}'" for sign in _LITERALS.split()} | _SYMBOLS
"""Token kinds in upstream's order, with the names they have in messages."""
_CHAINS = frozenset({"relation", "calc", "member"})
_KEYWORDS = frozenset({"true", "false", "null"})

State: TypeAlias = object
"""The position of the parser: a part of the grammar, or the `again` of a repetition."""


@dataclass(slots=True)
class Tree:
    """The recognised parts of one use of a rule: tokens and trees, and the choices in it; `offset` is in code points."""

    rule: str
    offset: int
    children: list[Token | Tree] = field(default_factory=list)
    choices: list[int] = field(default_factory=list)
    links: int = 0


class _Abandoned(Exception):
    """A rule cannot continue; the message is the error."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class _GivenUp(Exception):
    """A limit is exceeded: the parser stops."""


def explain(text: str, *, quotes: bool = True) -> tuple[Tree | None, list[Issue]]:
    """Return the recognised parts of an expression, None when the parser stopped at a limit, and its syntax errors.

    `quotes`: whether the grammar has names in backquotes.
    """
    recognizer = _Recognizer(text, quotes=quotes)
    try:
        return recognizer.invoke(Invoke("start", after=frozenset({END_OF_RULE}))), recognizer.issues
    except _GivenUp:
        return None, recognizer.issues


class _Recognizer:
    """ANTLR's parser and its default error strategy."""

    def __init__(self, text: str, *, quotes: bool) -> None:
        self._quotes = quotes
        self._tokens, unknown = lexer.scan(text, quotes=quotes)
        self._unknown = deque(unknown)
        self._text = text
        self._at = 0
        self._callers: list[Invoke] = []
        self._open: Counter[str] = Counter()
        self._trees: list[Tree] = []
        self._state: State = None
        self._recovering = False
        self._last_error: int | None = None
        self._last_states: set[int] = set()
        self._recoveries = 0
        self.issues: list[Issue] = []

    # --- the grammar

    def invoke(self, part: Invoke) -> Tree:
        """Return the recognised parts of a use of a rule; errors inside it are reported here."""
        tree = Tree(part.rule, self._token().offset)
        self._enter(part.rule)
        self._state = part
        self._callers.append(part)
        self._trees.append(tree)
        try:
            self._run(RULES[part.rule])
        except _Abandoned as abandoned:
            self._report(abandoned)
            self._recover()
        self._leave(part.rule, tree.links)
        self._callers.pop()
        self._trees.pop()
        self._state = part
        return tree

    def _run(self, part: Part) -> None:
        match part:
            case Match():
                self._match(part)
            case Invoke(rule="escapeIdent") if not self._quotes:
                self._match_name(part)
            case Invoke():
                self._trees[-1].children.append(self.invoke(part))
            case Sequence(parts=parts):
                for inner in parts:
                    self._run(inner)
            case Maybe(part=inner):
                self._sync(part, look(part))
                if self._kind() in first(inner):
                    self._run(inner)
            case Repeat():
                self._repeat(part)
            case Choice(parts=parts):
                self._sync(part, look(part))
                chosen = self._choose(part)
                self._trees[-1].choices.append(chosen)
                self._run(parts[chosen])
            case _:
                assert_never(part)

    def _repeat(self, part: Repeat) -> None:
        self._sync(part, look(part))
        rounds = 0
        while rounds < part.least or self._continues(part):
            self._link()
            self._run(part.part)
            rounds += 1
            self._sync_again(part)

    def _link(self) -> None:
        """Count another link of a chain: upstream leaves the rule and enters it again."""
        tree = self._trees[-1]
        if tree.rule in _CHAINS:
            tree.links += 1
            self._leave(tree.rule)
            self._enter(tree.rule)

    def _enter(self, rule: str) -> None:
        self._open[rule] += 1
        if self._open[rule] > DEEPEST:
            self.issues.append(Issue(NOWHERE, TOO_DEEP))
            raise _GivenUp

    def _leave(self, rule: str, links: int = 0) -> None:
        self._open[rule] = max(self._open[rule] - 1 - links, 0)

    def _match(self, part: Match, tree: Tree | None = None) -> None:
        self._state = part
        token = self._token()
        if token.kind in part.kinds:
            self._end_recovery()
            self._consume()
        else:
            token = self._recover_inline(part)
        (tree or self._trees[-1]).children.append(token)

    def _match_name(self, part: Invoke) -> None:
        """Match the name of a field where the grammar has no rule for it, and leave the tree of one."""
        tree, outer = Tree(part.rule, self._token().offset), self._trees[-1]
        self._match(_names(part), tree)
        outer.children.append(tree)

    # --- decisions

    def _continues(self, part: Repeat) -> bool:
        try:
            return lookahead.continues(part, self._kind, self._callers[-1].precedence)
        except NothingFits as nothing:
            raise self._no_alternative(nothing.ahead) from None

    def _choose(self, part: Choice) -> int:
        try:
            return lookahead.choose(part, self._kind)
        except NothingFits as nothing:
            raise self._no_alternative(nothing.ahead) from None

    def _no_alternative(self, ahead: int) -> _Abandoned:
        """Return the error that no alternative matches from the current token to a later one."""
        start, offending = self._token(), self._token(ahead)
        shown = END if start.kind == END else self._between(start, offending)
        if len(shown) > 1 and shown[1:] in _KEYWORDS:
            return _Abandoned(f"mismatched input '{shown[1:]}' expecting IDENTIFIER", offending.offset)
        return _Abandoned(f"no viable alternative at input {_quoted(shown)}", offending.offset)

    def _between(self, start: Token, end: Token) -> str:
        """Return the text from one token to another, both included, without the parts that are not tokens."""
        stop = end.offset if end.kind == END else end.offset + len(end.text)
        unknown = lexer.scan(self._text[start.offset : stop], quotes=self._quotes)[1]
        shown, at = "", start.offset
        for offset, text in unknown:
            shown += self._text[at : start.offset + offset]
            at = start.offset + offset + len(text)
        return shown + self._text[at:stop]

    # --- the error strategy

    def _sync(self, part: Part, possible: Kinds) -> None:
        """Check the next token before a decision; drop one unexpected token."""
        self._state = part
        if self._recovering or END_OF_RULE in possible or self._kind() in possible:
            return
        if not self._drop_token(possible):
            raise self._mismatch(possible)

    def _sync_again(self, part: Repeat) -> None:
        """Check the next token after a round; skip to the start of another round or of the rest."""
        self._state = part.again
        possible = look_again(part)
        if self._recovering or END_OF_RULE in possible or self._kind() in possible:
            return
        self._report_unwanted(possible)
        self._skip_to(possible | self._followers())

    def _recover_inline(self, part: Match) -> Token:
        self._count_recovery()
        expected = self._in_context(look(part))
        token = self._drop_token(expected)
        if token is not None:
            self._consume()
            return token
        if self._kind() in self._in_context(part.after):
            self._report_missing(expected)
            return Token(MISSING, MISSING, self._token().offset)
        raise self._mismatch(expected)

    def _recover(self) -> None:
        self._count_recovery()
        skipped = 0
        if self._last_error == self._at and id(self._state) in self._last_states:
            self._consume()
            skipped = 1
        self._last_error = self._at
        self._last_states.add(id(self._state))
        self._skip_to(self._followers(), skipped, limit=MOST_SKIPPED)

    def _count_recovery(self) -> None:
        if self._recoveries == MOST_RECOVERIES:
            message = f"error recovery attempt limit exceeded: {MOST_RECOVERIES}"
            self.complain(self._token().offset, message)
            raise _GivenUp
        self._recoveries += 1

    def _drop_token(self, expected: Kinds) -> Token | None:
        """Drop the current token when the next one is the expected one, and return that one."""
        if self._kind(1) not in expected:
            return None
        self._report_unwanted(expected)
        self._consume()
        self._end_recovery()
        return self._token()

    def _skip_to(self, kinds: Kinds, skipped: int = 0, limit: int | None = None) -> None:
        while self._kind() != END and self._kind() not in kinds:
            if limit is not None and skipped >= limit:
                self.issues.append(Issue(NOWHERE, f"error recovery token lookahead limit exceeded: {limit}"))
                raise _GivenUp
            self._consume()
            skipped += 1

    def _in_context(self, possible: Kinds) -> Kinds:
        """Return the tokens that may come next, given the whole stack of rules."""
        kinds = possible - {END_OF_RULE}
        for caller in reversed(self._callers):
            if END_OF_RULE not in possible:
                return kinds
            possible = caller.after
            kinds |= possible - {END_OF_RULE}
        return kinds | {END} if END_OF_RULE in possible else kinds

    def _followers(self) -> Kinds:
        """Return the tokens that may follow any of the rules being recognised."""
        return frozenset().union(*(caller.after for caller in self._callers)) - {END_OF_RULE}

    def _mismatch(self, expected: Kinds) -> _Abandoned:
        token = self._token()
        return _Abandoned(f"mismatched input {_displayed(token)} expecting {self._listed(expected)}", token.offset)

    def _report(self, abandoned: _Abandoned) -> None:
        if not self._recovering:
            self._recovering = True
            self.complain(abandoned.offset, str(abandoned))

    def _report_unwanted(self, expected: Kinds) -> None:
        token = self._token()
        self._report(
            _Abandoned(f"extraneous input {_displayed(token)} expecting {self._listed(expected)}", token.offset)
        )

    def _report_missing(self, expected: Kinds) -> None:
        token = self._token()
        self._report(_Abandoned(f"missing {self._listed(expected)} at {_displayed(token)}", token.offset))

    def complain(self, offset: int, message: str) -> None:
        """Record a syntax error at an offset in code points; stop the parser after the hundredth."""
        if len(self.issues) >= MOST_ERRORS:
            self.issues.append(Issue(offset, f"Syntax error: More than {MOST_ERRORS} syntax errors"))
            raise _GivenUp
        self.issues.append(Issue(offset, f"Syntax error: {message}"))

    def _end_recovery(self) -> None:
        self._recovering = False
        self._last_error = None
        self._last_states.clear()

    def _listed(self, kinds: Kinds) -> str:
        named = kinds if self._quotes else kinds - {"quoted"}
        names = [shown for kind, shown in _SHOWN.items() if kind in named]
        return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"

    # --- tokens

    def _token(self, ahead: int = 0) -> Token:
        token = self._tokens[min(self._at + ahead, len(self._tokens) - 1)]
        while self._unknown and self._unknown[0][0] < token.offset:
            offset, shown = self._unknown.popleft()
            self.complain(offset, f"token recognition error at: '{shown}'")
        return token

    def _kind(self, ahead: int = 0) -> str:
        return self._token(ahead).kind

    def _consume(self) -> None:
        if self._at < len(self._tokens) - 1:
            self._at += 1


@cache
def _names(part: Invoke) -> Match:
    """Return a match of a name in the place of a rule."""
    return Match(frozenset({"name"}), after=part.after)


def _displayed(token: Token) -> str:
    return _quoted(token.text)


def _quoted(text: str) -> str:
    escaped = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"
