"""CEL's grammar as data, for the errors of text that does not match it.

The rules are cel-go's, with left recursion written as repetition. Every part has the set of its first tokens and the set of
tokens that can follow it inside its rule: upstream's parser generator uses only these for its errors and its recovery.

Rules: `docs/semantics/cel-syntax.md#grammar`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Kinds: TypeAlias = "frozenset[str]"
END_OF_RULE = "<EPSILON>"
"""The marker of a rule's end in a set of tokens."""


@dataclass(slots=True, eq=False)
class Match:
    """One token of these kinds."""

    kinds: Kinds
    after: Kinds = frozenset()


@dataclass(slots=True, eq=False)
class Invoke:
    """Another rule; operators bind at least as tightly as `precedence`."""

    rule: str
    precedence: int = 0
    after: Kinds = frozenset()


@dataclass(slots=True, eq=False)
class Sequence:
    """A sequence of parts."""

    parts: tuple[Part, ...]
    after: Kinds = frozenset()


@dataclass(slots=True, eq=False)
class Maybe:
    """An optional part."""

    part: Part
    after: Kinds = frozenset()


@dataclass(slots=True, eq=False)
class Repeat:
    """A part any number of times, or `least` once. `decision` names a choice that needs more than one token."""

    part: Part
    least: int = 0
    decision: str = ""
    after: Kinds = frozenset()
    again: object = field(default_factory=object)


@dataclass(slots=True, eq=False)
class Choice:
    """One of several parts. `decision` names a choice that needs more than one token."""

    parts: tuple[Part, ...]
    decision: str = ""
    after: Kinds = frozenset()


Part: TypeAlias = Match | Invoke | Sequence | Maybe | Repeat | Choice


def _token(*kinds: str) -> Match:
    return Match(frozenset(kinds))


def _listed(*parts: Part) -> Sequence:
    return Sequence(parts)


def _separated(item: str, *rest: str) -> Sequence:
    """Return `item rest… (',' item rest…)*`, in which a trailing comma belongs to the enclosing rule."""
    return _listed(
        *_spelled(item, *rest),
        Repeat(_listed(_token(","), *_spelled(item, *rest)), decision="one more or a last comma"),
    )


def _spelled(*names: str) -> tuple[Part, ...]:
    return tuple(_token(":") if name == ":" else Invoke(name) for name in names)


_DOT = "."
RELATIONS = ("==", "!=", "in", "<", "<=", ">=", ">")
SUMS = ("+", "-")
PRODUCTS = ("*", "/", "%")


def _call() -> tuple[Part, ...]:
    return _token("("), Maybe(Invoke("exprList")), _token(")")


