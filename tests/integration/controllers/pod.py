"""The containers of one pod, from the first init container to the end of the last container.

Source of truth: the kubelet's getPhase and convertToAPIContainerStatuses (pkg/kubelet/kubelet_pods.go), and its
termination message (pkg/kubelet/kuberuntime/kuberuntime_container.go).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import Final

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from tests.integration.apiserver import ApiServer
from tests.integration.controllers.container_process import ContainerProcess, Mount, start
from tests.integration.controllers.images import assay
from tests.integration.controllers.pod_fields import ConfigObjects, MissingError, expanded, variables_of
from tests.integration.controllers.probes import Probes
from tests.integration.controllers.volumes import Volumes

ADDRESS: Final = "127.0.0.1"
MESSAGE_BYTES: Final = 4096
LOG_BYTES: Final = 2048
"""The longest termination messages from the file and from the log."""


class PodContainer:
    """One container of a pod: its process once it is started, and its state."""

    def __init__(self, spec: JsonObject, folder: Path) -> None:
        self.spec = spec
        self.name = as_text(spec["name"])
        self.message = folder / f"{self.name}.message"
        self.process: ContainerProcess | None = None
        self.probes = Probes(spec, ADDRESS)
        self.started_at = self.finished_at = ""
        self.restarts = 0
        self.waiting = "ContainerCreating"
        self.reason = ""
        """The reason why it cannot start yet."""

    def exit_code(self) -> int | None:
        """The exit code, or None before the end."""
        code = None if self.process is None else self.process.exit_code()
        if code is not None and not self.finished_at:
            self.finished_at = _now()
        return code

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended."""
        return self.process is not None and self.exit_code() is None

    @property
    def ready(self) -> bool:
        """Whether it runs and gets requests."""
        return self.runs and self.probes.ready

    def probe(self) -> None:
        """Ask a container that runs for its health; kill one that has lost it."""
        if self.process and self.runs:
            self.probes.advance()
            if not self.probes.alive:
                self.process.send(SIGKILL)

    def state(self) -> JsonObject:
        """The state as in the status of a pod."""
        code = self.exit_code()
        if self.process is None:
            return {"waiting": {"reason": self.waiting, "message": self.reason}}
        if code is None:
            return {"running": {"startedAt": self.started_at}}
        ended: dict[str, Json] = {"exitCode": code, "reason": "Error" if code else "Completed"}
        ended |= {
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            "message": self._termination_message(code),
        }
        return {"terminated": ended}

    def _termination_message(self, code: int) -> str:
        written = self.message.read_bytes()[:MESSAGE_BYTES].decode(errors="replace")
        if written or not code or self.spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
            return written
        assert self.process
        return self.process.log.read_bytes()[-LOG_BYTES:].decode(errors="replace")


