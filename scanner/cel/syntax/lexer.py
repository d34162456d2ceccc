"""Text to tokens: cel-go's lexical grammar.

The longest match wins, and among equally long ones the earlier rule; one regular expression with its alternatives in that
order does both. Comments and white space vanish here.

Rules: `docs/semantics/cel-syntax.md#tokens`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = rf"""[rR]"{{3}}(?s:.*?)"{{3}}|[rR]'{{3}}(?s:.*?)'{{3}}|[rR]"[^"\n\r]*"|[rR]'[^'\n\r]*'
  |"{{3}}(?:{ESCAPE}|[^\\])*?"{{3}}|'{{3}}(?:{ESCAPE}|[^\\])*?'{{3}}
  |"(?:{ESCAPE}|[^\\"\n\r])*"|'(?:{ESCAPE}|[^\\'\n\r])*'"""
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
KEYWORDS = frozenset({"in", "true", "false", "null"})
END = "<EOF>"
UNKNOWN = "<unknown>"


class Token(NamedTuple):
    """A token and its offset in code points.

    `kind` is the sign or keyword itself, or one of name, quoted, int, uint, float, string, bytes, `<EOF>` and `<unknown>`.
    """

    kind: str
    text: str
    offset: int


def tokenize(text: str, *, quotes: bool = True) -> list[Token]:
    """Return the tokens of an expression and an `<EOF>`; where no token begins, an `<unknown>` of the remaining text is the last.

    `quotes`: whether names in backquotes are tokens.
    """
    recognized: list[Token] = []
    match_at = _TOKEN.match
    offset = 0
    while offset < len(text):
        match = match_at(text, offset)
        if match is None or (match.lastgroup == "quoted" and not quotes):
            return [*recognized, Token(UNKNOWN, text[offset:], offset)]
        kind = match.lastgroup
        if kind != "blank":
            token = match.group()
            recognized.append(Token(token if kind == "sign" or token in KEYWORDS else str(kind), token, offset))
        offset = match.end()
    return [*recognized, Token(END, END, len(text))]
