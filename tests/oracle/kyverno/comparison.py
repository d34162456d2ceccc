"""Random policies of Kyverno: our results against those of a release's compiler, autogen, matcher and engine.

`python -m tests.oracle.kyverno.comparison --release 1.19 --policies 10000` prints the first difference of each kind. Exit code 1
when there is one that is not in a text alone.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from scanner.api import Auditor, InvocationResult, KyvernoContext, UserInfo
from scanner.cluster.definitions import builtin_kinds
from scanner.model.release import Minor, minor_of
from scanner.policies.kyverno.bind import AS_WRITTEN
from scanner.policies.kyverno.modes import ADMISSION, KyvernoMode
from scanner.policies.kyverno.result import Result, engine_result
from tests.oracle import ours as limits
from tests.oracle.kyverno import ours
from tests.oracle.kyverno.explained import reason_of_policy
from tests.oracle.kyverno.policies import CUSTOM_KINDS, NAMESPACES, Example, Policies
from tests.oracle.kyverno.programs import Program
from tests.oracle.kyverno.vocabulary import ENTRIES, INVENTORY

_UPDATES = replace(ADMISSION, all_validations=False, exempts=True, expires=False, webhooks=False)
ENGINE = {"CREATE": replace(_UPDATES, ignores_negative_selectors=True), "UPDATE": _UPDATES}
"""The modes of the engine alone: it stops at the first failure, and for a CREATE its matcher has an old object without labels."""
_BATCH = 100
_REPEATS = 10

Verdict = tuple[str, str, str, dict[str, str]]
"""The status, the message, the name of the rule and the properties of a result."""


@dataclass(slots=True)
class Tally:
    """The counts of a run; `different` are the examples by the kind of their difference."""

    policies: int = 0
    unusable: int = 0
    results: int = 0
    unstable: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    different: dict[str, list[tuple[Example, str, str]]] = field(default_factory=dict)

    @property
    def classes(self) -> dict[str, int]:
        """The numbers of the differences that are not in texts alone, by their kind."""
        return {kind: len(examples) for kind, examples in self.different.items() if kind != "text"}


class Comparison:
    """A run of the comparison with one release."""

    def __init__(self, program: Program, release: Minor, seed: int) -> None:
        self._program = program
        self._release = release
        self._policies = Policies(random.Random(seed))
        self.tally = Tally()

    def batch(self, number: int) -> None:
        """Compare so many policies."""
        examples = [self._policies.example() for _ in range(number)]
        for example, theirs in zip(examples, self._program.ask([each.request() for each in examples]), strict=True):
            self.compare(example, theirs)

    def compare(self, example: Example, theirs: Any) -> None:
        """Compare a policy with its reply."""
        self.tally.policies += 1
        self.tally.unusable += bool(theirs.get("refused"))
        self.tally.results += len(theirs.get("results") or ())
        for kind, expected, actual in differences(self._release, example, theirs):
            why = reason_of_policy(expected, self._release)
            if why is not None:
                self.tally.explained[why] += 1
            elif self._is_unstable(example, theirs):
                self.tally.unstable += 1
            else:
                self.tally.different.setdefault(kind, []).append((example, expected, actual))
            return

    def _is_unstable(self, example: Example, theirs: Any) -> bool:
        """Return whether the program's own answers vary: it walks maps in random order."""
        return any(reply != theirs for reply in self._program.ask([example.request()] * _REPEATS))


