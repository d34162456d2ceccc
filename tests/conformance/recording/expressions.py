"""Records `expressions`: seeded random expressions, each as the validation of a policy, on a few objects.

An expression whose answers change from one evaluation to the next is left out: the server walks maps in random order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

from tests.conformance.policies import policy_of, validation_of
from tests.conformance.recording.audited import ADMISSION, BINDING, AuditedServer, as_admitted, of_group
from tests.integration import generated
from tests.integration.client import Answer
from tests.integration.manifests import apply, wait_until_enforced
from tests.oracle.grammar import Generator
from tests.oracle.subjects import NAMESPACE, objects

GROUP = "record.example.com"
PARAMS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "limits", "namespace": "team-1"},
}
PARAM_DATA = {"limit": "3", "names": "a,b,c", "empty": ""}
_BATCH = 50
_ROUNDS = 3
_MOST_REFUSED = 100
_LONGEST = 300
CRASHED = "the server crashed"
"""The mark, in place of a refusal's text, of an expression that the file cannot hold."""
_LOCAL = "serviceAccount("
"""The beginning of a question about another user: its answer depends on the server's roles, so no expression contains it."""


def record(audited: AuditedServer, seed: int, number: int) -> dict[str, Any]:
    """Return so many expressions that the server accepts, and some that it refuses, in the form of the file."""
    namespace: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": _named(NAMESPACE["metadata"])}
    (stored,) = apply(audited.server, [namespace])
    apply(audited.server, [definition()])
    (params,) = apply(audited.server, [{**PARAMS, "data": PARAM_DATA}])
    sent = things(seed)
    subjects = {name: _admitted(audited, document, at) for at, (name, document) in enumerate(sent.items())}
    accepted: list[Any] = []
    refused: list[Any] = []
    candidates = expressions(seed)
    while len(accepted) < number:
        for case in _recorded(audited, list(islice(candidates, _BATCH)), sent):
            (accepted if "results" in case else refused).append(case)
    cases = [*accepted[:number], *refused[:_MOST_REFUSED]]
    return {"objects": subjects, "namespace": _plain(stored), "params": _plain(params), "cases": cases}


def expressions(seed: int) -> Iterator[dict[str, str]]:
    """Yield expressions without end, all different: those of the generated policies, then random ones."""
    generator, seen = Generator(Random(seed)), set()
    for text in (*generated.ANYTHING, *(text for texts in generated.SPECIAL.values() for text in texts)):
        if _LOCAL not in text:
            yield {"expr": text, "kind": "bool"}
    while True:
        case = generator.case()
        text = str(case.term)
        if case.variables or text in seen or len(text) > _LONGEST or _LOCAL in text:
            continue
        seen.add(text)
        yield {"expr": text, "kind": "bool" if case.term.kind == "bool" else "value"}


def things(seed: int) -> dict[str, dict[str, Any]]:
    """Return objects of a custom kind with values of every type, and a Deployment, a ConfigMap and a Pod."""
    sent = {}
    for number, document in enumerate(filter(None, objects(Random(seed), 6))):
        sent[f"thing-{number}"] = {**document, "apiVersion": f"{GROUP}/v1"}
    for made in generated.objects(Random(seed)):
        name = str(made["kind"]).lower()
        if made["kind"] in ("Deployment", "ConfigMap", "Pod") and name not in sent:
            sent[name] = {**made, "metadata": {**made["metadata"], "namespace": "team-1"}}  # type: ignore[dict-item]
    return sent


def definition() -> dict[str, Any]:
    """Return the definition of the objects' kind, without a schema."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Thing", "plural": "things", "singular": "thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _named(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: metadata[key] for key in ("name", "labels")}


def _plain(stored: Any) -> dict[str, Any]:
    """Return a stored object without the fields that differ between recordings."""
    return as_admitted(Answer(200, {}, stored), 0)  # type: ignore[arg-type]


def _admitted(audited: AuditedServer, document: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the object in the state at admission: a `2.0` in the request is a double there, and `2` in the answer."""
    body = as_admitted(audited.create(document), number)
    return {**body, "spec": document["spec"]} if body["kind"] == "Thing" else body


def _recorded(audited: AuditedServer, batch: list[dict[str, str]], sent: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cases of a batch whose answers do not vary."""
    refusals = [_stored(audited, case, f"e{number}") for number, case in enumerate(batch)]
    wait_until_enforced(audited.server)
    cases: list[dict[str, Any]] = []
    for number, (case, refusal) in enumerate(zip(batch, refusals, strict=True)):
        if refusal == CRASHED:
            continue
        if refusal:
            cases.append({**case, "rejected": refusal})
            continue
        answers = [_results(audited, case, f"e{number}", sent) for _ in range(_ROUNDS)]
        if all(answer == answers[0] for answer in answers):
            cases.append({**case, "results": answers[0]})
    for number, refusal in enumerate(refusals):
        _delete(audited, f"e{number}", stored=not refusal)
    wait_until_enforced(audited.server)
    return cases


def _stored(audited: AuditedServer, case: dict[str, str], name: str) -> str:
    """Return the server's refusal of an expression's policy; empty when policy and binding are stored."""
    policy = {**of_group(policy_of(validation_of(case)), name), "metadata": {"name": name}}
    status, body = audited.create_policy(policy, dry_run=False)
    if status != 201:
        return str(body["message"]) if body else CRASHED
    reference: dict[str, Any] = {"name": "limits", "namespace": "team-1", "parameterNotFoundAction": "Deny"}
    spec: dict[str, Any] = {"policyName": name, "paramRef": reference, "validationActions": ["Audit"]}
    binding: dict[str, Any] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": BINDING,
        "metadata": {"name": name},
    }
    apply(audited.server, [{**binding, "spec": spec}])
    return ""


def _delete(audited: AuditedServer, name: str, *, stored: bool) -> None:
    for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies") if stored else ():
        audited.server.request("DELETE", f"{ADMISSION}/{plural}/{name}")


def _results(audited: AuditedServer, case: dict[str, str], name: str, sent: dict[str, Any]) -> dict[str, object]:
    return {key: _result(audited.failure(document, name), case) for key, document in sent.items()}


def _result(message: str | None, case: dict[str, str]) -> dict[str, object]:
    """Return the result of a failure's message in the form of the file."""
    if message is None:
        return {"value": True}
    if case["kind"] == "value" and message.startswith("~VAL~"):
        return {"value": message.removeprefix("~VAL~")}
    if case["kind"] == "bool" and message == f"failed expression: {case['expr'].strip()}":
        return {"value": False}
    return {"error": message}
