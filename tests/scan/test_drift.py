"""Scans with mutating policies record the changes that they would make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from scanner.cluster.schemas import KnownSchemas, builtin_schemas, read_custom_schemas
from scanner.model.outcome import Change, Errored, GapKind, WouldChange
from scanner.model.resource import Kind, Page
from scanner.model.scans.health import HealthKind
from scanner.model.scans.tally import OutcomeName
from scanner.policies.mutating import language
from scanner.policies.mutating import language as mutating
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import KINDS
from tests.scan.fakes import FakeCluster, Recorded, scanned

VERSION = "admissionregistration.k8s.io/v1"


def policy(name: str, *mutations: str, **spec: Any) -> dict[str, Any]:
    """A mutating policy for config maps; a mutation that begins with a bracket is a JSON patch."""
    bodies = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
        if text.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        for text in mutations
    ]
    rule = {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "resources": ["configmaps", "gizmos"],
    }
    defaults = {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [rule]}}
    return {
        "apiVersion": VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {**defaults, "mutations": bodies, **spec},
    }


def binding(name: str) -> dict[str, Any]:
    """The binding of a policy."""
    return {
        "apiVersion": VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }


def config_map(name: str, **fields: Any) -> dict[str, Any]:
    """A config map with data `a: 1`."""
    metadata = {"name": name, "namespace": "shop", **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}, **fields}


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
LABEL = policy("label", 'Object{metadata: Object.metadata{labels: {"team": "x"}}}')
KINDS_OF_POLICIES = (
    Kind(
        "admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", namespaced=False
    ),
    Kind(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        namespaced=False,
    ),
)


def cluster(*documents: dict[str, Any], kinds: tuple[Kind, ...] = ()) -> FakeCluster:
    """A cluster with these documents and their namespace."""
    return FakeCluster((NAMESPACE, *documents), kinds=(*KINDS, *KINDS_OF_POLICIES, *kinds))


def test_a_change_is_recorded_as_drift() -> None:
    """An object that the policy would change is drift, an unchanged object passes; neither is a violation."""
    recorded = scanned(
        cluster(LABEL, binding("label"), config_map("a"), config_map("b", metadata={"labels": {"team": "x"}}))
    )
    (finding,) = recorded.findings

    assert WouldChange((Change("add", "/metadata/labels", {"team": "x"}),)) == finding.outcome
    assert not finding.denies
    assert (1, 1) == (recorded.counted(OutcomeName.WOULD_CHANGE), recorded.counted(OutcomeName.PASSED))


def test_a_mutation_reads_the_result_of_earlier_mutations() -> None:
    """The second mutation changes the result of the first, and each has a patch of its own."""
    both = policy(
        "both",
        'Object{data: {"b": "2"}}',
        '[JSONPatch{op: "add", path: "/data/c", value: object.data.b + "!"}]',
    )
    recorded = scanned(cluster(both, binding("both"), config_map("a")))

    assert [(Change("add", "/data/b", "2"),), (Change("add", "/data/c", "2!"),)] == [
        finding.outcome.patch for finding in recorded.findings if isinstance(finding.outcome, WouldChange)
    ]


def test_a_policy_that_does_not_converge_is_marked() -> None:
    """A second application of the patch would change the object again."""
    grows = policy("grows", '[JSONPatch{op: "add", path: "/data/a", value: object.data.a + "1"}]')
    (finding,) = scanned(cluster(grows, binding("grows"), config_map("a"))).findings

    assert WouldChange((Change("replace", "/data/a", "11"),), converges=False) == finding.outcome


def test_a_policy_that_may_run_again_has_the_patch_of_both_runs() -> None:
    """With IfNeeded a policy runs again in the same request after it changed the object."""
    grows = policy(
        "grows", '[JSONPatch{op: "add", path: "/data/a", value: object.data.a + "1"}]', reinvocationPolicy="IfNeeded"
    )
    (finding,) = scanned(cluster(grows, binding("grows"), config_map("a"))).findings

    assert isinstance(finding.outcome, WouldChange)
    assert "111" == finding.outcome.patch[-1].value


@pytest.mark.parametrize(("failure_policy", "denies"), [("Fail", True), ("Ignore", False)])
def test_a_mutation_that_fails_is_an_error_of_its_own(failure_policy: str, *, denies: bool) -> None:
    """The error states the decision of admission, and the other mutations are evaluated."""
    fails = policy(
        "fails", '[JSONPatch{op: "remove", path: "/x"}]', 'Object{data: {"b": "2"}}', failurePolicy=failure_policy
    )
    first, second = scanned(cluster(fails, binding("fails"), config_map("a"))).findings

    assert isinstance(first.outcome, Errored)
    assert (
        "JSON Patch: error in remove for path: '/x': Unable to remove nonexistent key: x: missing value"
        == first.outcome.message
    )
    assert denies is first.denies
    assert isinstance(second.outcome, WouldChange)


def test_a_kind_without_a_schema_is_a_gap() -> None:
    """A merge without a schema would be a guess."""
    gizmo = Kind("mx.example.com", "v1", "Gizmo", "gizmos", namespaced=True)
    document = {"apiVersion": "mx.example.com/v1", "kind": "Gizmo", "metadata": {"name": "g", "namespace": "shop"}}
    recorded = scanned(cluster(LABEL, binding("label"), document, kinds=(gizmo,)))

    assert [(GapKind.EVALUATION, "mx.example.com/v1/Gizmo")] == [(gap.kind, gap.where) for gap in recorded.gaps]
    assert "no OpenAPI schema of mx.example.com/v1/Gizmo is known" in recorded.gaps[0].why


def test_a_binding_joins_only_policies_of_its_language() -> None:
    """A validating binding does not bind a mutating policy of the same name."""
    validating = {
        **binding("label"),
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "label", "validationActions": ["Deny"]},
    }
    recorded = scanned(cluster(LABEL, validating, config_map("a")))

    assert [] == [*recorded.findings]
    assert HealthKind.UNBOUND in {kind for kind, *_ in recorded.health}


def test_a_policy_without_a_binding_can_be_previewed() -> None:
    """--assume-bound adds a binding; its action has no effect on mutations."""
    options = Options(manifests=(Manifest("label.yaml", LABEL),), assume_bound=(("label", "Deny"),))
    (finding,) = scanned(cluster(config_map("a")), options).findings

    assert "assumed:label" == finding.binding
    assert isinstance(finding.outcome, WouldChange)


def test_no_value_of_a_secret_is_recorded() -> None:
    """Of a Secret only changes to metadata are recorded."""
    copies = policy(
        "copies",
        '[JSONPatch{op: "add", path: "/data/b", value: object.data.a},'
        ' JSONPatch{op: "add", path: "/metadata/annotations", value: {"x": object.data.a}},'
        ' JSONPatch{op: "add", path: "/metadata/labels", value: {"x": object.data.a}}]',
        matchConstraints={
            "resourceRules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["secrets"]}]
        },
    )
    secret = {**config_map("s"), "kind": "Secret", "data": {"a": "aHVudGVyMg=="}}
    recorded = scanned(cluster(copies, binding("copies"), secret))

    assert recorded.findings
    assert "aHVudGVyMg" not in repr(recorded.findings)


def test_the_joint_result_of_several_policies_is_recorded_with_each() -> None:
    """Each policy is evaluated on the stored object; the changes of all together are a field of each outcome."""
    first = policy("one", 'Object{metadata: Object.metadata{labels: {"one": "1"}}}')
    second = policy("two", 'Object{metadata: Object.metadata{labels: {"two": "2"}}}')
    findings = scanned(cluster(first, binding("one"), second, binding("two"), config_map("a"))).findings
    together = (Change("add", "/metadata/labels", {"one": "1", "two": "2"}),)

    assert WouldChange((Change("add", "/metadata/labels", {"one": "1"}),), together=together) == findings[0].outcome
    assert WouldChange((Change("add", "/metadata/labels", {"two": "2"}),), together=together) == findings[1].outcome


def test_policies_whose_order_matters_are_marked() -> None:
    """Two policies set a field to different values, and a server applies them in random order."""
    first = policy("one", 'Object{data: {"a": "one"}}')
    second = policy("two", 'Object{data: {"a": "two"}}')
    outcomes = [
        finding.outcome
        for finding in scanned(cluster(first, binding("one"), second, binding("two"), config_map("a"))).findings
    ]

    assert [True, True] == [isinstance(outcome, WouldChange) and outcome.order_matters for outcome in outcomes]
    assert all(isinstance(outcome, WouldChange) and outcome.together[0].value == "two" for outcome in outcomes)


@pytest.mark.parametrize(("rules", "expected"), [((1, 36), []), ((1, 37), ["plain"])])
def test_policies_that_may_read_either_form_of_the_object_are_named(
    rules: tuple[int, int], expected: list[str]
) -> None:
    """From 1.37 on, a policy with match conditions changes the form of the object for later policies.

    A policy without match conditions reads either form, because the order of policies is random.
    """
    made = [
        policy("asks", "Object{}", matchConditions=[{"name": "any", "expression": "true"}]),
        policy("plain", "Object{metadata: Object.metadata{labels: object.metadata.labels}}"),
        policy("blind", 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'),
    ]
    bound = mutating.bind(
        [mutating.read_policy(manifest) for manifest in made],
        [mutating.read_binding(binding(manifest["metadata"]["name"])) for manifest in made],
        schemas=KnownSchemas(builtin_schemas()),
        rules=rules,
    )

    assert expected == [note.policy for note in language.find_ambiguous_order(bound, KINDS, rules)]


def test_the_previous_value_is_shortened() -> None:
    """The previous value is for readers; the patch itself is complete."""
    empties = policy("empties", '[JSONPatch{op: "replace", path: "/data/a", value: ""}]')
    (finding,) = scanned(cluster(empties, binding("empties"), config_map("a", data={"a": "x" * 1_000_000}))).findings

    assert isinstance(finding.outcome, WouldChange)
    assert "[1,000,000 characters]" == finding.outcome.patch[0].was


GADGETS = Kind("example.com", "v1", "Gadget", "gadgets", namespaced=True)
FREE = {
    "spec": {
        "group": "example.com",
        "names": {"kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    }
}


class Deep(FakeCluster):
    """A cluster with two custom resources, one of which has `levels` nested levels."""

    levels = 0

    def schemas(self) -> KnownSchemas:
        return KnownSchemas(read_custom_schemas(FREE))  # type: ignore[arg-type]

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        if kind != GADGETS:
            yield from super().pages(kind, namespace=namespace, selector=selector)
            return
        deep = '{"a":' * self.levels + "1" + "}" * self.levels
        items = [
            f'{{"metadata": {{"name": "{name}", "namespace": "shop"}}, "free": {free}}}'
            for name, free in (("deep", deep), ("flat", "{}"))
        ]
        yield Page(kind, 1, f'{{"items": [{", ".join(items)}]}}'.encode())


def on_gadgets(*texts: str, levels: int) -> Recorded:
    """A scan of both objects by one policy for each text."""
    rule = {"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["gadgets"]}
    policies = [
        policy(f"p{number}", text, matchConstraints={"resourceRules": [rule]}) for number, text in enumerate(texts)
    ]
    bindings = [binding(f"p{number}") for number in range(len(texts))]
    gadgets = Deep((NAMESPACE, *policies, *bindings), kinds=(*KINDS, *KINDS_OF_POLICIES, GADGETS))
    gadgets.levels = levels
    return scanned(gadgets)


@pytest.mark.parametrize("levels", [400, 1000])
def test_a_deeply_nested_object_is_evaluated_like_any_other(levels: int) -> None:
    """Its patches are small, and the joint result of two policies is recorded."""
    texts = [
        "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
        "[JSONPatch{op: 'add', path: '/flag', value: true}]",
    ]
    recorded = on_gadgets(*texts, levels=levels)
    assert ([], {"deep": 2, "flat": 2}) == ([*recorded.gaps], Counter(finding.name for finding in recorded.findings))
    assert all(
        "other policies or bindings also change this object" in finding.outcome.message for finding in recorded.findings
    )


def test_a_deeply_nested_patch_is_not_auditable() -> None:
    """No database and no report could store the patch."""
    recorded = on_gadgets("[JSONPatch{op: 'add', path: '/copy', value: object.free}]", levels=400)
    assert (["flat"], 1) == (
        [finding.name for finding in recorded.findings],
        recorded.counted(OutcomeName.NOT_AUDITABLE),
    )


def test_an_object_that_cannot_be_decoded_is_a_gap() -> None:
    """The other objects of the page are evaluated."""
    recorded = on_gadgets("[JSONPatch{op: 'add', path: '/flag', value: true}]", levels=3000)
    assert ["flat"] == [finding.name for finding in recorded.findings]
    (gap,) = recorded.gaps
    assert gap.why.startswith("an item of the list could not be decoded: depth limit exceeded")
