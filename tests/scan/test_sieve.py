"""What the sieve lets pass is what the judge would have passed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given

from scanner.errors import InvalidManifest
from scanner.model.resource import Kind, Page, UserInfo
from scanner.page import Judge
from scanner.plan import KindPlan, equivalents, plan
from scanner.policies.validating import World, bind, read_binding, read_policy
from scanner.sieve import Entry, Sieve
from scanner.sources import ParamTable
from tests.core.documents import KINDS, Document, binding, policy, rule
from tests.scan.test_promises import DOCUMENTS

PODS = next(kind for kind in KINDS if kind.plural == "pods")


class Closed(Sieve):
    """A sieve that lets nothing pass."""

    def mesh(self, namespace: str, size: int) -> tuple[Entry, ...]:
        return tuple(entry._replace(quick=None) for entry in super().mesh(namespace, size))


def judged(documents: list[Document], *, sifted: bool) -> Iterator[Any]:
    """The results of one page of each kind that a policy may match."""
    policies = [read_policy(it) for it in documents if it["kind"] == "ValidatingAdmissionPolicy"]
    bindings = [read_binding(it) for it in documents if it["kind"] == "ValidatingAdmissionPolicyBinding"]
    spaces = {it["metadata"]["name"]: it for it in documents if it["kind"] == "Namespace"}
    table = ParamTable(KINDS)
    world = World(table, spaces, equivalents=equivalents(KINDS), user=UserInfo("auditor"), implied_namespaces=True)
    for one in plan(KINDS, bind(policies, bindings)):
        items = [it for it in documents if (it["apiVersion"], it["kind"]) == (one.kind.api_version, one.kind.kind)]
        sieves = {} if sifted else {one.kind: Closed(world, one)}
        yield Judge(world, by_name=True, sieves=sieves).page(page(one.kind, items), one)


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


def made(**spec: Any) -> tuple[World, KindPlan]:
    """One policy on pods, and its binding."""
    document = policy("p") | {"spec": {"matchConstraints": {"resourceRules": [rule("pods")]}, **spec}}
    bound = bind([read_policy(document)], [read_binding(binding("b", "p", "Deny"))])
    world = World(ParamTable(KINDS), {"default": {"metadata": {"name": "default"}}}, equivalents=equivalents(KINDS))
    (chosen,) = plan(KINDS, bound)
    return world, chosen


@pytest.mark.parametrize(
    ("spec", "passes"),
    [
        ({"validations": [{"expression": "object.spec.x == 1"}]}, 1),
        ({"validations": [{"expression": "object.spec.x == 1 || object.spec.y == 2"}]}, 1),
        ({"validations": [{"expression": "variables.x == 1"}], "variables": [{"name": "x", "expression": "object.spec.x"}]}, 1),
        ({"validations": [{"expression": "request.name == 'p0'"}]}, 1),
        ({"validations": [{"expression": "namespaceObject.metadata.name == 'default'"}]}, 3),
        ({"validations": [{"expression": "true"}], "matchConditions": [{"name": "c", "expression": "object.spec.x == 1"}]}, 1),
        ({"validations": [{"expression": "true"}], "matchConditions": [{"name": "c", "expression": "request.name == 'p0'"}]}, 0),
        ({"validations": [{"expression": "authorizer.path('/x').check('get').allowed()"}]}, 0),
        ({"validations": [{"expression": "nonsense("}]}, 0),
    ],
)  # fmt: skip
def test_what_passes(spec: Any, passes: int) -> None:
    """Of three pods, so many pass here; the others are the judge's."""
    world, chosen = made(**spec)
    sieve = Sieve(world, chosen)
    Judge(world, sieves={PODS: sieve}).page(pods({"spec": {"x": 1}}, {"spec": {"x": 2}}, {"spec": {"x": "1"}}), chosen)
    quick = [entry.quick for entry in sieve.mesh("default", 10)]
    assert (passes > 0) == (quick[0] is not None)


def test_a_large_object_is_counted() -> None:
    """A loop in a loop that a small object cannot make expensive is not let pass unlooked at for a large one."""
    nested = "object.spec.xs.all(a, object.spec.xs.all(b, a == b))"
    world, chosen = made(validations=[{"expression": nested}])
    result = Judge(world).page(pods({"spec": {"xs": [1] * 3}}, {"spec": {"xs": [1] * 3000}}), chosen)
    assert ["p1"] == [finding.name for finding in result.findings]
    assert "cost limit exceeded" in result.findings[0].outcome.message


def test_a_broken_item_is_a_gap_and_the_others_are_judged() -> None:
    """A number that no double can hold is refused by the decoder; it stays with its object."""
    world, chosen = made(validations=[{"expression": "true"}])
    good = orjson.dumps({"metadata": {"name": "a", "namespace": "default", "uid": "1"}})
    data = b'{"items":[{"metadata":{"name":"b"},"spec":1e400},' + good + b"]}"
    result = Judge(world).page(Page(PODS, 1, data), chosen)
    assert (1, 1) == (result.objects, len(result.gaps))


def test_policies_that_the_api_would_refuse_are_not_read() -> None:
    """Only what the cluster holds may be broken."""
    with pytest.raises(InvalidManifest):
        read_policy(policy("p") | {"spec": {}}, source="file")
