"""The files that record whole policies: `policies`, `matching`, `expressions`, `rejected-expressions`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from scanner.api import Auditor, InvalidManifest, InvocationResult
from scanner.cel import AuthorizerAnswer, Question
from scanner.cluster.definitions import builtin_kinds, read_definition
from scanner.model.json import JsonObject
from scanner.model.outcome import CheckKind, Errored, Passed, Violated
from scanner.model.resource import Kind, Resource, UserInfo, resource_of
from tests.conformance.cases import Result

RECORDED = "1.36"
"""The release of the server that decided most of the recorded verdicts."""
ADMIN = UserInfo("admin", groups=("system:masters", "system:authenticated"))
CUSTOM = (
    Kind("kubescape.io", "v1", "ControlConfiguration", "controlconfigurations", namespaced=False),
    Kind("mx.example.com", "v1", "Gizmo", "gizmos", namespaced=True),
    Kind("mx.example.com", "v2", "Gizmo", "gizmos", namespaced=True),
    Kind("mx.example.com", "v1", "Limit", "limits", namespaced=False),
    Kind("mx.example.com", "v1", "Quota", "quotas", namespaced=True),
)
_ERROR = "resulted in error: "
_RULES = [{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]


class RecordedAuditor(Auditor):
    """An auditor that evaluates as the recorded server did.

    The versions of custom resources of the groups in `relabelled` differ in apiVersion alone. Without `implied_namespaces` an
    object in a namespace that is not given is evaluated as in a missing namespace.
    """

    def __init__(self, *, relabelled: Collection[str] = (), implied_namespaces: bool = True, **inputs: Any) -> None:
        super().__init__(**inputs)
        self.relabelled = relabelled
        self.context = replace(self.context, implied_namespaces=implied_namespaces)

    def views(self, document: JsonObject, kind: Kind) -> Iterator[Resource]:
        """Yield the object in each of its kinds."""
        if kind.group not in self.relabelled:
            yield from super().views(document, kind)
            return
        for view in (kind, *self.context.equivalents.get(kind, ())):
            yield resource_of(view, {**document, "apiVersion": view.api_version})


class AllowAdmin:
    """The authorizer of the recordings: the admin may do everything, others nothing."""

    def decide(self, question: Question) -> AuthorizerAnswer:
        """Allow the admin, and deny every other subject."""
        return AuthorizerAnswer(allowed=question.subject.username == ADMIN.username)


def compare_policies(data: Any) -> Iterator[Result]:
    """Yield the results of each object: every failure of every policy for a CREATE."""
    definitions = [read_definition(document) for document in data.get("definitions", ())]
    kinds = [kind for definition in definitions for kind in definition.kinds]
    auditor = RecordedAuditor(
        policies=data["policies"],
        bindings=data["bindings"],
        params=data["params"],
        namespaces=data["namespaces"],
        kinds=(*builtin_kinds(), *CUSTOM, *kinds),
        user=ADMIN,
        kubernetes_version=RECORDED,
        authorizer=AllowAdmin(),
        relabelled={kind.group for kind in kinds},
    )
    for case in data["cases"]:
        expected = {(f["policy"], f["binding"], f["expressionIndex"], f["message"]) for f in case["failures"]}
        actual = set(_failures(auditor.evaluate(case["object"], operation="CREATE")))
        right = {failure[:3] for failure in expected} == {failure[:3] for failure in actual}
        yield Result(right, expected == actual, sorted(expected - actual), sorted(actual - expected), case["object"])


def _failures(invocation_results: tuple[InvocationResult, ...]) -> Iterator[tuple[str, str, int, str]]:
    for invocation_result in invocation_results:
        for check_result in invocation_result.check_results:
            match check_result.outcome:
                case Violated(message=message) | Errored(message=message, would_deny=True, always=False):
                    names = invocation_result.invocation.policy.name, invocation_result.invocation.binding.name
                    yield (*names, check_result.check.index, message)
                case _:
                    pass


def compare_matching(data: Any) -> Iterator[Result]:
    """Yield the results of random policies and bindings on every probe, as CREATE and as UPDATE."""
    params = [*data["params"], *data["update"]]
    namespaces = [*data["namespaces"], *(probe for probe in data["update"] if probe["kind"] == "Namespace")]
    kinds = tuple(k for k in (*builtin_kinds(), *CUSTOM) if k.kind != "ControlConfiguration")
    for case in data["cases"]:
        auditor = RecordedAuditor(
            policies=[case["policy"]],
            bindings=[case["binding"]],
            params=params,
            namespaces=namespaces,
            kinds=kinds,
            user=ADMIN,
            kubernetes_version=RECORDED,
            authorizer=AllowAdmin(),
            relabelled={"mx.example.com"},
            implied_namespaces=False,
        )
        expected, actual = {}, {}
        for result in case["results"]:
            expected[result["probe"], result["operation"]] = _recorded(result)
        for operation, probes in (("CREATE", data["create"]), ("UPDATE", data["update"])):
            for index, probe in enumerate(probes):
                report = _reported(auditor.evaluate(probe, operation=operation))  # type: ignore[arg-type]
                if report:
                    actual[index, operation] = report
        right = {key: _class(value) for key, value in expected.items()} == {
            key: _class(value) for key, value in actual.items()
        }
        yield Result(right, expected == actual, _plain(expected, actual), _plain(actual, expected), case)


def _recorded(result: Any) -> dict[str, object]:
    report: dict[str, object] = {}
    if failures := result.get("failures"):
        report["failures"] = Counter((f["expressionIndex"], f["message"]) for f in failures)
    if annotations := result.get("auditAnnotations"):
        report["auditAnnotations"] = annotations
    if denied := result.get("denied"):
        report["denied"] = denied["message"].partition(" denied request: ")[2]
    return report


def _reported(invocation_results: tuple[InvocationResult, ...]) -> dict[str, object]:
    failures: Counter[tuple[int, str]] = Counter()
    annotations: dict[str, list[str]] = {}
    denied = ""
    for invocation_result in invocation_results:
        policy = invocation_result.invocation.policy
        for check_result in invocation_result.check_results:
            match check_result.outcome:
                case Errored(message=message, always=True):
                    denied = denied or message
                case Violated(message=message) | Errored(message=message, would_deny=True):
                    failures[check_result.check.index, message] += 1
                case Passed(annotation=value) if value and check_result.check.kind is CheckKind.AUDIT_ANNOTATION:
                    key = f"{policy.name}/{policy.audit_annotations[check_result.check.index].key}"
                    values = annotations.setdefault(key, [])
                    values.extend([value] if value not in values else [])
                case _:
                    pass
    report: dict[str, object] = {}
    if denied:
        return {"denied": denied}
    if failures:
        report["failures"] = failures
    if annotations:
        report["auditAnnotations"] = {key: ", ".join(values) for key, values in annotations.items()}
    return report


def _class(report: dict[str, object]) -> object:
    failures = report.get("failures")
    indexes = sorted(index for index, _ in failures.elements()) if isinstance(failures, Counter) else []
    return bool(report.get("denied")), indexes


def _plain(report: dict[Any, Any], other: dict[Any, Any]) -> dict[str, str]:
    return {str(key): repr(value) for key, value in report.items() if other.get(key) != value}


def compare_expressions(data: Any) -> Iterator[Result]:
    """Yield the results of an expression as a validation, or of its value inside a message, on each recorded object."""
    for case in data["cases"]:
        manifest = policy_of(validation_of(case))
        auditor, refusal = _auditor(manifest, data)
        for name, recorded in case.get("results", dict.fromkeys(data["objects"])).items():
            if "rejected" in case:
                # The faults stand in the server's text, after the name of the policy.
                same = refusal is not None and all(part in case["rejected"] for part in refusal)
                yield Result(refusal is not None, same, case["rejected"], refusal, [case["expr"], name])
                continue
            actual: object = {"refused": refusal}
            if auditor is not None:
                actual = _value(auditor.evaluate(data["objects"][name], operation="CREATE"), case["kind"])
            right = isinstance(actual, dict) and list(actual) == list(recorded)
            right = right and ("error" in recorded or actual == recorded)
            yield Result(right, actual == recorded, recorded, actual, [case["expr"], case["kind"], name])


def validation_of(case: Any) -> dict[str, str]:
    """Return the validation that shows whether an expression is true, or its value as a text."""
    if case["kind"] == "bool":
        return {"expression": case["expr"]}
    formatted = f'"%s".format([{case["expr"]}])'
    return {
        "expression": f'{formatted} == "\\u0000~"',
        "messageExpression": f'"~VAL~" + {formatted}',
        "message": "~NOVAL~",
    }


def policy_of(validation: dict[str, str]) -> Any:
    """Return a policy that matches every object, with one validation and a ConfigMap as its param."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "case"},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": _RULES},
            "validations": [validation],
        },
    }


