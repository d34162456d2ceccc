"""The recorded corpus of 21 expressions on 200 Deployments, and the time of an evaluation of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks import recordings
from scanner import cel
from scanner.admission.compiled import CompiledPolicy, compile_policy
from scanner.admission.request import Request, make_request_map
from scanner.cel.functions import quantity, regex
from scanner.model.resource import Kind, UserInfo, resource_of
from scanner.policies.manifest import read_policy

_DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
_CONTROLLER = UserInfo(
    "system:serviceaccount:kube-system:deployment-controller",
    uid="abc",
    groups=("system:serviceaccounts", "system:authenticated"),
)
_SHORTEST_SECONDS = 0.03


@dataclass(frozen=True, slots=True)
class Case:
    """An expression that can be evaluated; `policy` holds its variables."""

    name: str
    program: cel.Program
    policy: CompiledPolicy


def recorded() -> Any:
    """Return the recorded expressions and objects."""
    return recordings.load("costs")


@cache
def activations() -> tuple[dict[str, object], ...]:
    """Return the inputs of the expressions for each of the objects."""
    return tuple(_activation(document) for document in recorded()["objects"])


def _activation(document: Any) -> dict[str, object]:
    resource = resource_of(_DEPLOYMENT, document)
    request = Request("CREATE", _DEPLOYMENT, _DEPLOYMENT, resource, resource.namespace, None, _CONTROLLER)
    return {"object": document, "oldObject": None, "request": make_request_map(request), "namespaceObject": None}


def forget() -> None:
    """Clear all caches of the compiler."""
    cel.compile.cache_clear()
    regex.compile_pattern.cache_clear()
    quantity.parse.cache_clear()


def compiled_anew() -> list[Case]:
    """Return the corpus, compiled with empty caches."""
    forget()
    return [_compiled(case) for case in recorded()["cases"]]


def _compiled(case: Any) -> Case:
    variables = [{"name": variable["name"], "expression": variable["expr"]} for variable in case["variables"]]
    policy = compile_policy(read_policy({"spec": {"variables": variables}}, language="test"))
    environment = cel.Environment()
    for name, variable in policy.variables.items():
        if variable.program is not None:
            variable.program.generate()
            environment = environment.add_variable(name, variable.program.result_type)
    program = cel.compile(case["expr"], environment)
    program.generate()
    return Case(case["name"], program, policy)


def nanoseconds(case: Case) -> float:
    """Return the nanoseconds of an evaluation: all objects are evaluated repeatedly, until the clock is precise enough."""
    evaluate, policy = case.program.evaluate, case.policy
    if not policy.variables:
        return timed(lambda: _pass(evaluate, activations()))
    return timed(lambda: _pass(evaluate, map(policy.make_activation, activations())))


def _pass(evaluate: Callable[[Mapping[str, object]], object], inputs: Any) -> None:
    for activation in inputs:
        try:  # noqa: SIM105 - contextlib.suppress would take longer than what is measured
            evaluate(activation)
        except cel.EvaluationError:
            pass


def timed(once: Callable[[], None]) -> float:
    """Return the nanoseconds per object of a function that evaluates every object once."""
    passes, started = 0, time.perf_counter()
    while (taken := time.perf_counter() - started) < _SHORTEST_SECONDS:
        once()
        passes += 1
    return taken / (passes * len(activations())) * 1e9
