"""The rights for workloads: those of the usual controllers above the evaluated objects, and none of them is vital."""

from __future__ import annotations

import pytest

from scanner.model.population import Controller
from scanner.model.resource import Kind
from scanner.model.scans.scan import Scope
from scanner.rbac import Permission, list_permissions
from scanner.scan.intermediates import list_intermediate_pages
from scanner.scan.lists import ScanLists
from scanner.scan.options import Options
from tests.documents import DEPLOYMENTS, KINDS, NODES, PODS, Document, binding, namespace, policy, rule
from tests.scan.fakes import FakeCluster

WHY = "workloads (metadata only)"
WITHOUT = "workloads are derived from names and owner references"
REPLICA_SETS = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
JOBS = Kind("batch", "v1", "Job", "jobs", namespaced=True)
CRON_JOBS = Kind("batch", "v1", "CronJob", "cronjobs", namespaced=True)
OLD_CRON_JOBS = Kind("batch", "v1beta1", "CronJob", "cronjobs", namespaced=True)
WORKLOADS = (REPLICA_SETS, JOBS, CRON_JOBS, OLD_CRON_JOBS)
ON_PODS = (policy("pods", "true"), binding("pods", "pods"))


def cluster(*documents: Document) -> FakeCluster:
    """A cluster that serves the usual controllers."""
    spaces = (namespace("default"), namespace("prod"))
    return FakeCluster((*spaces, *documents), kinds=(*KINDS, *WORKLOADS))


def rights(source: FakeCluster, scope: Scope | None = None) -> dict[str, Permission]:
    """The rights that are for workloads, by namespace and resource."""
    wanted = list_permissions(source, Options(scope or Scope())).rights
    return {f"{need.namespace}/{need.resource}".removeprefix("/"): need for need in wanted if WHY in need.why}


def above(kind: Kind, controller: Kind) -> Document:
    """An object of a kind, below an object of another."""
    owner = {"apiVersion": controller.api_version, "kind": controller.kind, "name": "a", "uid": "u", "controller": True}
    metadata = {"name": "a", "namespace": "default", "uid": kind.kind, "ownerReferences": [owner]}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def test_a_policy_on_pods_needs_the_controllers_of_pods() -> None:
    """To list them is optional; a note names what is missing without them."""
    expected = Permission("apps", "replicasets", "list", "", "", WHY, optional=True, without=WITHOUT)
    needed = rights(cluster(*ON_PODS))
    assert ["nodes", "deployments", "replicasets", "cronjobs", "jobs"] == [*needed]
    assert expected == needed["replicasets"]


def test_the_rights_are_those_of_the_lists() -> None:
    """Of the controllers of a Pod, a ReplicaSet and a Job."""
    source = cluster(*ON_PODS, above(REPLICA_SETS, DEPLOYMENTS), above(JOBS, CRON_JOBS))
    controllers = [Controller(kind.api_version, kind.kind, "a", "u") for kind in (REPLICA_SETS, JOBS, NODES)]
    list(list_intermediate_pages(ScanLists(source, Scope(), ahead=False), controllers, [PODS], source.kinds))
    used = {name.removeprefix("metadata/").partition(".")[0] for name in source.listed}
    assert used == {*rights(source)}


def test_a_scan_of_namespaces_needs_rights_in_them() -> None:
    """An identity that is confined to a namespace is not given the Nodes of the cluster."""
    needed = rights(cluster(*ON_PODS), Scope(namespaces=("default", "prod")))
    names = ("cronjobs", "deployments", "jobs", "replicasets")
    assert {f"{place}/{name}" for place in ("default", "prod") for name in names} == {*needed}


@pytest.mark.parametrize("scope", [Scope(skip_kinds=("pods",)), Scope(kinds=("configmaps",))])
def test_kinds_that_are_not_evaluated_have_no_workloads(scope: Scope) -> None:
    """Then nothing is listed for them."""
    assert {} == rights(cluster(*ON_PODS), scope)


def test_policies_on_other_kinds_need_nothing() -> None:
    """Nodes have no controller in Kubernetes."""
    on_nodes = policy("nodes", "true", matchConstraints={"resourceRules": [rule("nodes")]})
    assert {} == rights(cluster(on_nodes, binding("nodes", "nodes")))


def test_a_right_that_a_policy_needs_is_vital() -> None:
    """It has both purposes, and no effect of its absence but an incomplete scan."""
    on_sets = policy("sets", "true", matchConstraints={"resourceRules": [rule("replicasets", group="apps")]})
    needed = rights(cluster(*ON_PODS, on_sets, binding("sets", "sets")))["replicasets"]
    assert (f"policy sets; {WHY}", False, "") == (needed.why, needed.optional, needed.without)


def test_an_optional_right_everywhere_does_not_hide_a_vital_one() -> None:
    """Deployments of one namespace are params of a policy: without them the scan is incomplete."""
    by_deployment = policy("p", "true", paramKind={"apiVersion": "apps/v1", "kind": "Deployment"})
    reference = {"name": "limits", "namespace": "settings", "parameterNotFoundAction": "Deny"}
    wanted = list_permissions(cluster(by_deployment, binding("p", "p", paramRef=reference)), Options()).rights
    assert [("", True), ("settings", False)] == [
        (need.namespace, need.optional) for need in wanted if need.resource == "deployments"
    ]
