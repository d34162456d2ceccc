"""The stored form of a mutated object: fields that the server keeps, allocates, copies or drops."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import Json, JsonObject
from scanner.model.outcome import Change
from scanner.mutate.decoding import decode_configuration, decode_strictly
from scanner.mutate.defaulting import set_defaults
from scanner.mutate.difference import find_changes
from scanner.mutate.operations import PatchOperation, apply
from scanner.mutate.registry import prepare_second_pass, store_update
from scanner.mutate.schema import Schema

LABELS: JsonObject = {"app": "a"}
TEMPLATE: JsonObject = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}
SLICE: JsonObject = {"addresses": ["10.0.0.1"], "conditions": {}, "deprecatedTopology": {"kubernetes.io/hostname": "n"}}


def live(api_version: str, kind: str, **parts: Json) -> tuple[Schema, JsonObject]:
    """An object with its defaults, and its schema."""
    group, _, version = api_version.rpartition("/")
    schema = builtin_schemas()[group, version, kind]
    document: JsonObject = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "uid": "u", "labels": LABELS},
        **parts,
    }
    return schema, set_defaults(
        schema, decode_configuration(schema, document, {"apiVersion": api_version, "kind": kind})
    )


def service(**spec: Json) -> tuple[Schema, JsonObject]:
    """A service with the values that a server allocates."""
    allocated: JsonObject = {
        "selector": LABELS,
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80}],
    }
    return live("v1", "Service", spec={**allocated, **spec}, status={"loadBalancer": {}})


HEADLESS: dict[str, Json] = {"clusterIP": "None", "clusterIPs": ["None"]}
NODE_PORT: dict[str, Json] = {
    "type": "NodePort",
    "ports": [{"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30080}],
}
BALANCER: dict[str, Json] = {
    **NODE_PORT,
    "type": "LoadBalancer",
    "externalTrafficPolicy": "Local",
    "healthCheckNodePort": 30900,
    "loadBalancerClass": "example.org/lb",
}


def left_of(given: tuple[Schema, JsonObject], *operations: PatchOperation) -> tuple[Change, ...]:
    """The changes of operations that remain in the stored object."""
    schema, before = given
    after: Any = apply(operations, before)  # type: ignore[arg-type]
    stored_object: Any = store_update(
        schema, before, prepare_second_pass(schema, before, decode_strictly(schema, after, before))
    )
    return find_changes(before, stored_object)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "operations"),
    [
        (service(), [PatchOperation("remove", "/spec/clusterIP")]),
        (service(), [PatchOperation("remove", "/spec/clusterIPs")]),
        (service(), [PatchOperation("remove", "/spec/clusterIP"), PatchOperation("remove", "/spec/clusterIPs")]),
        (service(), [PatchOperation("remove", "/spec/ipFamilies")]),
        (service(), [PatchOperation("remove", "/spec/ipFamilyPolicy")]),
        (service(), [PatchOperation("remove", "/spec/ports/0/targetPort")]),
        (service(**HEADLESS), [PatchOperation("remove", "/spec/ipFamilies")]),
        (service(**NODE_PORT), [PatchOperation("remove", "/spec/ports/0/nodePort")]),
        (service(**BALANCER), [PatchOperation("replace", "/spec/healthCheckNodePort", 0)]),
        (service(), [PatchOperation("add", "/status/loadBalancer/ingress", [{"ip": "192.0.2.1"}])]),
        (live("v1", "Secret", data={"a": "eA=="}), [PatchOperation("add", "/stringData", {"a": "x"})]),
        (live("v1", "Secret", data={"a": "eA=="}), [PatchOperation("remove", "/type")]),
        (live("v1", "ServiceAccount", secrets=[{"name": "s"}]), [PatchOperation("add", "/secrets/0/namespace", "other")]),
        (live("v1", "Namespace", spec={"finalizers": ["kubernetes"]}), [PatchOperation("remove", "/spec/finalizers")]),
        (live("v1", "Namespace"), [PatchOperation("remove", "/metadata/labels/kubernetes.io~1metadata.name")]),
        (live("v1", "Node", spec={"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}), [PatchOperation("remove", "/spec/podCIDR")]),
        (live("v1", "Node", spec={"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}), [PatchOperation("remove", "/spec/podCIDRs")]),
        (live("v1", "Node", spec={"unschedulable": True}), [PatchOperation("add", "/spec/configSource", {"configMap": {"name": "a", "namespace": "b", "kubeletConfigKey": "c"}})]),
        (live("v1", "ReplicationController", spec={"template": TEMPLATE}), [PatchOperation("remove", "/metadata/labels")]),
        (live("v1", "ReplicationController", spec={"template": TEMPLATE}), [PatchOperation("remove", "/spec/selector")]),
        (live("batch/v1", "Job", spec={"template": TEMPLATE}), [PatchOperation("remove", "/metadata/labels")]),
        (live("v1", "Pod", spec={"containers": [], "serviceAccountName": "s", "serviceAccount": "s"}), [PatchOperation("remove", "/spec/serviceAccountName")]),
        (live("v1", "Pod", spec={"containers": [], "serviceAccountName": "s", "serviceAccount": "s"}), [PatchOperation("remove", "/spec/serviceAccount")]),
        (live("v1", "Pod", spec={"containers": [], "priority": 0, "preemptionPolicy": "Never"}), [PatchOperation("remove", "/spec/priority"), PatchOperation("remove", "/spec/preemptionPolicy")]),
        (live("v1", "Pod", spec={"containers": []}, status={"phase": "Running"}), [PatchOperation("replace", "/status/phase", "Failed")]),
        (live("v1", "Pod", metadata={"annotations": {"a": "b"}}, spec={"containers": []}), [PatchOperation("add", "/metadata/annotations/pod.beta.kubernetes.io~1init-containers", "[]")]),
        (live("apps/v1", "Deployment", spec={"template": TEMPLATE}), [PatchOperation("add", "/metadata/annotations", {"deprecated.deployment.rollback.rollbackTo": ""})]),
        (live("apps/v1", "Deployment", spec={"template": TEMPLATE}), [PatchOperation("add", "/spec/template/spec/schedulingGroup", {"podGroupName": "g"})]),
        (live("apps/v1", "Deployment", spec={"template": TEMPLATE}), [PatchOperation("add", "/spec/template/spec/containers/0/lifecycle", {"stopSignal": "SIGTERM"})]),
        (live("apps/v1", "StatefulSet", spec={"template": TEMPLATE}), [PatchOperation("add", "/spec/updateStrategy/rollingUpdate/maxUnavailable", 1)]),
        (live("v1", "PersistentVolumeClaim", spec={"dataSource": {"kind": "PersistentVolumeClaim", "name": "o"}, "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "o"}}), [PatchOperation("remove", "/spec/dataSourceRef")]),
        (live("v1", "PersistentVolumeClaim", spec={"dataSource": {"kind": "PersistentVolumeClaim", "name": "o"}, "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "o"}}), [PatchOperation("remove", "/spec/dataSource")]),
        (live("v1", "PersistentVolumeClaim", spec={}), [PatchOperation("add", "/spec/dataSource", {"kind": "Pod", "name": "o"})]),
        (live("autoscaling/v1", "HorizontalPodAutoscaler", spec={"maxReplicas": 2, "targetCPUUtilizationPercentage": 80}), [PatchOperation("remove", "/spec/targetCPUUtilizationPercentage")]),
        (live("autoscaling/v1", "HorizontalPodAutoscaler", spec={"maxReplicas": 2, "targetCPUUtilizationPercentage": 70}), [PatchOperation("remove", "/spec/targetCPUUtilizationPercentage")]),
        (live("autoscaling/v2", "HorizontalPodAutoscaler", spec={"maxReplicas": 2}), [PatchOperation("add", "/metadata/annotations", {"autoscaling.alpha.kubernetes.io/behavior": "{}"})]),
        (live("policy/v1", "PodDisruptionBudget", spec={"selector": {"matchLabels": {"a": "b"}}}), [PatchOperation("add", "/spec/selector/matchExpressions", [{"key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "operator": "Exists"}])]),
        (live("certificates.k8s.io/v1", "CertificateSigningRequest", spec={"request": "", "signerName": "example.org/s"}), [PatchOperation("replace", "/spec/signerName", "example.org/t")]),
        (live("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "policyTypes": ["Ingress"]}), [PatchOperation("remove", "/spec/policyTypes")]),
        (live("v1", "ConfigMap"), [PatchOperation("replace", "/metadata/uid", ""), PatchOperation("add", "/metadata/generation", 7)]),
        (live("v1", "ConfigMap"), [PatchOperation("add", "/metadata/namespace", "other")]),
    ],
)  # fmt: skip
def test_what_the_server_puts_back_is_no_change(
    given: tuple[Schema, JsonObject], operations: list[PatchOperation]
) -> None:
    """The stored object stays unchanged."""
    assert () == left_of(given, *operations)


@pytest.mark.parametrize(
    ("given", "operations", "expected"),
    [
        (
            live("v1", "Secret", data={"a": "eA=="}),
            [PatchOperation("add", "/stringData", {"b": "y"})],
            (Change("add", "/data/b", "eQ=="),),
        ),
        (
            service(),
            [
                PatchOperation("replace", "/spec/type", "ExternalName"),
                PatchOperation("add", "/spec/externalName", "a.example.org"),
            ],
            (
                Change("remove", "/spec/clusterIP", was="10.0.0.1"),
                Change("remove", "/spec/clusterIPs", was=["10.0.0.1"]),
                Change("remove", "/spec/internalTrafficPolicy", was="Cluster"),
                Change("remove", "/spec/ipFamilies", was=["IPv4"]),
                Change("remove", "/spec/ipFamilyPolicy", was="SingleStack"),
                Change("replace", "/spec/type", "ExternalName", was="ClusterIP"),
                Change("add", "/spec/externalName", "a.example.org"),
            ),
        ),
        (
            service(**BALANCER),
            [PatchOperation("replace", "/spec/type", "ClusterIP")],
            (
                Change("remove", "/spec/allocateLoadBalancerNodePorts", was=True),
                Change("remove", "/spec/externalTrafficPolicy", was="Local"),
                Change("remove", "/spec/healthCheckNodePort", was=30900),
                Change("remove", "/spec/loadBalancerClass", was="example.org/lb"),
                Change("remove", "/spec/ports/0/nodePort", was=30080),
                Change("replace", "/spec/type", "ClusterIP", was="LoadBalancer"),
            ),
        ),
        (
            service(selector=None, **HEADLESS),
            [PatchOperation("replace", "/spec/ipFamilyPolicy", "RequireDualStack")],
            (
                Change("add", "/spec/ipFamilies/1", "IPv6"),
                Change("replace", "/spec/ipFamilyPolicy", "RequireDualStack", was="SingleStack"),
            ),
        ),
        (
            service(clusterIPs=["10.0.0.1", "fd00::1"], ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="PreferDualStack"),
            [PatchOperation("replace", "/spec/ipFamilyPolicy", "SingleStack")],
            (
                Change("remove", "/spec/clusterIPs/1", was="fd00::1"),
                Change("remove", "/spec/ipFamilies/1", was="IPv6"),
                Change("replace", "/spec/ipFamilyPolicy", "SingleStack", was="PreferDualStack"),
            ),
        ),
        (
            live("v1", "Pod", spec={"containers": [{"name": "c", "image": "a:1"}]}),
            [PatchOperation("add", "/spec/containers/1", {"name": "d", "image": "b"})],
            (
                Change(
                    "add",
                    "/spec/containers/1",
                    {
                        "name": "d",
                        "image": "b",
                        "resources": {},
                        "imagePullPolicy": "Always",
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    },
                ),
            ),
        ),
        (
            live("apps/v1", "StatefulSet", spec={"template": TEMPLATE, "updateStrategy": {"type": "RollingUpdate"}}),
            [PatchOperation("remove", "/spec/updateStrategy/type")],
            (Change("add", "/spec/updateStrategy/rollingUpdate", {"partition": 0}),),
        ),
        (
            live("apps/v1", "DaemonSet", spec={"template": TEMPLATE}),
            [PatchOperation("replace", "/spec/updateStrategy", {"type": "OnDelete"})],
            (
                Change("remove", "/spec/updateStrategy/rollingUpdate", was={"maxUnavailable": 1, "maxSurge": 0}),
                Change("replace", "/spec/updateStrategy/type", "OnDelete", was="RollingUpdate"),
            ),
        ),
        (
            live("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[SLICE]),
            [PatchOperation("add", "/endpoints/0/hostname", "h")],
            (
                Change("remove", "/endpoints/0/deprecatedTopology", was={"kubernetes.io/hostname": "n"}),
                Change("add", "/endpoints/0/hostname", "h"),
                Change("add", "/endpoints/0/nodeName", "n"),
            ),
        ),
        (
            live("v1", "ConfigMap"),
            [
                PatchOperation(
                    "add", "/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "1"}] * 2
                )
            ],
            (Change("add", "/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "1"}]),),
        ),
    ],
)
def test_what_the_server_makes_of_a_change_is_the_change(
    given: tuple[Schema, JsonObject], operations: list[PatchOperation], expected: tuple[Change, ...]
) -> None:
    """The values that the registry derives from the mutated object are part of the change."""
    assert sorted(expected, key=lambda change: change.path) == sorted(
        left_of(given, *operations), key=lambda change: change.path
    )


def bare_pod() -> tuple[Schema, JsonObject]:
    """A Pod in a file, without its defaults."""
    container: JsonObject = {"name": "c", "image": "a:1", "resources": {"limits": {"cpu": "1"}}}
    document: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {"containers": [container]},
    }
    return builtin_schemas()["", "v1", "Pod"], document


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (PatchOperation("add", "/spec/restartPolicy", "Always"), ()),
        (PatchOperation("add", "/spec/restartPolicy", "Never"), (Change("add", "/spec/restartPolicy", "Never"),)),
        (
            PatchOperation("replace", "/spec/containers/0/resources/limits/cpu", "2"),
            (Change("replace", "/spec/containers/0/resources/limits/cpu", "2", was="1"),),
        ),
        (
            PatchOperation("add", "/metadata/labels", {"a": "b"}),
            (Change("add", "/metadata/labels", {"a": "b"}),),
        ),
    ],
)
def test_the_defaults_of_an_object_in_a_file_are_no_change(
    operation: PatchOperation, expected: tuple[Change, ...]
) -> None:
    """Values that the server sets in every request are no change of the policy."""
    assert expected == left_of(bare_pod(), operation)
