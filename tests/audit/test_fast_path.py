"""The fast path gives the results of the check-by-check evaluation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given

from scanner.admission.context import EvaluationContext
from scanner.audit.fast_path import FastPath
from scanner.audit.items import decode_items
from scanner.audit.object_sets import unpack
from scanner.audit.page import PageEvaluator
from scanner.errors import InvalidManifest
from scanner.model.resource import Kind, Page, UserInfo, resource_of
from scanner.policies.plan import KindPlan, find_equivalents, plan
from scanner.policies.validating.language import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable
from tests.documents import KINDS, Document, binding, policy, rule, thing
from tests.scan.test_promises import DOCUMENTS

PODS = next(kind for kind in KINDS if kind.plural == "pods")


class NoFastPath(FastPath):
    """A fast path that evaluates no policy, so that `evaluate_object` evaluates all of them."""

    def get_fast_policy(self, _number: int, _namespace: str) -> None:
        return None


def page_results(documents: list[Document], *, fast: bool) -> Iterator[Any]:
    """The results of one page of each kind that a policy may match."""
    policies = [read_policy(document) for document in documents if document["kind"] == "ValidatingAdmissionPolicy"]
    bindings = [
        read_binding(document) for document in documents if document["kind"] == "ValidatingAdmissionPolicyBinding"
    ]
    spaces = {document["metadata"]["name"]: document for document in documents if document["kind"] == "Namespace"}
    table = ParamTable(KINDS)
    context = EvaluationContext(
        table, spaces, equivalents=find_equivalents(KINDS), user=UserInfo("auditor"), implied_namespaces=True
    )
    for kind_plan in plan(KINDS, bind(policies, bindings)):
        items = [
            document
            for document in documents
            if (document["apiVersion"], document["kind"]) == (kind_plan.kind.api_version, kind_plan.kind.kind)
        ]
        fast_paths: dict[Kind, FastPath] = {} if fast else {kind_plan.kind: NoFastPath(context, kind_plan)}
        yield PageEvaluator(context, by_name=True, fast_paths=fast_paths).evaluate(
            page(kind_plan.kind, items), kind_plan
        )


def page(kind: Kind, items: list[Document]) -> Page:
    """A raw page of items."""
    return Page(kind, 1, json.dumps({"items": items}).encode())


def facts(result: Any) -> tuple[Any, ...]:
    """All results of a page, in no order."""
    return (
        set(result.findings),
        result.tallies,
        result.matched,
        result.evaluated,
        result.objects,
        set(result.gaps),
        result.identities,
        dict(unpack(result.sets).sets),
        {(finding, place) for finding, place in zip(result.findings, result.places, strict=True)},
    )


@given(DOCUMENTS)
def test_a_page_has_the_same_results_without_the_fast_path(documents: list[Document]) -> None:
    """Findings, outcomes, matches and gaps are the same."""
    with_fast_path, without = (list(page_results(documents, fast=fast)) for fast in (True, False))
    assert list(map(facts, without)) == list(map(facts, with_fast_path))


def pods(*bodies: Document) -> Page:
    """A page of pods `p0`, `p1` and so on in the namespace `default`."""
    return page(
        PODS,
        [
            {"metadata": {"name": f"p{n}", "namespace": "default", "uid": f"u{n}"}, **body}
            for n, body in enumerate(bodies)
        ],
    )


def planned(**spec: Any) -> tuple[EvaluationContext, KindPlan]:
    """One policy on pods with its binding: the context, and the plan of the list of pods."""
    document = policy("p") | {"spec": {"matchConstraints": {"resourceRules": [rule("pods")]}, **spec}}
    bound = bind([read_policy(document)], [read_binding(binding("b", "p", "Deny"))])
    context = EvaluationContext(
        ParamTable(KINDS), {"default": {"metadata": {"name": "default"}}}, equivalents=find_equivalents(KINDS)
    )
    (kind_plan,) = plan(KINDS, bound)
    return context, kind_plan


@pytest.mark.parametrize(
    ("spec", "decides"),
    [
        ({"validations": [{"expression": "object.spec.x == 1"}]}, True),
        ({"validations": [{"expression": "object.spec.x == 1 || object.spec.y == 2"}]}, True),
        ({"validations": [{"expression": "variables.x == 1"}], "variables": [{"name": "x", "expression": "object.spec.x"}]}, True),
        (
            {
                "validations": [{"expression": "variables.y == 2 || (variables.x == 3 && variables.y > variables.z__a)"}],
                "variables": [
                    {"name": "x", "expression": "object.spec.x"},
                    {"name": "y", "expression": "variables.x + 1"},
                    {"name": "z__a", "expression": "object.spec.y"},
                ],
            },
            True,
        ),
        ({"validations": [{"expression": "request.name == 'p0'"}]}, True),
        ({"validations": [{"expression": "object.spec.x == 1", "messageExpression": "'not ' + request.name"}]}, True),
        ({"validations": [{"expression": "object.spec.x == 1", "messageExpression": "namespaceObject.metadata.name"}]}, True),
        ({"validations": [{"expression": "object.spec.x == 1"}], "auditAnnotations": [{"key": "k", "valueExpression": "string(object.spec.x)"}]}, True),
        ({"validations": [{"expression": "namespaceObject.metadata.name == 'default'"}]}, True),
        ({"validations": [{"expression": "true"}], "matchConditions": [{"name": "c", "expression": "object.spec.x == 1"}]}, True),
        ({"validations": [{"expression": "true"}], "matchConditions": [{"name": "c", "expression": "object.spec.y == 1"}], "failurePolicy": "Ignore"}, True),
        ({"validations": [{"expression": "true"}], "matchConditions": [{"name": "c", "expression": "request.name == 'p0'"}]}, False),
        ({"validations": [{"expression": "authorizer.path('/x').check('get').allowed()"}]}, False),
        ({"validations": [{"expression": "nonsense("}]}, False),
    ],
)  # fmt: skip
def test_the_fast_path_evaluates_policies_whose_inputs_it_has(spec: Any, decides: bool) -> None:  # noqa: FBT001
    """It evaluates some policies and not others, and three pods have the same outcomes either way."""
    context, kind_plan = planned(**spec)
    fast_path, bodies = FastPath(context, kind_plan), pods({"spec": {"x": 1}}, {"spec": {"x": 2}}, {"spec": {"x": "1"}})
    with_fast_path = PageEvaluator(context, fast_paths={PODS: fast_path}).evaluate(bodies, kind_plan)
    without = PageEvaluator(context, fast_paths={PODS: NoFastPath(context, kind_plan)}).evaluate(bodies, kind_plan)
    assert decides is bool(fast_path.get_tally("default").policies.fast_policies)
    assert facts(without) == facts(with_fast_path)


@pytest.mark.parametrize(
    ("references", "decides"),
    [
        ([{"name": "limits", "namespace": "default"}], True),
        ([{"name": "limits"}], True),
        ([{"name": "limits"}, {"name": "limits", "namespace": "default"}], True),
        ([{"selector": {"matchLabels": {"team": "a"}}}], True),
        ([None], True),
        ([{"selector": {}}], False),
        ([{"name": "limits"}, {"name": "others"}], False),
        ([{"name": "missing", "parameterNotFoundAction": "Deny"}], False),
        ([{"name": "missing", "parameterNotFoundAction": "Allow"}], False),
    ],
)
def test_the_fast_path_needs_a_single_param(references: list[Any], decides: bool) -> None:  # noqa: FBT001
    """It evaluates a policy whose bindings select the same param, and no policy with several params or none."""
    maps = next(kind for kind in KINDS if kind.plural == "configmaps")
    table = ParamTable(KINDS)
    for name, labels in (("limits", {"team": "a"}), ("others", {})):
        table.put(resource_of(maps, thing(maps, name, "default", metadata={"labels": labels}, data={"x": "1"})))
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.spec.x == int(params.data.x)"}],
    }
    document = policy("p") | {"spec": {"matchConstraints": {"resourceRules": [rule("pods")]}, **spec}}
    given = [
        {"paramRef": {"parameterNotFoundAction": "Allow", **reference}} if reference else {} for reference in references
    ]
    bindings = [read_binding(binding(f"b{number}", "p", "Deny", **reference)) for number, reference in enumerate(given)]
    bound = bind([read_policy(document)], bindings)
    context = EvaluationContext(
        table, {"default": {"metadata": {"name": "default"}}}, equivalents=find_equivalents(KINDS)
    )
    (kind_plan,) = plan(KINDS, bound)
    fast_path, bodies = FastPath(context, kind_plan), pods({"spec": {"x": 1}}, {"spec": {"x": 2}})
    with_fast_path = PageEvaluator(context, fast_paths={PODS: fast_path}).evaluate(bodies, kind_plan)
    without = PageEvaluator(context, fast_paths={PODS: NoFastPath(context, kind_plan)}).evaluate(bodies, kind_plan)
    assert decides is bool(fast_path.get_tally("default").policies.fast_policies)
    assert facts(without) == facts(with_fast_path)


def test_a_function_that_often_raises_is_replaced() -> None:
    """After many exceptions the fast path uses the form of the program that does not raise, and the counts stay right."""
    expression = "object.spec.missing == 1 || object.spec.x == 1"
    context, kind_plan = planned(validations=[{"expression": expression}])
    fast_path, bodies = (
        FastPath(context, kind_plan),
        pods(*({"spec": {"x": 1}} for _ in range(300)), {"spec": {"x": 2}}),
    )
    with_fast_path = PageEvaluator(context, fast_paths={PODS: fast_path}).evaluate(bodies, kind_plan)
    without = PageEvaluator(context, fast_paths={PODS: NoFastPath(context, kind_plan)}).evaluate(bodies, kind_plan)
    last = resource_of(PODS, [*decode_items(bodies)][299])  # type: ignore[arg-type] # it is an object
    assert [] == fast_path.get_tally("default").find_not_passed(last, 100, 1)
    assert facts(without) == facts(with_fast_path)


def test_a_policy_without_a_match_in_a_namespace_is_left_out() -> None:
    """A namespace that a policy's selector excludes has neither a fast nor another evaluation of the policy."""
    rules = {"resourceRules": [rule("pods")], "namespaceSelector": {"matchLabels": {"team": "a"}}}
    context, kind_plan = planned(validations=[{"expression": "false"}], matchConstraints=rules)
    policies = FastPath(context, kind_plan).get_tally("default").policies
    assert ((), ()) == (policies.fast_policies, policies.others)


