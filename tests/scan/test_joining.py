"""The policies and bindings in force, the objects that they match, and webhooks."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.errors import ListFailed
from scanner.model.resource import Kind
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import ScanState
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import BINDINGS, KINDS, POLICIES, Document, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import FakeCluster, Recorded, changed, scanned

GROUP = "admissionregistration.k8s.io"
VALIDATING = Kind(GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False)
MUTATING = Kind(GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False)
PLURALS = ("validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations")
ON_ADMISSION = {"matchConstraints": {"resourceRules": [rule(*PLURALS, group=GROUP)]}}


def called(name: str, **fields: Any) -> Document:
    """A webhook with a rule."""
    return {"name": name, "rules": [rule("pods")], **fields}


CLUSTER = FakeCluster(
    [
        namespace("default"),
        pod("web"),
        thing(
            VALIDATING, "guard", webhooks=[called("pods.guard.io"), called("nodes.guard.io", failurePolicy="Ignore")]
        ),
        thing(MUTATING, "filler", webhooks=[called("labels.filler.io", failurePolicy="Ignore")]),
    ],
    kinds=(*KINDS, VALIDATING, MUTATING),
)
STATIC = "admission.static.k8s.io"


def scan_of(*documents: Document, files: tuple[Document, ...] = (), **fields: Any) -> Recorded:
    """A scan of the cluster with these documents added, and `files` as policy files."""
    manifests = tuple(
        Manifest(f"f.yaml, document {number}", document) for number, document in enumerate(files, start=1)
    )
    cluster = changed(CLUSTER, documents=[*CLUSTER.documents, *documents], **fields)
    return scanned(cluster, Options(manifests=manifests))


def objects_with_findings(scan: Recorded) -> list[tuple[str, str]]:
    """Kind and name of the objects with findings."""
    return sorted((finding.kind, finding.name) for finding in scan.findings)


def test_a_policy_without_a_binding_is_not_evaluated() -> None:
    """Policy health reports it; a scan without any bound policy is not complete."""
    scan = scan_of(policy("p", "false"))
    assert ([], [("unbound", "p", "")], ScanState.INCOMPLETE) == (
        objects_with_findings(scan),
        scan.health,
        scan.scan.state,
    )


def test_policy_objects_are_exempt_and_webhook_configurations_are_not() -> None:
    """kube-apiserver exempts policies and bindings alone."""
    scan = scan_of(policy("p", "false", **ON_ADMISSION), binding("b", "p"))
    assert [("ValidatingWebhookConfiguration", "guard")] == objects_with_findings(scan)


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_every_version_of_the_api_means_the_same(version: str) -> None:
    """Documents of every served version, and of every version in files, have the same results."""
    documents = [
        {**document, "apiVersion": f"{GROUP}/{version}"} for document in (policy("p", "false"), binding("b", "p"))
    ]
    kinds = [
        Kind(kind.group, version, kind.kind, kind.plural, kind.namespaced) if kind in (POLICIES, BINDINGS) else kind
        for kind in CLUSTER.kinds
    ]
    assert [("Pod", "web")] == objects_with_findings(scan_of(*documents, kinds=tuple(kinds)))
    assert [("Pod", "web")] == objects_with_findings(scan_of(files=tuple(documents)))


def test_the_newest_served_version_is_listed() -> None:
    """The other versions have the same objects and are not listed."""
    old = [Kind(kind.group, "v1beta1", kind.kind, kind.plural, kind.namespaced) for kind in (POLICIES, BINDINGS)]
    scan = scan_of(policy("p", "false"), binding("b", "p"), kinds=(*old, *CLUSTER.kinds))
    assert [("Pod", "web")] == objects_with_findings(scan)


def test_only_an_alpha_binding_may_omit_parameter_not_found_action() -> None:
    """In v1alpha1 the default is Deny; later versions require the field."""
    asking = policy("p", "true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    bound = binding("b", "p", paramRef={"name": "c", "namespace": "default"})
    alpha = scan_of(files=(asking, {**bound, "apiVersion": f"{GROUP}/v1alpha1"}))
    assert ["no params found for policy binding with `Deny` parameterNotFoundAction"] == [
        finding.outcome.message.removeprefix("failed to configure binding: ") for finding in alpha.findings
    ]
    refused = scan_of(files=(asking, bound))
    assert ["spec.paramRef.parameterNotFoundAction: Required value"] == [
        gap.why.partition(" is invalid: ")[2] for gap in refused.gaps
    ]


def test_static_policies_evaluate_policy_objects() -> None:
    """Static policies are manifests of the control plane, which no API lists and files contain."""
    files = (policy(STATIC, "false", **ON_ADMISSION), binding(f"b.{STATIC}", STATIC))
    scan = scan_of(policy("other", "true"), binding("other", "other"), files=files)
    assert [
        ("ValidatingAdmissionPolicy", "other"),
        ("ValidatingAdmissionPolicyBinding", "other"),
        ("ValidatingWebhookConfiguration", "guard"),
    ] == objects_with_findings(scan)


def test_a_policy_of_the_api_with_a_static_name_is_not_static() -> None:
    """An older server accepts such a name, and exempts policy objects from the policy."""
    scan = scan_of(policy(STATIC, "false", **ON_ADMISSION), binding(f"b.{STATIC}", STATIC))
    assert [("ValidatingWebhookConfiguration", "guard")] == objects_with_findings(scan)


def test_bindings_of_the_api_do_not_bind_static_policies() -> None:
    """A binding binds only policies from the same source."""
    scan = scan_of(binding("b", STATIC), files=(policy(STATIC, "false"),))
    assert ([], {("unbound", STATIC, ""), ("danglingBinding", STATIC, "b")}) == (
        objects_with_findings(scan),
        set(scan.health),
    )


def test_a_static_policy_can_be_previewed() -> None:
    """--assume-bound applies to static policies."""
    cluster = changed(CLUSTER)
    options = Options(
        manifests=(Manifest("f.yaml", policy(STATIC, "false", **ON_ADMISSION)),), assume_bound=((STATIC, "Warn"),)
    )
    assert ["guard"] == [finding.name for finding in scanned(cluster, options).findings]


@pytest.mark.parametrize(
    ("asking", "bound"),
    [
        (policy(STATIC, "false", **ON_ADMISSION), binding("b", STATIC)),
        (policy("p", "false", **ON_ADMISSION), binding(f"b.{STATIC}", "p")),
    ],
)
def test_a_name_alone_makes_no_static_manifest(asking: Document, bound: Document) -> None:
    """A server without static manifests accepts such names, so a document from a file may be either."""
    scan = scan_of(files=(asking, bound))
    assert ([], set()) == (
        [*scan.gaps],
        {problem for problem in scan.health if problem[0] in ("unbound", "danglingBinding")},
    )


def test_a_policy_with_params_is_no_static_manifest() -> None:
    """The control plane would not load it, so it is an object of the API despite its name."""
    params = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Allow"}
    files = (policy(STATIC, "false", paramKind=params, **ON_ADMISSION), binding("b", STATIC, paramRef=reference))
    assert "ValidatingAdmissionPolicy" not in {kind for kind, _ in objects_with_findings(scan_of(files=files))}


def test_webhooks_are_named_as_out_of_scope() -> None:
    """Webhooks decide about requests too, and a scan does not evaluate them."""
    scan = scan_of(policy("p", "true"), binding("b", "p"))
    assert (
        OutOfScope(
            "ValidatingWebhookConfiguration",
            "guard",
            "2 webhooks (pods.guard.io, nodes.guard.io): what a program decides is not written in the API; "
            "1 of them refuses what a program does not answer",
        ),
        OutOfScope(
            "MutatingWebhookConfiguration",
            "filler",
            "1 webhook (labels.filler.io): what a program decides is not written in the API",
        ),
    ) == scan.end.outside
    assert ScanState.COMPLETE == scan.scan.state


def test_webhooks_that_may_not_be_listed_are_unknown() -> None:
    """The missing permission is no gap, because webhooks would not be evaluated."""
    refused = {f"{MUTATING.plural}.{GROUP}": ListFailed("forbidden", "forbidden for auditor")}
    scan = scan_of(refused=refused)
    assert ("MutatingWebhookConfiguration", "", "whether there are any is not known: forbidden for auditor") in {
        (out_of_scope.kind, out_of_scope.name, out_of_scope.why) for out_of_scope in scan.end.outside
    }
    assert () == scan.gaps


def test_a_cluster_without_webhooks_has_nothing_out_of_scope() -> None:
    """The list of objects out of scope is empty."""
    assert () == scanned(FakeCluster([namespace("default")], kinds=CLUSTER.kinds)).end.outside