class StartedPod:
    """A pod of the node; `pod` is the pod as it was bound."""

    def __init__(self, server: ApiServer, pod: JsonObject, kubelet: Path) -> None:
        self._server, self._pod, self._kubelet = server, pod, kubelet
        self._folder = kubelet / "pods" / as_text(dig(pod, "metadata", "uid"))
        self._folder.mkdir(parents=True)
        self._volumes = Volumes(server, pod, kubelet)
        self._objects = ConfigObjects(server, as_text(dig(pod, "metadata", "namespace")))
        self.name = as_text(dig(pod, "metadata", "name"))
        self.id = as_text(dig(pod, "metadata", "namespace")), self.name
        spec = as_object(pod["spec"])
        self._first = [PodContainer(as_object(item), self._folder) for item in as_list(spec.get("initContainers"))]
        self._containers = [PodContainer(as_object(item), self._folder) for item in as_list(spec.get("containers"))]
        self._policy = as_text(spec.get("restartPolicy"))
        self._kill_at: float | None = None
        self._reported: Json = None

    @property
    def terminating(self) -> bool:
        """Whether the pod is being deleted."""
        return self._kill_at is not None

    def advance(self) -> None:
        """Start the containers whose turn has come, and kill those whose grace period has passed."""
        if self._kill_at is not None:
            if time.monotonic() > self._kill_at:
                self.send(SIGKILL)
            return
        for container in self._containers:
            container.probe()
        for container in self._due():
            try:
                self._start(container)
            except MissingError as error:
                container.waiting, container.reason = "CreateContainerConfigError", str(error)

    def log(self, container: str) -> Path:
        """The file that the output of a container goes to."""
        return self._folder / f"{container}.log"

    def send(self, number: Signals) -> None:
        """Send a signal to all running containers."""
        for container in (*self._first, *self._containers):
            if container.process and container.runs:
                container.process.send(number)

    def kill(self) -> None:
        """Kill all containers, and wait until they have ended."""
        for container in (*self._first, *self._containers):
            if container.process:
                container.process.kill()

    def terminate(self, grace: Json) -> None:
        """Begin to end the pod: SIGTERM now, SIGKILL after the grace period in seconds."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + (grace if isinstance(grace, int) else 30)
            self.send(SIGTERM)

    def ended(self) -> bool:
        """Whether no container runs, and none will."""
        running = any(item.runs for item in (*self._first, *self._containers))
        return not running and (self.terminating or self._phase() in {"Succeeded", "Failed"})

    def changed(self) -> bool:
        """Whether the status differs from the one that this method has compared last."""
        before, self._reported = self._reported, self.status()
        return before != self._reported

    def status(self) -> JsonObject:
        """The status of the pod."""
        phase = self._phase()
        initialized = all(item.exit_code() == 0 for item in self._first)
        ready = phase == "Running" and all(item.ready for item in self._containers)
        conditions = {"PodScheduled": True, "Initialized": initialized, "ContainersReady": ready, "Ready": ready}
        return {
            "phase": phase,
            "podIP": ADDRESS,
            "podIPs": [{"ip": ADDRESS}],
            "hostIP": ADDRESS,
            "startTime": min(
                (item.started_at for item in (*self._first, *self._containers) if item.started_at), default=None
            ),
            "conditions": [{"type": name, "status": str(value)} for name, value in conditions.items()],
            "initContainerStatuses": _statuses(self._first),
            "containerStatuses": _statuses(self._containers),
        }

    def _due(self) -> Iterable[PodContainer]:
        """The containers that can start: the first init container that has not ended well, else all the others."""
        for container in self._first:
            code = container.exit_code()
            if code is None and container.process:
                return []
            if code is None:
                return [container]
            if code:
                return []
        return [item for item in self._containers if item.process is None or self._restarts(item)]

    def _restarts(self, container: PodContainer) -> bool:
        return self._policy == "Always" and container.exit_code() is not None

    def _phase(self) -> str:
        if any(item.exit_code() for item in self._first):
            return "Failed"
        codes = [item.exit_code() for item in self._containers]
        if self._policy != "Always" and None not in codes:
            return "Failed" if any(codes) else "Succeeded"
        if self.terminating and not any(item.runs for item in self._containers):
            return "Failed"
        return "Running" if any(item.process for item in self._containers) else "Pending"

    def _start(self, container: PodContainer) -> None:
        self._volumes.fill()
        image = assay()
        variables = variables_of(container.spec, self._pod, self._objects, {**image.variables, **self._address()})
        command = texts(container.spec.get("command")) or image.entrypoint
        arguments = texts(container.spec.get("args")) or (() if container.spec.get("command") else image.arguments)
        scratch = self._folder / container.name
        scratch.mkdir(exist_ok=True)
        container.message.write_bytes(b"")
        container.restarts += container.process is not None
        container.started_at, container.finished_at = _now(), ""
        container.probes = Probes(container.spec, ADDRESS)
        container.process = start(
            expanded([*command, *arguments], variables),
            variables=variables,
            host_name=as_text(dig(self._pod, "spec", "hostname")) or self.name,
            folder=as_text(container.spec.get("workingDir")) or image.folder,
            volumes=self._kubelet,
            mounts=[*self._volumes.mounts(container.spec, variables), self._message_mount(container)],
            read_only=dig(container.spec, "securityContext", "readOnlyRootFilesystem") is True,
            scratch=scratch,
        )

    def _message_mount(self, container: PodContainer) -> Mount:
        path = as_text(container.spec.get("terminationMessagePath")) or "/dev/termination-log"
        return Mount(str(container.message.relative_to(self._kubelet)), path, is_file=True)

    def _address(self) -> dict[str, str]:
        """The address of the API server as each container finds it."""
        host, _, port = self._server.url.removeprefix("https://").rpartition(":")
        return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


def _statuses(containers: Iterable[PodContainer]) -> list[Json]:
    return [
        {
            "name": container.name,
            "image": container.spec["image"],
            "imageID": "",
            "ready": container.ready,
            "started": container.process is not None and container.probes.started,
            "restartCount": container.restarts,
            "state": container.state(),
        }
        for container in containers
    ]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
