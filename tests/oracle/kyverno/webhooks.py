"""Random policies of Kyverno in the webhooks of a real API server: what a request sees, and what we say about the object.

A release's own controller makes the webhook configurations, and its own handler answers the webhooks (see webhooks.go).
`python -m tests.oracle.kyverno.webhooks --release 1.19 --policies 1000` prints the first difference of each kind. It starts the
API server that KUBEBUILDER_ASSETS names. Exit code 1 when there is a difference that is not in a text alone.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any, Self

from scanner.api import Auditor, InvocationResult, KyvernoContext, UserInfo
from scanner.audit.findings import denies
from scanner.cluster.definitions import builtin_kinds
from scanner.model.outcome import CheckKind, CheckResult, Errored, Outcome, Skipped, SkipReason, Violated
from scanner.model.release import Minor, minor_of
from tests.integration.apiserver import ApiServer, running
from tests.oracle import ours as limits
from tests.oracle.kyverno import ours
from tests.oracle.kyverno.enforced import EnforcedPolicies, PolicySet
from tests.oracle.kyverno.explained import reason_of_policy
from tests.oracle.kyverno.programs import Program
from tests.oracle.kyverno.vocabulary import ENTRIES, INVENTORY
from tests.oracle.kyverno.writes import (
    GROUPS,
    MARK,
    USER,
    Class,
    Seen,
    Webhooks,
    Write,
    make_namespaces,
    namespaces,
    writes,
)
from tests.requirements import API_SERVER

_BATCH = 25
_DOCUMENTS = 80
_WRITES = 10
_OTHER_WRITES = 2
_REPEATS = 5
_REGISTRATIONS = 100
_UNKNOWN = (SkipReason.NOT_AUDITABLE, SkipReason.REDACTED)


@dataclass(frozen=True, slots=True)
class Said:
    """What our results mean for the sender of a request: the texts of all denials or refusals, and the warnings."""

    what: Class
    texts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A set of policies, a write, what its sender sees, and what we say, or the text of our crash."""

    policies: PolicySet
    write: Write
    expected: Seen
    actual: Said | str

    @property
    def kind(self) -> str:
        """Both classes, or the part that differs."""
        if isinstance(self.actual, str):
            return "crash"
        if self.expected.what != self.actual.what:
            return f"class {self.expected.what} {self.actual.what}"
        return "text" if len(self.expected.warnings) == len(self.actual.warnings) else "warnings"