def test_the_cost_for_a_large_object_is_counted() -> None:
    """A loop in a loop is cheap for a small object, and exceeds the cost limit for a large one."""
    nested = "object.spec.xs.all(a, object.spec.xs.all(b, a == b))"
    context, kind_plan = planned(validations=[{"expression": nested}])
    result = PageEvaluator(context).evaluate(pods({"spec": {"xs": [1] * 3}}, {"spec": {"xs": [1] * 3000}}), kind_plan)
    assert ["p1"] == [finding.name for finding in result.findings]
    assert "cost limit exceeded" in result.findings[0].outcome.message


def test_a_broken_item_is_a_gap_and_the_others_are_evaluated() -> None:
    """The decoder rejects a number that no double can hold; the gap concerns that object alone."""
    context, kind_plan = planned(validations=[{"expression": "true"}])
    good = orjson.dumps({"metadata": {"name": "a", "namespace": "default", "uid": "1"}})
    data = b'{"items":[{"metadata":{"name":"b"},"spec":1e400},' + good + b"]}"
    result = PageEvaluator(context).evaluate(Page(PODS, 1, data), kind_plan)
    assert (1, 1) == (result.objects, len(result.gaps))


def test_policies_that_the_api_would_reject_are_not_read() -> None:
    """Only policies from a cluster may be invalid."""
    with pytest.raises(InvalidManifest):
        read_policy(policy("p") | {"spec": {}}, source="file")
