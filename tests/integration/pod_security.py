"""Random pods and workloads in namespaces of random levels: what a real API server answers, and what Assay answers.

`python -m tests.integration.pod_security --comparisons 10000` prints the first differences. Exit code 1 when there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from scanner.api import Auditor, InvocationResult, UserInfo
from scanner.cluster.definitions import builtin_kinds
from scanner.documents.pod_security import read_pod_security
from scanner.policies.pod_security.answers import write_answers
from scanner.policies.pod_security.labels import Mode
from scanner.policies.pod_security.language import PodSecurity
from scanner.policies.pod_security.pods import find_template
from scanner.policies.pod_security.standards import Level
from tests.integration.apiserver import ADMIN, WITHOUT_PLUGINS, ApiServer, running
from tests.requirements import API_SERVER

FILE: Final = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: v1.24, audit: restricted, warn: restricted, warn-version: v1.30}
    exemptions: {namespaces: [ps-exempt], runtimeClasses: [sandboxed], usernames: []}
"""
FREE: Final = "ps-free"
"""A namespace that admits everything: the server stores there what it would judge elsewhere."""
_VERSIONS: Final = ("latest", "v1.0", "v1.18", "v1.21", "v1.24", "v1.28", "v1.31", "v1.34", "v1.35", "v1.36", "v1.99")
_WORKLOADS: Final = {
    "PodTemplate": ("/api/v1", "podtemplates", "v1"),
    "ReplicationController": ("/api/v1", "replicationcontrollers", "v1"),
    "ReplicaSet": ("/apis/apps/v1", "replicasets", "apps/v1"),
    "Deployment": ("/apis/apps/v1", "deployments", "apps/v1"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets", "apps/v1"),
    "DaemonSet": ("/apis/apps/v1", "daemonsets", "apps/v1"),
    "Job": ("/apis/batch/v1", "jobs", "batch/v1"),
    "CronJob": ("/apis/batch/v1", "cronjobs", "batch/v1"),
}
_CAPABILITIES: Final = ("ALL", "NET_BIND_SERVICE", "CHOWN", "SYS_ADMIN", "NET_RAW", "KILL")
_SYSCTLS: Final = ("kernel.shm_rmid_forced", "net.ipv4.tcp_rmem", "net.core.somaxconn", "net.ipv4.tcp_fin_timeout")
_VOLUMES: Final[tuple[dict[str, Any], ...]] = (
    {"emptyDir": {}},
    {"configMap": {"name": "c"}},
    {"secret": {"secretName": "s"}},
    {"hostPath": {"path": "/"}},
    {"nfs": {"server": "n", "path": "/"}},
    {"csi": {"driver": "d"}},
    {"persistentVolumeClaim": {"claimName": "p"}},
)
Document = dict[str, Any]


@dataclass(slots=True)
class Tally:
    """The numbers of comparisons, of objects that the API does not store, and the differences: the object and both answers."""

    comparisons: int = 0
    invalid: int = 0
    refused: int = 0
    warned: int = 0
    differences: list[tuple[Document, object, object]] = field(default_factory=list)


class Objects:
    """Makes random pods, templates and labels."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def _maybe(self, share: float) -> bool:
        return self._chance.random() < share

    def labels(self) -> dict[str, str]:
        """The labels of a namespace: levels and versions that the server accepts."""
        labels: dict[str, str] = {}
        for mode in Mode:
            if self._maybe(0.7):
                labels[mode.level_key] = self._chance.choice((*Level, Level.BASELINE, Level.RESTRICTED)).value
            if self._maybe(0.4):
                labels[mode.version_key] = self._chance.choice(_VERSIONS)
        return labels

    def document(self) -> tuple[str, Document]:
        """A pod or a workload, with the path of its collection below a namespace."""
        template = {"metadata": self._metadata(), "spec": self._pod_spec()}
        if self._maybe(0.6):
            spec = template["spec"]
            metadata = {**template["metadata"], "name": "p"}
            return "/api/v1 pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        kind = self._chance.choice(tuple(_WORKLOADS))
        path, plural, version = _WORKLOADS[kind]
        template["metadata"]["labels"] = {"app": "x"}
        body: Document = {"apiVersion": version, "kind": kind, "metadata": {"name": "w"}}
        template["spec"]["restartPolicy"] = "Never" if kind in ("Job", "CronJob") else "Always"
        if template["spec"]["restartPolicy"] == "Always":
            template["spec"].pop("ephemeralContainers", None)
        match kind:
            case "PodTemplate":
                body["template"] = template
            case "ReplicationController":
                body["spec"] = {"selector": {"app": "x"}, "template": template}
            case "Job":
                body["spec"] = {"template": template}
            case "CronJob":
                body["spec"] = {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}}
            case _:
                body["spec"] = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
                if kind == "StatefulSet":
                    body["spec"]["serviceName"] = "s"
        return f"{path} {plural}", body

    def _metadata(self) -> Document:
        annotations: dict[str, str] = {}
        if self._maybe(0.15):
            name = self._chance.choice(("app", "ghost"))
            value = self._chance.choice(("unconfined", "runtime/default", "localhost/x"))
            annotations[f"container.apparmor.security.beta.kubernetes.io/{name}"] = value
        if self._maybe(0.1):
            value = self._chance.choice(("unconfined", "runtime/default", "docker/default"))
            annotations["seccomp.security.alpha.kubernetes.io/pod"] = value
        return {"annotations": annotations} if annotations else {}

    def _pod_spec(self) -> Document:
        chance = self._chance
        names = ("app", "side", "b-1")[: chance.choice((1, 1, 1, 2, 3))]
        spec: Document = {"containers": [self._container(name) for name in names]}
        if self._maybe(0.2):
            spec["initContainers"] = [self._container("init")]
        for name in ("hostNetwork", "hostPID", "hostIPC"):
            if self._maybe(0.1):
                spec[name] = True
        if self._maybe(0.1):
            spec["hostUsers"] = self._maybe(0.4)
        if self._maybe(0.05):
            spec["os"] = {"name": chance.choice(("linux", "windows"))}
        if self._maybe(0.1):
            spec["runtimeClassName"] = "sandboxed"
        if self._maybe(0.5):
            spec["securityContext"] = self._security(of_pod=True)
        if self._maybe(0.4):
            volumes = chance.sample(_VOLUMES, chance.choice((1, 2, 3)))
            spec["volumes"] = [{"name": f"v{number}", **volume} for number, volume in enumerate(volumes)]
        return spec

    def _container(self, name: str) -> Document:
        chance = self._chance
        container: Document = {"name": name, "image": "registry.example/app:1"}
        if self._maybe(0.85):
            container["securityContext"] = self._security(of_pod=False)
        if self._maybe(0.3):
            ports = [{"containerPort": port, "name": f"p{port}"} for port in chance.sample((80, 443, 8080), 2)]
            if self._maybe(0.4):
                ports[0]["hostPort"] = ports[0]["containerPort"]
            container["ports"] = ports
        if self._maybe(0.15):
            probe: Document = {"httpGet": {"port": 80, **({"host": "127.0.0.1"} if self._maybe(0.5) else {})}}
            container[chance.choice(("livenessProbe", "readinessProbe"))] = probe
        return container

    def _security(self, *, of_pod: bool) -> Document:
        """Mostly what *restricted* demands, so that one field alone decides often."""
        chance = self._chance
        security: Document = {}
        if self._maybe(0.8):
            security["runAsNonRoot"] = not self._maybe(0.1)
        if self._maybe(0.7):
            kinds = ("RuntimeDefault", "RuntimeDefault", "RuntimeDefault", "Unconfined")
            security["seccompProfile"] = {"type": chance.choice(kinds)}
        if self._maybe(0.1):
            security["appArmorProfile"] = {"type": chance.choice(("RuntimeDefault", "Unconfined"))}
        if self._maybe(0.15):
            security["runAsUser"] = chance.choice((0, 1000))
        if self._maybe(0.1):
            options = {"type": chance.choice(("container_t", "container_engine_t", "x_t")), "user": "u", "role": "r"}
            security["seLinuxOptions"] = dict(chance.sample(sorted(options.items()), chance.choice((1, 2))))
        if of_pod:
            if self._maybe(0.15):
                security["sysctls"] = [{"name": name, "value": "1"} for name in chance.sample(_SYSCTLS, 2)]
            return security
        security["allowPrivilegeEscalation"] = self._maybe(0.15)
        if self._maybe(0.9):
            security["capabilities"] = {"drop": chance.choice((["ALL"], ["ALL"], ["ALL"], ["KILL"]))}
            if self._maybe(0.2):
                security["capabilities"]["add"] = chance.sample(_CAPABILITIES, chance.choice((1, 2)))
        if self._maybe(0.1):
            security["privileged"] = True
            security["allowPrivilegeEscalation"] = True
        if self._maybe(0.05):
            security["procMount"] = chance.choice(("Default", "Unmasked"))
        return security


@contextmanager
def judging(assets: Path, directory: Path, *, configured: bool) -> Iterator[tuple[ApiServer, PodSecurity]]:
    """A server with Pod Security, with or without a configuration, and the language that stands for it."""
    path = directory / "admission.yaml"
    path.write_text(FILE, encoding="utf-8")
    flags = [f"--admission-control-config-file={path}"] if configured else []
    without = [name for name in WITHOUT_PLUGINS if name != "PodSecurity"] + ["RuntimeClass"]
    with running(assets, directory, flags=flags, without_plugins=without) as server:
        yield server, PodSecurity(read_pod_security(path) if configured else None)


def create_namespace(server: ApiServer, name: str, labels: dict[str, str]) -> Document:
    """Create a namespace with some labels, and return it."""
    document: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    answer = server.request("POST", "/api/v1/namespaces", document)
    if answer.status != 201:
        raise RuntimeError(f"the namespace was not created: {answer.body}")
    return answer.body  # type: ignore[return-value]


def try_create(server: ApiServer, place: str, namespace: str, document: Document) -> Any:
    """The answer to a creation that stores nothing; the place is the path of an API version and a plural."""
    path, plural = place.split(" ")
    return server.request("POST", f"{path}/namespaces/{namespace}/{plural}", document, {"dryRun": "All"})


class Comparison:
    """Compares the answers of a server with ours."""

    def __init__(self, server: ApiServer, language: PodSecurity, chance: Random) -> None:
        self._server, self._language = server, language
        self._chance = chance
        self._objects = Objects(chance)
        self.tally = Tally()
        create_namespace(server, FREE, {mode.level_key: "privileged" for mode in Mode})

    def run(self, comparisons: int, *, per_namespace: int = 20) -> None:
        """Compare so many objects, some in each namespace."""
        number = 0
        while self.tally.comparisons < comparisons:
            name = "ps-exempt" if number == 1 else f"ps-{number}"
            namespace = create_namespace(self._server, name, self._objects.labels())
            number += 1
            auditor = Auditor(
                policies=(),
                bindings=(),
                namespaces=[namespace],
                kinds=builtin_kinds(),
                user=UserInfo(ADMIN),
                kubernetes_version="1.36",
                pod_security=self._language,
            )
            for _ in range(per_namespace):
                self._compare(name, auditor)

    def _compare(self, namespace: str, auditor: Auditor) -> None:
        place, document = self._objects.document()
        stored = try_create(self._server, place, FREE, document)
        if stored.status != 201:
            self.tally.invalid += 1
            return
        body: Document = stored.body
        body["metadata"]["namespace"] = namespace
        answer = try_create(self._server, place, namespace, document)
        message = str(answer.body["message"]) if answer.status == 403 else ""
        expected = (
            message.partition(" is forbidden: ")[2],
            [each for each in answer.warnings() if each.startswith("would violate PodSecurity")],
        )
        results = auditor.evaluate(body)
        self._count(body, expected, _answer(results))
        if body["kind"] != "Pod":
            self._compare_pods(namespace, body, results)

    def _compare_pods(self, namespace: str, body: Document, results: tuple[InvocationResult, ...]) -> None:
        """The pod of a template: what the server answers to its creation, and whether we say that it would be refused."""
        found = find_template(next(kind for kind in builtin_kinds() if kind.kind == body["kind"]), body)
        template: Document = dict(found[1]) if found else {}
        metadata = {**template.get("metadata", {}), "name": "p"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        answer = try_create(self._server, "/api/v1 pods", namespace, pod)
        if answer.status not in (201, 403):
            self.tally.invalid += 1
            return
        message = str(answer.body["message"]) if answer.status == 403 else ""
        actual = write_answers(results).get("RefusePods", "")
        self._count(pod, (message.partition(" is forbidden: ")[2], []), (actual, []))

    def _count(self, body: Document, expected: tuple[str, list[str]], actual: tuple[str, list[str]]) -> None:
        self.tally.comparisons += 1
        self.tally.refused += bool(expected[0])
        self.tally.warned += bool(expected[1])
        if expected != actual:
            self.tally.differences.append((body, expected, actual))


def _answer(results: tuple[InvocationResult, ...]) -> tuple[str, list[str]]:
    """The refusal and the warnings that follow from our outcomes."""
    texts = write_answers(results)
    return texts.get("Deny", ""), [texts["Warn"]] if "Warn" in texts else []


def main() -> int:
    """Parse the command line and run, half of the comparisons on each server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None, help="by default the time of day")
    arguments = parser.parse_args()
    assets = API_SERVER.place()
    if not assets:
        sys.stderr.write("there is no kube-apiserver: KUBEBUILDER_ASSETS is not set; make one with: make apiserver\n")
        return 2
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    different = 0
    for configured in (False, True):
        with (
            tempfile.TemporaryDirectory() as directory,
            judging(Path(assets), Path(directory), configured=configured) as (server, language),
        ):
            comparison = Comparison(server, language, Random(seed))
            comparison.run(arguments.comparisons // 2)
        tally = comparison.tally
        different += len(tally.differences)
        for body, expected, actual in tally.differences[:5]:
            sys.stdout.write(f"server {expected}\nAssay  {actual}\nobject {body}\n")
        sys.stdout.write(
            f"configured={configured} comparisons={tally.comparisons} refused={tally.refused} warned={tally.warned}"
            f" invalid={tally.invalid} different={len(tally.differences)} seed={seed}\n"
        )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
