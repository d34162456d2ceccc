"""The Indexed Job of the chart scans a fleet of four clusters into one database, one pod a cluster (`make nightly`).

One API server is down, one cluster has no kubeconfig, and the pod of another is killed while it scans.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from scanner.store import open_reader
from tests.deploy.programs import NAMESPACE
from tests.integration import examples
from tests.integration.apiserver import ApiServer, running
from tests.integration.controllers.cluster import SECONDS, Cluster, Ended
from tests.integration.controllers.installation import Installed
from tests.integration.controllers.release import hooks, job_from, manifests
from tests.integration.faults import wait_until
from tests.integration.manifests import apply
from tests.integration.processes import free_port
from tests.store.databases import database, rows

pytestmark = pytest.mark.skipif(
    not os.environ.get("LONG_JOBS"), reason="a fleet of API servers takes minutes: `make nightly` sets LONG_JOBS"
)
RELEASE = JOB = "fleet"
CLUSTERS = ("east", "west", "down", "unknown")
"""The clusters by their index: the pod of the first one is killed, the third one is down, and the last has no Secret."""
INDEX = "batch.kubernetes.io/job-completion-index"
VALUES: JsonObject = {
    "suspend": True,
    "fullnameOverride": RELEASE,
    "database": {"existingSecret": "fleet-db"},
    "backoffLimit": 1,
    "extraArgs": ["--qps=4", "--burst=1"],
    "fleet": {
        "clusters": [
            {"name": name, "kubeconfigSecret": {"name": f"{name}-kubeconfig", "key": "kubeconfig"}} for name in CLUSTERS
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
    """A Job of the release, with an empty PostgreSQL database."""
    cluster, folder = installed.cluster, tmp_path_factory.mktemp("fleet")
    with database("postgresql", folder) as url, running(assets, folder) as west:
        apply(west, [*examples.objects("before"), *examples.policies()])
        cluster.apply([secret("fleet-db", url=url), *kubeconfigs(cluster.server, west), *manifests(RELEASE, VALUES)])
        cluster.start(job_from(cluster.cron_job(RELEASE), JOB))
        wait_until(lambda: started(cluster), seconds=60)
        begun = "SELECT number FROM runs WHERE name = 'east' AND scan_id IS NOT NULL"
        wait_until(lambda: bool(rows(url, begun)), seconds=60)
        cluster.kubelet.kill(as_text(dig(pods(cluster, 0)[0], "metadata", "name")))
        yield Scanned(cluster, cluster.ended(JOB), url)


def secret(name: str, **content: str) -> JsonObject:
    """A Secret of the namespace of the release."""
    metadata: JsonObject = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {**content}}


def kubeconfigs(east: ApiServer, west: ApiServer) -> Iterator[JsonObject]:
    """A Secret with a kubeconfig for each cluster but the last; no server listens on the port of the third one."""
    down = f"https://127.0.0.1:{free_port()}"
    for name, server, url in (("east", east, east.url), ("west", west, west.url), ("down", west, down)):
        yield secret(f"{name}-kubeconfig", kubeconfig=orjson.dumps(kubeconfig(server, url)).decode())


def kubeconfig(server: ApiServer, url: str) -> JsonObject:
    """A kubeconfig of the administrator that refers to no other file."""
    authority = base64.b64encode(server.ca.read_bytes()).decode()
    return {
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": "admin", "user": {"token": server.token}}],
        "contexts": [{"name": "admin", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "admin",
    }


def pods(cluster: Cluster, index: int) -> list[Json]:
    """The pods of an index in the order of their creation."""
    return [pod for pod in cluster.pods_of(JOB) if dig(pod, "metadata", "labels", INDEX) == str(index)]


def started(cluster: Cluster) -> bool:
    """Whether the container that scans the first cluster has started, and the database therefore has its tables."""
    statuses = [as_list(dig(pod, "status", "containerStatuses")) for pod in pods(cluster, 0)]
    return any(dig(status, "started") is True for containers in statuses for status in containers)


def test_the_job_fails_for_the_clusters_that_were_not_scanned(scanned: Scanned) -> None:
    """The pod that was killed is repeated, and its index is complete like that of the quiet cluster."""
    status = dig(scanned.cluster.job(JOB), "status")
    expected = ("Failed", "FailedIndexes", "0,1", "2,3")
    assert expected == (
        scanned.ended.condition,
        scanned.ended.reason,
        dig(status, "completedIndexes"),
        dig(status, "failedIndexes"),
    ), scanned.ended.logs


@pytest.mark.parametrize(("name", "codes"), [("east", [None, 0]), ("west", [0]), ("down", [4, 4]), ("unknown", [5])])
def test_the_register_has_every_run_of_each_cluster(scanned: Scanned, name: str, codes: list[int | None]) -> None:
    """A killed run has no exit code, and a cluster that cannot be reached is a failed run, as is one without its Secret, which is not tried again."""
    with open_reader(scanned.database) as store:
        assert codes == [details.run.exit_code for details in reversed(store.list_runs(cluster=name))]


def test_a_pod_has_no_token_and_a_container_the_kubeconfig_of_its_cluster_alone(scanned: Scanned) -> None:
    """The volume of a pod has a folder for each index, of which the container mounts its own."""
    for index, name in enumerate(CLUSTERS):
        for pod in pods(scanned.cluster, index):
            [container] = as_list(dig(pod, "spec", "containers"))
            mounts = {as_text(dig(mount, "name")): mount for mount in as_list(dig(container, "volumeMounts"))}
            folder = volume_of(scanned.cluster, pod, "kubeconfigs") / str(index)
            assert {"config", "tmp", "data", "kubeconfigs"} == mounts.keys()
            assert "$(JOB_COMPLETION_INDEX)" == dig(mounts["kubeconfigs"], "subPathExpr")
            assert ([] if name == "unknown" else [name]) == [file.name for file in folder.iterdir()]


def volume_of(cluster: Cluster, pod: Json, name: str) -> Path:
    """The folder of a volume of a pod."""
    return cluster.kubelet.folder / "pods" / as_text(dig(pod, "metadata", "uid")) / "volumes" / name


def test_each_cluster_has_its_own_history(scanned: Scanned) -> None:
    """The clusters that were scanned have one complete scan each, the first of their history."""
    with open_reader(scanned.database) as store:
        newest = {scan.cluster.name: store.read_scan(scan.id) for scan in store.scans() if scan.state == "complete"}
    assert {"east", "west"} == newest.keys()
    assert [None, None] == [record.previous for record in newest.values()]


def test_the_findings_are_those_of_the_cluster(scanned: Scanned) -> None:
    """Every finding is about an object of the cluster that its scan names: the UIDs are on that server alone."""
    query = "SELECT clusters.name, count(*) AS findings FROM findings JOIN clusters ON clusters.id = findings.cluster GROUP BY 1"
    counts = {as_text(row["name"]): row["findings"] for row in rows(scanned.database, query)}
    with open_reader(scanned.database) as store:
        scans = [store.read_scan(scan.id) for scan in store.scans() if scan.state == "complete"]
        assert counts == {record.scan.cluster.name: sum(1 for _ in record.findings()) for record in scans}


def test_the_test_of_the_chart_checks_the_rights_in_every_cluster(scanned: Scanned) -> None:
    """Also after one that fails: the administrator of the first two may do everything, the third one is down, and the last has no Secret."""
    cluster, [test] = scanned.cluster, hooks(RELEASE, VALUES)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{dig(test, 'metadata', 'name')}"
    cluster.apply([test])
    wait_until(lambda: dig(cluster.get(path), "status", "phase") in {"Succeeded", "Failed"}, seconds=SECONDS)
    pod = cluster.get(path)
    log = cluster.kubelet.log(pod, "assay")
    [status] = as_list(dig(pod, "status", "containerStatuses"))
    assert 4 == dig(status, "state", "terminated", "exitCode"), log
    codes = [line.split()[:2] for line in log.splitlines()[1:]]
    assert [["east", "0"], ["west", "0"], ["down", "4"], ["unknown", "5"]] == codes
