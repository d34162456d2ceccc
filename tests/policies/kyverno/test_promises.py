"""A ValidatingPolicy without Kyverno's own features has the results of the same spec as a ValidatingAdmissionPolicy.

The specs are for CREATE with `matchPolicy: Exact`, and without the known differences: message expressions, the old object, the
requester, and object selectors that an object without labels matches.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.api import Auditor, InvocationResult
from scanner.audit.findings import name_outcome
from scanner.cluster.definitions import builtin_kinds
from scanner.model.scans.tally import OutcomeName
from tests.documents import KINDS
from tests.policies.kyverno.made import deployment, pod
from tests.policies.kyverno.test_scanned import KYVERNO
from tests.scan.fakes import FakeCluster, scanned

ATOMS = st.sampled_from(
    [
        "object.metadata.name == 'web'",
        "object.metadata.labels['a'] == 'b'",
        "has(object.metadata.labels.a)",
        "object.?spec.?hostNetwork.hasValue()",
        "object.spec.containers.all(one, one.image.startsWith('nginx'))",
        "object.spec.containers.exists(one, one.ports.size() > 0)",
        "object.spec.containers[1].name == 'x'",
        "object.none.deeper == 1",
        "1 / int(object.spec.?replicas.hasValue() ? 1 : 0) == 1",
        "namespaceObject.metadata.name == 'team'",
        "namespaceObject.metadata.labels['missing'] == 'x'",
        "request.operation == 'CREATE' && request.namespace == 'team'",
        "request.kind.kind in ['Pod', 'Deployment']",
        "variables.first == 1",
        "variables.bad == 1",
        "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        "ip('1.2.3.4').family() == 4",
        "object.kind == 'Pod' ? object.spec.containers.size() == 1 : object.spec.template.spec.containers.size() == 1",
    ]
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from(["&&", "||"]), inner)
    return pairs.map(lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})") | inner.map(lambda text: f"!({text})")


EXPRESSIONS = st.recursive(ATOMS, _combined, max_leaves=4)
# Match conditions of an admission policy see no namespace, and those of Kyverno no variables.
CONDITIONS = st.lists(
    EXPRESSIONS.filter(lambda text: "variables" not in text and "namespaceObject" not in text), max_size=2
)
SELECTORS = st.sampled_from(
    [{}, {"matchLabels": {"a": "b"}}, {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
)
NAMESPACES: Any = ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"a": "b"}}},)
OBJECTS = st.sampled_from(
    [pod(), pod("other", labels={"a": "b"}), pod(hostNetwork=True), deployment(labels={"a": "b"})]
)
RULES = st.sampled_from([("", ["pods"]), ("apps", ["deployments"]), ("*", ["*"]), ("", ["pods/*", "services"])])


@st.composite
def specs(draw: st.DrawFn) -> Any:
    """A spec that both APIs accept, without autogen."""
    group, resources = draw(RULES)
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": resources}
    match = {
        "matchPolicy": "Exact",
        "resourceRules": [rule],
        "namespaceSelector": draw(SELECTORS),
        "objectSelector": draw(SELECTORS),
    }
    conditions = [{"name": f"c{index}", "expression": text} for index, text in enumerate(draw(CONDITIONS))]
    return {
        "matchConstraints": match,
        "matchConditions": conditions,
        "variables": [{"name": "first", "expression": "1"}, {"name": "bad", "expression": "object.none.deeper"}],
        "validations": [{"expression": text} for text in draw(st.lists(EXPRESSIONS, min_size=1, max_size=3))],
        "failurePolicy": draw(st.sampled_from(["Fail", "Ignore"])),
    }


def _classes_of(spec: Any, document: Any, *, kyverno: bool) -> list[list[tuple[str, str, int]]]:
    version, kind = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
    binding: Any = {
        "apiVersion": version,
        "kind": f"{kind}Binding",
        "metadata": {"name": "p"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    }
    if kyverno:
        version, kind = "policies.kyverno.io/v1", "ValidatingPolicy"
        spec = {**spec, "autogen": {"podControllers": {"controllers": []}}}
    auditor = Auditor(
        policies=[{"apiVersion": version, "kind": kind, "metadata": {"name": "p"}, "spec": spec}],
        bindings=[] if kyverno else [binding],
        namespaces=NAMESPACES,
        kinds=builtin_kinds(),
    )
    return [_classes(invocation_result) for invocation_result in auditor.evaluate(document, operation="CREATE")]


def _classes(invocation_result: InvocationResult) -> list[tuple[str, str, int]]:
    return [
        (type(result.outcome).__name__, result.check.kind, result.check.index)
        for result in invocation_result.check_results
    ]


@settings(max_examples=80, deadline=None)
@given(specs(), OBJECTS)
def test_both_languages_evaluate_the_same_spec_alike(spec: Any, document: Any) -> None:
    """Both languages match the same objects, and every check has an outcome of the same class."""
    assert _classes_of(spec, document, kyverno=False) == _classes_of(spec, document, kyverno=True)


@settings(max_examples=40, deadline=None)
@given(specs(), st.booleans())
def test_the_fast_path_has_the_tallies_of_an_evaluation(spec: Any, annotated: bool) -> None:  # noqa: FBT001
    """The fast path of a scan has the tallies of an evaluation of each object."""
    more = {"auditAnnotations": [{"key": "a", "valueExpression": "has(object.metadata.labels.a) ? 'a' : null"}]}
    manifest: Any = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": {**spec, **(more if annotated else {})},
    }
    objects = [pod(), pod("other", labels={"a": "b"}), pod("third", hostNetwork=True), deployment(labels={"a": "b"})]
    scan = scanned(FakeCluster([*NAMESPACES, manifest, *objects], kinds=(*KINDS, *KYVERNO)))
    auditor = Auditor(policies=[manifest], bindings=[], namespaces=NAMESPACES, kinds=KINDS)
    invocation_results = [invocation_result for document in objects for invocation_result in auditor.evaluate(document)]
    expected = Counter(
        name_outcome(result.outcome)
        for invocation_result in invocation_results
        for result in invocation_result.check_results
    )
    counted: Counter[OutcomeName] = Counter()
    for key, number in scan.tallies.items():
        counted[key.outcome] += number if key.kind in ("Pod", "Deployment") else 0
    assert expected == +counted
