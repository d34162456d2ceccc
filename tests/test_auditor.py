"""The documented Python entry takes the same path as the command line."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.api import Auditor, InvalidManifest
from scanner.cluster.definitions import builtin_kinds
from scanner.errors import UsageError
from scanner.model.json import JsonObject
from tests.documents import binding, pod, policy, rule

GROUP = "admissionregistration.k8s.io"
EVERYTHING = {
    "matchConstraints": {
        "resourceRules": [
            {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"], "scope": "*"}
        ]
    }
}
STATIC = "all.static.k8s.io"


def auditor(name: str = "p", **fields: Any) -> Auditor:
    """An auditor of one policy that objects to everything."""
    return Auditor(
        policies=[policy(name, "false", **EVERYTHING)],
        bindings=[binding(f"b.{name}", name)],
        kinds=builtin_kinds(),
        **fields,
    )


@pytest.mark.parametrize(
    "exempted",
    [
        policy("other", "true"),
        binding("other", "other"),
        {"apiVersion": f"{GROUP}/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "m"}},
        {"apiVersion": f"{GROUP}/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "m"}},
    ],
)
def test_no_policy_of_the_api_sees_policy_objects(exempted: dict[str, Any]) -> None:
    """Static manifests do."""
    assert () == auditor().evaluate(exempted)
    assert 1 == len(auditor(STATIC, validate=True).evaluate(exempted))


@pytest.mark.parametrize(
    "kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "CustomResourceDefinition"]
)
def test_other_objects_of_admission_are_objects_like_any(kind: str) -> None:
    """Contrary to common belief, policies are evaluated on webhook configurations."""
    group = "apiextensions.k8s.io" if kind.startswith("Custom") else GROUP
    document: JsonObject = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "x"}}
    assert 1 == len(auditor().evaluate(document))


def test_an_object_of_an_unknown_kind_is_a_usage_error() -> None:
    """An object of a kind that is not served has no outcome."""
    with pytest.raises(UsageError, match=r"Widget in version x\.io/v1 is not among the served kinds"):
        auditor().evaluate({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "x"}})


def test_what_the_api_would_refuse_is_refused_on_request() -> None:
    """With the server's words."""
    broken = policy("p", "true", matchConstraints={"resourceRules": [rule("pods", operations=[])]})
    with pytest.raises(InvalidManifest, match=r"resourceRules\[0\]\.operations: Required value"):
        Auditor(policies=[broken], bindings=[], kinds=builtin_kinds(), validate=True)


def test_an_object_may_be_asked_about_either_operation() -> None:
    """A policy that names only CREATE has nothing to say about an UPDATE."""
    assert ["CREATE"] == [invocation_result.operation for invocation_result in auditor().evaluate(pod("web"))]
    assert () == auditor().evaluate(pod("web"), operation="UPDATE")
