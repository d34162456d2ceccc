"""The objects and policies of the row about findings in bulk."""

from __future__ import annotations

import random

from benchmarks.bulk import POLICIES, _object, _policy
from benchmarks.objects import namespaces
from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds
from scanner.model.outcome import Violated


def test_every_policy_denies_every_object_by_name() -> None:
    """No message is that of another object."""
    documents = [document for number in range(POLICIES) for document in _policy(f"policy-{number}")]
    auditor = Auditor(
        policies=documents[::2],
        bindings=documents[1::2],
        namespaces=[made.body for made in namespaces()],
        kinds=builtin_kinds(),
    )
    objects = [_object(random.Random(1), number) for number in range(3)]
    messages = {
        check_result.outcome.message
        for body in objects
        for invocation_result in auditor.evaluate(body)
        for check_result in invocation_result.check_results
        if isinstance(check_result.outcome, Violated)
    }
    names = [body["metadata"]["name"] for body in objects]  # type: ignore[index,call-overload]
    assert {f"policy-{number} denies {name}" for name in names for number in range(POLICIES)} == messages
