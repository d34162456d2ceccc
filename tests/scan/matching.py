"""Random clusters in which most policies match most objects, so that every outcome occurs.

The clusters of `test_promises` vary each part of a policy; and match no object in nine of ten.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from hypothesis import strategies as st

from tests.documents import CONFIG_MAPS, Document, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import FakeCluster

NAMES = ("a", "b", "c")
SPACES = ("default", "prod")
CONDITIONS = (
    "true",
    "object.metadata.name != 'a'",
    "has(object.spec) && has(object.spec.x)",
    "object.spec.x == 1",
    "request.namespace == 'prod'",
)
VALIDATIONS = (
    "true",
    "object.metadata.name == 'a'",
    "object.spec.x == 1",
    "namespaceObject.metadata.labels['env'] == 'prod'",
    "request.userInfo.username == 'auditor'",
    "params == null || params.data.most == '1'",
)
PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}
REFERENCES: tuple[dict[str, Any], ...] = (
    {"selector": {}, "parameterNotFoundAction": "Deny"},
    {"name": "a", "namespace": "default", "parameterNotFoundAction": "Allow"},
    {"name": "c", "parameterNotFoundAction": "Deny"},
)


def _policy(
    name: str, operation: str, conditions: list[str], validations: list[str], failure: str, annotations: list[str]
) -> Document:
    """A policy on Pods and ConfigMaps; `q` has params."""
    resources = rule("pods", "configmaps", operations=[operation])
    return policy(
        name,
        *validations,
        matchConstraints={"resourceRules": [resources]},
        matchConditions=[{"name": f"c{number}", "expression": text} for number, text in enumerate(conditions)],
        failurePolicy=failure,
        auditAnnotations=[{"key": text, "valueExpression": f"string(object.spec.{text})"} for text in annotations],
        **({"paramKind": PARAMS} if name == "q" else {}),
    )


def _binding(name: str, of: str, reference: dict[str, Any], selector: dict[str, Any], action: str) -> Document:
    """A binding, with a param for `q`."""
    params = {"paramRef": reference} if of == "q" else {}
    return binding(name, of, action, matchResources={"namespaceSelector": selector}, **params)


def _policies(name: str) -> st.SearchStrategy[Document]:
    return st.builds(
        _policy,
        st.just(name),
        st.sampled_from(["CREATE", "CREATE", "UPDATE", "*", "DELETE"]),
        st.lists(st.sampled_from(CONDITIONS), max_size=2),
        st.lists(st.sampled_from(VALIDATIONS), min_size=1, max_size=3),
        st.sampled_from(["Fail", "Ignore"]),
        st.sampled_from([[], ["x"]]),
    )


BINDINGS = st.lists(
    st.builds(
        _binding,
        st.sampled_from(NAMES),
        st.sampled_from(["p", "q"]),
        st.sampled_from(REFERENCES),
        st.sampled_from([{}, {"matchLabels": {"env": "prod"}}]),
        st.sampled_from(["Deny", "Audit"]),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda document: document["metadata"]["name"],
)
PODS = st.builds(
    lambda name, space, spec, uid: pod(name, space, **spec) | {"metadata": _metadata(name, space, uid)},
    st.sampled_from(NAMES),
    st.sampled_from([*SPACES, "unlisted"]),
    st.sampled_from([{}, {"x": 1}, {"x": 2}]),
    st.sampled_from(["1", "2"]),
)
MAPS = st.builds(
    lambda name, space, most: thing(CONFIG_MAPS, name, space, data={"most": most}),
    st.sampled_from(NAMES),
    st.sampled_from(SPACES),
    st.sampled_from(["1", "2"]),
)


def _metadata(name: str, space: str, uid: str) -> dict[str, Any]:
    """The metadata of an object that can be replaced by another of its name."""
    return {"name": name, "namespace": space, "uid": f"{space}-{name}-{uid}"}


def _place(document: Document) -> tuple[str, str, str]:
    return document["kind"], document["metadata"]["namespace"], document["metadata"]["name"]


MATCHED = st.builds(
    lambda groups, size: FakeCluster(
        [namespace("default"), namespace("prod", env="prod"), *chain.from_iterable(groups)], page_size=size
    ),
    st.tuples(st.tuples(_policies("p"), _policies("q")), BINDINGS, st.lists(PODS | MAPS, max_size=9, unique_by=_place)),
    st.integers(1, 4),
)
"""Clusters with two policies, up to three bindings and up to nine objects."""
