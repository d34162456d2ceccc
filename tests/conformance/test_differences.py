"""Cases in which an earlier Assay answered otherwise than a server: a file each, and the server's answer decides.

A case of a MutatingAdmissionPolicy is the update of a stored object that changes nothing, asked of 1.36. Kyverno's were read
in its source: what it decides stands here.
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
from scanner.cluster.schemas import KnownSchemas, builtin_schemas, custom_schemas
from scanner.model.resource import Kind, resource_of
from scanner.mutate.operations import same
from scanner.policies.kyverno.configuration import DEFAULT
from scanner.policies.kyverno.libraries import NoClusterData
from scanner.policies.mutating.together import answers, invocations
from tests import asked
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
"""The outcome of each case of Kyverno, its words, and what keeps the object from the webhook."""


@pytest.mark.parametrize("name", FILES or NONE)
def test_a_recorded_difference_is_none_any_more(name: str) -> None:
    """The object becomes what it became on the server, or is refused with its words; an expression is true as it was."""
    case = json.loads((FOLDER / f"{name}.json").read_text())
    match case:
        case {"policy": policy, "server": expected}:
            assert_answer(expected, case["object"], auditor([policy]).evaluate(case["object"], operation="UPDATE"))
        case {"policies": policies, "server": expected}:
            assert labels_in(expected) == labels_made(policies, case["object"])
        case {"expressions": expressions, "server": expected}:
            assert [(one, expected) for one in expressions] == [(one, value_of(one)) for one in expressions]
        case _:
            assert KYVERNO[name] == kyverno_says(case)


@pytest.mark.parametrize("name", OF_OLDER or NONE)
@pytest.mark.parametrize("kind", ["Service", "Thing"])
def test_an_element_without_one_of_its_keys_is_taken_or_refused_as_by_its_release(kind: str, name: str) -> None:
    """With the server's words, when admission refuses it; what the server refuses after admission (422) admission took."""
    case = load(FOLDER / "by-version" / f"{name}.json.gz")
    document, (code, text) = case[kind]["object"], case[kind]["server"]
    judge = auditor(case["policies"], case["bindings"], case["version"])
    answer = answer_of(document, judge.evaluate(document, operation="UPDATE"))

    assert ("taken" if code == 422 else f"{code} {text}") == ("taken" if answer.startswith("200 changed") else answer)


def definition() -> Any:
    """The CustomResourceDefinition of the custom resource."""
    return load(FOLDER / "by-version" / "map-keys-1.32.json.gz")["crd"]


def auditor(policies: list[Any], bindings: list[Any] | None = None, version: str = "1.36") -> Auditor:
    """An auditor of mutating policies, each with a binding to everything unless bindings are given."""
    return Auditor(
        policies=policies,
        bindings=[binding(one["metadata"]["name"]) for one in policies] if bindings is None else bindings,
        kinds=KINDS,
        kubernetes_version=version,
        schemas=KnownSchemas({**builtin_schemas(), **custom_schemas(definition())}),
    )


def binding(policy: str) -> Any:
    """A binding to everything."""
    version = "admissionregistration.k8s.io/v1"
    kind = "MutatingAdmissionPolicyBinding"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": policy}, "spec": {"policyName": policy}}


def assert_answer(expected: str, before: Any, invocation_results: tuple[InvocationResult, ...]) -> None:
    """Assert that an answer is the recorded one, as far as the record goes."""
    answer = answer_of(before, invocation_results)
    if expected.startswith("200 changed ") and not is_cut(expected):
        assert as_read(expected) == as_read(answer)
    else:
        assert expected == (answer[: len(expected)] if is_cut(expected) else answer)


def is_cut(answer: str) -> bool:
    """Whether the end of a list of changes is missing."""
    return answer.startswith("200 changed ") and not answer.endswith("]")


def as_read(answer: str) -> Any:
    """The changes of an answer with the values that their texts stand for."""
    changes = json.loads(answer.removeprefix("200 changed "))
    return [[path, *map(value_in, values)] for path, *values in changes]


def value_in(text: str) -> Any:
    """The list or map that a text shows, or the text."""
    return ast.literal_eval(text) if text.startswith(("[", "{")) else text


def answer_of(before: Any, invocation_results: tuple[InvocationResult, ...]) -> str:
    """What becomes of an object, in the form of the record."""
    match actual(invocation_results, before):
        case {"denied": denied}:
            return f"{denied['code']} {denied['message']}"
        case {"object": after}:
            return f"200 changed {json.dumps([*differences(before, after, '')])}"
        case _:
            return "200 unchanged"


def differences(before: Any, after: Any, path: str) -> Iterator[list[str]]:
    """Path, value before and value after of each change, by path."""
    if same(before, after):
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
    """The sets of labels that a sentence names."""
    return {frozenset(found.split(",")) for found in LABELS.findall(sentence)}


def labels_made(policies: list[Any], document: Any) -> set[frozenset[str]]:
    """The labels that several policies add to an object, in every order that a server may take."""
    judge = auditor(policies)
    kind = next(one for one in KINDS if (one.api_version, one.kind) == (document["apiVersion"], document["kind"]))
    resource, world = resource_of(kind, document), judge.context.on(("UPDATE",))
    asked_of = [(bound, one) for bound in judge.bound for one in invocations(bound, resource, kind, world)]
    given = document["metadata"]["labels"].items()
    found: list[Any] = [answer.after for answer in answers(asked_of)]
    return {frozenset(f"{name}={text}" for name, text in one["metadata"]["labels"].items() - given) for one in found}


def value_of(expression: str) -> str:
    """What becomes of a policy that wants an expression to be true, in the words of the record."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    meta: dict[str, Any] = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "p"}}
    spec: Any = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression}]}
    policy = {**meta, "kind": "ValidatingAdmissionPolicy", "spec": spec}
    bound: Any = {"policyName": "p", "validationActions": ["Deny"]}
    document: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "h-prod"}}
    judged = asked.about_object(policy, {**meta, "kind": f"{policy['kind']}Binding", "spec": bound}, document, "1.36")
    return f"{asked.about_creation(policy, '1.36')}, {'true' if judged == asked.ALLOWED else judged}"


def kyverno_says(case: Any) -> tuple[str, str, str]:
    """The outcome of a case, its words, and what keeps the object from Kyverno's webhook."""
    document = case["object"]
    judge = Auditor(
        policies=[case["policy"]],
        bindings=(),
        namespaces=[document] if document["kind"] == "Namespace" else [],
        kinds=KINDS,
        exceptions=[case["exception"]] if "exception" in case else [],
        kyverno_context=KyvernoContext(NOW, cluster_data=NoClusterData(), configuration=DEFAULT),
    )
    ((check_result,),) = (
        invocation_result.check_results
        for invocation_result in judge.evaluate(document, operation=case.get("operation"))
    )
    return type(check_result.outcome).__name__, getattr(check_result.outcome, "message", ""), check_result.excepted_by
