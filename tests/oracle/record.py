"""Record the answers of Kubernetes' own CEL in tests/cel/answers.jsonl, for machines without the oracle.

python -m tests.oracle.record                 evaluate every expression of the file again
python -m tests.oracle.record < expressions   add expressions, one in a line
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.oracle.client import Oracle, program
from tests.oracle.subjects import ATTRIBUTES, NAMESPACE, objects

ANSWERS = Path(__file__).resolve().parents[1] / "cel" / "answers.jsonl"
OBJECTS = objects(random.Random(20260507), 3)
"""The usual object, null, and one with fields missing or of other types."""
Variables = tuple[tuple[str, str], ...]


def request(expression: str, variables: Variables) -> dict[str, Any]:
    """Return the request for an expression and the policy's variables."""
    return {
        "expression": expression,
        "variables": [{"name": name, "expression": text} for name, text in variables],
        "objects": OBJECTS,
        "namespaceObject": NAMESPACE,
        "attributes": ATTRIBUTES,
        "authorizer": {},
    }


def recorded_answers() -> list[dict[str, Any]]:
    """Return the recorded answers: expression, variables and answer."""
    return [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]


def variables_of(recorded: dict[str, Any]) -> Variables:
    """Return the variables of a recorded answer."""
    return tuple((name, text) for name, text in recorded.get("variables", ()))


def answered(reply: Any) -> dict[str, Any]:
    """Return a reply without its costs, which have tests of their own."""
    outcomes = [
        {key: value for key, value in outcome.items() if key != "cost"} for outcome in reply.get("outcomes", ())
    ]
    return {**{key: reply[key] for key in ("refused", "resultType") if key in reply}, "outcomes": outcomes}


def _answers(requests: list[tuple[str, Variables]]) -> Iterator[dict[str, Any]]:
    with Oracle(program()) as oracle:
        replies = oracle.ask(request(text, variables) for text, variables in requests)
    for (text, variables), reply in zip(requests, replies, strict=True):
        if "panic" not in reply:
            named = {"variables": variables} if variables else {}
            yield {"expression": text, **named, "answer": answered(reply)}


def main() -> None:
    """Write the file again."""
    requests = (
        {(answer["expression"], variables_of(answer)): None for answer in recorded_answers()}
        if ANSWERS.exists()
        else {}
    )
    if not sys.stdin.isatty():
        requests |= {(line.rstrip("\n"), ()): None for line in sys.stdin if line.strip()}
    lines = [json.dumps(answer, ensure_ascii=True, separators=(",", ":")) for answer in _answers(list(requests))]
    ANSWERS.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} expressions\n")


if __name__ == "__main__":
    main()
