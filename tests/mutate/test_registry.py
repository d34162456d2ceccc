"""The stored form of a mutated object: fields that the server keeps, allocates, copies or drops."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import Json, JsonObject
from scanner.model.outcome import Change
from scanner.mutate.decoding import converted, strictly_decoded
from scanner.mutate.defaulting import defaulted
from scanner.mutate.difference import difference
from scanner.mutate.operations import Operation, apply
from scanner.mutate.registry import between_passes, stored
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
    return schema, defaulted(schema, converted(schema, document, {"apiVersion": api_version, "kind": kind}))


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


def left_of(given: tuple[Schema, JsonObject], *operations: Operation) -> tuple[Change, ...]:
    """The changes of operations that remain in the stored object."""
    schema, before = given
    after: Any = apply(operations, before)  # type: ignore[arg-type]
    stored_object: Any = stored(schema, before, between_passes(schema, before, strictly_decoded(schema, after, before)))
    return difference(before, stored_object)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "operations"),
    [
        (service(), [Operation("remove", "/spec/clusterIP")]),
        (service(), [Operation("remove", "/spec/clusterIPs")]),
        (service(), [Operation("remove", "/spec/clusterIP"), Operation("remove", "/spec/clusterIPs")]),
        (service(), [Operation("remove", "/spec/ipFamilies")]),
        (service(), [Operation("remove", "/spec/ipFamilyPolicy")]),
        (service(), [Operation("remove", "/spec/ports/0/targetPort")]),
        (service(**HEADLESS), [Operation("remove", "/spec/ipFamilies")]),
        (service(**NODE_PORT), [Operation("remove", "/spec/ports/0/nodePort")]),
        (service(**BALANCER), [Operation("replace", "/spec/healthCheckNodePort", 0)]),
        (service(), [Operation("add", "/status/loadBalancer/ingress", [{"ip": "192.0.2.1"}])]),
        (live("v1", "Secret", data={"a": "eA=="}), [Operation("add", "/stringData", {"a": "x"})]),
        (live("v1", "Secret", data={"a": "eA=="}), [Operation("remove", "/type")]),
        (live("v1", "ServiceAccount", secrets=[{"name": "s"}]), [Operation("add", "/secrets/0/namespace", "other")]),
        (live("v1", "Namespace", spec={"finalizers": ["kubernetes"]}), [Operation("remove", "/spec/finalizers")]),
        (live("v1", "Namespace"), [Operation("remove", "/metadata/labels/kubernetes.io~1metadata.name")]),
        (live("v1", "Node", spec={"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}), [Operation("remove", "/spec/podCIDR")]),
        (live("v1", "Node", spec={"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}), [Operation("remove", "/spec/podCIDRs")]),
        (live("v1", "Node", spec={"unschedulable": True}), [Operation("add", "/spec/configSource", {"configMap": {"name": "a", "namespace": "b", "kubeletConfigKey": "c"}})]),
        (live("v1", "ReplicationController", spec={"template": TEMPLATE}), [Operation("remove", "/metadata/labels")]),
        (live("v1", "ReplicationController", spec={"template": TEMPLATE}), [Operation("remove", "/spec/selector")]),
        (live("batch/v1", "Job", spec={"template": TEMPLATE}), [Operation("remove", "/metadata/labels")]),
        (live("v1", "Pod", spec={"containers": [], "serviceAccountName": "s", "serviceAccount": "s"}), [Operation("remove", "/spec/serviceAccountName")]),
        (live("v1", "Pod", spec={"containers": [], "serviceAccountName": "s", "serviceAccount": "s"}), [Operation("remove", "/spec/serviceAccount")]),
        (live("v1", "Pod", spec={"containers": [], "priority": 0, "preemptionPolicy": "Never"}), [Operation("remove", "/spec/priority"), Operation("remove", "/spec/preemptionPolicy")]),
        (live("v1", "Pod", spec={"containers": []}, status={"phase": "Running"}), [Operation("replace", "/status/phase", "Failed")]),
        (live("v1", "Pod", metadata={"annotations": {"a": "b"}}, spec={"containers": []}), [Operation("add", "/metadata/annotations/pod.beta.kubernetes.io~1init-containers", "[]")]),
        (live("apps/v1", "Deployment", spec={"template": TEMPLATE}), [Operation("add", "/metadata/annotations", {"deprecated.deployment.rollback.rollbackTo": ""})]),
        (live("apps/v1", "Deployment", spec={"template": TEMPLATE}), [Operation("add", "/spec/template/spec/schedulingGroup", {"podGroupName": "g"})]),
        (live("apps/v1", "Deployment", spec={"template": TEMPLATE}), [Operation("add", "/spec/template/spec/containers/0/lifecycle", {"stopSignal": "SIGTERM"})]),
        (live("apps/v1", "StatefulSet", spec={"template": TEMPLATE}), [Operation("add", "/spec/updateStrategy/rollingUpdate/maxUnavailable", 1)]),
        (live("v1", "PersistentVolumeClaim", spec={"dataSource": {"kind": "PersistentVolumeClaim", "name": "o"}, "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "o"}}), [Operation("remove", "/spec/dataSourceRef")]),
        (live("v1", "PersistentVolumeClaim", spec={"dataSource": {"kind": "PersistentVolumeClaim", "name": "o"}, "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "o"}}), [Operation("remove", "/spec/dataSource")]),
        (live("v1", "PersistentVolumeClaim", spec={}), [Operation("add", "/spec/dataSource", {"kind": "Pod", "name": "o"})]),
        (live("autoscaling/v1", "HorizontalPodAutoscaler", spec={"maxReplicas": 2, "targetCPUUtilizationPercentage": 80}), [Operation("remove", "/spec/targetCPUUtilizationPercentage")]),
        (live("autoscaling/v1", "HorizontalPodAutoscaler", spec={"maxReplicas": 2, "targetCPUUtilizationPercentage": 70}), [Operation("remove", "/spec/targetCPUUtilizationPercentage")]),
        (live("autoscaling/v2", "HorizontalPodAutoscaler", spec={"maxReplicas": 2}), [Operation("add", "/metadata/annotations", {"autoscaling.alpha.kubernetes.io/behavior": "{}"})]),
        (live("policy/v1", "PodDisruptionBudget", spec={"selector": {"matchLabels": {"a": "b"}}}), [Operation("add", "/spec/selector/matchExpressions", [{"key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "operator": "Exists"}])]),
        (live("certificates.k8s.io/v1", "CertificateSigningRequest", spec={"request": "", "signerName": "example.org/s"}), [Operation("replace", "/spec/signerName", "example.org/t")]),
        (live("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "policyTypes": ["Ingress"]}), [Operation("remove", "/spec/policyTypes")]),
        (live("v1", "ConfigMap"), [Operation("replace", "/metadata/uid", ""), Operation("add", "/metadata/generation", 7)]),
        (live("v1", "ConfigMap"), [Operation("add", "/metadata/namespace", "other")]),
    ],
)  # fmt: skip
def test_what_the_server_puts_back_is_no_change(given: tuple[Schema, JsonObject], operations: list[Operation]) -> None:
    """The stored object stays unchanged."""
    assert () == left_of(given, *operations)


@pytest.mark.parametrize(
    ("given", "operations", "expected"),
    [
        (
            live("v1", "Secret", data={"a": "eA=="}),
            [Operation("add", "/stringData", {"b": "y"})],
            (Change("add", "/data/b", "eQ=="),),
        ),
        (
            service(),
            [
                Operation("replace", "/spec/type", "ExternalName"),
                Operation("add", "/spec/externalName", "a.example.org"),
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
            [Operation("replace", "/spec/type", "ClusterIP")],
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
            [Operation("replace", "/spec/ipFamilyPolicy", "RequireDualStack")],
            (
                Change("add", "/spec/ipFamilies/1", "IPv6"),
                Change("replace", "/spec/ipFamilyPolicy", "RequireDualStack", was="SingleStack"),
            ),
        ),
        (
            service(clusterIPs=["10.0.0.1", "fd00::1"], ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="PreferDualStack"),
            [Operation("replace", "/spec/ipFamilyPolicy", "SingleStack")],
            (
                Change("remove", "/spec/clusterIPs/1", was="fd00::1"),
                Change("remove", "/spec/ipFamilies/1", was="IPv6"),
                Change("replace", "/spec/ipFamilyPolicy", "SingleStack", was="PreferDualStack"),
            ),
        ),
        (
            live("v1", "Pod", spec={"containers": [{"name": "c", "image": "a:1"}]}),
            [Operation("add", "/spec/containers/1", {"name": "d", "image": "b"})],
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
            [Operation("remove", "/spec/updateStrategy/type")],
            (Change("add", "/spec/updateStrategy/rollingUpdate", {"partition": 0}),),
        ),
        (
            live("apps/v1", "DaemonSet", spec={"template": TEMPLATE}),
            [Operation("replace", "/spec/updateStrategy", {"type": "OnDelete"})],
            (
                Change("remove", "/spec/updateStrategy/rollingUpdate", was={"maxUnavailable": 1, "maxSurge": 0}),
                Change("replace", "/spec/updateStrategy/type", "OnDelete", was="RollingUpdate"),
            ),
        ),
        (
            live("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[SLICE]),
            [Operation("add", "/endpoints/0/hostname", "h")],
            (
                Change("remove", "/endpoints/0/deprecatedTopology", was={"kubernetes.io/hostname": "n"}),
                Change("add", "/endpoints/0/hostname", "h"),
                Change("add", "/endpoints/0/nodeName", "n"),
            ),
        ),
        (
            live("v1", "ConfigMap"),
            [
                Operation(
                    "add", "/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "1"}] * 2
                )
            ],
            (Change("add", "/metadata/ownerReferences", [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "1"}]),),
        ),
    ],
)
def test_what_the_server_makes_of_a_change_is_the_change(
    given: tuple[Schema, JsonObject], operations: list[Operation], expected: tuple[Change, ...]
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
        (Operation("add", "/spec/restartPolicy", "Always"), ()),
        (Operation("add", "/spec/restartPolicy", "Never"), (Change("add", "/spec/restartPolicy", "Never"),)),
        (
            Operation("replace", "/spec/containers/0/resources/limits/cpu", "2"),
            (Change("replace", "/spec/containers/0/resources/limits/cpu", "2", was="1"),),
        ),
        (
            Operation("add", "/metadata/labels", {"a": "b"}),
            (Change("add", "/metadata/labels", {"a": "b"}),),
        ),
    ],
)
def test_the_defaults_of_an_object_in_a_file_are_no_change(operation: Operation, expected: tuple[Change, ...]) -> None:
    """Values that the server sets in every request are no change of the policy."""
    assert expected == left_of(bare_pod(), operation)
