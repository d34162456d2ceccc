"""Records `policies`: the example policies, those of the benchmarks and seeded random ones, on objects of our own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, product
from random import Random
from typing import Any

from benchmarks import objects as busy
from benchmarks import policies as usual
from scanner.model.json import JsonObject
from tests.conformance.recording.audited import AuditedServer, as_admitted, of_group
from tests.integration import examples, generated
from tests.integration.manifests import Violation, apply, delete, violations, wait_until_enforced
from tests.integration.parity import MOST_WARNED, copy_of
from tests.integration.storable import STORABLE

_RANDOM = 60
_AT_ONCE = 10
_LOCAL = "serviceAccount("
"""The beginning of a question about another user: its answer depends on the server's roles, so no policy contains it."""
_KEPT = ("Namespace", "CustomResourceDefinition")


def record(audited: AuditedServer, seed: int, number: int) -> dict[str, Any]:
    """Return the policies and all failures of the examples, the random objects and so many objects of a busy cluster."""
    policies, bindings, params = _documents(seed)
    surroundings = [*_surroundings(seed), *params]
    stored = apply(audited.server, surroundings)
    cases = list(_admitted(audited, _sent(seed, number)))
    for validation in range(max(len(policy["spec"]["validations"]) for policy in policies)):
        _add_failures(audited, cases, policies, bindings, validation)
    for case in cases:
        del case["sent"]
    plain = [_plain(document, at) for at, document in enumerate(stored)]
    return {
        "definitions": [document for document in surroundings if document["kind"] == "CustomResourceDefinition"],
        "policies": policies,
        "bindings": bindings,
        "params": [document for document in plain if document["kind"] not in _KEPT],
        "namespaces": [document for document in plain if document["kind"] == "Namespace"],
        "cases": cases,
    }


def _add_failures(
    audited: AuditedServer, cases: list[Any], policies: list[Any], bindings: list[Any], validation: int
) -> None:
    """Add the failures of the validation at a position of each policy, a few policies at a time."""
    chosen = [policy for policy in policies if validation < len(policy["spec"]["validations"])]
    groups = {policy["metadata"]["name"]: f"g{number // _AT_ONCE}" for number, policy in enumerate(chosen)}
    stored = [_with_one(policy, validation, groups[policy["metadata"]["name"]]) for policy in chosen]
    stored += [_warning(binding) for binding in bindings if binding["spec"]["policyName"] in groups]
    apply(audited.server, stored)
    wait_until_enforced(audited.server)
    for case, group in product(cases, sorted(set(groups.values()))):
        warnings = audited.create(case["sent"], group).warnings()
        assert sum(map(len, warnings)) < MOST_WARNED, f"the server may have cut the warnings about {case['source']}"
        case["failures"] += [_failure(violation, validation) for violation in violations(warnings)]
    for document in reversed(stored):
        delete(audited.server, document)
    wait_until_enforced(audited.server)


def _failure(violation: Violation, validation: int) -> dict[str, Any]:
    where = {"policy": violation.policy, "binding": violation.binding}
    return {**where, "expressionIndex": validation, "message": violation.message}


def _with_one(policy: Any, validation: int, group: str) -> Any:
    """Return the policy with one of its validations, for the requests of a group."""
    alone = {**policy, "spec": {**policy["spec"], "validations": [policy["spec"]["validations"][validation]]}}
    return of_group(alone, group)


def _warning(binding: Any) -> Any:
    return {**binding, "spec": {**binding["spec"], "validationActions": ["Warn"]}}


def _documents(seed: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the policies, their bindings, and the params."""
    names = [f"random-{number}" for number in range(_RANDOM)]
    documents = [*examples.policies(), *map(_usual, usual.policies()), *generated.policies(Random(seed), names)]
    local = {policy["metadata"]["name"] for policy in _of(documents, "ValidatingAdmissionPolicy") if _is_local(policy)}
    policies = [policy for policy in _of(documents, "ValidatingAdmissionPolicy") if not _is_local(policy)]
    bindings = [
        _forgiving(binding)
        for binding in _of(documents, "ValidatingAdmissionPolicyBinding")
        if binding["spec"]["policyName"] not in local
    ]
    return policies, bindings, [*_of(documents, "ConfigMap"), *_of(generated.objects(Random(seed)), "ConfigMap")]


def _usual(document: Any) -> Any:
    """Return a document of the benchmarks under a name that no other document has."""
    spec, name = document["spec"], f"usual-{document['metadata']['name']}"
    bound = {"policyName": f"usual-{spec['policyName']}"} if "policyName" in spec else {}
    return {**document, "metadata": {**document["metadata"], "name": name}, "spec": {**spec, **bound}}


def _of(documents: Iterable[Mapping[str, Any]], kind: str) -> Iterator[Any]:
    return (document for document in documents if document["kind"] == kind)


def _is_local(policy: Any) -> bool:
    """Return whether the file cannot hold a policy: its verdicts depend on the server, or deny with any actions of a binding."""
    spec = policy["spec"]
    return (
        _LOCAL in json.dumps(policy) or "auditAnnotations" in spec or spec.get("paramKind", {}).get("kind") == "Nothing"
    )


def _forgiving(binding: Any) -> Any:
    """Return a binding for which a missing param is no error of configuration."""
    reference = binding["spec"].get("paramRef")
    if not reference:
        return binding
    return {**binding, "spec": {**binding["spec"], "paramRef": {**reference, "parameterNotFoundAction": "Allow"}}}


def _surroundings(seed: int) -> Iterator[Any]:
    """Yield the documents that must be stored before an object can be created: namespaces and definitions."""
    names = set()
    ours = chain(examples.objects("before"), examples.objects("after"), generated.objects(Random(seed)))
    for document in (generated.definition(), *ours, *(made.body for made in busy.namespaces())):
        name = document["kind"], document["metadata"]["name"]  # type: ignore[call-overload, index]
        if document["kind"] in _KEPT and name not in names:
            names.add(name)
            yield document


def _sent(seed: int, number: int) -> Iterator[JsonObject]:
    """Yield objects as a client sends them, under names that no stored object has."""
    yield from map(_renamed, examples.objects("before"))
    yield from map(_renamed, examples.objects("after"))
    yield from map(_renamed, generated.objects(Random(seed)))
    yield from STORABLE
    yield from (made.body for made in busy.objects(number, seed))


def _renamed(document: Any) -> Any:
    if document["kind"] not in (*_KEPT[:1], "ConfigMap"):
        return document
    return {**document, "metadata": {**document["metadata"], "name": f"{document['metadata']['name']}-copy"}}


def _admitted(audited: AuditedServer, sent: Iterable[JsonObject]) -> Iterator[dict[str, Any]]:
    """Yield the objects in the state at admission, except those that the server refuses or completes at random."""
    recorded = set()
    for number, document in enumerate(map(copy_of, sent)):
        answers = [audited.create(document) for _ in range(2)]
        if any(answer.status != 201 for answer in answers):
            continue
        first, second = (as_admitted(answer, number) for answer in answers)
        text = json.dumps({**first, "metadata": {**first["metadata"], "uid": ""}}, sort_keys=True)
        if first == second and text not in recorded:
            recorded.add(text)
            yield {"source": f"{document['kind']} {number}", "object": first, "failures": [], "sent": document}


def _plain(stored: Any, number: int) -> dict[str, Any]:
    metadata = {key: stored["metadata"][key] for key in ("name", "namespace", "labels") if key in stored["metadata"]}
    return {**stored, "metadata": {**metadata, "uid": f"00000000-0000-4000-9000-{number:012}"}}
