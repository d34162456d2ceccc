"""The objects and policies that benchmarks use are what their figures say they are."""

from __future__ import annotations

from itertools import islice

import orjson
import pytest

from benchmarks.objects import Made, namespaces, objects
from benchmarks.policies import policies
from scanner.admission.dispatch import InvocationResult
from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds
from scanner.model.outcome import Errored, Passed, Violated

COUNT = 600


@pytest.fixture(scope="module")
def invocation_results() -> list[InvocationResult]:
    """What the policies say about some of the objects."""
    documents = list(policies())
    auditor = Auditor(
        policies=[document for document in documents if document["kind"] == "ValidatingAdmissionPolicy"],
        bindings=[document for document in documents if document["kind"] == "ValidatingAdmissionPolicyBinding"],
        namespaces=[made.body for made in namespaces()],
        kinds=builtin_kinds(),
        validate=True,
    )
    return [invocation_result for made in objects(COUNT) for invocation_result in auditor.evaluate(made.body)]


def written(made: Made) -> bytes:
    """An object and its status as they are sent."""
    return orjson.dumps([made.path, made.body, made.status])


def test_the_same_seed_makes_the_same_objects() -> None:
    """A figure can be measured again."""
    assert [*map(written, objects(50))] == [*map(written, islice(objects(50), 50))]
    assert [*map(written, objects(50))] != [*map(written, objects(50, seed=2))]


def test_one_evaluation_in_a_hundred_fails(invocation_results: list[InvocationResult]) -> None:
    """That is what the goal speaks of; none ends in an error."""
    outcomes = [
        check_result.outcome
        for invocation_result in invocation_results
        for check_result in invocation_result.check_results
    ]
    violated = sum(isinstance(outcome, Violated) for outcome in outcomes)
    assert len(outcomes) > 5 * COUNT
    assert 0.005 < violated / len(outcomes) < 0.02
    assert [] == [outcome for outcome in outcomes if isinstance(outcome, Errored)]
    assert any(isinstance(outcome, Passed) for outcome in outcomes)


def test_every_policy_matches_something(invocation_results: list[InvocationResult]) -> None:
    """More than forty of them, none of which is idle."""
    names = {
        str(document["kind"]) + str(document["metadata"])
        for document in policies()
        if document["kind"] == "ValidatingAdmissionPolicy"
    }
    assert len(names) > 40
    assert len(names) == len({invocation_result.invocation.policy.name for invocation_result in invocation_results})


def test_objects_are_as_large_as_real_ones() -> None:
    """Pods weigh a few kilobytes, and the mix is not of one kind."""
    sizes = {
        kind: [len(written(resource)) for resource in objects(COUNT) if resource.body["kind"] == kind]
        for kind in ("Pod", "ConfigMap")
    }
    assert 3_000 < sum(sizes["Pod"]) / len(sizes["Pod"]) < 10_000
    assert len({resource.body["kind"] for resource in objects(COUNT)}) > 8
