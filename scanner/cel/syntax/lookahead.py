"""Lookahead beyond one token, for the grammar's choices that one token does not decide.

The decisions are those of ANTLR's adaptive prediction on cel-go's grammar, decision by decision; for this grammar three tokens
are enough, or a dotted name. `Look` returns the kind of the token so many places ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from scanner.cel.syntax.grammar import PRODUCTS, RULES, Choice, Part, Repeat, Sequence, first

Look: TypeAlias = "Callable[[int], str]"

_NUMBERS = frozenset({"int", "float"})
_MEMBER = first(RULES["member"])
_BRACKETS = {"(": 2, "[": 3, "{": 4}
_IDENTIFIER, _CALL, _MESSAGE, _LITERAL = 0, 1, 5, 6
"""Choices of `primary`."""


class NothingFits(Exception):
    """No choice matches the tokens; `ahead` is the distance in tokens from the current one to the one that does not fit."""

    def __init__(self, ahead: int) -> None:
        super().__init__(ahead)
        self.ahead = ahead


def continues(part: Repeat, look: Look, precedence: int) -> bool:
    """Return whether another round of a repetition begins; raise `NothingFits` where no token fits.

    `precedence` is that of the enclosing operator: 1 for sums, 2 for products, 0 without one.
    """
    kind = look(0)
    match part.decision:
        case "one more or a last comma":
            return kind == "," and look(1) in first(_after_comma(part.part))
        case "binds tightly enough":
            return kind in first(part.part) and (2 if kind in PRODUCTS else 1) >= precedence
        case "minus or sign":
            return _goes_on_with_minus(look)
        case _:
            return kind in first(part.part)


def _after_comma(part: Part) -> Part:
    return part.parts[1] if isinstance(part, Sequence) else part


def _goes_on_with_minus(look: Look) -> bool:
    if look(0) not in _MEMBER:
        raise NothingFits(0)
    if look(0) == "-" and look(1) not in _MEMBER:
        raise NothingFits(1)
    return look(0) == "-"


def choose(part: Choice, look: Look) -> int:
    """Return the index, in `part.parts`, of the choice to continue with; raise `NothingFits` when there is none."""
    match part.decision:
        case "minus or sign of the first number":
            return _unary(look)
        case "field or method":
            return _suffix(look)
        case "name, call or message":
            return _primary(look)
        case "number after its sign":
            return _literal(part, look)
        case _:
            return _by_first(part, look)


def _by_first(part: Choice, look: Look) -> int:
    for index, inner in enumerate(part.parts):
        if look(0) in first(inner):
            return index
    raise NothingFits(0)


def _unary(look: Look) -> int:
    if look(0) == "!":
        return 1
    if look(0) not in _MEMBER:
        raise NothingFits(0)
    if look(0) != "-" or look(1) in _NUMBERS:
        return 0
    if look(1) not in _MEMBER:
        raise NothingFits(1)
    return 2


def _suffix(look: Look) -> int:
    if look(0) == "[":
        return 2
    if look(1) not in ("?", "name", "quoted"):
        raise NothingFits(1)
    return 1 if look(1) == "name" and look(2) == "(" else 0


def _primary(look: Look) -> int:
    kind = look(0)
    if kind in _BRACKETS:
        return _BRACKETS[kind]
    if kind in ("name", "."):
        return _named(look, 1 if kind == "." else 0)
    if kind not in _MEMBER:
        raise NothingFits(0)
    return _LITERAL


def _named(look: Look, at: int) -> int:
    """Distinguish a name from a call and from the type of a message, which only the brace at its end marks."""
    if look(at) != "name":
        raise NothingFits(at)
    if look(at + 1) == "(":
        return _CALL
    while look(at + 1) == "." and look(at + 2) == "name":
        at += 2
    return _MESSAGE if look(at + 1) == "{" else _IDENTIFIER


def _literal(part: Choice, look: Look) -> int:
    if look(0) != "-":
        return _by_first(part, look)
    if look(1) not in _NUMBERS:
        raise NothingFits(1)
    return 0 if look(1) == "int" else 2
