"""`make fuzz`: compare random expressions between Kubernetes' own CEL and ours, until the time is up.

Every difference is shrunk and printed. Exit code 1 when there is one. The same seed makes the same expressions.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.oracle import explained, ours
from tests.oracle.client import Oracle, program
from tests.oracle.compare import Difference, first_difference
from tests.oracle.grammar import Case, Generator, Term
from tests.oracle.shrink import Differing, smallest
from tests.oracle.subjects import ATTRIBUTES, NAMESPACE, objects

_BATCH = 200
_OBJECTS = 6
_REPEATS = 40
_MOST_ALIKE = 2


@dataclass(slots=True)
class Tally:
    """The counts of a run. A pair is an expression on an object; a refused expression counts as a pair."""

    pairs: int = 0
    refused: int = 0
    different: int = 0
    unstable: int = 0
    explained: int = 0
    shrunk: dict[str, Difference] = field(default_factory=dict)
    alike: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)


class Fuzz:
    """A run of the comparison."""

    def __init__(self, oracle: Oracle, seed: int, *, texts: bool = False) -> None:
        self._oracle = oracle
        self._texts = texts
        chance = random.Random(seed)
        self._generator = Generator(chance)
        self._objects = objects(chance, _OBJECTS)
        self.tally = Tally()

    def batch(self, number: int) -> None:
        """Compare so many expressions."""
        cases = [self._generator.case() for _ in range(number)]
        for case, theirs in zip(cases, self._oracle.ask(map(self._request, cases)), strict=True):
            self._compare(case, theirs)

    def _compare(self, case: Case, theirs: Any) -> None:
        self.tally.pairs += len(theirs.get("outcomes", ())) or 1
        self.tally.refused += "refused" in theirs
        difference = self._against(case, theirs)
        if difference is None:
            return
        if explained.reason(str(case.term), difference) is not None:
            self.tally.explained += 1
            return
        if self._is_unstable(case):
            self.tally.unstable += 1
            return
        self.tally.different += 1
        self.tally.kinds[difference.what] += 1
        self.tally.alike[difference.likeness] += 1
        if self.tally.alike[difference.likeness] <= _MOST_ALIKE:
            self._shrink(case, difference)

    def _is_unstable(self, case: Case) -> bool:
        """Return whether the oracle's own answers vary: it walks maps in random order."""
        replies = self._oracle.ask([self._request(case)] * _REPEATS)
        return any(_unordered(reply) != _unordered(replies[0]) for reply in replies)

    def _shrink(self, case: Case, difference: Difference) -> None:
        text = str(smallest(case.term, self._differing(case, difference)))
        self.tally.shrunk[text] = self._difference(text, case.variables) or difference

    def _differing(self, case: Case, difference: Difference) -> Differing:
        def differing(texts: list[str]) -> int | None:
            cases = [Case(Term("any", (text,)), case.variables) for text in texts]
            replies = self._oracle.ask(map(self._request, cases))
            for index, (variant, theirs) in enumerate(zip(cases, replies, strict=True)):
                remaining = self._against(variant, theirs)
                if (
                    remaining is not None
                    and remaining.likeness == difference.likeness
                    and not self._is_unstable(variant)
                ):
                    return index
            return None

        return differing

    def _difference(self, text: str, variables: tuple[tuple[str, str], ...]) -> Difference | None:
        case = Case(Term("any", (text,)), variables)
        (theirs,) = self._oracle.ask([self._request(case)])
        return self._against(case, theirs)

    def _against(self, case: Case, theirs: Any) -> Difference | None:
        mine = ours.reply(str(case.term), case.variables, self._objects)
        return first_difference(theirs, mine, texts=self._texts)

    def _request(self, case: Case) -> dict[str, Any]:
        return {
            "expression": str(case.term),
            "variables": [{"name": name, "expression": text} for name, text in case.variables],
            "objects": self._objects,
            "namespaceObject": NAMESPACE,
            "attributes": ATTRIBUTES,
            "authorizer": {},
        }

    def object_at(self, index: int | None) -> Any:
        """Return the object of a difference; None for a difference without an object."""
        return None if index is None else self._objects[index]


def _unordered(reply: Any) -> str:
    """Return a reply as text that does not depend on the order of a map's entries."""
    return json.dumps(_sorted(reply), sort_keys=True)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("type") == "map":
            return {"map": sorted((_sorted(pair) for pair in value["plain"]), key=json.dumps)}
        return {key: _sorted(item) for key, item in value.items()}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def report(fuzz: Fuzz) -> str:
    """Return the differences as text, each with its smallest expression."""
    lines = []
    for text, difference in sorted(fuzz.tally.shrunk.items(), key=lambda item: (item[1].what, len(item[0]))):
        where = (
            f" on {json.dumps(fuzz.object_at(difference.index))}"
            if difference.index is not None and "object" in text
            else ""
        )
        lines += [
            f"{difference.what}: {text}",
            f"  expected {difference.expected}",
            f"  actual   {difference.actual}{where}",
        ]
    return "\n".join(lines)


def run(fuzz: Fuzz, seconds: float) -> None:
    """Compare until the time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        fuzz.batch(_BATCH)


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None, help="by default the time of day")
    parser.add_argument("--texts", action="store_true", help="compare the words of refusals too")
    arguments = parser.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    path = program()
    if not path.exists():
        sys.stderr.write("there is no oracle; make it with: make oracle\n")
        return 2
    with Oracle(path) as oracle:
        fuzz = Fuzz(oracle, seed, texts=arguments.texts)
        run(fuzz, arguments.seconds)
    tally = fuzz.tally
    if tally.shrunk:
        sys.stdout.write(report(fuzz) + "\n")
    kinds = "".join(f" {what}={number}" for what, number in sorted(tally.kinds.items()))
    sys.stdout.write(
        f"fuzz: pairs={tally.pairs} refused={tally.refused} different={tally.different}{kinds} unstable={tally.unstable} explained={tally.explained} seed={seed}\n"
    )
    return 1 if tally.different else 0


if __name__ == "__main__":
    sys.exit(main())
