"""Whatever a cluster or a file holds: an outcome, a gap or a message, and never a traceback."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.errors import ListFailed
from scanner.model.outcome import GapKind
from scanner.model.scan import ScanState
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import CONFIG_MAPS, LIMITS, Document, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import FakeCluster, Told, changed, scanned

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}
RICH = policy(
    "p",
    "object.spec.x == 1",
    "params.data.n == 'x'",
    paramKind=CONFIG,
    matchConstraints={
        "resourceRules": [rule("pods", scope="*", resourceNames=["a"]), rule("pods", "configmaps")],
        "excludeResourceRules": [rule("nodes")],
        "namespaceSelector": {"matchLabels": {"team": "a"}},
        "objectSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
        "matchPolicy": "Equivalent",
    },
    matchConditions=[{"name": "c", "expression": "object.kind != ''"}],
    variables=[{"name": "v", "expression": "object.spec"}],
    auditAnnotations=[{"key": "k", "valueExpression": "'v'"}],
    failurePolicy="Fail",
)
RICH["status"] = {"observedGeneration": 1, "typeChecking": {"expressionWarnings": [{"fieldRef": "f", "warning": "w"}]}}
RICH["metadata"]["generation"] = 1
BOUND = binding(
    "b",
    "p",
    "Deny",
    paramRef={
        "selector": {"matchLabels": {"a": "b"}},
        "namespace": "default",
        "parameterNotFoundAction": "Deny",
    },
    matchResources={"namespaceSelector": {"matchLabels": {"team": "a"}}, "resourceRules": [rule("pods")]},
)
PARAM = thing(CONFIG_MAPS, "c", "default", metadata={"labels": {"a": "b"}}, data={"n": "x"})
ODD: list[Any] = [
    None,
    0,
    -1,
    1.5,
    True,
    "",
    "x",
    "\ud800",
    "*",
    [],
    [None],
    ["x", 3],
    {},
    {"x": None},
    [[]],
    "a" * 300,
]
JSON = st.recursive(
    st.sampled_from(ODD),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "spec", "x", ""]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything in a document."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


@st.composite
def spoiled(draw: st.DrawFn, document: Document) -> Document:
    """A document in which something is not what it should be; its kind and name stay."""
    made = deepcopy(document)
    kept = (("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ())
    for place in draw(
        st.lists(st.sampled_from([place for place in places(document) if place not in kept]), max_size=3)
    ):
        inside = made
        for step in place[:-1]:
            inside = inside[step] if isinstance(inside, (dict, list)) and _has(inside, step) else {}
        if isinstance(inside, (dict, list)) and _has(inside, place[-1]):
            inside[place[-1]] = draw(JSON)
    return made


def _has(inside: Any, step: Any) -> bool:
    return step in inside if isinstance(inside, dict) else isinstance(step, int) and step < len(inside)


def faults(told: Told) -> list[str]:
    """What went wrong in Assay itself."""
    return [gap.why for gap in told.gaps if "internal error" in gap.why]


@settings(max_examples=60, deadline=None)
@given(st.tuples(*map(spoiled, (RICH, BOUND, PARAM, pod("a", labels={"a": "c"}), namespace("default")))))
def test_nothing_in_a_cluster_breaks_a_scan(documents: tuple[Document, ...]) -> None:
    """Stored policies, bindings, params, objects and namespaces are judged as they are, or missed and named."""
    told = scanned(FakeCluster([*documents, pod("other")]))
    assert [] == faults(told)
    assert told.scan.state in (ScanState.COMPLETE, ScanState.PARTIAL)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*map(spoiled, (RICH, BOUND, PARAM))))
def test_nothing_in_a_file_breaks_a_scan(documents: tuple[Document, ...]) -> None:
    """What the API would refuse is a gap that says why, what it would store is judged."""
    files = tuple(
        Manifest(f"f.yaml, document {number}", document) for number, document in enumerate(documents, start=1)
    )
    told = scanned(FakeCluster([namespace("default", team="a"), pod("a")]), Options(manifests=files))
    assert [] == faults(told)
    assert all(gap.kind is GapKind.DOCUMENT for gap in told.gaps)


CLUSTER = FakeCluster([namespace("default", team="a"), pod("web"), policy("p", "false"), binding("b", "p")])


@pytest.mark.parametrize("item", [None, 3, "x", [], {}, {"metadata": None}, {"metadata": 3}, {"spec": {}}])
@pytest.mark.parametrize(
    ("plural", "where"),
    [
        ("pods", "v1/Pod"),
        ("namespaces", "v1/Namespace"),
        (
            "validatingadmissionpolicies.admissionregistration.k8s.io",
            "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
        ),
        (
            "validatingadmissionpolicybindings.admissionregistration.k8s.io",
            "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding",
        ),
    ],
)
def test_an_object_without_metadata_is_a_gap(plural: str, where: str, item: object) -> None:
    """It could be anything, and is not passed over."""
    raw = {plural: [json.dumps({"items": [item]}).encode()]}
    told = scanned(changed(CLUSTER, raw=raw))
    assert ScanState.PARTIAL == told.scan.state
    assert where in {gap.where for gap in told.gaps}


def test_a_namespace_that_goes_away_while_scanning_is_a_gap() -> None:
    """Its objects are named: what their namespace's labels were, nobody knows."""
    selecting = policy(
        "p",
        "false",
        matchConstraints={"resourceRules": [rule("pods")], "namespaceSelector": {"matchLabels": {"a": "b"}}},
    )
    told = scanned(FakeCluster([namespace("default"), pod("left", "gone"), selecting, binding("b", "p")]))
    assert [(GapKind.OBJECT, "v1/Pod gone/left")] == [(gap.kind, gap.where) for gap in told.gaps]


def test_params_that_vanish_are_a_gap_of_their_policy() -> None:
    """The list breaks off, or its kind is not served any more: not finding a param would be a verdict."""
    asking = policy("p", "true", paramKind={"apiVersion": "example.com/v1", "kind": "Limit"})
    bound = binding("b", "p", paramRef={"selector": {}, "parameterNotFoundAction": "Deny"})
    cluster = FakeCluster([namespace("default"), pod("web"), thing(LIMITS, "x"), asking, bound])
    gone = ListFailed("failed", "cannot list limits.example.com: the server no longer serves this kind")
    for trouble in ({"refused": {"limits.example.com": gone}}, {"broken": {"limits.example.com": gone}}):
        told = scanned(changed(cluster, **trouble))
        assert (["policy p"], ()) == ([gap.where for gap in told.gaps], told.findings)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
        {"matchExpressions": [{}]},
        {"matchExpressions": [None]},
    ],
)
@pytest.mark.parametrize("field", ["namespaceSelector", "objectSelector"])
def test_a_stored_selector_that_cannot_be_parsed_denies(field: str, selector: Document) -> None:
    """It is a configuration error on every object that the rules match, and on no other."""
    broken = policy("p", "true", matchConstraints={"resourceRules": [rule("pods")], field: selector})
    told = scanned(FakeCluster([namespace("default"), pod("web"), broken, binding("b", "p", "Audit")]))
    assert [("web", True)] == [(finding.name, finding.denies) for finding in told.findings]
    assert told.findings[0].outcome.message.startswith("failed to configure policy: ")
