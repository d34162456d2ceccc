"""The generated functions, the closures and the counting closures have the same outcomes in every recorded case.

Each class compares one part of every file: `--dist loadscope` gives a class to one worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, compile_policy
from scanner.admission.request import Request, filter_namespace, make_request_map
from scanner.model.json import JsonObject, as_object, as_text, dig
from scanner.model.resource import Kind, resource_of
from scanner.policies.manifest import read_policy
from tests.conformance.cases import load, parameters, part_of
from tests.conformance.expressions import activation_for, compiled
from tests.conformance.policies import ADMIN, policy_of, validation_of
from tests.oracle.agreement import Agreement, differences, recording_activation
from tests.oracle.ours import tagged

Evaluation = tuple[cel.Program, CompiledPolicy, Mapping[str, object]]


def evaluations(data: Any) -> Iterator[Evaluation]:
    """Yield single expressions with their inputs for each object: `costs`, `probes`, `random`."""
    activations = [activation_for(document) for document in data["objects"]]
    for case in data["cases"]:
        _, program, policy = compiled(case)
        if program is not None:
            yield from ((program, policy, activation) for activation in activations)


def of_expressions(data: Any) -> Iterator[Evaluation]:
    """Yield the validation and message of each expression, for each of the recorded objects: `expressions`."""
    for case in data["cases"]:
        if "rejected" not in case:
            documents = (data["objects"][name] for name in case["results"])
            yield from of_policy(policy_of(validation_of(case)), documents, data["namespace"], data["params"])


def of_policies(data: Any) -> Iterator[Evaluation]:
    """Yield the expressions of whole policies, each on some of the recorded objects: `policies`."""
    for number, manifest in enumerate(data["policies"]):
        documents = [case["object"] for case in data["cases"][number % 7 :: 7]]
        yield from of_policy(manifest, documents, data["namespaces"][0], data["params"][number % len(data["params"])])


def of_matching(data: Any) -> Iterator[Evaluation]:
    """Yield the expressions of random policies on each of the probes: `matching`."""
    for case in data["cases"]:
        yield from of_policy(case["policy"], data["create"], data["namespaces"][0], data["params"][0])


def of_policy(manifest: Any, documents: Any, namespace: JsonObject, params: JsonObject) -> Iterator[Evaluation]:
    """Yield every expression of a policy that compiles, with its inputs."""
    policy = compile_policy(read_policy(manifest, language="ValidatingAdmissionPolicy"), (1, 36))
    programs = [expression.program for _, expression in policy.expressions() if expression.program is not None]
    for document in documents:
        base = {**inputs_of(document, namespace), **({"params": params} if policy.policy.param_kind else {})}
        yield from ((program, policy, base) for program in programs)


def inputs_of(document: JsonObject, namespace: JsonObject) -> dict[str, object]:
    """Return the inputs of a policy's expressions for an object."""
    group, _, version = as_text(document["apiVersion"]).rpartition("/")
    name = as_text(document["kind"])
    kind = Kind(group, version, name, f"{name.lower()}s", namespaced=bool(dig(document, "metadata", "namespace")))
    resource = resource_of(kind, as_object(document))
    request = Request("CREATE", kind, kind, resource, resource.namespace, namespace, ADMIN)
    filtered = filter_namespace(namespace)
    return {"object": document, "oldObject": None, "request": make_request_map(request), "namespaceObject": filtered}


EVALUATIONS: dict[str, Callable[[Any], Iterator[Evaluation]]] = {
    "costs": evaluations,
    "probes": evaluations,
    "random": evaluations,
    "expressions": of_expressions,
    "policies": of_policies,
    "matching": of_matching,
}


class Part:
    """A part of every file."""

    number: ClassVar[int]

    @pytest.mark.long
    @pytest.mark.parametrize("path", parameters(*EVALUATIONS))
    def test_the_evaluators_agree_on_every_recorded_case(self, path: Path) -> None:
        """Values, error texts and the inputs that are read are equal: variables of the policy, questions to the authorizer."""
        agreement = Agreement()
        data = part_of(load(path), self.number)
        for program, policy, base in EVALUATIONS[path.name.removesuffix(".json.gz")](data):
            agreement.differences += differences(program, policy.make_activation, base, agreement)
        assert [] == agreement.differences
        assert agreement.pairs > 0

    @pytest.mark.parametrize("path", parameters(*EVALUATIONS))
    def test_nine_evaluations_have_one_answer(self, path: Path) -> None:
        """Closures evaluate an expression at first, and a generated function later."""
        data = part_of(load(path), self.number)
        programs = {
            id(program): (program, policy, base)
            for program, policy, base in EVALUATIONS[path.name.removesuffix(".json.gz")](data)
        }
        different = [
            program.text
            for program, policy, base in programs.values()
            if [answer(program.evaluate_exactly, policy, base)] * 9
            != [answer(program.evaluate, policy, base) for _ in range(9)]
        ]
        assert [] == different


def answer(
    evaluate: Callable[[Mapping[str, object]], cel.Value], policy: CompiledPolicy, base: Mapping[str, object]
) -> object:
    """The value or the error of an evaluation."""
    activation, _ = recording_activation(policy.make_activation, base)
    try:
        return tagged(evaluate(activation))
    except cel.EvaluationError as error:
        return str(error)


class TestFirstPart(Part):
    number = 0


class TestSecondPart(Part):
    number = 1


class TestThirdPart(Part):
    number = 2


class TestFourthPart(Part):
    number = 3
