"""Random expressions: mostly well typed, sometimes not, sometimes not even well formed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.oracle.messages import MESSAGE_NAMES, MESSAGES, TYPE_URLS
from tests.oracle.pools import ALPHABET, LITERALS, TEXTS
from tests.oracle.productions import CALLS, NAMES, NUMERIC, OPERATORS, ORDERED
from tests.oracle.subjects import KINDS, SPEC, VARIABLES

TYPES = tuple(kind for kind in LITERALS if kind not in ("authorizer", "decision"))
_PIECES = re.compile(r"([$@#]\w+)")
_VARIABLE_NAMES = ("x", "y", "e", "i", "k", "v", "object", "size")
_UNITS = ("ns", "us", "ms", "s", "m", "h")
_QUOTES = ("'", '"')
_WRONG_TYPE = 0.04
_DYNAMIC = 0.08
_UNPARENTHESIZED = 0.1
_MISSPELT = 0.02
_CHANGED_TEXT = 0.25
_OWN = 0.5


@dataclass(frozen=True, slots=True)
class Term:
    """An expression as a tree of texts and smaller expressions; a `loose` one binds less tightly than a call."""

    kind: str
    parts: tuple[str | Term, ...]
    loose: bool = False

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    def terms(self) -> Iterator[Term]:
        """Yield the expressions directly inside."""
        return (part for part in self.parts if isinstance(part, Term))

    def size(self) -> int:
        """Return the number of expressions in the tree, itself included."""
        return 1 + sum(term.size() for term in self.terms())


@dataclass(frozen=True, slots=True)
class Case:
    """An expression with the composed variables that it may use."""

    term: Term
    variables: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What an environment has beyond Kubernetes' own: templates by the type of their result, literals by type, and pools of texts.

    `variables` are the sets of variables that an expression may read.
    """

    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    literals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variables: tuple[tuple[tuple[str, str], ...], ...] = VARIABLES