def _auditor(manifest: Any, data: Any) -> tuple[Auditor | None, tuple[str, ...] | None]:
    metadata = data["params"]["metadata"]
    reference = {"name": metadata["name"], "namespace": metadata["namespace"], "parameterNotFoundAction": "Deny"}
    binding: JsonObject = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "case"},
        "spec": {"policyName": "case", "paramRef": reference, "validationActions": ["Deny"]},
    }
    kinds = (*builtin_kinds(), *kinds_of(data["objects"].values()))
    try:
        auditor = RecordedAuditor(
            policies=[manifest],
            bindings=[binding],
            params=[data["params"]],
            namespaces=[data["namespace"]],
            kinds=kinds,
            user=ADMIN,
            kubernetes_version=RECORDED,
            authorizer=AllowAdmin(),
            validate=True,
        )
    except InvalidManifest as error:
        return None, error.reasons
    return auditor, None


def kinds_of(objects: Any) -> Iterator[Kind]:
    """Yield the kinds of objects that are not built into a server."""
    names = {(kind.api_version, kind.kind) for kind in builtin_kinds()}
    for document in objects:
        key = (document["apiVersion"], document["kind"])
        if key not in names:
            names.add(key)
            group, _, version = key[0].rpartition("/")
            yield Kind(group, version, key[1], f"{key[1].lower()}s", namespaced="namespace" in document["metadata"])


def _value(invocation_results: tuple[InvocationResult, ...], kind: str) -> object:
    (invocation_result,) = invocation_results
    match invocation_result.check_results[0].outcome:
        case Passed():
            return {"value": True}
        case Violated(message=message) if kind == "value":
            return {"value": message.removeprefix("~VAL~")} if message.startswith("~VAL~") else {"error": message}
        case Violated():
            return {"value": False}
        case Errored(message=message):
            return {"error": message}
        case other:
            return {"unexpected": repr(other)}


def compare_rejected(data: Any) -> Iterator[Result]:
    """Yield the results of expressions that the API refuses to store."""
    binding = {
        "objects": {},
        "namespace": {"metadata": {"name": "n"}},
        "params": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p", "namespace": "n"}},
    }
    marker = "compilation failed: "
    for case in data:
        _, refusal = _auditor(policy_of({"expression": case["expr"]}), binding)
        text = "; ".join(refusal or ())
        same = text.partition(marker)[2] == case["error"].partition(marker)[2]
        yield Result(refusal is not None, refusal is not None and same, case["error"], text, case["expr"])
