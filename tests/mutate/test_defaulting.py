"""The defaults of built-in kinds, as the API server sets them."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import Json, JsonObject, dig
from scanner.mutate.decoding import decode_configuration
from scanner.mutate.defaulting import set_defaults
from scanner.mutate.defaulting.pods import choose_pull_policy
from tests.integration.storable import STORABLE

CONTAINER: JsonObject = {"name": "c", "image": "a:1"}


def with_defaults(document: JsonObject) -> JsonObject:
    """A document after its request was decoded."""
    group, _, version = str(document["apiVersion"]).rpartition("/")
    schema = builtin_schemas()[group, version, str(document["kind"])]
    return set_defaults(
        schema, decode_configuration(schema, document, {"apiVersion": document["apiVersion"], "kind": document["kind"]})
    )


def spec_of(api_version: str, kind: str, spec: Json) -> Any:
    """The spec of a kind's object with its defaults."""
    return with_defaults({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec})["spec"]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "expected"),
    [
        ("apps/v1", "ReplicaSet", {}, {"replicas": 1}),
        ("apps/v1", "ReplicaSet", {"replicas": 0}, {"replicas": 0}),
        (
            "apps/v1",
            "Deployment",
            {"strategy": {"type": "Recreate"}},
            {"strategy": {"type": "Recreate"}, "progressDeadlineSeconds": 600},
        ),
        (
            "apps/v1",
            "Deployment",
            {"strategy": {"rollingUpdate": {"maxSurge": 0}}},
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}}},
        ),
        (
            "apps/v1",
            "StatefulSet",
            {"updateStrategy": {"type": "RollingUpdate"}},
            {"updateStrategy": {"type": "RollingUpdate"}, "podManagementPolicy": "OrderedReady"},
        ),
        (
            "apps/v1",
            "StatefulSet",
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}},
            {
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"},
            },
        ),
        ("apps/v1", "DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, {"updateStrategy": {"type": "OnDelete"}}),
        ("batch/v1", "Job", {}, {"completions": 1, "parallelism": 1, "backoffLimit": 6}),
        ("batch/v1", "Job", {"completions": 3}, {"completions": 3, "parallelism": 1}),
        ("batch/v1", "Job", {"backoffLimitPerIndex": 0}, {"backoffLimit": 2147483647}),
        ("batch/v1", "Job", {"podFailurePolicy": {"rules": []}}, {"podReplacementPolicy": "Failed"}),
        ("networking.k8s.io/v1", "NetworkPolicy", {}, {"policyTypes": ["Ingress"]}),
        ("networking.k8s.io/v1", "NetworkPolicy", {"egress": [{}]}, {"policyTypes": ["Ingress", "Egress"]}),
        (
            "networking.k8s.io/v1",
            "IngressClass",
            {"parameters": {"kind": "P"}},
            {"parameters": {"kind": "P", "name": "", "scope": "Cluster"}},
        ),
        ("v1", "Service", {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}, {"sessionAffinity": "None"}),
        (
            "v1",
            "Service",
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {}}},
            {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}},
        ),
        ("v1", "Service", {"ports": [{"port": 80}]}, {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}),
        (
            "v1",
            "Service",
            {"type": "NodePort"},
            {"externalTrafficPolicy": "Cluster", "internalTrafficPolicy": "Cluster"},
        ),
        ("v1", "Service", {"type": "LoadBalancer"}, {"allocateLoadBalancerNodePorts": True}),
        ("v1", "Service", {"externalIPs": ["192.0.2.1"]}, {"type": "ClusterIP", "externalTrafficPolicy": "Cluster"}),
        ("v1", "PersistentVolumeClaim", {"volumeMode": "Block"}, {"volumeMode": "Block"}),
        ("v1", "ResourceQuota", {"hard": {"cpu": "1500u", "pods": "4"}}, {"hard": {"cpu": "2m", "pods": "4"}}),
        (
            "v1",
            "LimitRange",
            {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Mi"}}]},
            {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "2"},
                        "min": {"cpu": "1", "memory": "1Mi"},
                        "default": {"cpu": "2"},
                        "defaultRequest": {"cpu": "2", "memory": "1Mi"},
                    }
                ]
            },
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}},
            {
                "behavior": {
                    "scaleUp": {
                        "stabilizationWindowSeconds": 0,
                        "selectPolicy": "Max",
                        "policies": [
                            {"type": "Pods", "value": 4, "periodSeconds": 15},
                            {"type": "Percent", "value": 100, "periodSeconds": 15},
                        ],
                    },
                    "scaleDown": {
                        "stabilizationWindowSeconds": 5,
                        "selectPolicy": "Max",
                        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                    },
                }
            },
        ),
        (
            "storage.k8s.io/v1",
            "CSIDriver",
            {"podInfoOnMount": True},
            {"podInfoOnMount": True, "attachRequired": True, "volumeLifecycleModes": ["Persistent"]},
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "PriorityLevelConfiguration",
            {"type": "Limited", "limited": {"nominalConcurrencyShares": 0}},
            {"limited": {"nominalConcurrencyShares": 0, "lendablePercent": 0, "limitResponse": {"type": ""}}},
        ),
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", {}, {"matchingPrecedence": 1000}),
        (
            "resource.k8s.io/v1",
            "ResourceClaim",
            {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "g", "allocationMode": "All"}}]}},
            {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "g", "allocationMode": "All"}}]}},
        ),
        (
            "resource.k8s.io/v1beta1",
            "ResourceClaim",
            {"devices": {"requests": [{"name": "a", "firstAvailable": [{"name": "b", "deviceClassName": "g"}]}]}},
            {
                "devices": {
                    "requests": [
                        {
                            "name": "a",
                            "deviceClassName": "",
                            "firstAvailable": [
                                {"name": "b", "deviceClassName": "g", "allocationMode": "ExactCount", "count": 1}
                            ],
                        }
                    ]
                }
            },
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            {"names": {"plural": "widgets", "kind": "Widget"}},
            {
                "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
                "conversion": {"strategy": "None"},
            },
        ),
    ],
)
def test_a_spec_gets_its_defaults(api_version: str, kind: str, spec: Json, expected: dict[str, Json]) -> None:
    """Each field has the default that the server gives it."""
    defaulted_spec = spec_of(api_version, kind, spec)
    assert expected == {name: defaulted_spec.get(name) for name in expected}


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        ({"containers": [{**CONTAINER, "resources": {"limits": {"cpu": "1"}}}]}, ("containers", "resources"), {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
        ({"hostNetwork": True, "containers": [{**CONTAINER, "ports": [{"containerPort": 80}]}]}, ("containers", "ports"), [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]),
        ({"containers": [{**CONTAINER, "readinessProbe": {"grpc": {"port": 1}, "timeoutSeconds": 0}}]}, ("containers", "readinessProbe"), {"grpc": {"port": 1, "service": ""}, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}),
        ({"volumes": [{"name": "v"}]}, ("volumes", "emptyDir"), {}),
        ({"volumes": [{"name": "v", "secret": {"defaultMode": 0}}]}, ("volumes", "secret"), {"defaultMode": 0}),
        ({"volumes": [{"name": "v", "image": {"reference": "a"}}]}, ("volumes", "image"), {"reference": "a", "pullPolicy": "Always"}),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/a"}}]}, ("volumes", "hostPath"), {"path": "/a", "type": ""}),
    ],
)  # fmt: skip
def test_the_first_part_of_a_pod_gets_its_defaults(spec: JsonObject, path: tuple[str, str], expected: Json) -> None:
    """Containers and volumes have the defaults of their types."""
    defaulted_spec = spec_of("v1", "Pod", spec)
    assert expected == dig(defaulted_spec[path[0]][0], path[1])


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_templates_request_only_what_they_say(kind: str) -> None:
    """Requests follow limits in Pods, not in templates."""
    container: JsonObject = {**CONTAINER, "resources": {"limits": {"cpu": "1"}}}
    defaulted_spec = spec_of("apps/v1", kind, {"template": {"spec": {"containers": [container]}}})
    assert {"limits": {"cpu": "1"}} == defaulted_spec["template"]["spec"]["containers"][0]["resources"]


