"""The promises of a scan, held against clusters that nobody would write.

Conservation: every matched resource, invocation and check yields exactly one outcome. Silence is never success: what was
not seen makes the scan partial, and is a gap. Same input, same report: the order of documents decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.errors import ListFailed
from scanner.model.outcome import CheckKind, Errored
from scanner.model.scan import CoverageState, OutcomeName, ScanState
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
from tests.scan.fakes import FakeCluster, Told, changed, scanned

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
    """What a server holds only one of."""
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


def checks_of(told: Told, name: str) -> int:
    """How many checks a policy has."""
    (found,) = (it for it in told.start.policies if it.name == name)
    return len(found.validations) + len(found.audit_annotations)


@given(CLUSTERS)
def test_every_check_of_a_matched_invocation_has_one_outcome(cluster: FakeCluster) -> None:
    """For each object and invocation: all checks of the policy, or its conditions or configuration, each once."""
    told = scanned(cluster)
    per_invocation: Counter[tuple[object, ...]] = Counter()
    whole: Counter[tuple[object, ...]] = Counter()
    for key, count in told.tallies.items():
        place = (key.policy, key.binding, key.param_namespace, key.param_name, key.api_version, key.kind, key.namespace)
        if key.check.kind in (CheckKind.CONDITIONS, CheckKind.CONFIGURATION):
            whole[place] += count
        else:
            per_invocation[(*place, key.check)] += count
    by_check: dict[tuple[object, ...], list[int]] = {}
    for (*invocation, _), count in per_invocation.items():
        by_check.setdefault(tuple(invocation), []).append(count)
    for invocation_key, counts in by_check.items():
        assert [counts[0]] * checks_of(told, str(invocation_key[0])) == counts
    judged = Counter({key: counts[0] for key, counts in by_check.items()}) + whole
    assert all(told.coverage(str(place[5]), str(place[4])).evaluated > 0 for place in judged)


@given(CLUSTERS)
def test_what_does_not_pass_is_a_finding(cluster: FakeCluster) -> None:
    """Findings are what was counted as violated or errored: no more, no less, each told once."""
    told = scanned(cluster)
    bad = (OutcomeName.VIOLATED, OutcomeName.ERRORED_DENY, OutcomeName.ERRORED_ADMIT)
    assert told.counted(*bad) == len(told.findings)
    assert len(told.findings) == len({finding.fingerprint for finding in told.findings})


@given(CLUSTERS)
def test_matched_objects_are_no_more_than_listed_ones(cluster: FakeCluster) -> None:
    """Evaluated objects are among the listed ones, and every object of a listed kind is in the ledger."""
    told = scanned(cluster)
    for line in told.end.coverage:
        assert 0 <= line.evaluated <= line.objects
        assert line.objects == sum(
            (it["apiVersion"], it["kind"]) == (line.api_version, line.kind) for it in cluster.documents
        )


@given(CLUSTERS)
def test_no_verdict_is_a_fault_of_ours(cluster: FakeCluster) -> None:
    """Whatever the policies say: nothing raises where a server would have an answer."""
    told = scanned(cluster)
    assert not [gap for gap in told.gaps if "internal error" in gap.why]


@given(CLUSTERS)
def test_errors_keep_both_facts(cluster: FakeCluster) -> None:
    """What went wrong, and what admission would have done about it."""
    told = scanned(cluster)
    ignoring = {it.name for it in told.start.policies if it.failure_policy == "Ignore"}
    for finding in told.findings:
        if isinstance(finding.outcome, Errored):
            assert finding.outcome.message
            assert (finding.policy in ignoring) != finding.outcome.would_deny


def trouble(cluster: FakeCluster, data: st.DataObject, kinds: list[str]) -> FakeCluster:
    """The cluster with something that cannot be seen."""
    plural = data.draw(st.sampled_from(kinds))
    faults: list[Callable[[], dict[str, Any]]] = [
        lambda: {"refused": {plural: ListFailed("forbidden", "forbidden")}},
        lambda: {"refused": {plural: ListFailed("failed", "no answer")}},
        lambda: {"broken": {plural: ListFailed("failed", "connection lost")}},
        lambda: {"raw": {plural: [b"{"]}},
        lambda: {"raw": {plural: [orjson.dumps({"items": [data.draw(st.sampled_from([None, 1, {}, []]))]})]}},
    ]
    return changed(cluster, **data.draw(st.sampled_from(faults))())


@given(CLUSTERS, st.data())
def test_what_cannot_be_seen_is_never_complete(cluster: FakeCluster, data: st.DataObject) -> None:
    """Refused, broken off or unreadable: of all that a scan looks at, nothing is missed in silence."""
    looked_at = changed(cluster)
    scanned(looked_at)
    # Params of one namespace are listed by that namespace.
    kinds = sorted({plural.rpartition("/")[2] for plural in looked_at.listed})
    told = scanned(trouble(cluster, data, kinds))
    assert ScanState.PARTIAL == told.scan.state
    assert told.gaps


@given(CLUSTERS, st.data())
def test_what_cannot_be_seen_adds_no_verdict(cluster: FakeCluster, data: st.DataObject) -> None:
    """A finding of a scan that saw less is a finding of the scan that saw everything.

    An object whose namespace does not exist is a gap, but only for a scan that may list namespaces.
    """
    everything = {finding.fingerprint for finding in scanned(cluster).findings}
    there = {"", *(it["metadata"]["name"] for it in cluster.documents if it["kind"] == "Namespace")}
    told = scanned(trouble(cluster, data, ["pods", "nodes", "namespaces", "configmaps", "limits.example.com"]))
    assert {finding.fingerprint for finding in told.findings if finding.namespace in there} <= everything


@given(
    DOCUMENTS,
    st.sampled_from([{}, {"spec": 3}, {"metadata": {"name": "Bad_Name"}}, {"kind": "MutatingAdmissionPolicy"}]),
)
def test_a_bad_policy_document_is_a_gap(documents: list[Document], fault: Document) -> None:
    """It stops nothing, and is not passed over."""
    bad = Manifest("f.yaml, document 1", policy("bad") | {"spec": {}} | fault)
    told = scanned(FakeCluster(documents), Options(manifests=(bad,)))
    assert ScanState.PARTIAL == told.scan.state
    assert "f.yaml, document 1" in {gap.where for gap in told.gaps}


@given(CLUSTERS)
def test_a_partial_scan_has_a_gap_or_nothing_to_evaluate(cluster: FakeCluster) -> None:
    """And a complete one has neither: the ledger and the gaps agree."""
    told = scanned(cluster)
    complete = all(line.state in (CoverageState.LISTED, CoverageState.SKIPPED) for line in told.end.coverage)
    objects = sum(line.objects for line in told.end.coverage)
    assert (told.scan.state is ScanState.COMPLETE) == (complete and not told.gaps and objects > 0)


@given(CLUSTERS, st.data())
@settings(max_examples=60)
def test_the_order_of_documents_decides_nothing(cluster: FakeCluster, data: st.DataObject) -> None:
    """Shuffled and in pages of other sizes, the same cluster gives the same findings, counts, gaps and health."""
    shuffled = data.draw(st.permutations(list(cluster.documents)))
    other = changed(cluster, documents=shuffled, page_size=data.draw(st.integers(1, 5)))
    one, two = scanned(cluster), scanned(other)
    assert {it.fingerprint: it for it in one.findings} == {it.fingerprint: it for it in two.findings}
    assert (one.tallies, set(one.gaps), one.end.health) == (two.tallies, set(two.gaps), two.end.health)
    assert one.start.policies == two.start.policies


@given(CLUSTERS)
@settings(max_examples=30)
def test_the_same_cluster_gives_the_same_report(cluster: FakeCluster) -> None:
    """To the last field, in the same order."""
    one, two = scanned(changed(cluster)), scanned(changed(cluster))
    assert (one.start, one.pages, one.end) == (two.start, two.pages, two.end)