class Generator:
    """Makes expressions from one source of chance; about half of the calls are of the `vocabulary`, where it has calls of a type."""

    def __init__(self, source: random.Random, vocabulary: Vocabulary | None = None) -> None:
        self._chance = source
        self._vocabulary = vocabulary or Vocabulary()
        self._literals = {**LITERALS, **self._vocabulary.literals}
        self._scope: list[tuple[str, str]] = []
        self._variables: tuple[tuple[str, str], ...] = ()

    def case(self) -> Case:
        """Return a random expression, which may read variables."""
        variables = self._chance.choice(self._vocabulary.variables) if self._chance.random() < 0.3 else ()
        return self.case_of(self._chance.choice((*TYPES, "any", "decision", "bool", "bool")), variables)

    def case_of(self, kind: str, variables: tuple[tuple[str, str], ...] = ()) -> Case:
        """Return a random expression of a type, which may read these variables."""
        self._scope = []
        self._variables = variables
        term = self._term(kind, self._chance.choice((1, 2, 3, 3, 4, 5)))
        if self._chance.random() < _MISSPELT:
            term = Term("any", (self._changed(str(term)),))
        return Case(term, self._variables)

    def _term(self, kind: str, depth: int) -> Term:
        if self._chance.random() < _WRONG_TYPE:
            kind = self._chance.choice((*TYPES, "any"))
        if kind == "ordered":
            kind = self._chance.choice(ORDERED)
        if kind == "numeric":
            kind = self._chance.choice(NUMERIC)
        if self._chance.random() < _DYNAMIC:
            return Term(kind, ("dyn(", self._made(kind, depth - 1), ")"))
        return self._made(kind, depth)

    def _made(self, kind: str, depth: int) -> Term:
        if depth <= 0 or self._chance.random() < 0.12:
            return self._leaf(kind)
        own = self._vocabulary.calls.get(kind, ())
        if own and self._chance.random() < _OWN:
            return self._filled(kind, self._chance.choice(own), depth, loose=False)
        operators, calls = OPERATORS.get(kind, ()), (*CALLS.get(kind, ()), *MESSAGES.get(kind, ()))
        if operators and self._chance.random() < 0.4:
            return self._filled(kind, self._chance.choice(operators), depth, loose=True)
        if not calls:
            return self._leaf(kind)
        return self._filled(kind, self._chance.choice(calls), depth, loose=False)

    def _leaf(self, kind: str) -> Term:
        chance = self._chance.random()
        bound = [name for name, of in self._scope if of in (kind, "any")] or [name for name, _ in self._scope]
        if bound and chance < 0.5:
            return Term(kind, (self._chance.choice(bound),))
        if self._variables and chance < 0.6:
            return Term(kind, (f"variables.{self._chance.choice(self._variables)[0]}",))
        if kind in KINDS and chance < 0.75:
            return Term(kind, (f"object.spec.{self._chance.choice(KINDS[kind])}",))
        if kind == "any" or kind not in self._literals:
            kind = self._chance.choice(TYPES)
        return Term(kind, (self._random(kind) or self._chance.choice(self._literals[kind]),))

    def _random(self, kind: str) -> str:
        """Return a number or text that is in no pool, or an empty string."""
        chance = self._chance
        if chance.random() < 0.7:
            return ""
        match kind:
            case "int" | "uint":
                number = chance.choice(
                    (chance.randint(-20, 20), chance.getrandbits(63), 2 ** chance.randint(0, 63) - 1)
                )
                return str(number) if kind == "int" else f"{abs(number)}u"
            case "double":
                return repr(chance.choice((-1, 1)) * chance.random() * 10 ** chance.randint(-12, 24))
            case "string":
                return literal("".join(chance.choices(ALPHABET, k=chance.randint(0, 8))), chance.choice(_QUOTES))
            case "duration":
                return f"duration('{chance.choice(('', '-'))}{chance.randint(0, 10**6)}{chance.choice(_UNITS)}')"
            case "timestamp":
                return f"timestamp({chance.randint(-62135596800, 253402300799)})"
            case _:
                return ""

    def _filled(self, kind: str, template: str, depth: int, *, loose: bool) -> Term:
        same = self._chance.choice(TYPES)
        outer = len(self._scope)
        parts: list[str | Term] = []
        for piece in _PIECES.split(template):
            parts.extend(self._piece(piece, same, depth, first=not parts))
        del self._scope[outer:]
        return Term(kind, tuple(parts), loose=loose)

    def _piece(self, piece: str, same: str, depth: int, *, first: bool) -> list[str | Term]:
        if not piece or piece[0] not in "$@#":
            return [piece] if piece else []
        name = piece[1:]
        if piece[0] == "#":
            return [self._text(name)]
        if piece[0] == "@":
            return [self._declared(name)]
        if name == "field":
            return [
                self._chance.choice((*SPEC, *NAMES["loose"]))
                if self._chance.random() < 0.7
                else self._chance.choice(NAMES["loose"])
            ]
        names = NAMES.get(name) or MESSAGE_NAMES.get(name)
        if names:
            return [self._chance.choice(names)]
        term = self._term(same if name == "A" else name, depth - 1)
        is_bare = not term.loose or self._chance.random() < _UNPARENTHESIZED
        return [term] if is_bare and not (first and term.loose) else ["(", term, ")"]

    def _declared(self, kind: str) -> str:
        name = self._chance.choice(_VARIABLE_NAMES if self._chance.random() < 0.3 else _VARIABLE_NAMES[:6])
        if any(declared == name for declared, _ in self._scope[-1:]):
            name = f"{name}{len(self._scope)}"
        self._scope.append((name, kind))
        return name

    def _text(self, pool: str) -> Term:
        if self._chance.random() < 0.1:
            return self._term("string", 1)
        texts = self._vocabulary.texts.get(pool) or (TYPE_URLS if pool == "type_url" else TEXTS[pool])
        text = self._chance.choice(texts)
        if self._chance.random() < _CHANGED_TEXT:
            text = self._changed(text)
        return Term("string", (literal(text, self._chance.choice(_QUOTES)),))

    def _changed(self, text: str) -> str:
        at = self._chance.randint(0, len(text))
        insert = self._chance.choice(("", self._chance.choice(ALPHABET), self._chance.choice(ALPHABET)))
        return text[:at] + insert + text[at + self._chance.randint(0, 1) :]


def literal(text: str, quote: str) -> str:
    """Return a text as a CEL string literal."""
    escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}").replace("\n", "\\n").replace("\t", "\\t")
    return f"{quote}{escaped}{quote}"
