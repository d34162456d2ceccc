"""The permissions named before a scan are those that it uses."""

from __future__ import annotations

import pytest

from scanner.model.scans.scan import Scope
from scanner.rbac import Permission, list_permissions
from scanner.scan.options import Options
from tests.documents import CONFIG_MAPS, LIMITS, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import FakeCluster, forbidden, scanned

GROUP = "admissionregistration.k8s.io"
POLICIES = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
REFERENCE = {"name": "limits", "namespace": "settings", "parameterNotFoundAction": "Deny"}
OF_ITS_OWN = {"name": "limits", "parameterNotFoundAction": "Deny"}
CLUSTER = FakeCluster(
    [
        *(namespace(name) for name in ("default", "prod", "settings")),
        pod("web", "default"),
        thing(CONFIG_MAPS, "limits", "settings"),
        thing(LIMITS, "limits"),
        policy("plain", "true"),
        binding("plain", "plain"),
        policy("with-params", "true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
        binding("with-params", "with-params", paramRef=REFERENCE),
        policy("with-own-params", "true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
        binding("with-own-params", "with-own-params", paramRef=OF_ITS_OWN),
        policy("with-limits", "true", paramKind={"apiVersion": "example.com/v1", "kind": "Limit"}),
        binding("with-limits", "with-limits", paramRef={"name": "limits", "parameterNotFoundAction": "Deny"}),
        policy("nodes", "true", matchConstraints={"resourceRules": [rule("nodes")]}),
        binding("nodes", "nodes"),
        policy("unbound", "true", matchConstraints={"resourceRules": [rule("secrets")]}),
    ]
)
SCOPES = [
    Scope(),
    Scope(namespaces=("default",)),
    Scope(namespaces=("default", "prod")),
    Scope(skip_kinds=("nodes",)),
    Scope(kinds=("pods",)),
]


def used(cluster: FakeCluster) -> set[str]:
    """The lists that were made, as `namespace/resource`; a single Namespace is read by name and not listed."""
    return {
        f"namespaces {listed_kind.split('/')[0]}" if listed_kind.endswith("/namespaces") else listed_kind
        for listed_kind in cluster.listed
    }


def text_of(need: Permission) -> str:
    """A permission in the form of `used`."""
    resource = f"{need.resource}.{need.group}" if need.group else need.resource
    if need.url:
        return need.url
    if need.verb == "get":
        return f"{need.resource} {need.name}"
    return f"{need.namespace}/{resource}" if need.namespace else resource


def without_redundant(lists: set[str]) -> set[str]:
    """The lists without those of one namespace whose resource is listed in all namespaces."""
    return {name for name in lists if "/" not in name or name.split("/")[1] not in lists}


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_needed_and_used_permissions_are_equal(scope: Scope) -> None:
    """They are equal in every scope. The permissions for workloads alone have tests of their own."""
    cluster = FakeCluster(CLUSTER.documents)
    scanned(cluster, Options(scope))
    wanted = list_permissions(FakeCluster(CLUSTER.documents), Options(scope)).rights
    rights = {text_of(need) for need in wanted if need.why != "workloads (metadata only)"}
    assert rights - {"namespaces kube-system", "/metrics"} == without_redundant(used(cluster))


def test_every_permission_states_its_purpose() -> None:
    """The purpose names the policies that need the permission."""
    reasons = {text_of(need): need.why for need in list_permissions(CLUSTER, Options()).rights}
    assert "policy plain, with-limits, with-own-params, with-params" == reasons["pods"]
    assert "params of policy with-own-params, with-params" == reasons["configmaps"]
    assert "" not in reasons.values()


def test_only_permissions_for_a_complete_scan_are_required() -> None:
    """The UID of kube-system distinguishes clusters, without Deployments workloads are derived, and the metrics are a second count."""
    optional = {text_of(need) for need in list_permissions(CLUSTER, Options()).rights if need.optional}
    assert {"namespaces kube-system", "deployments.apps", "/metrics"} == {
        name for name in optional if "webhook" not in name
    }


def test_a_scan_of_namespaces_needs_no_metrics() -> None:
    """The metrics count the objects of all namespaces."""
    assert "/metrics" not in {
        need.url for need in list_permissions(CLUSTER, Options(Scope(namespaces=("default",)))).rights
    }


def test_policies_that_cannot_be_listed_are_a_gap() -> None:
    """The further permissions are not known then."""
    refused = FakeCluster(
        CLUSTER.documents, refused={f"{resource}.{GROUP}": forbidden(resource) for resource in POLICIES}
    )
    needed = list_permissions(refused, Options())
    assert set(POLICIES) <= {need.resource for need in needed.rights}
    assert 2 <= len(needed.gaps)
