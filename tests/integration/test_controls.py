"""The controls of the shipped mappings on a real API server: each is violated by its own objects alone, and met without them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from scanner.documents.controls import list_shipped, read_frameworks
from scanner.model.json import as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.integration.apiserver import ApiServer, running

Document = dict[str, Any]
Change = Callable[[Document, Document], None]
POLICIES: Final = Path(__file__).parents[2] / "examples" / "policies-controls"
NAMES: Final = tuple(list_shipped())
BASELINE, RESTRICTED, DEFAULT = "weak", "strict", "default"
LABEL: Final = "pod-security.kubernetes.io/enforce"
GROUP: Final = "rbac.authorization.k8s.io"
MET: Final[Document] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "met"},
    "spec": {
        "serviceAccountName": "own",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/app:1",
                "resources": {"limits": {"memory": "1Gi", "cpu": "1"}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
}
"""It meets every control."""


def _context(**fields: object) -> Change:
    return lambda _, container: container["securityContext"].update(fields)


def _spec(**fields: object) -> Change:
    return lambda spec, _: spec.update(fields)


def _container(**fields: object) -> Change:
    return lambda _, container: container.update(fields)


def _pod_context(**fields: object) -> Change:
    return lambda spec, _: spec["securityContext"].update(fields)


def _privileged(_: Document, container: Document) -> None:
    container["securityContext"].pop("allowPrivilegeEscalation")
    container["securityContext"]["privileged"] = True


def _host_process(spec: Document, _: Document) -> None:
    spec["hostNetwork"] = True
    spec["securityContext"]["windowsOptions"] = {"hostProcess": True}


def _unmasked(spec: Document, container: Document) -> None:
    spec["hostUsers"] = False
    container["securityContext"]["procMount"] = "Unmasked"


def _no_seccomp(spec: Document, _: Document) -> None:
    del spec["securityContext"]["seccompProfile"]


CIS, NSA, PSS = (f"{name}/" for name in ("cis-kubernetes-5", "nsa-cisa-hardening", "pod-security-standards"))
HOST: Final = {NSA + "host-namespaces", PSS + "baseline-host-namespaces"}
PODS: Final[dict[str, tuple[str, Change, set[str]]]] = {
    "privileged": (BASELINE, _privileged, {CIS + "5.2.2", NSA + "privileged", PSS + "baseline-privileged"}),
    "host-pid": (BASELINE, _spec(hostPID=True), {CIS + "5.2.3", *HOST}),
    "host-ipc": (BASELINE, _spec(hostIPC=True), {CIS + "5.2.4", *HOST}),
    "host-network": (BASELINE, _spec(hostNetwork=True), {CIS + "5.2.5", *HOST}),
    "host-process": (BASELINE, _host_process, {CIS + "5.2.11", PSS + "baseline-host-process", CIS + "5.2.5", *HOST}),
    "host-path": (
        BASELINE,
        _spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
        {CIS + "5.2.12", NSA + "host-path", PSS + "baseline-host-path"},
    ),
    "host-port": (
        BASELINE,
        _container(ports=[{"containerPort": 80, "hostPort": 80}]),
        {CIS + "5.2.13", PSS + "baseline-host-ports"},
    ),
    "added-capability": (
        BASELINE,
        _context(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
        {CIS + "5.2.9", PSS + "baseline-capabilities"},
    ),
    "app-armor": (
        BASELINE,
        _context(appArmorProfile={"type": "Unconfined"}),
        {NSA + "app-armor", PSS + "baseline-app-armor"},
    ),
    "se-linux": (BASELINE, _context(seLinuxOptions={"type": "spc_t"}), {NSA + "se-linux", PSS + "baseline-se-linux"}),
    "proc-mount": (BASELINE, _unmasked, {PSS + "baseline-proc-mount"}),
    "seccomp-off": (BASELINE, _context(seccompProfile={"type": "Unconfined"}), {PSS + "baseline-seccomp"}),
    "sysctl": (
        BASELINE,
        _pod_context(sysctls=[{"name": "kernel.msgmax", "value": "65536"}]),
        {PSS + "baseline-sysctls"},
    ),
    "probe-host": (
        BASELINE,
        _container(livenessProbe={"httpGet": {"port": 80, "host": "example.com"}}),
        {PSS + "baseline-probe-hosts"},
    ),
    "net-raw": (BASELINE, _context(capabilities={}), {CIS + "5.2.8"}),
    "default-account": (BASELINE, _spec(serviceAccountName="default"), {CIS + "5.1.5"}),
    "token": (BASELINE, _spec(automountServiceAccountToken=True), {CIS + "5.1.6", NSA + "service-account-tokens"}),
    "secret-variable": (
        BASELINE,
        _container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
        {CIS + "5.4.1", NSA + "secrets-as-files"},
    ),
    "other-registry": (BASELINE, _container(image="example.net/app:1"), {CIS + "5.5.1", NSA + "image-sources"}),
    "no-context": (
        BASELINE,
        lambda _, container: container.pop("securityContext"),
        {CIS + "5.7.3", CIS + "5.2.8", NSA + "read-only-root"},
    ),
    "in-default": (DEFAULT, lambda *_: None, {CIS + "5.7.4", NSA + "default-namespace"}),
    "writable-root": (BASELINE, _context(readOnlyRootFilesystem=False), {NSA + "read-only-root"}),
    "no-limits": (BASELINE, _container(resources={}), {NSA + "resource-limits"}),
    "escalation": (
        RESTRICTED,
        _context(allowPrivilegeEscalation=True),
        {CIS + "5.2.6", NSA + "privilege-escalation", PSS + "restricted-privilege-escalation"},
    ),
    "may-be-root": (
        RESTRICTED,
        _pod_context(runAsNonRoot=False),
        {CIS + "5.2.7", NSA + "non-root", PSS + "restricted-run-as-non-root"},
    ),
    "is-root": (
        RESTRICTED,
        _pod_context(runAsUser=0),
        {CIS + "5.2.7", NSA + "non-root", PSS + "restricted-run-as-user"},
    ),
    "no-seccomp": (RESTRICTED, _no_seccomp, {CIS + "5.7.2", NSA + "seccomp", PSS + "restricted-seccomp"}),
    "kept-capability": (
        RESTRICTED,
        _context(capabilities={"drop": ["NET_RAW"]}),
        {CIS + "5.2.10", NSA + "capabilities", PSS + "restricted-capabilities"},
    ),
    "nfs": (
        RESTRICTED,
        _spec(volumes=[{"name": "v", "nfs": {"server": "n", "path": "/"}}]),
        {PSS + "restricted-volumes"},
    ),
    "proc-mount-restricted": (RESTRICTED, _unmasked, {PSS + "restricted-proc-mount"}),
}
"""Pods by name: their namespace, what distinguishes them from the pod that meets every control, and the controls that they violate."""
ROLES: Final[dict[str, tuple[tuple[str, str, str], set[str]]]] = {
    "read-secrets": (("", "secrets", "get"), {CIS + "5.1.2"}),
    "wildcards": (("*", "leases", "get"), {CIS + "5.1.3", NSA + "role-wildcards"}),
    "create-pods": (("", "pods", "create"), {CIS + "5.1.4"}),
    "bind": ((GROUP, "roles", "bind"), {CIS + "5.1.8"}),
    "volumes": (("", "persistentvolumes", "create"), {CIS + "5.1.9"}),
    "node-proxy": (("", "nodes/proxy", "get"), {CIS + "5.1.10"}),
    "certificates": (("certificates.k8s.io", "certificatesigningrequests/approval", "update"), {CIS + "5.1.11"}),
    "webhooks": (
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "update"),
        {CIS + "5.1.12"},
    ),
    "tokens": (("", "serviceaccounts/token", "create"), {CIS + "5.1.13"}),
}
"""ClusterRoles by name: their only rule, as group, resource and verb, and the controls that they violate."""
ADMIN: Final = "all-powerful"
EXPECTED: Final = {
    **{name: controls for name, (*_, controls) in PODS.items()},
    **{name: controls for name, (_, controls) in ROLES.items()},
    ADMIN: {CIS + "5.1.1"},
}


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server that admits everything, with the objects of both tables, and then with the policies and labels."""
    with running(assets, tmp_path_factory.mktemp("controls")) as started:
        for namespace in (BASELINE, RESTRICTED):
            create(started, "/api/v1/namespaces", {"metadata": {"name": namespace}})
            create_pod(started, namespace, "met", lambda *_: None)
        for name, (namespace, change, _) in PODS.items():
            create_pod(started, namespace, name, change)
        create_role(started, "met", "", "configmaps", "get")
        for name, (rule, _) in ROLES.items():
            create_role(started, name, *rule)
        create_binding(started, "met", "view")
        create_binding(started, ADMIN, "cluster-admin")
        label(started, BASELINE, {LABEL: "baseline", f"{LABEL}-version": "v1.34"})
        label(started, DEFAULT, {LABEL: "baseline"})
        label(started, RESTRICTED, {LABEL: "restricted"})
        for path in sorted(POLICIES.glob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text("utf-8")):
                plural = f"{document['kind'].lower()}s".replace("policys", "policies")
                create(started, f"/apis/admissionregistration.k8s.io/v1/{plural}", document)
        yield started