@dataclass(slots=True)
class Tally:
    """The counts of a run; `different` are the differences by their kind."""

    policies: int = 0
    unusable: int = 0
    unregistered: int = 0
    panics: int = 0
    writes: int = 0
    unknown: int = 0
    unstable: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    different: dict[str, list[Difference]] = field(default_factory=dict)

    @property
    def classes(self) -> dict[str, int]:
        """The numbers of the differences that are not in texts alone, by their kind."""
        return {kind: len(examples) for kind, examples in self.different.items() if kind != "text"}


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server with namespaces, and the writes that it accepts."""

    server: ApiServer
    namespaces: list[Any]
    writes: list[Write]

    @classmethod
    def on(cls, server: ApiServer, seed: int) -> Self:
        """Store random objects on a server."""
        policies = EnforcedPolicies(random.Random(seed))
        make_namespaces(server)
        accepted = list(writes(server, (policies.document() for _ in range(_DOCUMENTS))))
        return cls(server, namespaces(server), accepted)


class Comparison:
    """A run of the comparison with one release, on one API server."""

    def __init__(self, program: Program, release: Minor, cluster: Cluster, seed: int) -> None:
        self._program = program
        self._release = release
        self._cluster = cluster
        self._webhooks = Webhooks(cluster.server)
        self._chance = random.Random(seed)
        self._policies = EnforcedPolicies(self._chance)
        self._number = 0
        self.tally = Tally()

    def batch(self, number: int) -> None:
        """Compare so many sets of policies."""
        sets = {f"set-{self._number + index}": self._policies.policy_set() for index in range(number)}
        self._number += number
        usable = self._usable(sets)
        # The controller itself panics for rules that differ only in a scope that one of them does not have.
        made = {name: reply for name, reply in self._asked(usable).items() if "panic" not in reply}
        self.tally.panics += len(usable) - len(made)
        for name, reply in made.items():
            self.tally.unregistered += bool(self._webhooks.register(name, reply["configuration"]))
        self._webhooks.settle()
        for name in made:
            self._compare(name, usable[name])
        self._webhooks.clear()
        self._program.ask([{"set": name} for name in sets])

    def _usable(self, sets: dict[str, PolicySet]) -> dict[str, PolicySet]:
        """Return the sets without the policies that do not compile."""
        usable = {name: sets[name].without(reply.get("refused", ())) for name, reply in self._asked(sets).items()}
        self.tally.unusable += sum(len(sets[name].policies) - len(usable[name].policies) for name in sets)
        return {name: policies for name, policies in usable.items() if policies.policies}

    def _asked(self, sets: dict[str, PolicySet]) -> dict[str, Any]:
        requests = [policies.request(name, self._cluster.namespaces) for name, policies in sets.items()]
        return dict(zip(sets, self._program.ask(requests), strict=True))

    def _compare(self, name: str, policies: PolicySet) -> None:
        self.tally.policies += len(policies.policies)
        auditor = self._auditor(name, policies)
        for write in self._chosen(policies):
            actual = _said(auditor, write)
            if actual is None:
                self.tally.unknown += 1
                continue
            self.tally.writes += 1
            expected = write.send(self._cluster.server, name)
            self.tally.seen[expected.what] += 1
            self.tally.seen["warned"] += bool(expected.warnings)
            if not agrees(expected, actual):
                self._record(name, Difference(policies, write, expected, actual))

    def _chosen(self, policies: PolicySet) -> Iterator[Write]:
        concerned = [write for write in self._cluster.writes if policies.concerns(write.plural)]
        others = [write for write in self._cluster.writes if not policies.concerns(write.plural)]
        for some, most in ((concerned, _WRITES), (others, _OTHER_WRITES)):
            yield from self._chance.sample(some, min(most, len(some)))

    def _record(self, name: str, difference: Difference) -> None:
        expected = difference.expected
        if why := reason_of_policy(f"{expected.text} {expected.warnings}", self._release):
            self.tally.explained[why] += 1
            return
        again = {difference.write.send(self._cluster.server, name) for _ in range(_REPEATS)}
        if again != {expected} or self._is_unstable(name, difference.policies):
            self.tally.unstable += 1
        else:
            self.tally.different.setdefault(difference.kind, []).append(difference)

    def _is_unstable(self, name: str, policies: PolicySet) -> bool:
        """Return whether the controller registers one set in several ways: it walks its policies in random order."""
        request = policies.request(name, self._cluster.namespaces)
        replies = self._program.ask([request] * _REGISTRATIONS)
        return any(reply != replies[0] for reply in replies)

    def _auditor(self, name: str, policies: PolicySet) -> Auditor:
        return Auditor(
            policies=json.loads(json.dumps(policies.policies)),
            bindings=(),
            namespaces=self._cluster.namespaces,
            kinds=builtin_kinds(),
            user=UserInfo(USER, groups=GROUPS, extra=((MARK, (name,)),)),
            exceptions=policies.exceptions,
            kyverno_context=KyvernoContext(
                ours.NOW, cluster_data=ours.Entries(INVENTORY, ENTRIES), release=self._release
            ),
        )


def agrees(expected: Seen, actual: Said | str) -> bool:
    """Return whether we say what a request sees. Of several denials the server names those of one webhook, in any order."""
    if isinstance(actual, str) or expected.what != actual.what or expected.warnings != actual.warnings:
        return False
    if expected.what == "refused":
        return any(text in expected.text for text in actual.texts)
    parts = actual.texts
    orders = (order for size in range(1, len(parts) + 1) for order in permutations(parts, size))
    return expected.what == "allowed" or any("; ".join(order) == expected.text for order in orders)


def _said(auditor: Auditor, write: Write) -> Said | str | None:
    """Return what we say about a write; None if our results are incomplete, and the text of an exception."""
    try:
        with limits.limited():
            results = auditor.evaluate(write.document, operation=write.operation)
    except Exception as error:  # noqa: BLE001 (any crash is a finding)
        return repr(error)
    if any(_is_unknown(check_result.outcome) for result in results for check_result in result.check_results):
        return None
    return said(results)


def _is_unknown(outcome: Outcome) -> bool:
    return isinstance(outcome, Skipped) and outcome.reason in _UNKNOWN


def said(results: Iterable[InvocationResult]) -> Said:
    """Return what the results of all policies mean for a request: the API server evaluates match conditions before calls."""
    refusals: list[str] = []
    denials: list[str] = []
    warnings: list[str] = []
    for result in results:
        policy = result.invocation.policy.name.rpartition("/")[2]
        effective = [each for each in result.check_results if not each.excepted_by]
        failing = [each.outcome for each in effective if isinstance(each.outcome, Violated | Errored)]
        refusals += [outcome.message for outcome in failing if isinstance(outcome, Errored) and outcome.always]
        text = _text(policy, effective)
        denials += [text] if any(denies(outcome, result.invocation) for outcome in failing) else []
        warnings += [text] if text and "Warn" in result.invocation.binding.actions and _is_printable(text) else []
    if refusals:
        return Said("refused", tuple(refusals))
    return Said("denied" if denials else "allowed", tuple(denials), tuple(sorted(warnings)))


def _text(policy: str, check_results: Sequence[CheckResult]) -> str:
    """Return the text of a variant's failure or error in a denial or a warning, if it has one.

    Kyverno stops at the first validation that does not pass; unless that is an error, the error of an annotation is the result.
    """
    failing = [each for each in check_results if isinstance(each.outcome, Violated | Errored)]
    first = next((each.outcome for each in failing if each.check.kind is not CheckKind.AUDIT_ANNOTATION), None)
    of_annotation = next((each.outcome for each in failing if each.check.kind is CheckKind.AUDIT_ANNOTATION), None)
    match first if isinstance(first, Errored) else of_annotation or first:
        case Errored(message=message, would_deny=True):
            return f"Policy {policy} error: {message}"
        case Violated(message=message):
            return f"Policy {policy} failed: {message}"
        case _:
            return ""


def _is_printable(text: str) -> bool:
    """Return whether the server can send a warning: one with control characters is left out."""
    return not any(ord(character) < ord(" ") or character == "\x7f" for character in text)


def report(tally: Tally) -> str:
    """Return the differences as text, the shortest example of each kind."""
    lines = []
    for kind, examples in sorted(tally.different.items(), key=lambda item: -len(item[1])):
        example = min(examples, key=lambda each: len(json.dumps(each.policies.policies)))
        lines += [f"{len(examples)} times: {kind}", f"  server  {example.expected}", f"  Assay   {example.actual}"]
        lines += [f"  policy  {json.dumps(policy)}" for policy in example.policies.policies]
        lines += [f"  exempt  {json.dumps(example.policies.exceptions)}"]
        lines += [f"  {example.write.operation}  {json.dumps(_short(example.write.document))}"]
    return "\n".join(lines)


def _recorded(tally: Tally) -> Iterator[str]:
    for kind, examples in tally.different.items():
        for each in examples:
            said = each.actual if isinstance(each.actual, str) else asdict(each.actual)
            write = {"operation": each.write.operation, "object": _short(each.write.document)}
            yield json.dumps(
                {"kind": kind, **asdict(each.policies), **write, "server": asdict(each.expected), "assay": said}
            )


def _short(document: dict[str, Any]) -> dict[str, Any]:
    """The document without what no policy reads."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": metadata}


