"""Workloads on a real API server: the metadata of the objects between Pods and their workloads is enough to find them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from scanner.audit.population import record_object
from scanner.cluster.live.cluster import LiveCluster
from scanner.model.json import as_list, as_object
from scanner.model.population import DEFAULT_KEYS, Workload
from scanner.model.resource import METADATA_ONLY, Kind, resource_of
from scanner.model.scans.scan import Scope
from scanner.posture.workloads import Workloads
from scanner.scan.intermediates import IntermediateNote, IntermediatePage, IntermediateStep, list_intermediate_pages
from scanner.scan.lists import ScanLists
from tests.integration.apiserver import running
from tests.integration.controlled import Filled
from tests.integration.faults import wait_until
from tests.integration.made import may
from tests.integration.manifests import apply

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
API_SERVICES = Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)


@pytest.fixture(scope="module")
def filled(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """A server of its own, because its Pods must be the only ones."""
    with running(assets, tmp_path_factory.mktemp("workloads")) as server:
        yield Filled(server)


def listed(filled: Filled, user: str, scope: Scope) -> tuple[dict[str, Workload], list[IntermediateStep]]:
    """The workload of every Pod, and the metadata that was listed for it."""
    cluster = LiveCluster(kubeconfig=str(filled.server.kubeconfig_for(user)), chunk_size=2)
    served = cluster.discover().kinds
    listing = ScanLists(cluster, scope, ahead=False)
    items = [
        as_object(item) for page in cluster.pages(PODS) for item in as_list(as_object(orjson.loads(page.data))["items"])
    ]
    pods = [record_object(resource_of(PODS, item), DEFAULT_KEYS) for item in items]
    steps = list(list_intermediate_pages(listing, [pod.controller for pod in pods if pod.controller], [PODS], served))
    workloads = Workloads({(kind.group, kind.kind): kind.namespaced for kind in served})
    for record in (record for step in steps if isinstance(step, IntermediatePage) for record in step.objects):
        workloads.add(record)
    return {pod.name: workloads.find(pod) for pod in pods}, steps


def notes(steps: list[IntermediateStep]) -> list[str]:
    """The texts of the notes."""
    return [step.text for step in steps if isinstance(step, IntermediateNote)]


@pytest.mark.parametrize("scope", [Scope(), Scope(namespaces=("shop",)), Scope(selector="app=web")])
def test_every_pod_has_its_workload(filled: Filled, scope: Scope) -> None:
    """Deployment, CronJob, the resource of an operator, and the Node of a mirror Pod; none is derived."""
    workloads, steps = listed(filled, "admin", scope)
    expected = {
        "web-6b7f9c-x2x4z": Workload("apps/v1", "Deployment", "shop", "web"),
        "nightly-29340-abcde": Workload("batch/v1", "CronJob", "shop", "nightly"),
        "orders-0": Workload("db.example.com/v1", "Database", "shop", "orders"),
        "etcd-node-1": Workload("v1", "Node", "", "node-1"),
    }
    assert (expected, []) == (workloads, notes(steps))


def test_the_server_sends_metadata_only(filled: Filled) -> None:
    """No spec leaves the server, of kinds of Kubernetes and of custom resources."""
    _, steps = listed(filled, "admin", Scope())
    items = [
        as_object(item)
        for step in steps
        if isinstance(step, IntermediatePage)
        for item in as_list(as_object(orjson.loads(step.page.data))["items"])
    ]
    assert 7 == len(items)
    assert [{"apiVersion", "kind", "metadata"}] * 7 == [{*item} for item in items]
    assert {METADATA_ONLY} == {(item["apiVersion"], item["kind"]) for item in items}


def test_without_rights_workloads_are_derived(filled: Filled) -> None:
    """The references of the Pods are what is left; each kind has its note."""
    apply(filled.server, may("auditor", "pods-only", "pods"))
    wait_until(
        lambda: filled.server.request("GET", "/api/v1/pods", token=filled.server.tokens["auditor"]).status == 200
    )
    workloads, steps = listed(filled, "auditor", Scope())
    expected = {
        "web-6b7f9c-x2x4z": Workload("apps/v1", "Deployment", "shop", "web", derived=True),
        "nightly-29340-abcde": Workload("batch/v1", "Job", "shop", "nightly-29340", derived=True),
        "orders-0": Workload("apps/v1", "StatefulSet", "shop", "orders", derived=True),
        "etcd-node-1": Workload("v1", "Node", "", "node-1", derived=True),
    }
    assert expected == workloads
    assert ["nodes", "replicasets.apps", "statefulsets.apps", "jobs.batch"] == [
        match[1]
        for text in notes(steps)
        if (match := re.search(r"forbidden for auditor\. Grant `list` on (\S+)$", text))
    ]


def test_an_aggregated_api_answers_like_the_others(filled: Filled) -> None:
    """Lists of several pages keep their resource version and their announced number."""
    cluster = LiveCluster(kubeconfig=str(filled.server.kubeconfig), chunk_size=5)
    pages = list(cluster.metadata(API_SERVICES))
    assert (True, {""}) == (len(pages) > 1, {page.inconsistency for page in pages})
