"""A scan with mutating policies: what they would change is recorded, and nothing passes in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from scanner.cluster.schemas import KnownSchemas, builtin_schemas, custom_schemas
from scanner.model.outcome import Change, Errored, GapKind, WouldChange
from scanner.model.resource import Kind, Page
from scanner.model.scan import HealthKind, OutcomeName
from scanner.policies.mutating import bind as mutating
from scanner.policies.mutating import mutation_order
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import KINDS
from tests.scan.fakes import FakeCluster, Told, scanned

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
    """What puts a policy into force."""
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
    """A cluster that holds these documents, and the namespace that they are in."""
    return FakeCluster((NAMESPACE, *documents), kinds=(*KINDS, *KINDS_OF_POLICIES, *kinds))


def test_what_a_policy_would_change_is_recorded_as_drift() -> None:
    """An object that differs is drift, one that is as the policy wants it passes; neither is a violation."""
    told = scanned(
        cluster(LABEL, binding("label"), config_map("a"), config_map("b", metadata={"labels": {"team": "x"}}))
    )
    (finding,) = told.findings

    assert WouldChange((Change("add", "/metadata/labels", {"team": "x"}),)) == finding.outcome
    assert not finding.denies
    assert (1, 1) == (told.counted(OutcomeName.WOULD_CHANGE), told.counted(OutcomeName.PASSED))


def test_mutations_see_what_the_ones_before_them_did() -> None:
    """The second mutation builds on the first, and each has its own patch."""
    both = policy(
        "both",
        'Object{data: {"b": "2"}}',
        '[JSONPatch{op: "add", path: "/data/c", value: object.data.b + "!"}]',
    )
    told = scanned(cluster(both, binding("both"), config_map("a")))

    assert [(Change("add", "/data/b", "2"),), (Change("add", "/data/c", "2!"),)] == [
        finding.outcome.patch for finding in told.findings if isinstance(finding.outcome, WouldChange)
    ]


def test_a_policy_that_never_ends_is_marked() -> None:
    """A patch that a second application would make once more does not converge."""
    grows = policy("grows", '[JSONPatch{op: "add", path: "/data/a", value: object.data.a + "1"}]')
    (finding,) = scanned(cluster(grows, binding("grows"), config_map("a"))).findings

    assert WouldChange((Change("replace", "/data/a", "11"),), converges=False) == finding.outcome


def test_a_policy_that_may_run_again_has_the_patch_of_both_runs() -> None:
    """IfNeeded: the policy runs once more in the same request, because it patched something."""
    grows = policy(
        "grows", '[JSONPatch{op: "add", path: "/data/a", value: object.data.a + "1"}]', reinvocationPolicy="IfNeeded"
    )
    (finding,) = scanned(cluster(grows, binding("grows"), config_map("a"))).findings

    assert isinstance(finding.outcome, WouldChange)
    assert "111" == finding.outcome.patch[-1].value


@pytest.mark.parametrize(("failure_policy", "denies"), [("Fail", True), ("Ignore", False)])
def test_a_mutation_that_fails_is_an_error_of_its_own(failure_policy: str, *, denies: bool) -> None:
    """What goes wrong is said, with what admission makes of it, and the other mutations are judged all the same."""
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


def test_a_kind_without_a_schema_is_a_gap_that_says_so() -> None:
    """What only a server can tell is not guessed."""
    gizmo = Kind("mx.example.com", "v1", "Gizmo", "gizmos", namespaced=True)
    one = {"apiVersion": "mx.example.com/v1", "kind": "Gizmo", "metadata": {"name": "g", "namespace": "shop"}}
    told = scanned(cluster(LABEL, binding("label"), one, kinds=(gizmo,)))

    assert [(GapKind.EVALUATION, "mx.example.com/v1/Gizmo")] == [(gap.kind, gap.where) for gap in told.gaps]
    assert "no OpenAPI schema of mx.example.com/v1/Gizmo is known" in told.gaps[0].why


def test_a_binding_joins_only_policies_of_its_language() -> None:
    """A mutating policy is not put into force by a validating binding of the same name."""
    validating = {
        **binding("label"),
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "label", "validationActions": ["Deny"]},
    }
    told = scanned(cluster(LABEL, validating, config_map("a")))

    assert [] == [*told.findings]
    assert HealthKind.UNBOUND in {kind for kind, *_ in told.health}


def test_a_policy_without_a_binding_can_be_previewed() -> None:
    """--assume-bound makes up a binding; the action plays no part."""
    options = Options(manifests=(Manifest("label.yaml", LABEL),), assume_bound=(("label", "Deny"),))
    (finding,) = scanned(cluster(config_map("a")), options).findings

    assert "assumed:label" == finding.binding
    assert isinstance(finding.outcome, WouldChange)


def test_the_values_of_a_secret_never_leave() -> None:
    """Of a Secret only metadata is shown, and no value of it elsewhere."""
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
    told = scanned(cluster(copies, binding("copies"), secret))

    assert told.findings
    assert "aHVudGVyMg" not in repr(told.findings)


def test_what_several_policies_make_of_an_object_is_said_with_each() -> None:
    """Each is judged on the stored object; what all of them do together is told beside it."""
    one = policy("one", 'Object{metadata: Object.metadata{labels: {"one": "1"}}}')
    two = policy("two", 'Object{metadata: Object.metadata{labels: {"two": "2"}}}')
    first, second = scanned(cluster(one, binding("one"), two, binding("two"), config_map("a"))).findings
    together = (Change("add", "/metadata/labels", {"one": "1", "two": "2"}),)

    assert WouldChange((Change("add", "/metadata/labels", {"one": "1"}),), together=together) == first.outcome
    assert WouldChange((Change("add", "/metadata/labels", {"two": "2"}),), together=together) == second.outcome


def test_policies_that_fight_each_other_are_marked() -> None:
    """Where the last word counts, the order of the policies matters, and on a server it is random."""
    one = policy("one", 'Object{data: {"a": "one"}}')
    two = policy("two", 'Object{data: {"a": "two"}}')
    outcomes = [
        it.outcome for it in scanned(cluster(one, binding("one"), two, binding("two"), config_map("a"))).findings
    ]

    assert [True, True] == [isinstance(it, WouldChange) and it.order_matters for it in outcomes]
    assert all(isinstance(it, WouldChange) and it.together[0].value == "two" for it in outcomes)


@pytest.mark.parametrize(("rules", "expected"), [((1, 36), []), ((1, 37), ["plain"])])
def test_policies_that_see_the_object_in_either_form_are_named(rules: tuple[int, int], expected: list[str]) -> None:
    """From 1.37 on a policy with match conditions changes what one without them sees, if it happens to run first."""
    made = [
        policy("asks", "Object{}", matchConditions=[{"name": "any", "expression": "true"}]),
        policy("plain", "Object{metadata: Object.metadata{labels: object.metadata.labels}}"),
        policy("blind", 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'),
    ]
    bound = mutating.bind(
        [mutating.read_policy(one) for one in made],
        [mutating.read_binding(binding(one["metadata"]["name"])) for one in made],
        schemas=KnownSchemas(builtin_schemas()),
        rules=rules,
    )

    assert expected == [note.policy for note in mutation_order.of_policies(bound, KINDS, rules)]


def test_what_stood_there_before_is_kept_short() -> None:
    """A diff is for readers; the patch itself is whole."""
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
    """A cluster with two custom resources, of which one nests so many levels deep."""

    levels = 0

    def schemas(self) -> KnownSchemas:
        return KnownSchemas(custom_schemas(FREE))  # type: ignore[arg-type]

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


def on_gadgets(*texts: str, levels: int) -> Told:
    """A scan of the two by a policy for each text."""
    rule = {"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["gadgets"]}
    policies = [
        policy(f"p{number}", text, matchConstraints={"resourceRules": [rule]}) for number, text in enumerate(texts)
    ]
    bindings = [binding(f"p{number}") for number in range(len(texts))]
    found = Deep((NAMESPACE, *policies, *bindings), kinds=(*KINDS, *KINDS_OF_POLICIES, GADGETS))
    found.levels = levels
    return scanned(found)


@pytest.mark.parametrize("levels", [400, 1000])
def test_an_object_that_nests_deeply_is_judged_as_any_other(levels: int) -> None:
    """Its patches are small; what two policies make of it together is told too."""
    texts = [
        "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
        "[JSONPatch{op: 'add', path: '/flag', value: true}]",
    ]
    told = on_gadgets(*texts, levels=levels)
    assert ([], {"deep": 2, "flat": 2}) == ([*told.gaps], Counter(one.name for one in told.findings))
    assert all("other policies or bindings also change this object" in one.outcome.message for one in told.findings)


def test_a_patch_that_nests_deeply_is_not_recorded_and_said() -> None:
    """No database and no report could take it; its object counts as not auditable."""
    told = on_gadgets("[JSONPatch{op: 'add', path: '/copy', value: object.free}]", levels=400)
    assert (["flat"], 1) == ([one.name for one in told.findings], told.counted(OutcomeName.NOT_AUDITABLE))


def test_of_a_page_with_an_object_that_nobody_can_decode_the_others_are_judged() -> None:
    """It is a gap that says so."""
    told = on_gadgets("[JSONPatch{op: 'add', path: '/flag', value: true}]", levels=3000)
    assert ["flat"] == [one.name for one in told.findings]
    (gap,) = told.gaps
    assert gap.why.startswith("an item of the list could not be decoded: depth limit exceeded")
