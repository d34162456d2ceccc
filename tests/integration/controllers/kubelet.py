"""A node whose pods are processes of this machine: a kubelet and a scheduler, as far as the pods of a scan need them.

It lists the pods some times a second, binds those whose images it has, starts init containers one after another and the
others together, and reports their states as the kubelet does (pkg/kubelet/kubelet_pods.go, status). Its probes are those over
HTTP. A container that ends is started again only where `restartPolicy` is Always. Everything happens on one thread, because the
kernel ends a process with the thread that started it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL, Signals

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.integration.apiserver import ApiServer
from tests.integration.client import Client
from tests.integration.controllers.images import is_known
from tests.integration.controllers.log_server import serving_logs
from tests.integration.controllers.pod import ADDRESS, StartedPod

NODE = "node-1"
INTERVAL = 0.1
"""Seconds between two lists of the pods."""
STRATEGIC = "application/strategic-merge-patch+json"


class Kubelet:
    """The node of a cluster; its files lie in `folder`, the logs of containers by the UID of their pod."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self._server, self.folder = server, folder
        self._pods: dict[str, StartedPod] = {}
        self._signals: list[tuple[str, Signals]] = []
        self._stopped = threading.Event()
        self.error: Exception | None = None
        """The error that ended the thread."""

    def run(self) -> None:
        """Serve the pods until `stop` is called."""
        try:
            with serving_logs(self._server.ca, self._content) as log_port:
                self._register(log_port)
                while not self._stopped.wait(INTERVAL):
                    self.step()
        except Exception as error:  # noqa: BLE001 - the test that waits for a Job reports it
            self.error = error
        finally:
            self._forget(set())

    def stop(self) -> None:
        """End the thread and all containers."""
        self._stopped.set()

    def kill(self, name: str) -> None:
        """Kill the containers of a pod, as the kernel does when memory is short."""
        self.send(name, SIGKILL)

    def send(self, name: str, number: Signals) -> None:
        """Send a signal to the containers of a pod."""
        self._signals.append((name, number))

    def log(self, pod: Json, container: str) -> str:
        """The output of a container."""
        path = self.folder / "pods" / as_text(dig(pod, "metadata", "uid")) / f"{container}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _content(self, namespace: str, name: str, container: str) -> bytes | None:
        """The output of a container for the API server, which asks on threads of its own; None before its start."""
        paths = (started.log(container) for started in list(self._pods.values()) if started.id == (namespace, name))
        path = next(paths, None)
        return path.read_bytes() if path and path.exists() else None

    def step(self) -> None:
        """List the pods and take each one step further."""
        pods = [as_object(pod) for pod in as_list(dig(self._server.request("GET", "/api/v1/pods").body, "items"))]
        for pod in pods:
            if not dig(pod, "spec", "nodeName"):
                self._bind(pod)
            elif dig(pod, "spec", "nodeName") == NODE:
                self._advance(pod)
        self._forget({as_text(dig(pod, "metadata", "uid")) for pod in pods})

    def _register(self, log_port: int) -> None:
        node: JsonObject = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE, "labels": {"kubernetes.io/os": "linux"}},
        }
        self._server.request("POST", "/api/v1/nodes", node)
        ready: JsonObject = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status: JsonObject = {
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": log_port}},
        }
        self._patch(f"/api/v1/nodes/{NODE}/status", {"status": status})

    def _bind(self, pod: JsonObject) -> None:
        images = [
            as_text(dig(item, "image"))
            for key in ("initContainers", "containers")
            for item in as_list(dig(pod, "spec", key))
        ]
        if dig(pod, "metadata", "deletionTimestamp") or not all(map(is_known, images)):
            return
        target: JsonObject = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        binding: JsonObject = {"apiVersion": "v1", "kind": "Binding", "metadata": pod["metadata"], "target": target}
        self._server.request("POST", f"{_path(pod)}/binding", binding)

    def _advance(self, pod: JsonObject) -> None:
        uid = as_text(dig(pod, "metadata", "uid"))
        if uid not in self._pods and dig(pod, "status", "phase") in {"Succeeded", "Failed"}:
            if dig(pod, "metadata", "deletionTimestamp"):
                self._delete(pod)
            return
        if uid not in self._pods:
            self._pods[uid] = StartedPod(self._server, pod, self.folder)
        started = self._pods[uid]
        for name, number in list(self._signals):
            if name == started.name:
                self._signals.remove((name, number))
                started.send(number)
        if dig(pod, "metadata", "deletionTimestamp"):
            started.terminate(as_object(pod["metadata"]).get("deletionGracePeriodSeconds"))
        started.advance()
        if started.changed():
            self._patch(f"{_path(pod)}/status", {"metadata": {"uid": uid}, "status": started.status()})
        if started.terminating and started.ended():
            self._delete(pod)

    def _delete(self, pod: JsonObject) -> None:
        preconditions: JsonObject = {"uid": dig(pod, "metadata", "uid")}
        self._server.request("DELETE", _path(pod), {"gracePeriodSeconds": 0, "preconditions": preconditions})

    def _forget(self, existing: set[str]) -> None:
        """Kill the containers of pods that were deleted by force."""
        for uid in self._pods.keys() - existing:
            self._pods.pop(uid).kill()

    def _patch(self, path: str, body: JsonObject) -> None:
        """Change a status. Raises AssertionError if the server denies the change for another reason than a deleted object."""
        answer = self._server.client.request("PATCH", path, body, content_type=STRATEGIC)
        assert answer.status in {200, 404, 409}, f"PATCH {path} answered {answer.status}: {dig(answer.body, 'message')}"


@contextmanager
def running_kubelet(server: ApiServer, folder: Path) -> Iterator[Kubelet]:
    """A kubelet on a thread of its own; its containers end with the block."""
    own = Client.trusting(server.ca, url=server.url, token=server.token)  # each thread has a connection of its own
    kubelet = Kubelet(replace(server, client=own), folder)
    thread = threading.Thread(target=kubelet.run, name="kubelet")
    thread.start()
    try:
        yield kubelet
    finally:
        kubelet.stop()
        thread.join()


def _path(pod: JsonObject) -> str:
    return (
        f"/api/v1/namespaces/{as_text(dig(pod, 'metadata', 'namespace'))}/pods/{as_text(dig(pod, 'metadata', 'name'))}"
    )
