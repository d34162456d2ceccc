"""Policies with literals of protobuf, which servers of every release accept: recorded on 1.30 to 1.36."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds
from scanner.model.json import JsonObject
from scanner.model.outcome import Passed, Violated
from tests.conformance.cases import folder, load

FOLDER = folder().parent / "differences"
RELEASES = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.36")
NAMES = ("protobuf-duration", "protobuf-null", "protobuf-struct", "protobuf-value", "protobuf-wrapper")
NAMESPACE: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "h-prod"}}


def recorded(path: Path) -> Any:
    """Return a file of recorded answers; the test is skipped where there is none."""
    if not path.exists():
        pytest.skip(f"no {path.name} in {path.parent}; name the folder beside it with ASSAY_CONFORMANCE")
    return load(path) if path.suffix == ".gz" else json.loads(path.read_text())


def outcome_of(policy: Any, binding: Any, document: Any, release: str) -> Any:
    """Return the outcome of an object by a policy."""
    kinds = builtin_kinds()
    auditor = Auditor(
        policies=[policy], bindings=[binding], namespaces=[NAMESPACE], kinds=kinds, kubernetes_version=release
    )
    (invocation_result,) = auditor.evaluate(document, operation="CREATE")
    return invocation_result.check_results[0].outcome


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_policy_denies_as_it_did(name: str, release: str) -> None:
    """The outcome has the server's words, by the rules of its release."""
    case = recorded(FOLDER / "by-version" / f"{name}.json.gz")
    if release not in case["answers"]:
        pytest.skip(f"{name} was not asked on {release}")
    outcome = outcome_of(case["policy"], case["binding"], case["object"], release)
    assert isinstance(outcome, Violated)
    assert case["answers"][release]["server"]["stored policy, CREATE"] == outcome.message


@pytest.mark.parametrize("release", [*RELEASES, "1.37"])
def test_every_recorded_expression_is_true(release: str) -> None:
    """The server accepts the expressions and lets the object through."""
    case = recorded(FOLDER / "protobuf-literals.json")
    for expression in case["expressions"]:
        rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
        spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression}]}
        meta = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "p"}}
        binding = {"policyName": "p", "validationActions": ["Deny"]}
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "h-prod"}}
        outcome = outcome_of(
            {**meta, "kind": "ValidatingAdmissionPolicy", "spec": spec},
            {**meta, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
            document,
            release,
        )
        assert isinstance(outcome, Passed), expression
