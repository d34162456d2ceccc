"""The time that the compilation of 200 different policies takes, and the memory that each of them keeps."""

from __future__ import annotations

import gc
import time
import tracemalloc
from statistics import median
from typing import Any

from benchmarks import recordings
from benchmarks.corpus import forget
from benchmarks.measured import ROUNDS, say
from scanner.admission.compiled import CompiledPolicy, compile_policy
from scanner.model.policy import Policy
from scanner.policies.manifest import read_policy

_POLICIES = 200
_SHORTEST = 40
_GOAL = 0.6
_FEW, _MANY = 500, 4000
_GROWTH = 10


def ready() -> None:
    """Parse, check and plan the expressions of 200 policies, and generate their functions."""
    policies = _policies()
    compiled, generated = [], []
    for _ in range(ROUNDS):
        forget()
        started = time.perf_counter()
        compiled_policies = [compile_policy(policy) for policy in policies]
        compiled.append(time.perf_counter() - started)
        _generate(compiled_policies)
        generated.append(time.perf_counter() - started)
    characters = sum(len(policy.validations[0].expression) for policy in policies) / _POLICIES
    say(f"{_POLICIES} policies of one expression with {characters:.0f} characters on average, all different")
    say(f"compiled in {median(compiled):.3f} s; {_kibibytes(policies):.1f} KiB are kept for each policy")
    say(f"bench=compile seconds={median(generated):.3f} goal=<={_GOAL} rounds={ROUNDS} (parse, compile and generate)")


def growing() -> None:
    """Compile a policy of 500 variables and one of 4,000: the time may grow with the number, and little more."""
    ratios = []
    for _ in range(ROUNDS):
        few, many = (_compiled_in(count) for count in (_FEW, _MANY))
        ratios.append(many / few)
        say(f"{_FEW} variables {few:.3f} s, {_MANY} variables {many:.3f} s")
    say(f"bench=variables ratio={median(ratios):.2f} goal=<={_GROWTH} rounds={ROUNDS}")


def _compiled_in(count: int) -> float:
    """Return the seconds that a policy of so many variables takes; each variable reads the variable before."""
    variables = [{"name": f"v{number}", "expression": f"variables.v{number - 1} + 'x'"} for number in range(1, count)]
    first = {"name": "v0", "expression": "object.metadata.name"}
    validation = {"expression": f"variables.v{count - 1} == ''"}
    document: Any = {
        "metadata": {"name": "p"},
        "spec": {"variables": [first, *variables], "validations": [validation]},
    }
    policy = read_policy(document, language="ValidatingAdmissionPolicy")
    forget()
    started = time.perf_counter()
    compile_policy(policy)
    return time.perf_counter() - started


def _policies() -> list[Policy]:
    cases = recordings.load("expressions")["cases"]
    texts = dict.fromkeys(case["expr"] for case in cases if not case.get("rejected") and len(case["expr"]) >= _SHORTEST)
    return [_policy(text) for text in list(texts)[:: len(texts) // _POLICIES][:_POLICIES]]


def _policy(text: str) -> Policy:
    document: Any = {"metadata": {"name": "p"}, "spec": {"validations": [{"expression": f"dyn({text}) == true"}]}}
    return read_policy(document, language="ValidatingAdmissionPolicy")


def _generate(policies: list[CompiledPolicy]) -> None:
    for policy in policies:
        for _, expression in policy.expressions():
            if expression.program is not None:
                expression.program.generate()


def _kibibytes(policies: list[Policy]) -> float:
    """Return the KiB that a compiled policy keeps, its function included, without the manifest."""
    forget()
    gc.collect()
    tracemalloc.start()
    compiled_policies = [compile_policy(policy) for policy in policies]
    _generate(compiled_policies)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / len(compiled_policies) / 1024
