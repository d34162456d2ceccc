"""The promises of a scan, tested with random clusters.

Conservation: every matched resource, invocation and check yields exactly one outcome. Silence is never success: an item
that was not listed makes the scan partial, and is a gap. Same input, same report: the order of documents decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.errors import ListFailed
from scanner.model.outcome import CheckKind, Errored
from scanner.model.scans.scan import CoverageState, ScanState
from scanner.model.scans.tally import OutcomeName
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import (
    CONFIG_MAPS,
    LIMITS,
    NODES,
    SCALERS_V1,
    SCALERS_V2,
    SECRETS,
    Document,
    binding,
    namespace,
    pod,
    policy,
    rule,
    thing,
)
from tests.scan.fakes import FakeCluster, Recorded, changed, scanned
from tests.scan.matching import MATCHED

SPACES = ("default", "prod", "test")
EXPRESSIONS = (
    "true",
    "false",
    "object.spec.x == 1",
    "has(object.spec) && has(object.spec.x)",
    "object.metadata.name.startsWith('a')",
    "params.data.most == '1'",
    "request.userInfo.username == 'auditor'",
    "namespaceObject.metadata.labels['env'] == 'prod'",
    "authorizer.group('').resource('pods').check('get').allowed()",
    "variables.x == 1",
    "nonsense(",
    "object.spec.x",
)
RULES = (
    rule("pods"),
    rule("*"),
    rule("pods", operations=["UPDATE"]),
    rule("pods", operations=["DELETE"]),
    rule("nodes", "namespaces", scope="Cluster"),
    rule("horizontalpodautoscalers", group="autoscaling", version="*"),
    rule("horizontalpodautoscalers", group="autoscaling", version="v1"),
    rule("pods", "secrets", resourceNames=["a", "b"]),
    rule("events", group="events.k8s.io"),
)
LABELS = st.dictionaries(st.sampled_from(["app", "env"]), st.sampled_from(["web", "prod", "test"]), max_size=2)
SELECTORS = st.one_of(
    st.just({}),
    st.builds(lambda labels: {"matchLabels": labels}, LABELS),
    st.builds(
        lambda operator, value: {"matchExpressions": [{"key": "env", "operator": operator, **value}]},
        st.sampled_from(["In", "NotIn", "Exists"]),
        st.sampled_from([{"values": ["prod"]}, {}]),
    ),
)
MATCHES = st.fixed_dictionaries(
    {"resourceRules": st.lists(st.sampled_from(RULES), min_size=1, max_size=2)},
    optional={
        "namespaceSelector": SELECTORS,
        "objectSelector": SELECTORS,
        "excludeResourceRules": st.lists(st.sampled_from(RULES), max_size=1),
        "matchPolicy": st.sampled_from(["Exact", "Equivalent"]),
    },
)
VALIDATIONS = st.fixed_dictionaries(
    {"expression": st.sampled_from(EXPRESSIONS)},
    optional={
        "message": st.just("no"),
        "messageExpression": st.sampled_from(["'is ' + object.metadata.name", "object.x.y", "string(params)"]),
    },
)
SPECS = st.fixed_dictionaries(
    {"matchConstraints": MATCHES, "validations": st.lists(VALIDATIONS, max_size=3)},
    optional={
        "failurePolicy": st.sampled_from(["Fail", "Ignore"]),
        "paramKind": st.sampled_from(
            [
                {"apiVersion": "v1", "kind": "ConfigMap"},
                {"apiVersion": "example.com/v1", "kind": "Limit"},
                {"apiVersion": "example.com/v1", "kind": "Unserved"},
            ]
        ),
        "variables": st.just([{"name": "x", "expression": "object.spec.x"}]),
        "matchConditions": st.lists(
            st.builds(lambda text: {"name": "c", "expression": text}, st.sampled_from(EXPRESSIONS)), max_size=1
        ),
        "auditAnnotations": st.just([{"key": "k", "valueExpression": "string(object.spec.x)"}]),
    },
)
REFERENCES = st.fixed_dictionaries(
    {"parameterNotFoundAction": st.sampled_from(["Allow", "Deny"])},
    optional={
        "name": st.sampled_from(["a", "missing"]),
        "namespace": st.sampled_from(SPACES),
        "selector": SELECTORS,
    },
)
POLICIES = st.builds(lambda name, spec: policy(name) | {"spec": spec}, st.sampled_from(["p", "q", "unbound"]), SPECS)
BINDINGS = st.builds(
    lambda name, of, actions, spec: binding(name, of, *actions, **spec),
    st.sampled_from(["b", "c", "d"]),
    st.sampled_from(["p", "q", "gone"]),
    st.lists(st.sampled_from(["Deny", "Audit"]), min_size=1, max_size=2, unique=True),
    st.fixed_dictionaries({}, optional={"paramRef": REFERENCES, "matchResources": MATCHES}),
)
NAMES = st.sampled_from(["a", "b", "<script>", "ünïcode", "a.b"])
BODIES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {}, optional={"x": st.sampled_from([1, 2, "1", None, 1.0, [], {"x": 1}, 2**70])}
)
OBJECTS = st.one_of(
    st.builds(
        lambda name, space, labels, body: pod(name, space, labels=labels, **body),
        NAMES,
        st.sampled_from([*SPACES, "unlisted"]),
        LABELS,
        BODIES,
    ),
    st.builds(lambda name, body: thing(NODES, name, spec=body), NAMES, BODIES),
    st.builds(
        lambda kind, name, space, body: thing(kind, name, space, spec=body),
        st.sampled_from([SCALERS_V1, SCALERS_V2, SECRETS]),
        NAMES,
        st.sampled_from(SPACES),
        BODIES,
    ),
    st.builds(
        lambda name, space, most: thing(CONFIG_MAPS, name, space, data={"most": most}),
        NAMES,
        st.sampled_from(SPACES),
        st.sampled_from(["1", "2"]),
    ),
    st.builds(lambda name: thing(LIMITS, name, data={"most": "1"}), NAMES),
)


def identity(document: Document) -> tuple[str, ...]:
    """The key that is unique for an object of a server."""
    metadata = document["metadata"]
    return document["apiVersion"].partition("/")[0], document["kind"], metadata.get("namespace", ""), metadata["name"]


DOCUMENTS = st.builds(
    lambda *groups: [
        namespace("default"),
        namespace("prod", env="prod"),
        namespace("test"),
        *chain.from_iterable(groups),
    ],
    st.lists(POLICIES, min_size=1, max_size=2, unique_by=identity),
    st.lists(BINDINGS, min_size=1, max_size=3, unique_by=identity),
    st.lists(OBJECTS, max_size=6, unique_by=identity),
)
CLUSTERS = st.builds(
    lambda documents, size, source: FakeCluster(documents, page_size=size, source=source),
    DOCUMENTS,
    st.integers(1, 4),
    st.sampled_from(["cluster", "files"]),
)


def checks_of(recorded: Recorded, name: str) -> int:
    """The number of checks of a policy."""
    (policy,) = (policy for policy in recorded.start.policies if policy.name == name)
    return len(policy.validations) + len(policy.audit_annotations)


@given(CLUSTERS | MATCHED)
def test_every_check_of_a_matched_invocation_has_one_outcome(cluster: FakeCluster) -> None:
    """Each object and invocation has one outcome for every check of the policy, or one for its conditions or configuration."""
    recorded = scanned(cluster)
    per_invocation: Counter[tuple[object, ...]] = Counter()
    whole: Counter[tuple[object, ...]] = Counter()
    for key, count in recorded.tallies.items():
        place = (key.policy, key.binding, key.param_namespace, key.param_name, key.api_version, key.kind, key.namespace)
        if key.check.kind in (CheckKind.CONDITIONS, CheckKind.CONFIGURATION):
            whole[place] += count
        else:
            per_invocation[(*place, key.check)] += count
    by_check: dict[tuple[object, ...], list[int]] = {}
    for (*invocation, _), count in per_invocation.items():
        by_check.setdefault(tuple(invocation), []).append(count)
    for invocation_key, counts in by_check.items():
        assert [counts[0]] * checks_of(recorded, str(invocation_key[0])) == counts
    evaluated = Counter({key: counts[0] for key, counts in by_check.items()}) + whole
    assert all(recorded.coverage(str(place[5]), str(place[4])).evaluated > 0 for place in evaluated)


@given(CLUSTERS | MATCHED)
def test_every_violation_and_error_is_one_finding(cluster: FakeCluster) -> None:
    """The number of findings equals the number of violated and errored outcomes."""
    recorded = scanned(cluster)
    bad = (OutcomeName.VIOLATED, OutcomeName.ERRORED_DENY, OutcomeName.ERRORED_ADMIT)
    assert recorded.counted(*bad) == len(recorded.findings)
    assert len(recorded.findings) == len({finding.fingerprint for finding in recorded.findings})


@given(CLUSTERS | MATCHED)
def test_matched_objects_are_no_more_than_listed_ones(cluster: FakeCluster) -> None:
    """Coverage counts every object of a listed kind, and the evaluated objects among them."""
    recorded = scanned(cluster)
    for line in recorded.end.coverage:
        assert 0 <= line.evaluated <= line.objects
        assert line.objects == sum(
            (document["apiVersion"], document["kind"]) == (line.api_version, line.kind)
            for document in cluster.documents
        )


@given(CLUSTERS | MATCHED)
def test_no_policy_causes_an_internal_error(cluster: FakeCluster) -> None:
    """Assay has an outcome wherever a server would have one."""
    recorded = scanned(cluster)
    assert not [gap for gap in recorded.gaps if "internal error" in gap.why]


@pytest.mark.long
@given(CLUSTERS | MATCHED)
def test_errors_keep_both_facts(cluster: FakeCluster) -> None:
    """An errored outcome has the error and the decision of admission."""
    recorded = scanned(cluster)
    ignoring = {policy.name for policy in recorded.start.policies if policy.failure_policy == "Ignore"}
    for finding in recorded.findings:
        if isinstance(finding.outcome, Errored):
            assert finding.outcome.message
            assert (finding.policy in ignoring) != finding.outcome.would_deny


def with_trouble(cluster: FakeCluster, data: st.DataObject, kinds: list[str]) -> FakeCluster:
    """The cluster with a list that is denied, breaks off or cannot be read."""
    plural = data.draw(st.sampled_from(kinds))
    faults: list[Callable[[], dict[str, Any]]] = [
        lambda: {"refused": {plural: ListFailed("forbidden", "forbidden")}},
        lambda: {"refused": {plural: ListFailed("failed", "no answer")}},
        lambda: {"broken": {plural: ListFailed("failed", "connection lost")}},
        lambda: {"raw": {plural: [b"{"]}},
        lambda: {"raw": {plural: [orjson.dumps({"items": [data.draw(st.sampled_from([None, 1, {}, []]))]})]}},
    ]
    return changed(cluster, **data.draw(st.sampled_from(faults))())


@given(CLUSTERS | MATCHED, st.data())
def test_a_scan_without_a_list_is_never_complete(cluster: FakeCluster, data: st.DataObject) -> None:
    """A list that is denied, breaks off or cannot be read is a gap."""
    looked_at = changed(cluster)
    scanned(looked_at)
    # Params of one namespace are listed by that namespace.
    kinds = sorted({plural.rpartition("/")[2] for plural in looked_at.listed})
    recorded = scanned(with_trouble(cluster, data, kinds))
    assert ScanState.INCOMPLETE == recorded.scan.state
    assert recorded.gaps


@given(CLUSTERS | MATCHED, st.data())
def test_a_missing_list_adds_no_finding(cluster: FakeCluster, data: st.DataObject) -> None:
    """The findings of a scan without a list are findings of the complete scan.

    An object whose namespace does not exist is a gap, but only for a scan that may list namespaces.
    """
    everything = {finding.fingerprint for finding in scanned(cluster).findings}
    there = {"", *(document["metadata"]["name"] for document in cluster.documents if document["kind"] == "Namespace")}
    recorded = scanned(with_trouble(cluster, data, ["pods", "nodes", "namespaces", "configmaps", "limits.example.com"]))
    assert {finding.fingerprint for finding in recorded.findings if finding.namespace in there} <= everything


@given(
    DOCUMENTS,
    st.sampled_from([{}, {"spec": 3}, {"metadata": {"name": "Bad_Name"}}, {"kind": "MutatingAdmissionPolicy"}]),
)
def test_a_bad_policy_document_is_a_gap(documents: list[Document], fault: Document) -> None:
    """The scan continues with the other documents."""
    bad = Manifest("f.yaml, document 1", policy("bad") | {"spec": {}} | fault)
    recorded = scanned(FakeCluster(documents), Options(manifests=(bad,)))
    assert ScanState.INCOMPLETE == recorded.scan.state
    assert "f.yaml, document 1" in {gap.where for gap in recorded.gaps}


@given(CLUSTERS | MATCHED)
def test_a_partial_scan_has_a_gap_or_nothing_to_evaluate(cluster: FakeCluster) -> None:
    """A complete scan has neither: coverage and gaps agree."""
    recorded = scanned(cluster)
    complete = all(line.state in (CoverageState.LISTED, CoverageState.SKIPPED) for line in recorded.end.coverage)
    objects = sum(line.objects for line in recorded.end.coverage)
    assert (recorded.scan.state is ScanState.COMPLETE) == (complete and not recorded.gaps and objects > 0)


@given(CLUSTERS | MATCHED, st.data())
@settings(max_examples=60)
def test_the_order_of_documents_decides_nothing(cluster: FakeCluster, data: st.DataObject) -> None:
    """Documents in another order and in pages of another size have the same findings, counts, gaps and health."""
    shuffled = data.draw(st.permutations(list(cluster.documents)))
    other = changed(cluster, documents=shuffled, page_size=data.draw(st.integers(1, 5)))
    first, second = scanned(cluster), scanned(other)
    assert {finding.fingerprint: finding for finding in first.findings} == {
        finding.fingerprint: finding for finding in second.findings
    }
    assert (first.tallies, set(first.gaps), first.end.health) == (second.tallies, set(second.gaps), second.end.health)
    assert first.start.policies == second.start.policies
    assert (first.start.rules, first.start.policy_set_digest) == (second.start.rules, second.start.policy_set_digest)


@given(CLUSTERS | MATCHED)
@settings(max_examples=30)
def test_the_same_cluster_gives_the_same_report(cluster: FakeCluster) -> None:
    """Two scans of a cluster record equal data in equal order."""
    first, second = scanned(changed(cluster)), scanned(changed(cluster))
    assert (first.start, first.pages, first.end) == (second.start, second.pages, second.end)
