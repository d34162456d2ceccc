"""What the sieve lets pass is what the judge would have passed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given

from scanner.admission.context import EvaluationContext
from scanner.audit.fast_path import FastPath
from scanner.audit.items import decode
from scanner.audit.page import PageEvaluator
from scanner.errors import InvalidManifest
from scanner.model.resource import Kind, Page, UserInfo, resource_of
from scanner.policies.plan import KindPlan, equivalents, plan
from scanner.policies.validating.bind import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable
from tests.documents import KINDS, Document, binding, policy, rule, thing
from tests.scan.test_promises import DOCUMENTS

PODS = next(kind for kind in KINDS if kind.plural == "pods")


class Closed(FastPath):
    """A sieve that lets nothing pass."""

    def fast_policy(self, _number: int, _namespace: str) -> None:
        return None


def judged(documents: list[Document], *, sifted: bool) -> Iterator[Any]:
    """The results of one page of each kind that a policy may match."""
    policies = [read_policy(it) for it in documents if it["kind"] == "ValidatingAdmissionPolicy"]
    bindings = [read_binding(it) for it in documents if it["kind"] == "ValidatingAdmissionPolicyBinding"]
    spaces = {it["metadata"]["name"]: it for it in documents if it["kind"] == "Namespace"}
    table = ParamTable(KINDS)
    world = EvaluationContext(
        table, spaces, equivalents=equivalents(KINDS), user=UserInfo("auditor"), implied_namespaces=True
    )
    for one in plan(KINDS, bind(policies, bindings)):
        items = [it for it in documents if (it["apiVersion"], it["kind"]) == (one.kind.api_version, one.kind.kind)]
        fast_paths: dict[Kind, FastPath] = {} if sifted else {one.kind: Closed(world, one)}
        yield PageEvaluator(world, by_name=True, fast_paths=fast_paths).evaluate(page(one.kind, items), one)


def page(kind: Kind, items: list[Document]) -> Page:
    """A raw page."""
    return Page(kind, 1, json.dumps({"items": items}).encode())


def facts(result: Any) -> tuple[Any, ...]:
    """All that a page adds up to, in no order."""
    return (
        set(result.findings),
        result.tallies,
        result.matched,
        result.evaluated,
        result.objects,
        set(result.gaps),
        result.identities,
    )


@given(DOCUMENTS)
def test_a_page_adds_up_to_the_same_without_the_sieve(documents: list[Document]) -> None:
    """Findings, outcomes, matches and gaps."""
    one, two = (list(judged(documents, sifted=sifted)) for sifted in (True, False))
    assert list(map(facts, two)) == list(map(facts, one))


def pods(*bodies: Document) -> Page:
    """A page of pods."""
    return page(
        PODS,
        [
            {"metadata": {"name": f"p{n}", "namespace": "default", "uid": f"u{n}"}, **body}
            for n, body in enumerate(bodies)
        ],
    )


def made(**spec: Any) -> tuple[EvaluationContext, KindPlan]:
    """One policy on pods, and its binding."""
    document = policy("p") | {"spec": {"matchConstraints": {"resourceRules": [rule("pods")]}, **spec}}
    bound = bind([read_policy(document)], [read_binding(binding("b", "p", "Deny"))])
    world = EvaluationContext(
        ParamTable(KINDS), {"default": {"metadata": {"name": "default"}}}, equivalents=equivalents(KINDS)
    )
    (chosen,) = plan(KINDS, bound)
    return world, chosen


@pytest.mark.parametrize(
    ("spec", "decides"),
    [
        ({"validations": [{"expression": "object.spec.x == 1"}]}, True),
        ({"validations": [{"expression": "object.spec.x == 1 || object.spec.y == 2"}]}, True),
        ({"validations": [{"expression": "variables.x == 1"}], "variables": [{"name": "x", "expression": "object.spec.x"}]}, True),
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
def test_what_is_decided_without_the_judge(spec: Any, decides: bool) -> None:  # noqa: FBT001
    """Here or there, three pods come to the same outcomes."""
    world, chosen = made(**spec)
    fast_path, bodies = FastPath(world, chosen), pods({"spec": {"x": 1}}, {"spec": {"x": 2}}, {"spec": {"x": "1"}})
    sifted = PageEvaluator(world, fast_paths={PODS: fast_path}).evaluate(bodies, chosen)
    closed = PageEvaluator(world, fast_paths={PODS: Closed(world, chosen)}).evaluate(bodies, chosen)
    assert decides is bool(fast_path.counts_of("default").policies.fast_policies)
    assert facts(closed) == facts(sifted)


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
def test_params_are_looked_up_once_for_a_namespace(references: list[Any], decides: bool) -> None:  # noqa: FBT001
    """Where all bindings mean the same one; of several, or none, the judge knows what to make."""
    maps = next(kind for kind in KINDS if kind.plural == "configmaps")
    table = ParamTable(KINDS)
    for name, labels in (("limits", {"team": "a"}), ("others", {})):
        table.put(resource_of(maps, thing(maps, name, "default", metadata={"labels": labels}, data={"x": "1"})))
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.spec.x == int(params.data.x)"}],
    }
    document = policy("p") | {"spec": {"matchConstraints": {"resourceRules": [rule("pods")]}, **spec}}
    given = [{"paramRef": {"parameterNotFoundAction": "Allow", **it}} if it else {} for it in references]
    bindings = [read_binding(binding(f"b{number}", "p", "Deny", **it)) for number, it in enumerate(given)]
    bound = bind([read_policy(document)], bindings)
    world = EvaluationContext(table, {"default": {"metadata": {"name": "default"}}}, equivalents=equivalents(KINDS))
    (chosen,) = plan(KINDS, bound)
    fast_path, bodies = FastPath(world, chosen), pods({"spec": {"x": 1}}, {"spec": {"x": 2}})
    sifted = PageEvaluator(world, fast_paths={PODS: fast_path}).evaluate(bodies, chosen)
    closed = PageEvaluator(world, fast_paths={PODS: Closed(world, chosen)}).evaluate(bodies, chosen)
    assert decides is bool(fast_path.counts_of("default").policies.fast_policies)
    assert facts(closed) == facts(sifted)


def test_what_mostly_raises_is_asked_otherwise() -> None:
    """Where another operand decides, objects pass without the judge even though a function cannot tell; and they still count."""
    expression = "object.spec.missing == 1 || object.spec.x == 1"
    world, chosen = made(validations=[{"expression": expression}])
    fast_path, bodies = FastPath(world, chosen), pods(*({"spec": {"x": 1}} for _ in range(300)), {"spec": {"x": 2}})
    sifted = PageEvaluator(world, fast_paths={PODS: fast_path}).evaluate(bodies, chosen)
    closed = PageEvaluator(world, fast_paths={PODS: Closed(world, chosen)}).evaluate(bodies, chosen)
    last = resource_of(PODS, decode(bodies)[299])  # type: ignore[arg-type] # it is an object
    assert [] == fast_path.counts_of("default").not_passed(last, 100)
    assert facts(closed) == facts(sifted)


def test_a_policy_that_looks_elsewhere_is_left_out() -> None:
    """Nobody is asked about a namespace that a policy's selector does not mean."""
    rules = {"resourceRules": [rule("pods")], "namespaceSelector": {"matchLabels": {"team": "a"}}}
    world, chosen = made(validations=[{"expression": "false"}], matchConstraints=rules)
    policies = FastPath(world, chosen).counts_of("default").policies
    assert ((), ()) == (policies.fast_policies, policies.others)


