"""The file `mutations`: the object that each policy makes of each object, or the words in which the server refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, cast

from scanner.api import Auditor, InvalidManifest, InvocationResult
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas, read_custom_schemas
from scanner.model.outcome import Errored, WouldChange
from scanner.model.resource import Kind
from scanner.mutate.operations import Node, PatchOperation, apply, is_same_json
from scanner.policies.mutating.evaluator import write_refusal
from tests.conformance.cases import RECORDED, Result
from tests.conformance.policies import ADMIN, AllowAdmin

DELTA_ADMIN = replace(ADMIN, uid="admin")
SPROCKET = Kind("mu.example.com", "v1", "Sprocket", "sprockets", namespaced=True)


@cache
def schemas() -> KnownSchemas:
    """Return the shipped schemas, and those of the custom kind of the cases."""
    definition = json.loads((RECORDED / "sprocket.json").read_text(encoding="utf-8"))
    return KnownSchemas({**builtin_schemas(), **read_custom_schemas(definition)})


def compare_mutations(data: Any) -> Iterator[Result]:
    """Yield the result of every policy on every object, as a CREATE."""
    all_schemas = schemas()
    for case in data["cases"]:
        name = case["policy"]["metadata"]["name"]
        try:
            auditor = _auditor(case, data, all_schemas)
        except InvalidManifest as error:
            expected = case.get("rejected")
            for subject in case.get("results", data["objects"]):
                same_text = expected is not None and all(reason in expected for reason in error.reasons)
                yield Result(expected is not None, same_text, expected, error.reasons, [name, subject])
            continue
        for subject, recorded in case.get("results", {name: {"rejected": True} for name in data["objects"]}).items():
            before = data["objects"][subject]
            answer = actual(auditor.evaluate(before, operation="CREATE"), before)
            yield _compared(recorded, answer, before, [name, subject])


def _auditor(case: Any, data: Any, all_schemas: KnownSchemas) -> Auditor:
    return Auditor(
        policies=[case["policy"]],
        bindings=[case["binding"]] if "binding" in case else [],
        params=data["params"] if isinstance(data["params"], list) else [data["params"]],
        namespaces=[data["namespace"]],
        kinds=(*builtin_kinds(), SPROCKET),
        user=ADMIN,
        authorizer=AllowAdmin(),
        validate=True,
        schemas=all_schemas,
    )


def actual(invocation_results: tuple[InvocationResult, ...], before: Any) -> dict[str, Any]:
    """Return the object after the patches of all mutations, or the first refusal."""
    after = before
    for invocation_result in invocation_results:
        for check_result in invocation_result.check_results:
            match check_result.outcome:
                case Errored(would_deny=True) as error:
                    text = error.message if error.code == 500 else write_refusal(invocation_result.invocation, error)
                    return {"denied": {"code": error.code, "reason": error.reason, "message": text}}
                case WouldChange(patch=patch):
                    after = apply(
                        [
                            PatchOperation(operation.op, operation.path, cast("Node", operation.value))
                            for operation in patch
                        ],
                        after,
                    )
                case _:
                    pass
    return {"changed": False} if after is before else {"changed": True, "object": after}


def _compared(recorded: Any, actual: dict[str, Any], before: Any, subject: object) -> Result:
    if "denied" in recorded:
        right = "denied" in actual and actual["denied"]["code"] == recorded["denied"]["code"]
        return Result(right, actual.get("denied") == recorded["denied"], recorded, actual, subject)
    right = recorded.get("changed") == actual.get("changed")
    if right and recorded["changed"]:
        right = agrees(actual["object"], recorded["object"], before)
    return Result(right, right, recorded, actual, subject)


def agrees(ours: Any, theirs: Any, before: Any) -> bool:
    """Return whether the record has all our values, and has more values only inside new parts of the object."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        fields_before = before if isinstance(before, dict) else None
        extra = theirs.keys() - ours.keys()
        return (fields_before is None or not extra) and all(
            name in theirs and agrees(value, theirs[name], fields_before.get(name) if fields_before else None)
            for name, value in ours.items()
        )
    if isinstance(ours, list) and isinstance(theirs, list):
        partners = _partners(ours, before if isinstance(before, list) else [])
        return len(ours) == len(theirs) and all(map(agrees, ours, theirs, partners))
    return is_same_json(ours, theirs)


def _partners(elements: list[Any], before: list[Any]) -> list[Any]:
    """Return the earlier element for each element, by name or by content; None for a new element."""
    named = {element["name"]: element for element in before if isinstance(element, dict) and "name" in element}
    return [
        named.get(element.get("name")) if isinstance(element, dict) else element in before or None
        for element in elements
    ]


def mutation_result(case: Any, data: Any, release: str, recorded: Any, subject: object) -> Result:
    """Return the result of a mutation of the file `delta-1.37` by the rules of a release."""
    all_schemas = schemas()
    before = data["objects"][case["object"]]
    auditor = Auditor(
        policies=[_delta_policy(case)],
        bindings=[_delta_binding(case)],
        params=[data["objects"]["map_params"]],
        namespaces=[data["objects"]["map_namespace"]],
        kinds=(*builtin_kinds(), SPROCKET),
        user=DELTA_ADMIN,
        authorizer=AllowAdmin(),
        kubernetes_version=release,
        schemas=all_schemas,
    )
    answer = actual(auditor.evaluate(before, operation="CREATE"), before)
    if "denied" in answer:
        code, message = answer["denied"]["code"], answer["denied"]["message"]
        answer = {"denied": {"code": code, "message": message.rpartition(" denied request: ")[2]}}
    if "refused" in recorded:
        text = answer["denied"]["message"] if "denied" in answer else None
        return Result(text is not None, text == recorded["refused"], recorded, answer, subject)
    if "connectionClosed" in recorded:
        return Result("denied" in answer, "denied" in answer, recorded, answer, subject)
    return _compared(recorded, answer, before, subject)


def _delta_policy(case: Any) -> Any:
    body = "jsonPatch" if case["patchType"] == "JSONPatch" else "applyConfiguration"
    rule = {"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [rule]},
        "variables": case.get("variables", []),
        "mutations": [{"patchType": case["patchType"], body: {"expression": case["expr"]}}],
    }
    if case.get("matchConditions"):
        spec["matchConditions"] = [{"name": "any", "expression": "object != null"}]
    if case.get("params"):
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    version = "admissionregistration.k8s.io/v1"
    return {"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "case"}, "spec": spec}


def _delta_binding(case: Any) -> Any:
    spec: dict[str, Any] = {"policyName": "case"}
    if case.get("params"):
        spec["paramRef"] = {"name": "mu-params", "namespace": "mu", "parameterNotFoundAction": "Deny"}
    version = "admissionregistration.k8s.io/v1"
    return {"apiVersion": version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "case"}, "spec": spec}
