"""Compare the three evaluators, generated function, closures and counting closures, on random expressions.

`python -m tests.oracle.agreement --pairs 100000 --seed 1`. Compared are values, error texts, and the inputs that were read:
variables of the policy and questions to the authorizer. No oracle is needed.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scanner import cel
from scanner.cel.errors import CostExceeded, Interrupted
from scanner.cel.functions.authorizer import Authorizer, AuthorizerAnswer, AuthorizerSubject, Question
from scanner.cel.generation.fast import Refusal
from tests.oracle import ours
from tests.oracle.grammar import Generator
from tests.oracle.subjects import objects

_OBJECTS = 6
_ENDLESS = 100_000
_FAULTS = (NameError, UnboundLocalError, SyntaxError)
"""Errors that no generated function may raise: the closures behind it would hide a defect of the generator."""


@dataclass(slots=True)
class Evaluation:
    """The outcome of an evaluator, and the variables and questions that it read."""

    outcome: Any
    read_inputs: frozenset[str]


class _RecordingDecider:
    """A decider that records its questions, and allows nothing."""

    def __init__(self, read_inputs: set[str]) -> None:
        self._read_inputs = read_inputs

    def decide(self, question: Question) -> AuthorizerAnswer:
        self._read_inputs.add(f"asks {question}")
        return AuthorizerAnswer(allowed=False)


class _RecordingVariables(cel.Lazy):
    """The variables of a policy; the names of those that are read are recorded."""

    def __init__(self, variables: cel.Lazy, read_inputs: set[str]) -> None:
        super().__init__()
        self._variables = variables
        self._read_inputs = read_inputs

    def names(self) -> Iterable[str]:
        return self._variables.names()

    def find(self, name: str) -> tuple[cel.Value] | None:
        self._read_inputs.add(name)
        return self._variables.find(name)


@dataclass(slots=True)
class Agreement:
    """The counts and the differences of a run."""

    pairs: int = 0
    fast: int = 0
    count_fallback: int = 0
    only_closures: int = 0
    absorbing: int = 0
    refused: int = 0
    differences: list[str] = field(default_factory=list)
    causes: Counter[str] = field(default_factory=Counter)


def compare(seed: int, pairs: int) -> Agreement:
    """Return the agreement on so many pairs of a random expression and an object, each evaluated in three ways."""
    chance = random.Random(seed)
    generator, documents = Generator(chance), objects(chance, _OBJECTS)
    agreement = Agreement()
    while agreement.pairs < pairs:
        case = generator.case()
        try:
            policy, program = ours.compiled_with(str(case.term), case.variables)
        except cel.CompileError:
            continue
        for document in documents:
            agreement.differences += differences(
                program, policy.make_activation, ours.activation_of(document), agreement
            )
    return agreement


_Activate = Callable[[Mapping[str, object]], dict[str, object]]


def differences(
    program: cel.Program, activate: _Activate, base: Mapping[str, object], agreement: Agreement
) -> Iterator[str]:
    """Yield the differences between the evaluators; `base` has the inputs other than variables and authorizer."""
    agreement.pairs += 1
    meter = program.count(recording_activation(activate, base)[0], _ENDLESS)
    if isinstance(meter.stopped, CostExceeded | Interrupted):
        return
    exact = _evaluation(program.evaluate_exactly, activate, base)
    if ours.tagged(meter.outcome) != exact.outcome:
        yield f"{program.text}\n  counted {ours.tagged(meter.outcome)}\n  exact   {exact.outcome}"
    yield from _absorbing(program, activate, base, exact, agreement)
    yield from _refused(program, activate, base, exact, agreement)
    function = program.generate()
    if function is None:
        agreement.only_closures += 1
        return
    try:
        fast = _evaluation(function, activate, base)
    except _FAULTS as fault:
        yield f"{program.text}\n  {fault!r} in\n{program.python()}"
        return
    except Exception as error:  # noqa: BLE001 - the closures would decide
        agreement.count_fallback += 1
        if exact.outcome["type"] != "error":
            agreement.causes[f"{type(error).__name__} {str(error)[:40]}"] += 1
        return
    agreement.fast += 1
    if fast != exact:
        yield f"{program.text}\n  fast  {fast}\n  exact {exact}\n{program.python()}"


def _absorbing(
    program: cel.Program, activate: _Activate, base: Mapping[str, object], exact: Evaluation, agreement: Agreement
) -> Iterator[str]:
    """Yield the difference of the absorbing form, where that form has an outcome; it may read more inputs."""
    function = _absorbing_form(program)
    if function is None:
        return
    try:
        absorbing = _evaluation(function, activate, base)
    except Exception:  # noqa: BLE001 - the closures would decide
        return
    agreement.absorbing += 1
    if absorbing.outcome != exact.outcome:
        yield f"{program.text}\n  absorbing {absorbing}\n  exact     {exact}"


def _refused(
    program: cel.Program, activate: _Activate, base: Mapping[str, object], exact: Evaluation, agreement: Agreement
) -> Iterator[str]:
    """Yield the difference of the error that the first path alone shows."""
    refusal = _refusal(program)
    if refusal is None:
        return
    try:
        error = refusal(recording_activation(activate, base)[0])
    except Exception:  # noqa: BLE001 - the closures would decide
        return
    agreement.refused += error is not None
    if error is not None and ours.tagged(error) != exact.outcome:
        yield f"{program.text}\n  refused {error}\n  exact   {exact}"


@lru_cache(maxsize=4096)
def _refusal(program: cel.Program) -> Refusal | None:
    return program.refusal()


@lru_cache(maxsize=4096)
def _absorbing_form(program: cel.Program) -> Callable[[Mapping[str, object]], cel.Value] | None:
    return program.absorbing()


def _evaluation(
    evaluate: Callable[[Mapping[str, object]], cel.Value], activate: _Activate, base: Mapping[str, object]
) -> Evaluation:
    activation, read_inputs = recording_activation(activate, base)
    try:
        outcome = ours.tagged(evaluate(activation))
    except cel.EvaluationError as error:
        if evaluate.__name__ != "evaluate_exactly":
            raise
        outcome = ours.tagged(error)
    return Evaluation(outcome, frozenset(read_inputs))


def recording_activation(activate: _Activate, base: Mapping[str, object]) -> tuple[dict[str, object], set[str]]:
    """Return an activation that records the variables and questions that are read, and the record."""
    read_inputs: set[str] = set()
    authorizer = Authorizer(_RecordingDecider(read_inputs), AuthorizerSubject("alice", ("system:authenticated",), "1"))
    resource = authorizer.request_resource(group="apps", resource="things", namespace="team-1", name="web")
    asking = {"authorizer": authorizer, "authorizer.requestResource": resource}
    activation = activate({**base, **asking})
    variables = activation["variables"]
    if isinstance(variables, cel.Lazy):
        activation["variables"] = _RecordingVariables(variables, read_inputs)
    return activation, read_inputs


def main() -> None:
    """Print the differences, and how often the closures had to decide. Exit code 1 when there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    agreement = compare(arguments.seed, arguments.pairs)
    for difference in agreement.differences[:20]:
        sys.stdout.write(f"{difference}\n")
    for cause, number in agreement.causes.most_common(10):
        sys.stdout.write(f"  {number} needless fallbacks: {cause}\n")
    sys.stdout.write(
        f"seed={arguments.seed} pairs={agreement.pairs} fast={agreement.fast} fell_back={agreement.count_fallback} "
        f"only_closures={agreement.only_closures} absorbing={agreement.absorbing} refused={agreement.refused} "
        f"different={len(agreement.differences)}\n"
    )
    sys.exit(bool(agreement.differences))


if __name__ == "__main__":
    main()
