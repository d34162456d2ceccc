"""Errors of syntax in Assay's own words: the token that cannot stand at its place, and what can.

A server refuses to store an expression with such an error, so upstream's words, those of a parser generator, are not needed (ADR 62).

Rules: `docs/semantics/cel-syntax.md#errors-of-syntax`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import category, east_asian_width

from scanner.cel.syntax.lexer import END, ESCAPE, KEYWORDS, UNKNOWN, Token
from scanner.cel.syntax.source import Issue

if TYPE_CHECKING:
    from scanner.cel.syntax.source import Source

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MEANT = {"=": "==", "&": "&&", "|": "||", "and": "&&", "or": "||"}
_NOUNS = {
    "name": "name ",
    "quoted": "quoted name ",
    "int": "number ",
    "uint": "number ",
    "float": "number ",
    "string": "string ",
    "bytes": "bytes ",
    **dict.fromkeys(KEYWORDS, "reserved word "),
}
_OWN_QUOTES = frozenset({"quoted", "int", "uint", "float", "string", "bytes"})
"""Kinds of tokens whose text needs no quotes around it."""
_LONGEST_TOKEN = 30
_BEFORE, _AFTER = 40, 28
"""The columns of a terminal that an excerpt has at most before its caret, and from there on: it fits 80 columns, indented."""
_STRING = re.compile(rf"(?:{ESCAPE}|[^\\\n\r])*")
_LONG_STRING = re.compile(rf"(?:{ESCAPE}|[^\\])*")
_ESCAPED = re.compile(r"\\[^\n\r]")
_WIDE = frozenset("WF")


def explain_unexpected(source: Source, tokens: list[Token], at: int, expected: str, opening: Token | None) -> Issue:
    """Return the issue with the token at a position of the list, from 0, where the grammar has something else.

    `expected` names it; `opening` is the bracket that is open there, if it can be closed.
    """
    token = tokens[at]
    if token.kind == UNKNOWN:
        return _explain_unknown(token, tokens[at - 1] if at else None)
    if token.kind == END and at == 0:
        return Issue(0, "Syntax error: the expression is empty")
    if opening is not None and token.kind in (END, *_CLOSING.values()):
        line, column = source.place(opening.offset)
        expected = f"'{_CLOSING[opening.kind]}' for the '{opening.kind}' at {line}:{column + 1}"
    if token.text in _MEANT and "operator" in expected:
        expected = f"{expected} (use '{_MEANT[token.text]}')"
    # The place to complete an expression is behind its last token: a block of YAML ends with a line break.
    offset = tokens[at - 1].offset + len(tokens[at - 1].text) if token.kind == END else token.offset
    return Issue(offset, f"Syntax error: unexpected {_describe_token(token)}, expected {expected}")


def describe(source: Source, issues: list[Issue]) -> str:
    """Return the issues with their places, and with as much of the line as fits a terminal, in the form of upstream's errors."""
    return "\n".join(_locate(source, issue) for issue in issues)


def _describe_token(token: Token) -> str:
    if token.kind == END:
        return "end of the expression"
    text = _make_printable(token.text[:_LONGEST_TOKEN]) + "…" * (len(token.text) > _LONGEST_TOKEN)
    return _NOUNS.get(token.kind, "") + (text if token.kind in _OWN_QUOTES else f"'{text}'")


def _explain_unknown(token: Token, before: Token | None) -> Issue:
    sign = token.text[0]
    if sign in "'\"":
        return _explain_broken_string(token, before)
    if sign in _MEANT:
        return Issue(token.offset, f"Syntax error: unknown operator '{sign}' (use '{_MEANT[sign]}')")
    code = "" if sign.isascii() and sign.isprintable() else f"U+{ord(sign):04X}"
    shown = f"'{sign}' ({code})" if code and sign.isprintable() else code or f"'{sign}'"
    return Issue(token.offset, f"Syntax error: unknown character {shown}")


def _explain_broken_string(token: Token, before: Token | None) -> Issue:
    """Return the issue with a string that has no end, or an invalid escape; its first token may be its prefix or an empty string."""
    quote = token.text[0]
    joined = before.text if before is not None and before.offset + len(before.text) == token.offset else ""
    prefix = joined.removesuffix(2 * quote).lower()
    is_long = joined.endswith(2 * quote) and prefix in ("", "b", "r", "br")
    if prefix not in ("r", "br"):
        inside = (_LONG_STRING if is_long else _STRING).match(token.text, 1)
        end = len(token.text) if inside is None else inside.end()
        escape = _ESCAPED.match(token.text, end)
        if escape is not None:
            shown = _make_printable(escape.group())
            message = f"invalid escape '{shown}' in a string (use '\\{shown}' or a raw string, r{quote}…{quote})"
            return Issue(token.offset + end, f"Syntax error: {message}")
    closing = 3 * quote if is_long else f"{quote} in this line"
    return Issue(token.offset, f"Syntax error: unterminated string, no closing {closing}")


def _locate(source: Source, issue: Issue) -> str:
    place = source.place(issue.offset)
    headline = f"ERROR: <input>:{place.line}:{place.column + 1}: {issue.message}"
    line = source.line(place.line)
    if not line or line.isspace():
        return headline
    before = _shorten(line[: place.column][::-1], _BEFORE)[::-1]
    dots = "." * sum(map(_count_columns, before))
    return f"{headline}\n | {before}{_shorten(line[place.column :], _AFTER)}\n | {dots}^"


def _shorten(text: str, columns: int) -> str:
    """Return the beginning of a text that needs at most so many columns of a terminal, and at most as many characters."""
    shown = _make_printable(text[:columns])
    while sum(map(_count_columns, shown)) > columns:
        shown = shown[:-1]
    return shown if len(shown) == len(text) else f"{shown[:-1]}…"


def _make_printable(text: str) -> str:
    """Return a text with a blank for white space, and a replacement for each other character that a terminal does not show."""
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "\ufffd" for character in text
    )


def _count_columns(character: str) -> int:
    """Return the number of columns of a terminal that a character takes."""
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in _WIDE else 1
