"""Records `expressions`: seeded random expressions, each as the validation of a policy, on a few objects.

An expression whose answers change from one evaluation to the next is left out: the server walks maps in random order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

from tests.conformance.policies import policy_of, validation_of
from tests.conformance.recording.audited import ADMISSION, BINDING, AuditedServer, as_seen, of_group
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
"""Instead of the text of a refusal: an expression that the file cannot hold."""
_LOCAL = "serviceAccount("
"""What another user may do depends on the roles that a server has, so that no expression names one."""


def record(audited: AuditedServer, seed: int, number: int) -> dict[str, Any]:
    """So many expressions that the server accepts, and some that it does not, in the form of the file."""
    namespace: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": _named(NAMESPACE["metadata"])}
    (stored,) = apply(audited.server, [namespace])
    apply(audited.server, [definition()])
    (params,) = apply(audited.server, [{**PARAMS, "data": PARAM_DATA}])
    sent = things(seed)
    subjects = {name: _seen(audited, document, at) for at, (name, document) in enumerate(sent.items())}
    accepted: list[Any] = []
    refused: list[Any] = []
    candidates = expressions(seed)
    while len(accepted) < number:
        for case in _recorded(audited, list(islice(candidates, _BATCH)), sent):
            (accepted if "results" in case else refused).append(case)
    cases = [*accepted[:number], *refused[:_MOST_REFUSED]]
    return {"objects": subjects, "namespace": _plain(stored), "params": _plain(params), "cases": cases}


def expressions(seed: int) -> Iterator[dict[str, str]]:
    """Expressions without end, all different: those of the generated policies, then random ones."""
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
    """Objects of a custom kind with values of every type, and a Deployment, a ConfigMap and a Pod."""
    sent = {}
    for number, document in enumerate(filter(None, objects(Random(seed), 6))):
        sent[f"thing-{number}"] = {**document, "apiVersion": f"{GROUP}/v1"}
    for made in generated.objects(Random(seed)):
        name = str(made["kind"]).lower()
        if made["kind"] in ("Deployment", "ConfigMap", "Pod") and name not in sent:
            sent[name] = {**made, "metadata": {**made["metadata"], "namespace": "team-1"}}  # type: ignore[dict-item]
    return sent


def definition() -> dict[str, Any]:
    """The kind of the objects, without a schema."""
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
    """A stored object without what differs from one recording to the next."""
    return as_seen(Answer(200, {}, stored), 0)  # type: ignore[arg-type]


def _seen(audited: AuditedServer, document: dict[str, Any], number: int) -> dict[str, Any]:
    """The object as admission saw it: a `2.0` that was sent is a double there, and comes back as `2`."""
    body = as_seen(audited.create(document), number)
    return {**body, "spec": document["spec"]} if body["kind"] == "Thing" else body


def _recorded(audited: AuditedServer, batch: list[dict[str, str]], sent: dict[str, Any]) -> list[dict[str, Any]]:
    """The cases of a batch that the server answers in one way only."""
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
    """Why the server refuses the policy of an expression; empty when policy and binding are stored."""
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
    """A result in the form of the file, out of the failure's message."""
    if message is None:
        return {"value": True}
    if case["kind"] == "value" and message.startswith("~VAL~"):
        return {"value": message.removeprefix("~VAL~")}
    if case["kind"] == "bool" and message == f"failed expression: {case['expr'].strip()}":
        return {"value": False}
    return {"error": message}