RULES: dict[str, Part] = {
    "start": _listed(Invoke("expr"), _token("<EOF>")),
    "expr": _listed(
        Invoke("conditionalOr"),
        Maybe(_listed(_token("?"), Invoke("conditionalOr"), _token(":"), Invoke("expr"))),
    ),
    "conditionalOr": _listed(Invoke("conditionalAnd"), Repeat(_listed(_token("||"), Invoke("conditionalAnd")))),
    "conditionalAnd": _listed(Invoke("relation"), Repeat(_listed(_token("&&"), Invoke("relation")))),
    "relation": _listed(
        Invoke("calc"), Repeat(_listed(_token(*RELATIONS), Invoke("relation", 2)), decision="binds tightly enough")
    ),
    "calc": _listed(
        Invoke("unary"),
        Repeat(
            Choice((_listed(_token(*PRODUCTS), Invoke("calc", 3)), _listed(_token(*SUMS), Invoke("calc", 2)))),
            decision="binds tightly enough",
        ),
    ),
    "unary": Choice(
        (
            Invoke("member"),
            _listed(Repeat(_token("!"), least=1), Invoke("member")),
            _listed(Repeat(_token("-"), least=1, decision="minus or sign"), Invoke("member")),
        ),
        decision="minus or sign of the first number",
    ),
    "member": _listed(
        Invoke("primary"),
        Repeat(
            Choice(
                (
                    _listed(_token(_DOT), Maybe(_token("?")), Invoke("escapeIdent")),
                    _listed(_token(_DOT), _token("name"), *_call()),
                    _listed(_token("["), Maybe(_token("?")), Invoke("expr"), _token("]")),
                ),
                decision="field or method",
            )
        ),
    ),
    "primary": Choice(
        (
            _listed(Maybe(_token(_DOT)), _token("name")),
            _listed(Maybe(_token(_DOT)), _token("name"), *_call()),
            _listed(_token("("), Invoke("expr"), _token(")")),
            _listed(_token("["), Maybe(Invoke("listInit")), Maybe(_token(",")), _token("]")),
            _listed(_token("{"), Maybe(Invoke("mapInitializerList")), Maybe(_token(",")), _token("}")),
            _listed(
                Maybe(_token(_DOT)),
                _token("name"),
                Repeat(_listed(_token(_DOT), _token("name"))),
                _token("{"),
                Maybe(Invoke("fieldInitializerList")),
                Maybe(_token(",")),
                _token("}"),
            ),
            Invoke("literal"),
        ),
        decision="name, call or message",
    ),
    "exprList": _listed(Invoke("expr"), Repeat(_listed(_token(","), Invoke("expr")))),
    "listInit": _separated("optExpr"),
    "fieldInitializerList": _separated("optField", ":", "expr"),
    "optField": _listed(Maybe(_token("?")), Invoke("escapeIdent")),
    "mapInitializerList": _separated("optExpr", ":", "expr"),
    "escapeIdent": Choice((_token("name"), _token("quoted"))),
    "optExpr": _listed(Maybe(_token("?")), Invoke("expr")),
    "literal": Choice(
        (
            _listed(Maybe(_token("-")), _token("int")),
            _token("uint"),
            _listed(Maybe(_token("-")), _token("float")),
            _token("string"),
            _token("bytes"),
            _token("true"),
            _token("false"),
            _token("null"),
        ),
        decision="number after its sign",
    ),
}


def first(part: Part) -> Kinds:
    """Return the kinds of tokens that a part can begin with, and `END_OF_RULE` when the part can be empty."""
    match part:
        case Match(kinds=kinds):
            return kinds
        case Invoke(rule=rule):
            return first(RULES[rule])
        case Sequence(parts=parts):
            return _first_of_sequence(parts)
        case Maybe(part=inner):
            return first(inner) | {END_OF_RULE}
        case Repeat(part=inner, least=least):
            return first(inner) if least else first(inner) | {END_OF_RULE}
        case Choice(parts=parts):
            return frozenset().union(*map(first, parts))


def _first_of_sequence(parts: tuple[Part, ...]) -> Kinds:
    kinds: Kinds = frozenset({END_OF_RULE})
    for part in parts:
        kinds = then(kinds, first(part))
        if END_OF_RULE not in kinds:
            break
    return kinds


def then(kinds: Kinds, following: Kinds) -> Kinds:
    """Return the first kinds of a part followed by another; `kinds` are those of the part, `following` those of the other."""
    return (kinds - {END_OF_RULE}) | following if END_OF_RULE in kinds else kinds


def look(part: Part) -> Kinds:
    """Return the kinds of tokens that can come next, inside the rule, when a part is about to begin."""
    return then(first(part), part.after)


def look_again(part: Repeat) -> Kinds:
    """Return the kinds of tokens that can come next, inside the rule, after one round of a repetition."""
    return first(part.part) | part.after


def _link(part: Part, after: Kinds) -> None:
    """Record in a part and all parts inside it the tokens that follow."""
    part.after = after
    match part:
        case Sequence(parts=parts):
            for inner in reversed(parts):
                _link(inner, after)
                after = then(first(inner), after)
        case Maybe(part=inner):
            _link(inner, after)
        case Repeat(part=inner):
            _link(inner, first(inner) | after)
        case Choice(parts=parts):
            for inner in parts:
                _link(inner, after)
        case Match() | Invoke():
            return


for _rule in RULES.values():
    _link(_rule, frozenset({END_OF_RULE}))
