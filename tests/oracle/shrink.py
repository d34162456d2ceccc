"""Reduce an expression that differs to a small one that differs in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.oracle.grammar import Term

_SIMPLE = ("1", "'a'", "true", "null", "[]", "{}", "dyn(1)", "dyn('a')", "dyn([])", "object")
_MOST_ROUNDS = 60

Differing = Callable[[list[str]], "int | None"]
"""Returns the position of the first expression that still differs, None when there is none."""


def smallest(term: Term, differing: Differing) -> Term:
    """Return the smallest variant in which the difference remains; candidates are tried from the smallest on."""
    for _ in range(_MOST_ROUNDS):
        candidates = sorted(set(_variants(term)), key=lambda variant: (len(str(variant)), str(variant)))
        candidates = [variant for variant in candidates if len(str(variant)) < len(str(term))]
        position = differing([str(variant) for variant in candidates])
        if position is None:
            return term
        term = candidates[position]
    return term


def _variants(term: Term) -> Iterator[Term]:
    """Yield the term with one of its expressions replaced by a part of that expression, or by a simple one."""
    yield from _descendants(term)
    yield from (Term(term.kind, (text,)) for text in _SIMPLE)
    if len(term.parts) == 1 and isinstance(term.parts[0], str):
        yield from _shorter(term.kind, term.parts[0])
    for index, part in enumerate(term.parts):
        if part == "(":
            yield Term(term.kind, (*term.parts[:index], *term.parts[index + 1 : index + 2], *term.parts[index + 3 :]))
        if isinstance(part, Term):
            for variant in _variants(part):
                yield Term(term.kind, (*term.parts[:index], variant, *term.parts[index + 1 :]), loose=term.loose)


def _descendants(term: Term) -> Iterator[Term]:
    for inner in term.terms():
        yield inner
        yield from _descendants(inner)


def _shorter(kind: str, text: str) -> Iterator[Term]:
    for at in range(1, len(text) - 1):
        yield Term(kind, (text[:at] + text[at + 1 :],))