def test_a_pod_with_limits_of_its_own_requests_what_its_containers_do() -> None:
    """Resources that no container requests are requested up to the Pod's limit; sidecars add to all others."""
    resources = {"requests": {"cpu": "500m"}}
    defaulted_spec = spec_of(
        "v1",
        "Pod",
        {
            "resources": {"limits": {"cpu": "2", "memory": "2Gi"}},
            "initContainers": [
                {**CONTAINER, "name": "s", "restartPolicy": "Always", "resources": resources},
                {**CONTAINER, "name": "i", "resources": {"requests": {"cpu": "1"}}},
            ],
            "containers": [{**CONTAINER, "resources": resources}],
        },
    )
    assert {"cpu": "1500m", "memory": "2Gi"} == defaulted_spec["resources"]["requests"]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("localhost:5000/nginx", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        (f"nginx@sha256:{'a' * 64}", "IfNotPresent"),
        (f"nginx:latest@sha256:{'a' * 64}", "Always"),
        ("nginx:latest@sha256:short", "IfNotPresent"),
        ("Upper/case:latest", "Always"),
        ("upper/Case", "IfNotPresent"),
        ("", "IfNotPresent"),
        ("a b", "IfNotPresent"),
        ("a" * 64, "IfNotPresent"),
    ],
)
def test_the_tag_of_an_image_decides_when_it_is_pulled(image: str, expected: str) -> None:
    """The tag `latest`, explicit or implied, has Always; a text that is no reference has no tag."""
    assert expected == choose_pull_policy(image)


@pytest.mark.parametrize(
    "document", STORABLE, ids=lambda document: f"{document['kind']}-{document['metadata']['name']}"
)
def test_an_object_with_its_defaults_is_left_as_it_is(document: JsonObject) -> None:
    """An object with its defaults is returned as the same object."""
    complete = with_defaults(document)
    group, _, version = str(complete["apiVersion"]).rpartition("/")
    assert complete is set_defaults(builtin_schemas()[group, version, str(complete["kind"])], complete)
