"""Cases in which an earlier Assay answered otherwise than a server: a file each, and the server's answer decides.

A case of a MutatingAdmissionPolicy is the update of a stored object that changes nothing, on a server of 1.36. The decisions of
Kyverno's cases were read in its source, and are in this file.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scanner.api import Auditor, InvocationResult, KyvernoContext
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas, read_custom_schemas
from scanner.model.resource import Kind, resource_of
from scanner.mutate.operations import is_same_json
from scanner.policies.kyverno.configuration import DEFAULT
from scanner.policies.kyverno.libraries import NoClusterData
from scanner.policies.mutating.together import list_invocations, try_orders
from tests import server_words
from tests.conformance.cases import folder, load
from tests.conformance.mutations import actual
from tests.policies.kyverno.made import NOW

FOLDER = Path(os.environ.get("ASSAY_DIFFERENCES", folder().parent / "differences"))
THING = Kind("h.example.com", "v1", "Thing", "things", namespaced=True)
KINDS = (*builtin_kinds(), THING)
ONLY_BEFORE, ONLY_AFTER = "only ours", "only theirs"
LABELS = re.compile(r"\w+=\w+(?:,\w+=\w+)*")
NONE = [pytest.param("", marks=pytest.mark.skip(f"no cases in {FOLDER}; name it with ASSAY_DIFFERENCES"))]
FILES = sorted(path.name.removesuffix(".json") for path in FOLDER.glob("*.json"))
OF_OLDER = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("by-version/map-keys-*.json.gz"))
KYVERNO = {
    "kyverno-exception-variables": ("Errored", "failed to load context: no such attribute(s): variables", ""),
    "kyverno-namespaceobject": ("Passed", "", ""),
    "kyverno-resourcefilters": (
        "Violated",
        "CEL expression validation failed at index 0",
        "the namespaceSelector of Kyverno's webhooks",
    ),
}
"""The outcome of each case of Kyverno, its words, and the reason why the webhook does not get the object."""


@pytest.mark.parametrize("name", FILES or NONE)
def test_a_recorded_difference_is_none_any_more(name: str) -> None:
    """The object has the changes of the server, or is refused with its words; an expression is true as on the server."""
    case = json.loads((FOLDER / f"{name}.json").read_text())
    match case:
        case {"policy": policy, "server": expected}:
            assert_answer(expected, case["object"], auditor([policy]).evaluate(case["object"], operation="UPDATE"))
        case {"policies": policies, "server": expected}:
            assert labels_in(expected) == labels_made(policies, case["object"])
        case {"expressions": expressions, "server": expected}:
            assert [(expression, expected) for expression in expressions] == [
                (expression, value_of(expression)) for expression in expressions
            ]
        case _:
            assert KYVERNO[name] == kyverno_result(case)


@pytest.mark.parametrize("name", OF_OLDER or NONE)
@pytest.mark.parametrize("kind", ["Service", "Thing"])
def test_an_element_without_a_key_is_accepted_or_refused_as_by_its_release(kind: str, name: str) -> None:
    """Admission refuses such an element with the server's words; an object that the server refuses later (422) passes admission."""
    case = load(FOLDER / "by-version" / f"{name}.json.gz")
    document, (code, text) = case[kind]["object"], case[kind]["server"]
    mutating_auditor = auditor(case["policies"], case["bindings"], case["version"])
    answer = answer_of(document, mutating_auditor.evaluate(document, operation="UPDATE"))

    assert ("accepted" if code == 422 else f"{code} {text}") == (
        "accepted" if answer.startswith("200 changed") else answer
    )


def definition() -> Any:
    """Return the CustomResourceDefinition of the custom resource."""
    return load(FOLDER / "by-version" / "map-keys-1.32.json.gz")["crd"]


def auditor(policies: list[Any], bindings: list[Any] | None = None, version: str = "1.36") -> Auditor:
    """Return an auditor of mutating policies, each with a binding to every object unless bindings are given."""
    return Auditor(
        policies=policies,
        bindings=[binding(policy["metadata"]["name"]) for policy in policies] if bindings is None else bindings,
        kinds=KINDS,
        kubernetes_version=version,
        schemas=KnownSchemas({**builtin_schemas(), **read_custom_schemas(definition())}),
    )


def binding(policy: str) -> Any:
    """Return a binding to every object."""
    version = "admissionregistration.k8s.io/v1"
    kind = "MutatingAdmissionPolicyBinding"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": policy}, "spec": {"policyName": policy}}


