"""The request that a policy reads when a stored object is evaluated.

Rules: `docs/semantics/cel-environment.md#request`.
"""

from __future__ import annotations

from typing import Any

import pytest

from scanner.admission.auditability import OPERATIONS
from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import evaluate_object
from scanner.admission.request import Request, make_request_map
from scanner.model.policy import Operation
from scanner.model.resource import Kind, UserInfo, resource_of
from scanner.policies.validating.language import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable
from tests import documents
from tests.documents import KINDS, NAMESPACES, PODS, SCALERS_V1, SCALERS_V2, Document, namespace, pod, rule

BOB = UserInfo("bob", "u-1", ("dev",), (("scopes", ("a",)),))


def request(
    document: Document | None = None,
    kind: Kind = PODS,
    *,
    user: UserInfo = BOB,
    operation: Operation = "CREATE",
    original: Kind | None = None,
) -> dict[str, Any]:
    """`request` for an object."""
    resource = resource_of(kind, document or pod("web", "shop"))
    where = resource.name if kind == NAMESPACES else resource.namespace
    return make_request_map(Request(operation, original or kind, kind, resource, where, None, user))


def test_a_whole_request() -> None:
    """The request has exactly these keys: empty fields are absent, apart from those that only `dyn` can name."""
    expected = {
        "uid": "",
        "object": None,
        "oldObject": None,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "web",
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "bob", "uid": "u-1", "groups": ["dev"], "extra": {"scopes": ["a"]}},
        "dryRun": True,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "dryRun": ["All"]},
    }
    assert expected == request()


def test_an_update_has_the_options_of_one() -> None:
    """Only the options differ from a CREATE."""
    assert "UpdateOptions" == request(operation="UPDATE")["options"]["kind"]
    assert "UPDATE" == request(operation="UPDATE")["operation"]


def test_an_unknown_user_is_an_empty_object() -> None:
    """`userInfo` is always present; its empty fields are absent."""
    assert {} == request(user=UserInfo())["userInfo"]


def test_cluster_scoped_objects_have_no_namespace() -> None:
    """A Namespace has its own name as namespace."""
    assert "namespace" not in request(documents.thing(documents.NODES, "n1"), documents.NODES)
    assert "shop" == request(namespace("shop"), NAMESPACES)["namespace"]


def test_an_object_seen_in_another_version_names_both() -> None:
    """`kind` and `resource` are those of the rule, `requestKind` and `requestResource` those of the request."""
    versioned = request(documents.thing(SCALERS_V1, "s", "shop"), SCALERS_V1, original=SCALERS_V2)
    assert ("v1", "v1", "v2", "v2") == tuple(
        versioned[key]["version"] for key in ("kind", "resource", "requestKind", "requestResource")
    )


@pytest.mark.parametrize(
    ("operations", "option", "expected"),
    [
        (["CREATE", "UPDATE"], "auto", "CREATE"),
        (["*"], "auto", "CREATE"),
        (["UPDATE"], "auto", "UPDATE"),
        (["UPDATE", "DELETE"], "auto", "UPDATE"),
        (["CREATE", "UPDATE"], "create", "CREATE"),
        (["CREATE", "UPDATE"], "update", "UPDATE"),
        (["*"], "update", "UPDATE"),
        (["CREATE"], "update", None),
        (["UPDATE"], "create", None),
        (["DELETE"], "auto", None),
        (["CONNECT"], "auto", None),
    ],
)
def test_which_operation_is_simulated(operations: list[str], option: str, expected: str | None) -> None:
    """The operation is CREATE if the rule has it, else an UPDATE that changes nothing, unless the user chooses one."""
    spec = {"matchConstraints": {"resourceRules": [rule("pods", operations=operations)]}}
    chosen = OPERATIONS[option]
    (bound,) = bind([read_policy(documents.policy("p", "true", **spec))], [read_binding(documents.binding())], chosen)
    context = EvaluationContext(ParamTable(KINDS), {"shop": namespace("shop")}, operations=chosen)
    invocation_results = list(evaluate_object(bound, resource_of(PODS, pod("web", "shop")), PODS, context))
    assert [expected] * bool(expected) == [invocation_result.operation for invocation_result in invocation_results]


@pytest.mark.parametrize(
    ("option", "expression"),
    [("create", "oldObject == null"), ("update", "oldObject == object && oldObject.metadata.name == 'web'")],
)
def test_the_old_object_is_the_stored_one_or_none(option: str, expression: str) -> None:
    """An UPDATE that changes nothing has both objects, a CREATE has no old one."""
    chosen = OPERATIONS[option]
    (bound,) = bind([read_policy(documents.policy("p", expression))], [read_binding(documents.binding())], chosen)
    context = EvaluationContext(ParamTable(KINDS), {"shop": namespace("shop")}, operations=chosen)
    (invocation_result,) = evaluate_object(bound, resource_of(PODS, pod("web", "shop")), PODS, context)
    assert "Passed" == type(invocation_result.check_results[0].outcome).__name__


def test_an_object_that_is_being_deleted_is_evaluated() -> None:
    """Updates can still change the object, to remove finalizers."""
    leaving = pod("web", "shop")
    leaving["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    (bound,) = bind([read_policy(documents.policy("p", "false"))], [read_binding(documents.binding())])
    context = EvaluationContext(ParamTable(KINDS), {"shop": namespace("shop")})
    (invocation_result,) = evaluate_object(bound, resource_of(PODS, leaving), PODS, context)
    assert "Violated" == type(invocation_result.check_results[0].outcome).__name__
