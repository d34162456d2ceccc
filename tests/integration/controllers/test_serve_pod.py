"""The Deployment of the chart runs `assay serve` with the real controllers, probed over HTTP (`make nightly`)."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from signal import SIGSTOP
from typing import NamedTuple

import orjson
import pytest
import urllib3

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from scanner.store import open_reader
from tests.deploy.programs import NAMESPACE
from tests.integration import examples
from tests.integration.controllers.cluster import SECONDS, Cluster, running_cluster
from tests.integration.controllers.controller_manager import OF_DEPLOYMENTS
from tests.integration.controllers.installation import CUSTOM_KINDS
from tests.integration.controllers.release import SECRET, database_secret, job_from, manifests, namespace
from tests.integration.faults import wait_until
from tests.integration.processes import free_port
from tests.store.databases import database, execute

pytestmark = pytest.mark.skipif(
    not os.environ.get("LONG_JOBS"), reason="a cluster of its own takes minutes: `make nightly` sets LONG_JOBS"
)
RELEASE, DEPLOYMENT = "assay", "assay-serve"
PORT = 8080
"""The port of the pages in the chart. Pods have the network of this machine here, so another one replaces it."""
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{DEPLOYMENT}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
FINALIZER = "example.com/observed"
MERGE = "application/merge-patch+json"
SELECTOR = {"labelSelector": "app.kubernetes.io/component=serve"}


class Pages(NamedTuple):
    """The pod of the Deployment, with the scan that its pages show, and the token of a reader."""

    cluster: Cluster
    database: str
    port: int
    metrics: int
    token: str
    scan: str

    def get(self, path: str, *, port: int = 0, token: str | None = None) -> urllib3.BaseHTTPResponse:
        """The answer to a request, by default at the port of the pages with the token of the reader."""
        authorization = {"Authorization": f"Bearer {self.token if token is None else token}"}
        address = f"http://127.0.0.1:{port or self.port}{path}"
        return urllib3.request("GET", address, headers=authorization if token != "" else {}, redirect=False, timeout=20)

    def pod(self) -> Json:
        """The pod of the Deployment that is not being deleted."""
        pods = as_list(dig(self.cluster.server.request("GET", PODS, params=SELECTOR).body, "items"))
        [pod] = (each for each in pods if not dig(each, "metadata", "deletionTimestamp"))
        return pod

    def container(self) -> Json:
        """The status of its container."""
        [status] = as_list(dig(self.pod(), "status", "containerStatuses"))
        return status

    def is_available(self) -> bool:
        """Whether the Deployment has the condition, and its pod is ready."""
        assert self.cluster.kubelet.error is None, repr(self.cluster.kubelet.error)
        return condition(self.cluster.get(DEPLOYMENTS), "Available") and condition(self.pod(), "Ready")


def condition(document: Json, name: str) -> bool:
    """Whether an object has a condition."""
    conditions = as_list(dig(document, "status", "conditions"))
    return any(dig(each, "type") == name and dig(each, "status") == "True" for each in conditions)


@pytest.fixture(scope="module")
def pages(assets: Path, containers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """A cluster in which the Deployment is available, and a Job has scanned into its database."""
    folder = tmp_path_factory.mktemp("pages")
    port, metrics, token = free_port(), free_port(), secrets.token_urlsafe(32)
    with database("postgresql", folder) as url, running_cluster(assets, folder, OF_DEPLOYMENTS) as cluster:
        cluster.apply([*examples.objects("after"), namespace(), *examples.policies()])
        cluster.apply([database_secret(url), *with_port(manifests(RELEASE, values(metrics, token)), port)])
        cluster.start(job_from(cluster.cron_job(RELEASE), "first-scan"))
        ended = cluster.ended("first-scan")
        assert ended.condition == "Complete", ended.logs
        with open_reader(url) as store:
            [scan] = store.scans()
        installed = Pages(cluster, url, port, metrics, token, scan.id)
        wait_until(installed.is_available, seconds=SECONDS)
        yield installed


def values(metrics: int, token: str) -> JsonObject:
    """The values of the release."""
    reader: JsonObject = {"name": "reader", "sha256": hashlib.sha256(token.encode()).hexdigest()}
    return {
        "suspend": True,
        "database": {"existingSecret": SECRET},
        "rbac": CUSTOM_KINDS,
        "config": {"skipKind": ["secrets"], "tokens": [reader]},
        "serve": {"enabled": True, "metrics": {"enabled": True, "port": metrics}},
    }


def with_port(documents: list[JsonObject], port: int) -> list[JsonObject]:
    """The manifests with another port in place of the one of the pages, in the flag and in the ports of the container."""
    changed: list[JsonObject] = []
    for document in documents:
        text, times = re.subn(rf"\b{PORT}\b", str(port), orjson.dumps(document).decode())
        assert times == (2 if document["kind"] == "Deployment" else 0)
        changed.append(orjson.loads(text))
    return changed


def test_the_deployment_is_available_with_one_pod(pages: Pages) -> None:
    """The controllers have made the pod, and all of its probes have passed at the first start."""
    status = dig(pages.cluster.get(DEPLOYMENTS), "status")
    assert (1, 1, 0) == (
        dig(status, "readyReplicas"),
        dig(status, "availableReplicas"),
        dig(pages.container(), "restartCount"),
    )


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_need_no_token(pages: Pages, path: str) -> None:
    """The kubelet has none."""
    assert 200 == pages.get(path, token="").status


@pytest.mark.parametrize("token", ["", "wrong"])
def test_pages_need_a_token(pages: Pages, token: str) -> None:
    """Without one, and with a wrong one, a reader gets no page."""
    answer = pages.get("/api/v1/clusters", token=token)
    assert (401, False) == (answer.status, pages.scan in answer.data.decode())


def test_the_pages_show_the_last_scan(pages: Pages) -> None:
    """The scan that the Job has stored in PostgreSQL, with its findings."""
    [cluster] = set(re.findall(r'href="/clusters/([^/"]+)/latest/', pages.get("/").data.decode()))
    summary = pages.get(f"/clusters/{cluster}/latest/index.html")
    named = pages.get(f"/clusters/{cluster}/scans/{pages.scan}/index.html")
    findings = pages.get(f"/clusters/{cluster}/latest/findings.html")
    assert (200, 200, 200) == (summary.status, named.status, findings.status)
    assert pages.scan in pages.get(f"/clusters/{cluster}/latest/method.html").data.decode()
    with open_reader(pages.database) as store:
        objects = {stored.finding.name for stored in store.read_scan(pages.scan).findings()}
    assert objects
    assert [] == [name for name in objects if name not in findings.data.decode()]


@pytest.mark.parametrize("at", ["metrics", "pages"])
def test_prometheus_reads_the_metrics(pages: Pages, at: str) -> None:
    """At the port of their own without a token, and at that of the pages with it."""
    answer = pages.get("/metrics", port=pages.metrics, token="") if at == "metrics" else pages.get("/metrics")
    assert (200, 'assay_clusters{state="outdated"} 0.0') == (
        answer.status,
        next((line for line in answer.data.decode().splitlines() if "outdated" in line), ""),
    )


def test_the_metrics_have_no_page_beside_them(pages: Pages) -> None:
    """Their port is open to every pod."""
    assert 404 == pages.get("/", port=pages.metrics, token="").status


def test_a_pod_gets_no_requests_without_its_database(pages: Pages) -> None:
    """A database of another schema fails the readiness alone: the process stays, and is ready again with its database."""
    execute(pages.database, "ALTER TABLE kube_assay RENAME TO elsewhere")
    wait_until(lambda: not condition(pages.pod(), "Ready"), seconds=SECONDS)
    unready = (pages.get("/healthz", token="").status, pages.get("/readyz", token="").status)
    available = condition(pages.cluster.get(DEPLOYMENTS), "Available")
    execute(pages.database, "ALTER TABLE elsewhere RENAME TO kube_assay")
    wait_until(pages.is_available, seconds=SECONDS)
    assert ((200, 503), False, 0) == (unready, available, dig(pages.container(), "restartCount"))


def test_a_server_that_hangs_is_started_anew(pages: Pages) -> None:
    """The liveness probe fails, and a new process serves the same pages."""
    pages.cluster.kubelet.send(as_text(dig(pages.pod(), "metadata", "name")), SIGSTOP)
    wait_until(lambda: dig(pages.container(), "restartCount") == 1, seconds=SECONDS)
    wait_until(pages.is_available, seconds=SECONDS)
    assert 200 == pages.get("/").status


def test_sigterm_ends_the_server_with_0(pages: Pages) -> None:
    """A pod that is deleted ends in its grace period by itself, and the Deployment has another one."""
    name = as_text(dig(pages.pod(), "metadata", "name"))
    keep(pages.cluster, name, [FINALIZER])
    pages.cluster.server.request("DELETE", f"{PODS}/{name}")
    wait_until(lambda: exit_code(pages.cluster, name) is not None, seconds=SECONDS)
    code, log = exit_code(pages.cluster, name), pages.cluster.kubelet.log(pages.cluster.get(f"{PODS}/{name}"), "serve")
    keep(pages.cluster, name, [])
    assert 0 == code, log
    assert "Traceback" not in log
    wait_until(lambda: dig(pages.cluster.get(DEPLOYMENTS), "status", "availableReplicas") == 1, seconds=SECONDS)
    assert 200 == pages.get("/").status


def keep(cluster: Cluster, pod: str, finalizers: list[Json]) -> None:
    """Let a pod be read after its deletion, or let it go."""
    change: JsonObject = {"metadata": {"finalizers": finalizers}}
    answer = cluster.server.client.request("PATCH", f"{PODS}/{pod}", change, content_type=MERGE)
    assert answer.status == 200, answer.body


def exit_code(cluster: Cluster, pod: str) -> Json:
    """The exit code of the container of a pod, or None before its end."""
    assert cluster.kubelet.error is None, repr(cluster.kubelet.error)
    [status] = as_list(dig(cluster.get(f"{PODS}/{pod}"), "status", "containerStatuses"))
    return dig(status, "state", "terminated", "exitCode")
