"""Random expressions of Kyverno's policies: our values and errors against those of a release of Kyverno.

`python -m tests.oracle.kyverno.expressions --release 1.19 --seconds 60` prints each kind of difference with its smallest
expression. Exit code 1 when there is one that is not in a text alone.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from scanner.model.release import Minor, minor_of
from tests.oracle.compare import Difference, first_difference
from tests.oracle.grammar import Case, Generator, Term
from tests.oracle.kyverno import ours
from tests.oracle.kyverno.explained import reason
from tests.oracle.kyverno.programs import Program
from tests.oracle.kyverno.vocabulary import ENTRIES, EXTRA, INVENTORY
from tests.oracle.shrink import smallest
from tests.oracle.subjects import NAMESPACE, objects

_BATCH = 100
_OBJECTS = 3
_REPEATS = 20
_MOST_ALIKE = 2
_TEXTS = ("error", "text")
_REQUEST = {
    "kind": {"group": "apps", "version": "v1", "kind": "Thing"},
    "resource": {"group": "apps", "version": "v1", "resource": "things"},
    "name": "web",
    "namespace": "team",
    "operation": "CREATE",
    "userInfo": {"username": "bob", "groups": ["dev"]},
    "dryRun": False,
    "object": {"spec": {"int": 3}},
    "oldObject": None,
    "options": None,
}


@dataclass(slots=True)
class Tally:
    """The counts of a run; a pair is an expression on an object, and a refused expression counts as one."""

    pairs: int = 0
    refused: int = 0
    unstable: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    alike: Counter[str] = field(default_factory=Counter)
    shrunk: dict[str, Difference] = field(default_factory=dict)

    @property
    def classes(self) -> dict[str, str]:
        """The differences but those of two errors, which are in texts alone, by the smallest expression."""
        return {text: difference.what for text, difference in self.shrunk.items() if difference.what not in _TEXTS}


class Comparison:
    """A run of the comparison with one release."""

    def __init__(self, program: Program, release: Minor, seed: int, *, texts: bool = False) -> None:
        self._program = program
        self._release = release
        self._texts = texts
        chance = random.Random(seed)
        self._chance = chance
        self._generator = Generator(chance, EXTRA)
        self._objects = objects(chance, _OBJECTS)
        self.tally = Tally()

    def batch(self, number: int) -> None:
        """Compare so many expressions."""
        cases = [self._generator.case() for _ in range(number)]
        requests = [self._request(case) for case in cases]
        for case, request, theirs in zip(cases, requests, self._program.ask(requests), strict=True):
            self._compare(case, request, theirs)

    def _compare(self, case: Case, request: dict[str, Any], theirs: Any) -> None:
        self.tally.pairs += len(theirs.get("outcomes", ())) or 1
        self.tally.refused += "refused" in theirs
        difference = self._against(request, theirs)
        if difference is None:
            return
        why = reason(str(case.term), difference, self._release)
        if why is not None:
            self.tally.explained[why] += 1
            return
        if self._is_unstable(request):
            self.tally.unstable += 1
            return
        self.tally.alike[difference.likeness] += 1
        if self.tally.alike[difference.likeness] <= _MOST_ALIKE:
            self._shrink(case, request, difference)

    def _is_unstable(self, request: dict[str, Any]) -> bool:
        """Return whether the program's own answers vary: it walks maps in random order."""
        replies = self._program.ask([request] * _REPEATS)
        return any(first_difference(replies[0], reply) is not None for reply in replies[1:])

    def _shrink(self, case: Case, request: dict[str, Any], difference: Difference) -> None:
        def differing(texts: list[str]) -> int | None:
            variants = [{**request, "expression": text} for text in texts]
            for index, (variant, theirs) in enumerate(zip(variants, self._program.ask(variants), strict=True)):
                remaining = self._against(variant, theirs)
                if remaining is not None and remaining.likeness == difference.likeness:
                    return index
            return None

        text = str(smallest(case.term, differing))
        variant = {**request, "expression": text}
        (theirs,) = self._program.ask([variant])
        self.tally.shrunk[text] = self._against(variant, theirs) or difference

    def compare(self, *texts: str) -> None:
        """Compare these expressions."""
        for text in texts:
            case = Case(Term("any", (text,)), ())
            request = self._request(case)
            (theirs,) = self._program.ask([request])
            self._compare(case, request, theirs)

    def _against(self, request: dict[str, Any], theirs: Any) -> Difference | None:
        return first_difference(_introduced(theirs), _introduced(ours.reply(self._release, request)), texts=self._texts)

    def _request(self, case: Case) -> dict[str, Any]:
        return {
            "expression": str(case.term),
            "namespace": "team" if self._chance.random() < 0.1 else "",
            "variables": [{"name": name, "expression": text} for name, text in case.variables],
            "objects": self._objects,
            "oldObject": {},
            "request": _REQUEST,
            "namespaceObject": NAMESPACE,
            "inventory": INVENTORY,
            "entries": ENTRIES,
        }


def _introduced(reply: Any) -> Any:
    """Return a reply whose refusal has Kubernetes' introduction, by which the comparison knows it."""
    return {**reply, "refused": f"compilation failed: {reply['refused']}"} if "refused" in reply else reply


def report(tally: Tally) -> str:
    """Return the differences as text, each with its smallest expression."""
    lines = []
    for text, difference in sorted(tally.shrunk.items(), key=lambda item: (item[1].what, len(item[0]))):
        lines += [f"{difference.what}: {text}", f"  Kyverno {difference.expected}", f"  Assay   {difference.actual}"]
    return "\n".join(lines)


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="1.19")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="by default the time of day")
    parser.add_argument("--texts", action="store_true", help="compare the words of refusals too")
    arguments = parser.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    release = minor_of(arguments.release)
    if release is None:
        parser.error(f"no release: {arguments.release}")
    with Program.of(arguments.release, "expressions") as program:
        comparison = Comparison(program, release, seed, texts=arguments.texts)
        end = time.monotonic() + arguments.seconds
        while time.monotonic() < end:
            comparison.batch(_BATCH)
    tally = comparison.tally
    sys.stdout.write(f"{report(tally)}\n" if tally.shrunk else "")
    for why, number in tally.explained.items():
        sys.stdout.write(f"explained: {number} times: {why}\n")
    sys.stdout.write(
        f"pairs={tally.pairs} refused={tally.refused} different={tally.alike.total()} unstable={tally.unstable}"
        f" explained={tally.explained.total()} seed={seed}\n"
    )
    return 1 if tally.classes else 0


if __name__ == "__main__":
    sys.exit(main())