def test_a_large_object_is_counted() -> None:
    """A loop in a loop that a small object cannot make expensive is not let pass unlooked at for a large one."""
    nested = "object.spec.xs.all(a, object.spec.xs.all(b, a == b))"
    world, chosen = made(validations=[{"expression": nested}])
    result = PageEvaluator(world).evaluate(pods({"spec": {"xs": [1] * 3}}, {"spec": {"xs": [1] * 3000}}), chosen)
    assert ["p1"] == [finding.name for finding in result.findings]
    assert "cost limit exceeded" in result.findings[0].outcome.message


def test_a_broken_item_is_a_gap_and_the_others_are_judged() -> None:
    """A number that no double can hold is refused by the decoder; it stays with its object."""
    world, chosen = made(validations=[{"expression": "true"}])
    good = orjson.dumps({"metadata": {"name": "a", "namespace": "default", "uid": "1"}})
    data = b'{"items":[{"metadata":{"name":"b"},"spec":1e400},' + good + b"]}"
    result = PageEvaluator(world).evaluate(Page(PODS, 1, data), chosen)
    assert (1, 1) == (result.objects, len(result.gaps))


def test_policies_that_the_api_would_refuse_are_not_read() -> None:
    """Only what the cluster holds may be broken."""
    with pytest.raises(InvalidManifest):
        read_policy(policy("p") | {"spec": {}}, source="file")
