"""Which policies are in force, for which objects, and what else decides."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.errors import ListFailed
from scanner.model.resource import Kind
from scanner.model.scan import OutOfScope, ScanState
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import BINDINGS, KINDS, POLICIES, Document, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import FakeCluster, Told, changed, scanned

GROUP = "admissionregistration.k8s.io"
VALIDATING = Kind(GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False)
MUTATING = Kind(GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False)
PLURALS = ("validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations")
ON_ADMISSION = {"matchConstraints": {"resourceRules": [rule(*PLURALS, group=GROUP)]}}
CLUSTER = FakeCluster(
    [
        namespace("default"),
        pod("web"),
        thing(VALIDATING, "guard", webhooks=[{"name": "pods.guard.io"}, {"name": "nodes.guard.io"}]),
        thing(MUTATING, "filler", webhooks=[{"name": "labels.filler.io"}]),
    ],
    kinds=(*KINDS, VALIDATING, MUTATING),
)
STATIC = "admission.static.k8s.io"


def told(*documents: Document, files: tuple[Document, ...] = (), **fields: Any) -> Told:
    """A scan of the cluster with these documents in it, and these in files."""
    manifests = tuple(Manifest(f"f.yaml, document {number}", it) for number, it in enumerate(files, start=1))
    cluster = changed(CLUSTER, documents=[*CLUSTER.documents, *documents], **fields)
    return scanned(cluster, Options(manifests=manifests))


def found(scan: Told) -> list[tuple[str, str]]:
    """Kind and name of what was found fault with."""
    return sorted((it.kind, it.name) for it in scan.findings)


def test_a_policy_that_nothing_binds_never_runs() -> None:
    """It is reported as such; a scan without any bound policy is not complete."""
    scan = told(policy("p", "false"))
    assert ([], [("unbound", "p", "")], ScanState.PARTIAL) == (found(scan), scan.health, scan.scan.state)


def test_policy_objects_are_exempt_and_webhook_configurations_are_not() -> None:
    """Contrary to common belief."""
    scan = told(policy("p", "false", **ON_ADMISSION), binding("b", "p"))
    assert [("ValidatingWebhookConfiguration", "guard")] == found(scan)


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_every_version_of_the_api_means_the_same(version: str) -> None:
    """Whatever is served, and whatever a file is written in."""
    documents = [{**it, "apiVersion": f"{GROUP}/{version}"} for it in (policy("p", "false"), binding("b", "p"))]
    kinds = [
        Kind(it.group, version, it.kind, it.plural, it.namespaced) if it in (POLICIES, BINDINGS) else it
        for it in CLUSTER.kinds
    ]
    assert [("Pod", "web")] == found(told(*documents, kinds=tuple(kinds)))
    assert [("Pod", "web")] == found(told(files=tuple(documents)))


def test_the_newest_served_version_is_listed() -> None:
    """Once: the other versions show the same objects."""
    old = [Kind(it.group, "v1beta1", it.kind, it.plural, it.namespaced) for it in (POLICIES, BINDINGS)]
    scan = told(policy("p", "false"), binding("b", "p"), kinds=(*old, *CLUSTER.kinds))
    assert [("Pod", "web")] == found(scan)


def test_only_an_alpha_binding_may_leave_out_what_becomes_of_missing_params() -> None:
    """It defaults to Deny there, and is required since."""
    asking = policy("p", "true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    bound = binding("b", "p", paramRef={"name": "c", "namespace": "default"})
    alpha = told(files=(asking, {**bound, "apiVersion": f"{GROUP}/v1alpha1"}))
    assert ["no params found for policy binding with `Deny` parameterNotFoundAction"] == [
        it.outcome.message.removeprefix("failed to configure binding: ") for it in alpha.findings
    ]
    refused = told(files=(asking, bound))
    assert ["spec.paramRef.parameterNotFoundAction: Required value"] == [
        gap.why.partition(" is invalid: ")[2] for gap in refused.gaps
    ]


def test_static_policies_see_policy_objects() -> None:
    """They are manifests of the control plane, which no API lists; files show them."""
    files = (policy(STATIC, "false", **ON_ADMISSION), binding(f"b.{STATIC}", STATIC))
    scan = told(policy("other", "true"), binding("other", "other"), files=files)
    assert [
        ("ValidatingAdmissionPolicy", "other"),
        ("ValidatingAdmissionPolicyBinding", "other"),
        ("ValidatingWebhookConfiguration", "guard"),
    ] == found(scan)


def test_a_policy_of_the_api_is_not_static_whatever_its_name() -> None:
    """An older server lets such a name be taken; the policy is exempted as any other."""
    scan = told(policy(STATIC, "false", **ON_ADMISSION), binding(f"b.{STATIC}", STATIC))
    assert [("ValidatingWebhookConfiguration", "guard")] == found(scan)


def test_bindings_of_the_api_do_not_bind_static_policies() -> None:
    """Either side is joined with its own."""
    scan = told(binding("b", STATIC), files=(policy(STATIC, "false"),))
    assert ([], {("unbound", STATIC, ""), ("danglingBinding", STATIC, "b")}) == (found(scan), set(scan.health))


def test_a_static_policy_can_be_previewed() -> None:
    """Like any other."""
    cluster = changed(CLUSTER)
    options = Options(
        manifests=(Manifest("f.yaml", policy(STATIC, "false", **ON_ADMISSION)),), assume_bound=((STATIC, "Warn"),)
    )
    assert ["guard"] == [it.name for it in scanned(cluster, options).findings]


@pytest.mark.parametrize(
    ("asking", "bound"),
    [
        (policy(STATIC, "false", **ON_ADMISSION), binding("b", STATIC)),
        (policy("p", "false", **ON_ADMISSION), binding(f"b.{STATIC}", "p")),
    ],
)
def test_a_name_alone_makes_no_static_manifest(asking: Document, bound: Document) -> None:
    """The API server takes such names, too, unless it reads manifests of its own; a file may be meant for either."""
    scan = told(files=(asking, bound))
    assert ([], set()) == ([*scan.gaps], {it for it in scan.health if it[0] in ("unbound", "danglingBinding")})


def test_a_policy_with_params_is_no_static_manifest() -> None:
    """The control plane would not load it: it is an object of the API, whatever its name is."""
    params = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Allow"}
    files = (policy(STATIC, "false", paramKind=params, **ON_ADMISSION), binding("b", STATIC, paramRef=reference))
    assert "ValidatingAdmissionPolicy" not in {kind for kind, _ in found(told(files=files))}


def test_webhooks_are_named_as_out_of_scope() -> None:
    """They decide about requests too, and what a program decides is not written in the API."""
    scan = told(policy("p", "true"), binding("b", "p"))
    assert (
        OutOfScope(
            "ValidatingWebhookConfiguration",
            "guard",
            "2 webhooks (pods.guard.io, nodes.guard.io): what a program decides is not written in the API",
        ),
        OutOfScope(
            "MutatingWebhookConfiguration",
            "filler",
            "1 webhook (labels.filler.io): what a program decides is not written in the API",
        ),
    ) == scan.end.outside
    assert ScanState.COMPLETE == scan.scan.state


def test_webhooks_that_may_not_be_listed_are_said_to_be_unknown() -> None:
    """That is no gap: they would not have been evaluated."""
    refused = {f"{MUTATING.plural}.{GROUP}": ListFailed("forbidden", "forbidden for auditor")}
    scan = told(refused=refused)
    assert ("MutatingWebhookConfiguration", "", "whether there are any is not known: forbidden for auditor") in {
        (it.kind, it.name, it.why) for it in scan.end.outside
    }
    assert () == scan.gaps


def test_a_cluster_without_webhooks_has_nothing_out_of_scope() -> None:
    """Nothing is said then."""
    assert () == scanned(FakeCluster([namespace("default")], kinds=CLUSTER.kinds)).end.outside
