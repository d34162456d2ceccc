"""Records `rejected-expressions`: seeded random expressions, most of them damaged, that the server refuses to store."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.conformance.policies import policy_of
from tests.conformance.recording.audited import AuditedServer
from tests.oracle.grammar import Generator
from tests.oracle.pools import ALPHABET

_LONGEST = 200
_COMPILATION = "compilation failed: "
_TIMES = 3
_DAMAGED = 0.7


def record(audited: AuditedServer, seed: int, number: int) -> list[dict[str, str]]:
    """Return so many refused expressions, each with the text of the refusal, which does not vary."""
    cases: list[dict[str, str]] = []
    for text in expressions(seed):
        refusals = {_refusal(audited, text) for _ in range(_TIMES)}
        if len(refusals) == 1 and _COMPILATION in (error := refusals.pop()):
            cases.append({"expr": text, "error": error})
        if len(cases) == number:
            break
    return cases


def expressions(seed: int) -> Iterator[str]:
    """Yield expressions without end, all different."""
    chance, seen = Random(seed), set()
    generator = Generator(chance)
    while True:
        case = generator.case()
        text = str(case.term)
        if chance.random() < _DAMAGED:
            text = _damaged(text, chance)
        if not case.variables and len(text) <= _LONGEST and text not in seen:
            seen.add(text)
            yield text


def _damaged(text: str, chance: Random) -> str:
    """Return a text with a piece left out, doubled or replaced by a letter."""
    start = chance.randrange(len(text) or 1)
    end = start + chance.randint(0, 3)
    piece = chance.choice(("", text[start:end] * 2, chance.choice(ALPHABET), chance.choice(" ().,[]{}?:'\"")))
    return text[:start] + piece + text[end:]


def _refusal(audited: AuditedServer, text: str) -> str:
    """Return the server's refusal of an expression's policy, after the name of the field; empty when it accepts."""
    status, body = audited.create_policy(policy_of({"expression": text}), dry_run=True)
    return str(body["details"]["causes"][0]["message"]) if status == 422 else ""
