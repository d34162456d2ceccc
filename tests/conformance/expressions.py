"""The files that record single evaluations of Kubernetes' CEL environment: `costs`, `probes`, `random`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, compile_policy
from scanner.admission.cost_budget import Variables
from scanner.admission.request import Request, make_request_map
from scanner.model.json import JsonObject
from scanner.model.resource import Kind, UserInfo, resource_of
from scanner.policies.manifest import read_policy
from tests.conformance.cases import Result

CONTROLLER = UserInfo(
    "system:serviceaccount:kube-system:deployment-controller",
    uid="abc",
    groups=("system:serviceaccounts", "system:authenticated"),
)
NAMESPACE: JsonObject = {
    "metadata": {"name": "team-1", "labels": {"team": "team-1", "env": "prod"}},
    "spec": {},
    "status": {},
}
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)


def compare_evaluations(data: Any) -> Iterator[Result]:
    """Yield the results of an expression on an object: value or error, and cost; a refused expression has no cost."""
    cases = {case["name"]: case for case in data["cases"]}
    programs = {name: compiled(case) for name, case in cases.items()}
    activations = [activation_for(document) for document in data["objects"]]
    for recorded in data["results"]:
        case = cases[recorded["case"]]
        refusal, program, policy = programs[recorded["case"]]
        subject = [case["expr"], recorded.get("obj")]
        if "compileError" in recorded:
            number = 1 if "obj" in recorded else len(data["objects"])
            for _ in range(number):
                same = refusal == recorded["compileError"]
                yield Result(bool(refusal), same, recorded["compileError"], refusal, subject, cost=bool(refusal))
            continue
        if program is None:
            yield Result(right=False, same_text=False, expected=recorded, actual=refusal, subject=subject, cost=False)
            continue
        actual = _evaluated(program, policy, activations[recorded["obj"]], case["expr"])
        yield _compared(recorded, actual, subject)


def compiled(case: Any) -> tuple[str, cel.Program | None, CompiledPolicy]:
    """Return the refusal of a case, or its program, and a policy that has its variables."""
    variables = [{"name": v["name"], "expression": v["expr"]} for v in _variables(case)]
    policy = compile_policy(read_policy({"spec": {"variables": variables}}, language="test"), (1, 36))
    environment = cel.Environment()
    for name, expression in policy.variables.items():
        result = expression.program.result_type if expression.program else cel.DYN
        environment = environment.add_variable(name, result)
    try:
        return "", cel.compile(case["expr"], environment), policy
    except cel.CompileError as error:
        return error.detail, None, policy


def _variables(case: Any) -> list[dict[str, str]]:
    return [
        {"name": v.get("name", v.get("Name")), "expr": v.get("expr", v.get("Expr"))} for v in case["variables"] or ()
    ]


def activation_for(document: Any) -> dict[str, object]:
    """Return the inputs of the expressions as at their recording."""
    resource = resource_of(DEPLOYMENT, document)
    request = Request("CREATE", DEPLOYMENT, DEPLOYMENT, resource, resource.namespace, NAMESPACE, CONTROLLER)
    mapped = {**make_request_map(request), "dryRun": False}
    return {"object": document, "oldObject": None, "request": mapped, "namespaceObject": NAMESPACE}


def _evaluated(
    program: cel.Program, policy: CompiledPolicy, activation: Mapping[str, object], text: str
) -> dict[str, object]:
    metered = policy.make_activation(activation, metered=True)
    measured = program.measure(metered)
    variables = metered["variables"]
    cost = measured.cost + (variables.take_unpaid_cost() if isinstance(variables, Variables) else 0)
    if isinstance(measured.outcome, cel.EvaluationError):
        return {"error": f"expression '{text}' resulted in error: {measured.outcome}", "cost": cost}
    return {"type": cel.type_name(measured.outcome), "value": measured.outcome, "cost": cost}


def _compared(recorded: Any, actual: dict[str, object], subject: object) -> Result:
    cost = recorded["cost"] == actual["cost"]
    if "error" in recorded:
        right = "error" in actual
        return Result(right, actual.get("error") == recorded["error"], recorded, actual, subject, cost=cost)
    right = actual.get("type") == recorded["type"] and _same(recorded["value"], actual.get("value"), recorded["type"])
    return Result(right, right, recorded, repr(actual), subject, cost=cost)


def _same(recorded: object, actual: object, kind: str) -> bool:
    if kind in ("bool", "string"):
        return recorded == actual
    if kind in ("int", "uint", "double") and isinstance(actual, int | float):
        number = float(recorded) if isinstance(recorded, str) else recorded
        return number == actual or (isinstance(number, float) and math.isnan(number) and math.isnan(actual))
    return True
