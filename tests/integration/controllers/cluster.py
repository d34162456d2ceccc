"""A cluster that runs pods: an API server with all its admission, the controllers, and one node."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.deploy.programs import NAMESPACE
from tests.integration.apiserver import ApiServer, running
from tests.integration.controllers.controller_manager import running_controllers
from tests.integration.controllers.kubelet import Kubelet, running_kubelet
from tests.integration.controllers.release import CONTAINER
from tests.integration.controllers.volumes import claim_folder
from tests.integration.faults import wait_until
from tests.integration.manifests import apply

SECONDS = 120.0
"""The longest time that a test waits for a Job."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster."""

    server: ApiServer
    kubelet: Kubelet

    def get(self, path: str) -> Json:
        """An object or a list."""
        return self.server.request("GET", path).body

    def cron_job(self, name: str) -> Json:
        """A CronJob of the release's namespace."""
        return self.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/{name}")

    def apply(self, documents: Iterable[JsonObject]) -> None:
        """Store manifests; the pods of a namespace are stored when the controllers have made its service account."""
        manifests = list(documents)
        namespaces = [document for document in manifests if document["kind"] == "Namespace"]
        apply(self.server, namespaces)
        for namespace in namespaces:
            path = f"/api/v1/namespaces/{dig(namespace, 'metadata', 'name')}/serviceaccounts/default"
            wait_until(partial(self._exists, path))
        apply(self.server, [document for document in manifests if document["kind"] != "Namespace"])

    def start(self, job: JsonObject) -> str:
        """Create a Job; return its name."""
        [stored] = apply(self.server, [job])
        return as_text(dig(stored, "metadata", "name"))

    def job(self, name: str) -> Json:
        """A Job of the release's namespace."""
        return self.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{name}")

    def jobs_of(self, cron_job: str) -> list[Json]:
        """The Jobs that the controller has made from a CronJob."""
        jobs = as_list(dig(self.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"), "items"))
        return [
            job
            for job in jobs
            if any(dig(owner, "name") == cron_job for owner in as_list(dig(job, "metadata", "ownerReferences")))
        ]

    def pods_of(self, job: str) -> list[Json]:
        """The pods of a Job in the order of their creation."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        pods = self.server.request("GET", path, params={"labelSelector": f"job-name={job}"}).body
        return sorted(as_list(dig(pods, "items")), key=lambda pod: as_text(dig(pod, "metadata", "creationTimestamp")))

    def ended(self, name: str, *, seconds: float = SECONDS) -> Ended:
        """A Job that has ended. Raises AssertionError with the logs of its pods after so many seconds."""
        deadline = time.monotonic() + seconds
        while not (condition := _final(self.job(name))):
            assert self.kubelet.error is None, repr(self.kubelet.error)
            assert time.monotonic() < deadline, f"the Job {name} has not ended:\n{self._account(name)}"
            time.sleep(0.1)
        pods = self.pods_of(name)
        return Ended(
            condition=as_text(dig(condition, "type")),
            reason=as_text(dig(condition, "reason")),
            codes=[_terminated(pod, "exitCode") for pod in pods],
            messages=[_terminated(pod, "message") for pod in pods],
            logs="\n".join(self.kubelet.log(pod, CONTAINER) for pod in pods),
        )

    def volume(self, claim: str) -> Path:
        """The folder of a claim of the release's namespace."""
        return claim_folder(self.kubelet.folder, NAMESPACE, claim)

    def _exists(self, path: str) -> bool:
        return self.server.request("GET", path).status == 200

    def _account(self, name: str) -> str:
        pods = self.pods_of(name)
        return "\n".join(
            f"{dig(pod, 'status', 'containerStatuses')}\n{self.kubelet.log(pod, CONTAINER)}" for pod in pods
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """A Job that has ended: the type and the reason of its last condition, and the ends and the output of its scans, one a pod."""

    condition: str
    reason: str
    codes: list[Json]
    messages: list[Json]
    logs: str


@contextmanager
def running_cluster(assets: Path, folder: Path, controllers: Sequence[str] = ()) -> Iterator[Cluster]:
    """Start a cluster with one node, and with more controllers; its processes end with the block."""
    (folder / "server").mkdir()
    (folder / "node").mkdir()
    with (
        running(assets, folder / "server", without_plugins=["TaintNodesByCondition"]) as server,
        running_controllers(assets, server, controllers),
        running_kubelet(server, folder / "node") as kubelet,
    ):
        yield Cluster(server, kubelet)


def _final(job: Json) -> Json:
    """The condition with which a Job has ended, or None."""
    conditions = (item for item in as_list(dig(job, "status", "conditions")) if dig(item, "status") == "True")
    return next((item for item in conditions if dig(item, "type") in {"Complete", "Failed"}), None)


def _terminated(pod: Json, field: str) -> Json:
    """A field of the end of the container that scans, or None."""
    [status] = as_list(dig(pod, "status", "containerStatuses"))
    return dig(status, "state", "terminated", field)
