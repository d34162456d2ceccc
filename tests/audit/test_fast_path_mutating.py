"""The fast path gives the results of the full evaluation of mutating policies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import evaluate_object
from scanner.audit.fast_path import FastPath
from scanner.audit.page import PageEvaluator
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.policy import Binding, Policy
from scanner.model.resource import Kind, UserInfo, resource_of
from scanner.policies.mutating.language import bind, read_binding, read_policy
from scanner.policies.mutating.together import combine, list_invocations
from scanner.policies.plan import find_equivalents, plan
from scanner.scan.param_table import ParamTable
from tests.audit.test_fast_path import NoFastPath, facts, page
from tests.documents import KINDS
from tests.scan.test_drift import binding, config_map, policy

MAPS = next(kind for kind in KINDS if kind.plural == "configmaps")
PODS = next(kind for kind in KINDS if kind.plural == "pods")
SPACES = {"shop": {"metadata": {"name": "shop"}}}


def page_result(policies: list[dict[str, Any]], items: list[dict[str, Any]], *, kind: Kind, fast: bool) -> Any:
    """The result of a page of objects of a kind."""
    bound = bind(
        [read_policy(policy_manifest) for policy_manifest in policies],
        [read_binding(binding(policy_manifest["metadata"]["name"])) for policy_manifest in policies],
        schemas=KnownSchemas(builtin_schemas()),
        rules=(1, 36),
    )
    context = EvaluationContext(
        ParamTable(KINDS), SPACES, equivalents=find_equivalents(KINDS), user=UserInfo("auditor")
    )
    (kind_plan,) = (kind_plan for kind_plan in plan(KINDS, bound) if kind_plan.kind == kind)
    fast_paths: dict[Kind, FastPath] = {} if fast else {kind: NoFastPath(context, kind_plan)}
    return PageEvaluator(context, by_name=True, fast_paths=fast_paths).evaluate(page(kind, items), kind_plan)


def assert_equal_results(policies: list[dict[str, Any]], items: list[dict[str, Any]], kind: Kind = MAPS) -> None:
    """Assert that the fast path changes no result."""
    quick, slow = (page_result(policies, items, kind=kind, fast=fast) for fast in (True, False))
    actual, expected = (sorted(map(repr, result.findings)) for result in (quick, slow))
    assert expected == actual
    assert facts(replace(slow, findings=(), places=())) == facts(replace(quick, findings=(), places=()))


TEXTS = st.sampled_from(
    [
        "Object{metadata: Object.metadata{labels: {'a': '1'}}}",
        "Object{metadata: Object.metadata{labels: {'a': '1', 'b': object.metadata.name}}}",
        "Object{metadata: Object.metadata{annotations: {}}}",
        "Object{metadata: Object.wrong{labels: {'a': '1'}}}",
        "Object{metadata: Object.metadata{finalizers: ['x']}}",
        "Object{metadata: Object.metadata{nope: 'x'}}",
        "Object{immutable: true}",
        "Object{data: {'a': '1'}}",
        "Object{data: {'a': object.data.a}}",
        "Object{data: {'a': 1}}",
        "Object{}",
        "[JSONPatch{op: 'add', path: '/data/a', value: '1'}]",
        "[JSONPatch{op: 'replace', path: '/metadata/labels/a', value: object.metadata.labels.a}]",
        "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': '1'}}]",
        "[JSONPatch{op: 'remove', path: '/metadata/labels/a'}]",
        "[JSONPatch{op: 'test', path: '/data/a', value: '2'}, JSONPatch{op: 'remove', path: '/data'}]",
        "has(object.immutable) ? [JSONPatch{op: 'add', path: '/immutable', value: true}] : []",
    ]
)
CONDITIONS = st.sampled_from(
    ["true", "has(object.immutable)", "object.data.a == '1'", "'a' in object.metadata.labels", "request.name == 'm0'"]
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "data": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), min_size=1),
        "immutable": st.booleans(),
        "unknown": st.just("x"),
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from(["1", "m0"])),
                "finalizers": st.just(["x"]),
            },
        ),
    },
)


def manifests(made: list[tuple[list[str], list[str]]]) -> list[dict[str, Any]]:
    """Policies with some mutations and conditions; every second one has the reinvocation policy IfNeeded."""
    return [
        policy(
            f"p{number}",
            *texts,
            matchConditions=[{"name": f"c{at}", "expression": text} for at, text in enumerate(conditions)],
            reinvocationPolicy=("Never", "IfNeeded")[number % 2],
        )
        for number, (texts, conditions) in enumerate(made)
    ]


def read_policies(made: list[tuple[list[str], list[str]]]) -> tuple[list[Policy], list[Binding]]:
    """The same policies with their bindings."""
    policies = [read_policy(policy_manifest) for policy_manifest in manifests(made)]
    return policies, [read_binding(binding(each.name)) for each in policies]


@given(
    st.lists(
        st.tuples(st.lists(TEXTS, min_size=1, max_size=2), st.lists(CONDITIONS, max_size=2)), min_size=1, max_size=3
    ),
    st.lists(FIELDS, min_size=1, max_size=3),
)
def test_a_page_has_the_same_results_without_the_fast_path(
    made: list[tuple[list[str], list[str]]], fields: list[dict[str, Any]]
) -> None:
    """Findings with the changes of several policies together, outcomes, matches and gaps are the same."""
    assert_equal_results(
        manifests(made), [config_map(f"m{number}", **content) for number, content in enumerate(fields)]
    )


@given(
    st.lists(
        st.tuples(st.lists(TEXTS, min_size=1, max_size=2), st.lists(CONDITIONS, max_size=2)), min_size=2, max_size=4
    ),
    FIELDS,
)
def test_evaluating_policies_alone_first_does_not_change_their_joint_result(
    made: list[tuple[list[str], list[str]]], fields: dict[str, Any]
) -> None:
    """The joint evaluation reuses the results of single policies whose requests are the same."""
    bound = bind(*read_policies(made), schemas=KnownSchemas(builtin_schemas()), rules=(1, 36))
    context = EvaluationContext(
        ParamTable(KINDS), SPACES, equivalents=find_equivalents(KINDS), user=UserInfo("auditor")
    )
    resource = resource_of(MAPS, config_map("m0", **fields))
    fresh = [
        (bound_policy, result)
        for bound_policy in bound
        for result in list_invocations(bound_policy, resource, MAPS, context)
    ]
    evaluated = [
        (bound_policy, result)
        for bound_policy in bound
        for result in evaluate_object(bound_policy, resource, MAPS, context)
    ]

    assert combine(fresh) == combine(evaluated)


CONTAINERS = "Object{{spec: Object.spec{{containers: {}}}}}"
ON_PODS = {
    "resourceRules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
}


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.containers.map(c, Object.spec.containers{name: c.name, image: 'x:1'})",
        "object.spec.containers.map(c, Object.spec.containers{name: c.name, image: c.image})",
        "object.spec.containers.map(c, Object.spec.containers{name: c.name, image: 'x:1', ports: [Object.spec.containers.ports{containerPort: 80, protocol: 'TCP'}]})",
        "object.spec.containers.map(c, Object.spec.containers{name: c.name, securityContext: Object.spec.containers.securityContext{}})",
        "object.spec.containers.map(c, c.name == 'a', Object.spec.containers{name: c.name, image: 'x:1'})",
        "object.spec.containers.map(c, Object.spec.containers{image: 'x:1', name: c.image})",
        "object.spec.containers.map(c, Object.spec.containers{image: c.image, stdin: false})",
        "object.spec.containers.map(c, Object.spec.containers{?name: c.?name, image: 'x:1'})",
        "object.spec.containers.map(c, Object.spec.wrong{name: c.name, image: 'x:1'})",
        "object.spec.containers.map(c, Object.spec.containers{name: c.name, image: 'x:1', args: ['x']})",
        "object.spec.containers.map(c, Object.spec.containers{name: c.name, image: string(1 / 0)})",
        "object.spec.initContainers.map(c, Object.spec.containers{name: c.name, image: 'x:1'})",
        "object.spec.containers.reverse().map(c, Object.spec.containers{name: c.name})",
        "[Object.spec.containers{name: 'b', stdin: false}]",
        "[Object.spec.containers{name: 'a'}, Object.spec.containers{name: 'a'}]",
        "[Object.spec.containers{image: 'x:1'}]",
        "[Object.spec.containers{name: 'a', ports: [Object.spec.containers.ports{containerPort: 80, protocol: 'TCP'}]}]",
        "[Object.spec.containers{name: 'a', ports: [Object.spec.containers.ports{containerPort: 80}]}]",
        "[Object.spec.containers{name: 'a', args: ['x']}]",
        "[Object.spec.wrong{name: 'a'}]",
        "[]",
        "object.spec.containers",
    ],
)
@pytest.mark.parametrize("names", ["ab", "ba", "aa", "a", "", "a?", "ay"])
def test_lists_are_compared_as_they_are_merged(text: str, names: str) -> None:
    """The fast path compares lists by merge key: order, duplicates, missing and defaulted keys, atomic lists, other fields."""
    ports = [{"containerPort": 80, "protocol": "TCP"}]
    containers: list[dict[str, Any]] = [
        {"name": name, "image": f"{'y' if name == 'y' else 'x'}:1", "ports": ports, "args": ["x"]} for name in names
    ]
    for container in containers:
        if container["name"] == "?":
            del container["name"]
    pod = {"metadata": {"name": "p", "namespace": "shop"}, "spec": {"containers": containers}}
    assert_equal_results([policy("p", CONTAINERS.format(text), matchConstraints=ON_PODS)], [pod], PODS)
