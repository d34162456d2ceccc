"""The result of several mutating policies for one object, in any order.

kube-apiserver 1.36.0 decided every row; its order is random, and its response was that of one order here.
"""

from __future__ import annotations

from typing import Any

import pytest

from scanner.admission.dispatch import CombinedChange
from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.json import JsonObject, as_object
from scanner.model.resource import resource_of
from scanner.policies.mutating.together import RequestResult, combine, list_invocations, try_orders
from tests.scan.test_drift import binding, config_map, policy

KINDS = builtin_kinds()
ADDS_X = 'Object{data: {"x": "1"}}'
ADDS_Y = 'Object{data: {"y": "1"}}'


def when(condition: str) -> dict[str, Any]:
    """A match condition."""
    return {"matchConditions": [{"name": "it", "expression": condition}]}


def acting(
    *policies: dict[str, Any], operation: Any = "UPDATE", labels: dict[str, str] | None = None, document: Any = None
) -> list[Any]:
    """The invocations of the policies for an object, by default a config map."""
    auditor = Auditor(
        policies=policies,
        bindings=[binding(manifest["metadata"]["name"]) for manifest in policies],
        kinds=KINDS,
        schemas=KnownSchemas(builtin_schemas()),
        kubernetes_version="1.36",
    )
    document = document or config_map("a", metadata={"labels": labels} if labels else {})
    kind = next(
        candidate
        for candidate in KINDS
        if (candidate.api_version, candidate.kind) == (document["apiVersion"], document["kind"])
    )
    context = auditor.context.replace_operations((operation,))
    resource = resource_of(kind, document)
    return [
        (bound, invocation_result)
        for bound in auditor.bound
        for invocation_result in list_invocations(bound, resource, kind, context)
    ]


def patched(joint: CombinedChange | None) -> tuple[list[str], bool, bool, str] | None:
    """The patch, whether the order matters, whether the changes cancel out, and the end of a refusal's text."""
    if joint is None:
        return None
    return [*map(str, joint.patch)], joint.order_matters, joint.undone, joint.refused.rpartition(": ")[2]


def data_of(answer: RequestResult) -> JsonObject | str:
    """The data of the object in a response, or the end of the refusal's text."""
    return answer.refusal.rpartition(": ")[2] or as_object(answer.after["data"])


X, Y, Z = '+ /data/x: "1"', '+ /data/y: "1"', '+ /data/z: "1"'


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ([policy("a", ADDS_X)], None),
        ([policy("a", ADDS_X), policy("b", "Object{}")], None),
        ([policy("a", ADDS_X), policy("b", ADDS_Y)], ([X, Y], False, False, "")),
        ([policy("a", ADDS_X), policy("b", ADDS_Y, **when("has(object.data.x)"))], ([X, Y], True, False, "")),
        ([policy("b", ADDS_X), policy("a", ADDS_Y, **when("has(object.data.x)"))], ([X], True, False, "")),
        (
            [policy("a", ADDS_Y, reinvocationPolicy="IfNeeded", **when("has(object.data.x)")), policy("b", ADDS_X)],
            ([X], True, False, ""),
        ),
        ([policy("a", ADDS_X), policy("b", ADDS_Y, **when("has(object.data.nope)"))], None),
        (
            [policy("a", ADDS_X, reinvocationPolicy="IfNeeded", **when("has(object.data.a)")),
             policy("b", '[JSONPatch{op: "remove", path: "/data/a"}]', **when("has(object.data.a)"))],
            (['- /data/a: "1"', X], True, False, "data"),
        ),
        ([policy("a", ADDS_X), policy("b", '[JSONPatch{op: "remove", path: "/data/x"}]', **when("has(object.data.x)"))],
         ([], True, True, "")),
        (
            [policy("a", ADDS_X), policy("b", "Object{data: {'y': has(object.data.x) ? object.data.nope : 'n'}}")],
            ([], True, False, "nope"),
        ),
        (
            [policy("a", ADDS_X), policy("b", "Object{data: {'a': has(object.data.x) ? object.data.nope : '1'}}",
                                         failurePolicy="Ignore")],
            None,
        ),
        ([policy("a", ADDS_X), policy("b", "Object{}", **when("object.data.nope == 1"))], ([], False, False, "nope")),
        (
            [policy("a", ADDS_X), policy("b", "Object{}", **when("!has(object.data.x) || object.data.nope == 1"))],
            ([], False, False, "nope"),
        ),
        (
            [policy("a", ADDS_X), policy("b", ADDS_Y, **when("has(object.data.x)")),
             policy("c", 'Object{data: {"z": "1"}}', **when("has(object.data.y)"))],
            ([X, Y, Z], True, False, ""),
        ),
        (
            [policy("a", ADDS_X, '[JSONPatch{op: "add", path: "/data", value: 1}]'), policy("b", ADDS_Y)],
            ([], False, False, "cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string"),
        ),
    ],
)  # fmt: skip
def test_what_policies_make_of_an_object_together(policies: list[dict[str, Any]], expected: object) -> None:
    """A joint result exists only if it is more than that of one policy; the change of one may make another's condition true."""
    assert expected == patched(combine(acting(*policies)))