def create(server: ApiServer, path: str, document: Document) -> None:
    """Create an object."""
    answer = server.request("POST", path, document)
    assert answer.status == 201, (document, answer)


def create_pod(server: ApiServer, namespace: str, name: str, change: Change) -> None:
    """Create the pod that meets every control, after a change of its spec and its container."""
    pod = deepcopy(MET)
    pod["metadata"]["name"] = name
    change(pod["spec"], pod["spec"]["containers"][0])
    create(server, f"/api/v1/namespaces/{namespace}/pods", pod)


def create_role(server: ApiServer, name: str, group: str, resource: str, verb: str) -> None:
    """Create a ClusterRole with one rule."""
    rule = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
    create(server, f"/apis/{GROUP}/v1/clusterroles", {"metadata": {"name": name}, "rules": [rule]})


def create_binding(server: ApiServer, name: str, role: str) -> None:
    """Create a ClusterRoleBinding."""
    subjects = [{"kind": "User", "name": "ana", "apiGroup": GROUP}]
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    document = {"metadata": {"name": name}, "subjects": subjects, "roleRef": reference}
    create(server, f"/apis/{GROUP}/v1/clusterrolebindings", document)


def label(server: ApiServer, namespace: str, labels: dict[str, str | None]) -> None:
    """Label a namespace."""
    path = f"/api/v1/namespaces/{namespace}"
    patch = {"metadata": {"labels": labels}}
    answer = server.client.request("PATCH", path, patch, content_type="application/merge-patch+json")
    assert answer.status == 200


