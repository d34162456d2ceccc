"""An Indexed Job scans a fleet of three API servers into one database, one pod a cluster (`make nightly`).

One server is down, and the pod of another is killed while it scans.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.store import open_reader
from tests.deploy.programs import NAMESPACE
from tests.integration import examples
from tests.integration.apiserver import ApiServer, running
from tests.integration.controllers.cluster import Cluster, Ended
from tests.integration.controllers.installation import Installed
from tests.integration.faults import wait_until
from tests.integration.manifests import apply
from tests.integration.processes import free_port
from tests.store.databases import database, rows

pytestmark = pytest.mark.skipif(
    not os.environ.get("LONG_JOBS"), reason="a fleet of API servers takes minutes: `make nightly` sets LONG_JOBS"
)
JOB = "fleet"
CLUSTERS = ("east", "west", "down")
"""The clusters by their index: the pod of the first one is killed, and the last one is down."""
INDEX = "batch.kubernetes.io/job-completion-index"
ARGUMENTS = ("--fleet=/fleet/fleet.json", "--index=$(JOB_COMPLETION_INDEX)", "--qps=4", "--burst=1")
MOUNT: JsonObject = {"name": "fleet", "mountPath": "/fleet", "readOnly": True}
SPEC: JsonObject = {
    "completions": len(CLUSTERS),
    "parallelism": len(CLUSTERS),
    "completionMode": "Indexed",
    "backoffLimit": 10,
    "backoffLimitPerIndex": 1,
    "podFailurePolicy": {
        "rules": [
            {"action": "FailIndex", "onExitCodes": {"containerName": "assay", "operator": "In", "values": [1, 2, 3]}}
        ]
    },
}


class Scanned(NamedTuple):
    """The Job after its end, and its database."""

    cluster: Cluster
    ended: Ended
    database: str


@pytest.fixture(scope="module")
def scanned(installed: Installed, assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scanned]:
    """A Job of a pod for each cluster, with an empty PostgreSQL database."""
    cluster, folder = installed.cluster, tmp_path_factory.mktemp("fleet")
    with database("postgresql", folder) as url, running(assets, folder) as west:
        apply(west, [*examples.objects("before"), *examples.policies()])
        apply(cluster.server, [fleet(cluster.server, west)])
        cluster.start(with_mount(installed.job(JOB, *ARGUMENTS, database=url, fields=SPEC)))
        wait_until(lambda: started(cluster), seconds=60)
        begun = "SELECT number FROM runs WHERE name = 'east' AND scan_id IS NOT NULL"
        wait_until(lambda: bool(rows(url, begun)), seconds=60)
        cluster.kubelet.kill(as_text(dig(pods(cluster, 0)[0], "metadata", "name")))
        yield Scanned(cluster, cluster.ended(JOB), url)


def fleet(east: ApiServer, west: ApiServer) -> JsonObject:
    """The Secret with the file of the fleet and a kubeconfig for each cluster; no server listens on the port of the last one."""
    down = f"https://127.0.0.1:{free_port()}"
    servers = {"east": (east, east.url), "west": (west, west.url), "down": (west, down)}
    members: list[Json] = [{"name": name, "kubeconfig": f"{name}.kubeconfig"} for name in CLUSTERS]
    files = {
        f"{name}.kubeconfig": orjson.dumps(kubeconfig(server, url)).decode() for name, (server, url) in servers.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "fleet", "namespace": NAMESPACE},
        "stringData": {"fleet.json": orjson.dumps({"clusters": members}).decode(), **files},
    }


def kubeconfig(server: ApiServer, url: str) -> JsonObject:
    """A kubeconfig of the administrator that refers to no other file."""
    authority = base64.b64encode(server.ca.read_bytes()).decode()
    return {
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": "admin", "user": {"token": server.token}}],
        "contexts": [{"name": "admin", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "admin",
    }


def with_mount(job: JsonObject) -> JsonObject:
    """The Job with the Secret in its container that scans."""
    template = as_object(dig(job, "spec", "template"))
    pod = as_object(template["spec"])
    [container] = [as_object(item) for item in as_list(pod["containers"])]
    volume: JsonObject = {"name": "fleet", "secret": {"secretName": "fleet"}}
    mounted: JsonObject = {
        **pod,
        "containers": [{**container, "volumeMounts": [*as_list(container["volumeMounts"]), MOUNT]}],
        "volumes": [*as_list(pod["volumes"]), volume],
    }
    return {**job, "spec": {**as_object(job["spec"]), "template": {**template, "spec": mounted}}}


def pods(cluster: Cluster, index: int) -> list[Json]:
    """The pods of an index in the order of their creation."""
    return [pod for pod in cluster.pods_of(JOB) if dig(pod, "metadata", "labels", INDEX) == str(index)]


def started(cluster: Cluster) -> bool:
    """Whether the container that scans the first cluster has started, and the database therefore has its tables."""
    statuses = [as_list(dig(pod, "status", "containerStatuses")) for pod in pods(cluster, 0)]
    return any(dig(status, "started") is True for containers in statuses for status in containers)


def test_the_job_fails_for_the_index_that_is_down(scanned: Scanned) -> None:
    """The pod that was killed is repeated, and its index is complete like that of the quiet cluster."""
    status = dig(scanned.cluster.job(JOB), "status")
    expected = ("Failed", "FailedIndexes", "0,1", "2")
    assert expected == (
        scanned.ended.condition,
        scanned.ended.reason,
        dig(status, "completedIndexes"),
        dig(status, "failedIndexes"),
    ), scanned.ended.logs


@pytest.mark.parametrize(("name", "codes"), [("east", [None, 0]), ("west", [0]), ("down", [4, 4])])
def test_the_register_has_every_run_of_each_cluster(scanned: Scanned, name: str, codes: list[int | None]) -> None:
    """A killed run has no exit code, and a cluster that cannot be reached is a failed run."""
    with open_reader(scanned.database) as store:
        assert codes == [details.run.exit_code for details in reversed(store.runs(cluster=name))]


def test_each_cluster_has_its_own_history(scanned: Scanned) -> None:
    """The clusters that were scanned have one complete scan each, the first of their history."""
    with open_reader(scanned.database) as store:
        newest = {scan.cluster.name: store.record(scan.id) for scan in store.scans() if scan.state == "complete"}
    assert {"east", "west"} == newest.keys()
    assert [None, None] == [record.previous for record in newest.values()]


def test_the_findings_are_those_of_the_cluster(scanned: Scanned) -> None:
    """Every finding is about an object of the cluster that its scan names: the UIDs are on that server alone."""
    query = "SELECT clusters.name, count(*) AS findings FROM findings JOIN clusters ON clusters.id = findings.cluster GROUP BY 1"
    counts = {as_text(row["name"]): row["findings"] for row in rows(scanned.database, query)}
    with open_reader(scanned.database) as store:
        scans = [store.record(scan.id) for scan in store.scans() if scan.state == "complete"]
        assert counts == {record.scan.cluster.name: sum(1 for _ in record.findings()) for record in scans}