def differences(release: Minor, example: Example, theirs: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the differences of our results: their kind, and both sides."""
    if "panic" in theirs or "unreadable" in theirs:
        return
    try:
        with limits.limited():
            mine = list(_results(release, example))
    except Exception as error:  # noqa: BLE001 (any crash is a finding)
        yield "crash", "", repr(error)
        return
    refused = bool(theirs.get("refused"))
    for number, (expected, actual) in enumerate(zip(_replies(theirs, example), mine, strict=True)):
        if refused:
            # A policy that does not compile evaluates nothing; ours has an error for each object that it matches.
            wrong = [result for result in actual if not _is_refusal(result)]
            if wrong:
                yield "usable here", str(theirs["refused"])[:300], str(wrong)
            continue
        if any(map(_is_refusal, actual)):
            yield "unusable here", str(expected), str(actual)
            return
        if _classes(expected) != _classes(actual):
            yield f"class {_classes(expected)} {_classes(actual)}", f"{number}: {expected}", str(actual)
        elif expected != actual:
            yield "text", f"{number}: {expected}", str(actual)


Found = list[tuple[str, Verdict]]


def _is_refusal(result: tuple[str, Verdict]) -> bool:
    return "failed to compile policy" in result[1][1]


def _classes(results: Found) -> str:
    return ",".join(f"{variant or 'as written'}={verdict[0]}" for variant, verdict in results) or "none"


def _replies(theirs: Any, example: Example) -> Iterator[Found]:
    for reply in theirs.get("results") or [{"error": "", "policies": []}] * len(example.requests):
        yield sorted(
            (policy["Variant"], (rule["Status"], rule["Message"], rule["Name"], _own_properties(rule["Props"])))
            for policy in reply["policies"]
            for rule in policy["Rules"]
        )


def _own_properties(properties: dict[str, str]) -> dict[str, str]:
    """The properties without the names of exceptions, which the programs do not print in every release."""
    return {key: text for key, text in properties.items() if key != "exceptions"}


def _results(release: Minor, example: Example) -> Iterator[Found]:
    policy = json.loads(json.dumps(example.policy))
    auditors = {operation: _auditor(release, policy, example, mode) for operation, mode in ENGINE.items()}
    for request in example.requests:
        operation = request["operation"]
        found = [
            (_variant(result), _verdict(engine_result(result.invocation.policy, result.check_results, release)))
            for result in auditors[operation].evaluate(request["object"], operation=operation)
        ]
        yield sorted(found)


def _auditor(release: Minor, policy: dict[str, Any], example: Example, mode: KyvernoMode) -> Auditor:
    return Auditor(
        policies=[policy],
        bindings=(),
        namespaces=NAMESPACES,
        kinds=(*builtin_kinds(), *CUSTOM_KINDS),
        user=UserInfo(),
        exceptions=example.exceptions,
        kyverno_context=KyvernoContext(ours.NOW, mode, ours.Entries(INVENTORY, ENTRIES), release=release),
    )


def _variant(result: InvocationResult) -> str:
    name = result.invocation.binding.name
    return "" if name == AS_WRITTEN else name.removeprefix("autogen-")


def _verdict(result: Result) -> Verdict:
    return result.status, result.message, result.rule, _own_properties(dict(result.properties))


def report(tally: Tally) -> str:
    """Return the differences as text, the first example of each kind."""
    lines = []
    for kind, examples in sorted(tally.different.items(), key=lambda item: -len(item[1])):
        example, expected, actual = min(examples, key=lambda each: len(json.dumps(each[0].policy)))
        lines += [f"{len(examples)} times: {kind}", f"  Kyverno {expected}", f"  Assay   {actual}"]
        lines += [f"  policy  {json.dumps(example.policy['spec'])}", f"  exempt  {json.dumps(example.exceptions)}"]
    return "\n".join(lines)


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="1.19")
    parser.add_argument("--policies", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None, help="by default the time of day")
    arguments = parser.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    release = minor_of(arguments.release)
    if release is None:
        parser.error(f"no release: {arguments.release}")
    with Program.of(arguments.release, "policies") as program:
        comparison = Comparison(program, release, seed)
        for start in range(0, arguments.policies, _BATCH):
            comparison.batch(min(_BATCH, arguments.policies - start))
    tally = comparison.tally
    sys.stdout.write(f"{report(tally)}\n" if tally.different else "")
    for why, number in tally.explained.items():
        sys.stdout.write(f"explained: {number} times: {why}\n")
    different = sum(map(len, tally.different.values()))
    sys.stdout.write(
        f"policies={tally.policies} unusable={tally.unusable} results={tally.results} different={different}"
        f" unstable={tally.unstable} explained={tally.explained.total()} seed={seed}\n"
    )
    return 1 if tally.classes else 0


if __name__ == "__main__":
    sys.exit(main())
