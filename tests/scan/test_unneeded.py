"""What no bound policy can match is out of scope; where anything is in doubt, it is a gap."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.scan import ScanState
from scanner.scan.edges import Discovery
from tests.documents import LIMITS, binding, namespace, pod, policy, rule
from tests.scan.fakes import FakeCluster, Recorded, forbidden, scanned

METRICS = Gap(GapKind.DISCOVERY, "metrics.k8s.io/v1beta1", "the server of this API group does not respond")
WIDGET = Gap(GapKind.DOCUMENT, "widget.yaml, document 1", "no kind Widget in version widgets.example.com/v1 is known")


class ClusterOfDocuments(FakeCluster):
    """A cluster with one gap, about a group and a kind."""

    concern = ("", "")

    def discover(self) -> Discovery:
        """See Cluster."""
        return Discovery(self.kinds, self.gaps, kinds_of_gaps=dict.fromkeys(self.gaps, self.concern))


def scan_of(gap: Gap, *rules: dict[str, Any], **spec: Any) -> Recorded:
    """A scan of a pod by one policy with some rules, of a cluster with a gap."""
    constraints = {"resourceRules": [rule("pods"), *rules]}
    documents = [namespace("default"), pod(), policy("p", "true", matchConstraints=constraints, **spec), binding()]
    return scanned(FakeCluster(documents, gaps=(gap,)))


def document_of(group: str, kind: str, *rules: dict[str, Any], **spec: Any) -> Recorded:
    """A scan of a pod, and of a document of some kind that is not known, or cannot be read."""
    constraints = {"resourceRules": [rule("pods"), *rules]}
    documents = [namespace("default"), pod(), policy("p", "true", matchConstraints=constraints, **spec), binding()]
    cluster = ClusterOfDocuments(documents, gaps=(WIDGET,))
    cluster.concern = (group, kind)
    return scanned(cluster)


def test_an_api_group_that_no_rule_names_is_out_of_scope() -> None:
    """The scan is complete, and lists the group with the reason."""
    scan = scan_of(METRICS)

    assert (ScanState.COMPLETE, ()) == (scan.scan.state, scan.gaps)
    assert [("apiGroup", METRICS.where)] == [(item.kind, item.name) for item in scan.end.outside]
    assert METRICS.why in scan.end.outside[0].why


@pytest.mark.parametrize(
    "fields",
    [
        {"group": "metrics.k8s.io", "version": "v1beta1"},
        {"group": "metrics.k8s.io", "version": "v2"},
        {"group": "*", "version": "*"},
        {"group": "*", "version": "*", "scope": "Cluster"},
    ],
)
def test_an_api_group_that_a_rule_may_match_is_a_gap(fields: dict[str, Any]) -> None:
    """In any version, because matchPolicy Equivalent matches the others, and with a wildcard."""
    scan = scan_of(METRICS, rule("nodes", **fields))

    assert (ScanState.INCOMPLETE, (METRICS,)) == (scan.scan.state, scan.gaps)


def test_a_rule_for_operations_that_are_not_simulated_needs_no_group() -> None:
    """An audit evaluates no DELETE."""
    scan = scan_of(METRICS, rule("nodes", group="metrics.k8s.io") | {"operations": ["DELETE"]})

    assert () == scan.gaps


@pytest.mark.parametrize("where", ["/apis", "/api", "v1", "admissionregistration.k8s.io/v1", "policies.kyverno.io/v1"])
def test_a_group_that_may_have_policies_or_namespaces_is_a_gap(where: str) -> None:
    """A group of unknown policies makes every rule unknown, and so does a root."""
    gap = Gap(GapKind.DISCOVERY, where, "no answer")

    assert (gap,) == scan_of(gap).gaps


def test_while_policies_are_unknown_every_group_is_a_gap() -> None:
    """A policy that could not be listed may match its kinds."""
    cluster = FakeCluster(
        [namespace("default"), pod(), policy("p", "true"), binding()],
        gaps=(METRICS,),
        refused={"validatingadmissionpolicies.admissionregistration.k8s.io": forbidden("policies")},
    )

    assert METRICS in scanned(cluster).gaps


def test_the_group_of_params_is_a_gap() -> None:
    """Params decide what a policy answers."""
    gap = Gap(GapKind.DISCOVERY, "limits.example.com/v1", "no answer")
    scan = scan_of(gap, paramKind={"apiVersion": "limits.example.com/v1", "kind": "Limit"})

    assert gap in scan.gaps


def test_only_bound_policies_need_a_group() -> None:
    """A policy without a binding is never evaluated."""
    unbound = policy("u", "true", matchConstraints={"resourceRules": [rule("nodes", group="metrics.k8s.io")]})
    documents = [namespace("default"), pod(), policy("p", "true"), binding(), unbound]

    assert () == scanned(FakeCluster(documents, gaps=(METRICS,))).gaps


@pytest.mark.parametrize(
    ("group", "kind"),
    [("widgets.example.com", "Widget"), ("widgets.example.com", ""), ("extensions", "Ingress"), ("apps", "Deployment")],
)
def test_a_document_that_no_rule_can_match_is_out_of_scope(group: str, kind: str) -> None:
    """The policy is about pods alone."""
    scan = document_of(group, kind)

    assert (ScanState.COMPLETE, [("document", WIDGET.where)]) == (
        scan.scan.state,
        [(item.kind, item.name) for item in scan.end.outside],
    )


@pytest.mark.parametrize(
    ("group", "kind", "rules"),
    [
        ("", "Pod", []),
        ("", "pod", []),
        ("", "Pdo", []),
        ("", "", []),
        ("", "Namespace", []),
        ("", "PodList", []),
        ("apiextensions.k8s.io", "CustomResourceDefinition", []),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", []),
        ("admissionregistration.k8s.io", "", []),
        ("admission.example.com", "MutatingAdmissionPolicyBinding", []),
        ("widgets.example.com", "Widget", [rule("gadgets", group="widgets.example.com")]),
        ("widgets.example.com", "Widget", [rule("*", group="*", version="*")]),
        ("extensions", "Deployment", [rule("deployments", group="apps")]),
    ],
)
def test_a_document_in_doubt_is_a_gap(group: str, kind: str, rules: list[dict[str, Any]]) -> None:
    """It may be matched, with another plural or after a correction, or it decides about other objects."""
    scan = document_of(group, kind, *rules)

    assert (ScanState.INCOMPLETE, (WIDGET,)) == (scan.scan.state, scan.gaps)


def test_a_document_that_may_be_a_param_is_a_gap() -> None:
    """The kind of params of a bound policy."""
    scan = document_of(LIMITS.group, LIMITS.kind, paramKind={"apiVersion": LIMITS.api_version, "kind": LIMITS.kind})

    assert WIDGET in scan.gaps
