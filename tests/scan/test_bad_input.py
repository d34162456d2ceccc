"""Any content of a cluster or a file leads to an outcome, a gap or a message, and never to a traceback."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.errors import ListFailed
from scanner.model.outcome import GapKind
from scanner.model.scans.scan import ScanState
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import CONFIG_MAPS, LIMITS, Document, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import FakeCluster, Recorded, changed, scanned

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
    """The paths of all values in a document."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


@st.composite
def spoiled(draw: st.DrawFn, document: Document) -> Document:
    """A document with some values replaced or removed; its kind and name stay."""
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


def internal_errors(recorded: Recorded) -> list[str]:
    """The gaps that record a bug of Assay."""
    return [gap.why for gap in recorded.gaps if "internal error" in gap.why]


@settings(max_examples=60, deadline=None)
@given(st.tuples(*map(spoiled, (RICH, BOUND, PARAM, pod("a", labels={"a": "c"}), namespace("default")))))
def test_nothing_in_a_cluster_breaks_a_scan(documents: tuple[Document, ...]) -> None:
    """Stored policies, bindings, params, objects and namespaces are evaluated as they are, or are gaps."""
    recorded = scanned(FakeCluster([*documents, pod("other")]))
    assert [] == internal_errors(recorded)
    assert recorded.scan.state in (ScanState.COMPLETE, ScanState.INCOMPLETE)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*map(spoiled, (RICH, BOUND, PARAM))))
def test_nothing_in_a_file_breaks_a_scan(documents: tuple[Document, ...]) -> None:
    """A document that the API would reject is a gap with the reason; any other document is evaluated."""
    files = tuple(
        Manifest(f"f.yaml, document {number}", document) for number, document in enumerate(documents, start=1)
    )
    recorded = scanned(FakeCluster([namespace("default", team="a"), pod("a")]), Options(manifests=files))
    assert [] == internal_errors(recorded)
    assert all(gap.kind is GapKind.DOCUMENT for gap in recorded.gaps)


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
    """The item may be any object, so the scan is partial."""
    raw = {plural: [json.dumps({"items": [item]}).encode()]}
    recorded = scanned(changed(CLUSTER, raw=raw))
    assert ScanState.INCOMPLETE == recorded.scan.state
    assert where in {gap.where for gap in recorded.gaps}


def test_a_namespace_that_goes_away_while_scanning_is_a_gap() -> None:
    """The gap names the object, because the labels of its namespace are not known."""
    selecting = policy(
        "p",
        "false",
        matchConstraints={"resourceRules": [rule("pods")], "namespaceSelector": {"matchLabels": {"a": "b"}}},
    )
    recorded = scanned(FakeCluster([namespace("default"), pod("left", "gone"), selecting, binding("b", "p")]))
    assert [(GapKind.OBJECT, "v1/Pod gone/left")] == [(gap.kind, gap.where) for gap in recorded.gaps]


def test_params_that_vanish_are_a_gap_of_their_policy() -> None:
    """The list breaks off, or the kind is no longer served: a missing param would be a verdict."""
    asking = policy("p", "true", paramKind={"apiVersion": "example.com/v1", "kind": "Limit"})
    bound = binding("b", "p", paramRef={"selector": {}, "parameterNotFoundAction": "Deny"})
    cluster = FakeCluster([namespace("default"), pod("web"), thing(LIMITS, "x"), asking, bound])
    gone = ListFailed("failed", "cannot list limits.example.com: the server no longer serves this kind")
    for trouble in ({"refused": {"limits.example.com": gone}}, {"broken": {"limits.example.com": gone}}):
        recorded = scanned(changed(cluster, **trouble))
        assert (["policy p"], ()) == ([gap.where for gap in recorded.gaps], recorded.findings)


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
    """The selector is a configuration error for every object that the rules match, and for no other."""
    broken = policy("p", "true", matchConstraints={"resourceRules": [rule("pods")], field: selector})
    recorded = scanned(FakeCluster([namespace("default"), pod("web"), broken, binding("b", "p", "Audit")]))
    assert [("web", True)] == [(finding.name, finding.denies) for finding in recorded.findings]
    assert recorded.findings[0].outcome.message.startswith("failed to configure policy: ")
