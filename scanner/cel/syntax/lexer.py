"""Text to tokens: cel-go's lexical grammar.

The longest match wins, and among equally long ones the earlier rule; one regular expression with its alternatives in that
order does both. Comments and white space vanish here.

Rules: `docs/semantics/cel-syntax.md#tokens`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = rf"""[rR]"{{3}}(?s:.*?)"{{3}}|[rR]'{{3}}(?s:.*?)'{{3}}|[rR]"[^"\n\r]*"|[rR]'[^'\n\r]*'
  |"{{3}}(?:{_ESCAPE}|[^\\])*?"{{3}}|'{{3}}(?:{_ESCAPE}|[^\\])*?'{{3}}
  |"(?:{_ESCAPE}|[^\\"\n\r])*"|'(?:{_ESCAPE}|[^\\'\n\r])*'"""
_TOKEN = re.compile(
    rf"""(?P<blank>[\t\ \r\n\f]+|//[^\n]*)
  |(?P<bytes>[bB](?:{_STRING}))
  |(?P<string>{_STRING})
  |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  |(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
  |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
  |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
  |(?P<quoted>`[A-Za-z0-9_.\-/\ ]+`)
  |(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,(){{}}\[\]])""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
END = "<EOF>"


class Token(NamedTuple):
    """A token and its offset in code points.

    `kind` is the sign or keyword itself, or one of name, quoted, int, uint, float, string, bytes and `<EOF>`.
    """

    kind: str
    text: str
    offset: int


class UnknownCharacter(Exception):
    """No token begins at this offset, in code points; `before` are the tokens up to it."""

    def __init__(self, offset: int, before: list[Token]) -> None:
        super().__init__(offset)
        self.offset = offset
        self.before = before


_PART_OF_ESCAPE = r"\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?"
_UNFINISHED = re.compile(
    rf"""(?:"(?:{_ESCAPE}|[^\\"\n\r])*(?:{_PART_OF_ESCAPE})?|'(?:{_ESCAPE}|[^\\'\n\r])*(?:{_PART_OF_ESCAPE})?
  |`[A-Za-z0-9_.\-/\ ]*|&|\||=)?.?""",
    re.VERBOSE | re.DOTALL,
)
"""The beginning of an incomplete token, and the character that made it invalid."""
_BACKQUOTE = "`"


def scan(text: str, *, quotes: bool = True) -> tuple[list[Token], list[tuple[int, str]]]:
    """Return the tokens of an expression with an `<EOF>`, and the texts in it that are not tokens.

    Offsets are in code points. `quotes`: whether names in backquotes are tokens.
    """
    recognized: list[Token] = []
    unknown: list[tuple[int, str]] = []
    offset = 0
    while True:
        try:
            more = tokens(text, offset, quotes=quotes)
        except UnknownCharacter as at:
            recognized += at.before
            unfinished = None if text[at.offset] == _BACKQUOTE and not quotes else _UNFINISHED.match(text, at.offset)
            offset = at.offset + 1 if unfinished is None else unfinished.end()
            unknown.append((at.offset, text[at.offset : offset]))
        else:
            return recognized + more, unknown


def tokens(text: str, offset: int = 0, *, quotes: bool = True) -> list[Token]:
    """Return the tokens of an expression from an offset in code points on, and an `<EOF>`.

    `quotes`: whether names in backquotes are tokens. Raises `UnknownCharacter` where no token begins.
    """
    recognized: list[Token] = []
    match_at = _TOKEN.match
    while offset < len(text):
        match = match_at(text, offset)
        if match is None:
            raise UnknownCharacter(offset, recognized)
        kind = match.lastgroup
        if kind == "quoted" and not quotes:
            raise UnknownCharacter(offset, recognized)
        if kind != "blank":
            token = match.group()
            recognized.append(Token(token if kind == "sign" or token in _KEYWORDS else str(kind), token, offset))
        offset = match.end()
    recognized.append(Token(END, END, len(text)))
    return recognized
