"""The file `delta-1.37`: cases that 1.36 and 1.37 answer differently, and similar cases that must not differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.outcome import Errored, Passed, Violated
from tests.conformance.cases import Result
from tests.conformance.mutations import mutation_result
from tests.conformance.policies import ADMIN, AllowAdmin, kinds_of, policy_of, validation_of

_RELEASES = {"1.36": "v1_36", "1.37": "v1_37"}
_REFUSED = "compilation error: "
_NO_BOOL = "must evaluate to bool"
_ERROR = "resulted in error: "


def compare_delta(data: Any) -> Iterator[Result]:
    """Yield the result of each case by the rules of each release."""
    kinds = (*builtin_kinds(), *kinds_of(data["objects"].values()))
    for case in data["cases"]:
        for release, field in _RELEASES.items():
            subject = [case["expr"], case["kind"], case["object"], release, case["cause"]]
            recorded = {key: value for key, value in case[field].items() if key != "cost"}
            if case["kind"] == "mutation":
                yield mutation_result(case, data, release, recorded, subject)
                continue
            if case.get("oldObject"):
                yield Result(
                    right=False, same_text=False, expected=recorded, actual=None, subject=subject, skipped=True
                )
                continue
            actual = _evaluated(case, data, release, kinds)
            right = list(actual) == list(recorded) and ("value" not in recorded or actual == recorded)
            yield Result(right, actual == recorded, recorded, actual, subject)


def _evaluated(case: Any, data: Any, release: str, kinds: Any) -> dict[str, object]:
    """Return the outcome of a case; the expression itself has to compile, as literals may be mixed inside a call of `format`."""
    alone = _outcome(case, {"expression": case["expr"]}, data, release, kinds)
    if case["kind"] == "bool" or not str(alone.get("refused", _NO_BOOL)).startswith(_NO_BOOL):
        return alone
    return _outcome(case, validation_of(case), data, release, kinds)


def _outcome(case: Any, validation: Any, data: Any, release: str, kinds: Any) -> dict[str, object]:
    policy = policy_of(validation)
    policy["spec"]["variables"] = case.get("variables", [])
    auditor = Auditor(
        policies=[policy],
        bindings=[_binding(data["params"]["metadata"])],
        params=[data["params"]],
        namespaces=[data["namespace"]],
        kinds=kinds,
        user=ADMIN,
        authorizer=AllowAdmin(),
        kubernetes_version=release,
        schemas=KnownSchemas(builtin_schemas()) if case["native"] else None,
    )
    (invocation_result,) = auditor.evaluate(data["objects"][case["object"]], operation="CREATE")
    match invocation_result.check_results[0].outcome:
        case Passed():
            return {"value": True}
        case Violated(message=message) if case["kind"] == "value":
            return {"value": message.removeprefix("~VAL~")} if message.startswith("~VAL~") else {"error": message}
        case Violated():
            return {"value": False}
        case Errored(message=message) if message.startswith(_REFUSED):
            return {"refused": message.removeprefix(_REFUSED)}
        case Errored(message=message):
            return {"error": message.partition(_ERROR)[2]}
        case other:
            return {"unexpected": repr(other)}


def _binding(param: Any) -> Any:
    reference = {"name": param["name"], "namespace": param["namespace"], "parameterNotFoundAction": "Deny"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "case"},
        "spec": {"policyName": "case", "paramRef": reference, "validationActions": ["Deny"]},
    }