def test_only_what_ran_before_runs_again() -> None:
    """A policy whose condition becomes true after its turn does not run; `IfNeeded` sees later changes."""
    late = policy("a", ADDS_Y, reinvocationPolicy="IfNeeded", **when("has(object.data.x)"))
    counts = policy("c", 'Object{data: {"n": string(size(object.data))}}', reinvocationPolicy="IfNeeded")
    given, *_ = try_orders(acting(late, counts, policy("d", ADDS_X)))

    assert {"a": "1", "n": "3", "x": "1"} == data_of(given)


def test_a_selector_is_evaluated_again_for_a_new_object() -> None:
    """On CREATE a changed label prevents the second run; the old object of an UPDATE keeps it."""
    selects = {"objectSelector": {"matchLabels": {"run": "yes"}}}
    rules = policy("x", ADDS_X)["spec"]["matchConstraints"]
    counts = policy(
        "a",
        'Object{metadata: Object.metadata{labels: {"run": "no"}}, data: {"n": string(size(object.data))}}',
        reinvocationPolicy="IfNeeded",
        matchConstraints={**rules, **selects},
    )
    results = [
        data_of(try_orders(acting(counts, policy("b", ADDS_X), operation=operation, labels={"run": "yes"}))[0])
        for operation in ("CREATE", "UPDATE")
    ]

    assert [{"a": "1", "n": "1", "x": "1"}, {"a": "1", "n": "3", "x": "1"}] == results


def test_all_orders_are_tried_where_there_are_few() -> None:
    """Four policies have 24 orders; of more policies, all orders of those that act are tried."""
    three = [
        policy("c", ADDS_X),
        policy("a", ADDS_Y, **when("has(object.data.x)")),
        policy("b", 'Object{data: {"z": "1"}}', **when("has(object.data.y)")),
    ]
    idle = [policy(f"idle-{number}", "Object{}") for number in range(5)]
    few, many = ({str(data_of(answer)) for answer in try_orders(acting(*three, *more))} for more in ([], idle))

    assert (3, few) == (len(few), many)


def test_the_second_run_sees_texts_of_a_secret_as_data() -> None:
    """The object passes through its internal type between the runs, for the changes of every policy."""
    secrets = {
        "resourceRules": [
            {"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}
        ]
    }
    writes = policy("a", '[JSONPatch{op: "add", path: "/stringData", value: {"b": "b"}}]', matchConstraints=secrets)
    counts = policy(
        "b",
        'Object{metadata: Object.metadata{labels: {"n": string(size(object.data))}}}',
        matchConstraints=secrets,
        reinvocationPolicy="IfNeeded",
    )
    stored = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "shop"},
        "data": {"a": "YQ=="},
    }
    objects: list[Any] = [answer.after for answer in try_orders(acting(writes, counts, document=stored))]

    assert [{"n": "2"}, {"n": "2"}] == [object_after["metadata"]["labels"] for object_after in objects]