def assert_answer(expected: str, before: Any, invocation_results: tuple[InvocationResult, ...]) -> None:
    """Assert that an answer is the recorded one, up to the end of a cut record."""
    answer = answer_of(before, invocation_results)
    if expected.startswith("200 changed ") and not is_cut(expected):
        assert as_read(expected) == as_read(answer)
    else:
        assert expected == (answer[: len(expected)] if is_cut(expected) else answer)


def is_cut(answer: str) -> bool:
    """Return whether the end of a list of changes is missing."""
    return answer.startswith("200 changed ") and not answer.endswith("]")


def as_read(answer: str) -> Any:
    """Return the changes of an answer with the values that their texts represent."""
    changes = json.loads(answer.removeprefix("200 changed "))
    return [[path, *map(value_in, values)] for path, *values in changes]


def value_in(text: str) -> Any:
    """Return the list or map that a text represents, or the text."""
    return ast.literal_eval(text) if text.startswith(("[", "{")) else text


def answer_of(before: Any, invocation_results: tuple[InvocationResult, ...]) -> str:
    """Return the decision about an object in the form of the record."""
    match actual(invocation_results, before):
        case {"denied": denied}:
            return f"{denied['code']} {denied['message']}"
        case {"object": after}:
            return f"200 changed {json.dumps([*differences(before, after, '')])}"
        case _:
            return "200 unchanged"


def differences(before: Any, after: Any, path: str) -> Iterator[list[str]]:
    """Yield path, value before and value after of each change, by path."""
    if is_same_json(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            if name not in after:
                yield [f"{path}/{name}", ONLY_BEFORE, str(before[name])]
            elif name not in before:
                yield [f"{path}/{name}", ONLY_AFTER, str(after[name])]
            else:
                yield from differences(before[name], after[name], f"{path}/{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from differences(left, right, f"{path}/{index}")
    else:
        yield [path, str(before), str(after)]


def labels_in(sentence: str) -> set[frozenset[str]]:
    """Return the sets of labels that a sentence names."""
    return {frozenset(match.split(",")) for match in LABELS.findall(sentence)}


def labels_made(policies: list[Any], document: Any) -> set[frozenset[str]]:
    """Return the labels that several policies add to an object, in every order that a server may choose."""
    mutating_auditor = auditor(policies)
    kind = next(
        candidate
        for candidate in KINDS
        if (candidate.api_version, candidate.kind) == (document["apiVersion"], document["kind"])
    )
    resource, context = resource_of(kind, document), mutating_auditor.context.replace_operations(("UPDATE",))
    asked_of = [
        (bound, invocation)
        for bound in mutating_auditor.bound
        for invocation in list_invocations(bound, resource, kind, context)
    ]
    given = document["metadata"]["labels"].items()
    results: list[Any] = [answer.after for answer in try_orders(asked_of)]
    return {
        frozenset(f"{name}={text}" for name, text in result["metadata"]["labels"].items() - given) for result in results
    }


def value_of(expression: str) -> str:
    """Return the decision of a policy whose validation is an expression, in the words of the record."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    meta: dict[str, Any] = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "p"}}
    spec: Any = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression}]}
    policy = {**meta, "kind": "ValidatingAdmissionPolicy", "spec": spec}
    bound: Any = {"policyName": "p", "validationActions": ["Deny"]}
    document: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "h-prod"}}
    decision = server_words.about_object(
        policy, {**meta, "kind": f"{policy['kind']}Binding", "spec": bound}, document, "1.36"
    )
    return f"{server_words.about_creation(policy, '1.36')}, {'true' if decision == server_words.ALLOWED else decision}"


def kyverno_result(case: Any) -> tuple[str, str, str]:
    """Return the outcome of a case, its words, and the reason why Kyverno's webhook does not get the object."""
    document = case["object"]
    kyverno_auditor = Auditor(
        policies=[case["policy"]],
        bindings=(),
        namespaces=[document] if document["kind"] == "Namespace" else [],
        kinds=KINDS,
        exceptions=[case["exception"]] if "exception" in case else [],
        kyverno_context=KyvernoContext(NOW, cluster_data=NoClusterData(), configuration=DEFAULT),
    )
    ((check_result,),) = (
        invocation_result.check_results
        for invocation_result in kyverno_auditor.evaluate(document, operation=case.get("operation"))
    )
    return type(check_result.outcome).__name__, getattr(check_result.outcome, "message", ""), check_result.excepted_by