def summary(tally: Tally, seed: int) -> str:
    """Return the counts as a line."""
    different = sum(map(len, tally.different.values()))
    seen = " ".join(f"{what}={number}" for what, number in sorted(tally.seen.items()))
    return (
        f"policies={tally.policies} unusable={tally.unusable} unregistered={tally.unregistered}"
        f" panics={tally.panics} writes={tally.writes}"
        f" {seen} different={different} unknown={tally.unknown} unstable={tally.unstable}"
        f" explained={tally.explained.total()} seed={seed}"
    )


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="1.19")
    parser.add_argument("--policies", type=int, default=1_000, help="the number of sets; some have several policies")
    parser.add_argument("--seed", type=int, default=None, help="by default the time of day")
    parser.add_argument("--record", type=Path, default=None, help="a file for all differences, one a line as JSON")
    arguments = parser.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    release = minor_of(arguments.release)
    if release is None:
        parser.error(f"no release: {arguments.release}")
    if not (assets := API_SERVER.place()):
        parser.error(f"no {API_SERVER.name}: {API_SERVER.remedy}")
    with (
        tempfile.TemporaryDirectory() as directory,
        running(Path(assets), Path(directory)) as server,
        Program.of(arguments.release, "webhooks") as program,
    ):
        comparison = Comparison(program, release, Cluster.on(server, seed), seed)
        for start in range(0, arguments.policies, _BATCH):
            comparison.batch(min(_BATCH, arguments.policies - start))
    tally = comparison.tally
    if arguments.record:
        arguments.record.write_text("".join(f"{line}\n" for line in _recorded(tally)))
    sys.stdout.write(f"{report(tally)}\n" if tally.different else "")
    sys.stdout.write(f"{summary(tally, seed)}\n")
    return 1 if tally.classes else 0


if __name__ == "__main__":
    sys.exit(main())