def scan(server: ApiServer, assay: Assay) -> Document:
    """The JSON report of a scan by all shipped mappings."""
    named = [word for name in NAMES for word in ("--controls", name)]
    ran = assay("scan", "--kubeconfig", server.kubeconfig, *named, "-o", "json", "-q", "--db", "controls.db")
    return dict(ran.report)


def states(report: Document) -> dict[str, tuple[str, list[str]]]:
    """The state of each control, and the reasons."""
    return {
        f"{framework['name']}/{control['id']}": (control["state"], control["why"])
        for framework in report["controls"]
        for control in framework["controls"]
    }


def test_each_control_is_violated_by_its_own_objects_and_met_without_them(server: ApiServer, assay: Assay) -> None:
    """Every object violates exactly the controls that the tables name, every control of the mappings has both, and none is left out."""
    frameworks = read_frameworks(map(Path, NAMES), languages=["ValidatingAdmissionPolicy"])
    shown = {f"{each.name}/{control.id}" for each in frameworks for control in each.controls if not control.cannot_show}
    assert shown == set().union(*EXPECTED.values())

    report = scan(server, assay)
    violated: defaultdict[str, set[str]] = defaultdict(set)
    for finding in as_list(report["findings"]):
        controls = set(map(as_text, as_list(dig(finding, "controls"))))
        violated[as_text(dig(finding, "object", "name"))] |= controls
    assert {name: sorted(controls) for name, controls in EXPECTED.items()} == {
        name: sorted(controls) for name, controls in violated.items()
    }
    by_state = states(report)
    assert shown == {name for name, (state, _) in by_state.items() if state == "violated"}
    assert {"notCovered"} == {state for name, (state, _) in by_state.items() if name not in shown}

    remove_violating(server)
    label(server, BASELINE, {LABEL: "restricted", f"{LABEL}-version": None})
    by_state = states(scan(server, assay))
    assert {} == {name: by_state[name] for name in sorted(shown) if by_state[name] != ("met", [])}


def remove_violating(server: ApiServer) -> None:
    """Delete the objects of the tables."""
    for name, (namespace, *_) in PODS.items():
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        assert server.request("DELETE", path, {"gracePeriodSeconds": 0}).status == 200
    for name in ROLES:
        assert server.request("DELETE", f"/apis/{GROUP}/v1/clusterroles/{name}", {}).status == 200
    assert server.request("DELETE", f"/apis/{GROUP}/v1/clusterrolebindings/{ADMIN}", {}).status == 200
