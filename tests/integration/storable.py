"""Objects of many kinds with many of their fields set, so that removing one of them shows its default."""

from __future__ import annotations

from collections.abc import Sequence

from scanner.model.json import Json, JsonObject

_PROBE: JsonObject = {"httpGet": {"port": 80}, "initialDelaySeconds": 2}
_RESOURCES: JsonObject = {"limits": {"cpu": "1500m", "memory": "1Gi"}, "requests": {"cpu": "100m"}}
_POD: JsonObject = {
    "serviceAccountName": "default",
    "hostNetwork": True,
    "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["a.example.org"]}],
    "nodeSelector": {"disk": "fast"},
    "securityContext": {"runAsUser": 1000, "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
    ],
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}},
                }
            ]
        }
    },
    "initContainers": [
        {"name": "init", "image": "busybox", "resources": {"limits": {"cpu": "1"}}, "restartPolicy": "Always"}
    ],
    "containers": [
        {
            "name": "c",
            "image": "reg.example.org:5000/team/app:v1",
            "command": ["sh"],
            "args": ["-c", "true"],
            "ports": [{"name": "web", "containerPort": 80}, {"name": "dns", "containerPort": 53, "protocol": "UDP"}],
            "env": [
                {"name": "PLAIN", "value": "x"},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
                {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k", "optional": True}}},
            ],
            "resources": _RESOURCES,
            "volumeMounts": [{"name": "empty", "mountPath": "/empty", "readOnly": True}],
            "livenessProbe": {**_PROBE, "httpGet": {"port": "web", "path": "/live", "scheme": "HTTPS"}},
            "readinessProbe": {"grpc": {"port": 9000}, "failureThreshold": 5},
            "startupProbe": {"exec": {"command": ["true"]}, "timeoutSeconds": 4},
            "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
            "securityContext": {"capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True},
        },
        {"name": "d", "image": "nginx:latest", "envFrom": [{"configMapRef": {"name": "cm"}}]},
    ],
    "volumes": [
        {"name": "empty", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "secret", "secret": {"secretName": "s", "items": [{"key": "a", "path": "b", "mode": 256}]}},
        {"name": "config", "configMap": {"name": "cm", "optional": True}},
        {"name": "host", "hostPath": {"path": "/tmp", "type": "Directory"}},
        {"name": "api", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {
            "name": "projected",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token"}},
                    {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                ]
            },
        },
        {"name": "iscsi", "iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
        {"name": "rbd", "rbd": {"monitors": ["a"], "image": "i"}},
        {"name": "azure", "azureDisk": {"diskName": "d", "diskURI": "https://blob.example.org/d"}},
        {"name": "image", "image": {"reference": "quay.io/a/b:v2"}},
        {
            "name": "claim",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            },
        },
    ],
}
_TEMPLATE: JsonObject = {
    "metadata": {"labels": {"app": "a"}, "annotations": {"note": "n"}},
    "spec": {**_POD, "overhead": {"cpu": "1m"}},
}
_SELECTOR: JsonObject = {"matchLabels": {"app": "a"}}
_ONCE: JsonObject = {**_TEMPLATE, "spec": {**_POD, "restartPolicy": "Never"}}
_CLAIM: JsonObject = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "fast",
}
_REFERENCE: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "owner",
    "uid": "6b2e5a7c-0000-4000-8000-000000000001",
}
_RULE: JsonObject = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "operations": ["CREATE"],
}
_CLIENT: JsonObject = {"service": {"namespace": "default", "name": "hook", "path": "/a"}}


def _object(api_version: str, kind: str, name: str, *, metadata: JsonObject | None = None, **parts: Json) -> JsonObject:
    known = {"labels": {"app": "a"}, "annotations": {"note": "n"}, **(metadata or {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **known}, **parts}


def _webhook(**more: Json) -> JsonObject:
    return {
        "name": "a.example.org",
        "clientConfig": _CLIENT,
        "rules": [_RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"webhooks": "none"}},
        **more,
    }


_ADMISSION = "admissionregistration.k8s.io/v1"
STORABLE: Sequence[JsonObject] = (
    _object(
        "v1", "ConfigMap", "cm", data={"a": "b"}, binaryData={"x": "AAE="}, metadata={"ownerReferences": [_REFERENCE]}
    ),
    _object("v1", "Secret", "secret", data={"pw": "aHVudGVyMg=="}, metadata={"finalizers": ["example.org/kept"]}),
    _object("v1", "Secret", "immutable", stringData={"pw": "x"}, type="example.org/t", immutable=True),
    _object(
        "v1",
        "ServiceAccount",
        "sa",
        secrets=[{"name": "s"}],
        imagePullSecrets=[{"name": "i"}],
        automountServiceAccountToken=False,
    ),
    _object("v1", "Pod", "pod", spec={**_POD, "enableServiceLinks": False}),
    _object(
        "v1",
        "Pod",
        "levels",
        spec={
            "resources": {"limits": {"cpu": "2", "memory": "2Gi"}},
            "containers": [
                {"name": "c", "image": "a/b", "resources": _RESOURCES},
                {"name": "d", "image": "b@sha256:" + "a" * 64},
            ],
            "initContainers": [{"name": "i", "image": "c:latest", "resources": _RESOURCES}],
        },
    ),
    _object("v1", "PodTemplate", "template", template=_TEMPLATE),
    _object("v1", "ReplicationController", "rc", spec={"replicas": 2, "selector": {"app": "a"}, "template": _TEMPLATE}),
    _object(
        "v1",
        "Service",
        "cluster-ip",
        spec={
            "selector": {"app": "a"},
            "ports": [{"name": "web", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": "dns"}],
        },
    ),
    _object("v1", "Service", "headless", spec={"clusterIP": "None", "ports": [{"port": 80, "appProtocol": "http"}]}),
    _object(
        "v1",
        "Service",
        "headless-selector",
        spec={"clusterIP": "None", "selector": {"app": "a"}, "ports": [{"port": 80}]},
    ),
    _object("v1", "Service", "external", spec={"type": "ExternalName", "externalName": "example.org"}),
    _object(
        "v1",
        "Service",
        "node-port",
        spec={
            "type": "NodePort",
            "selector": {"app": "a"},
            "sessionAffinity": "ClientIP",
            "ports": [{"name": "web", "port": 80}],
        },
    ),
    _object(
        "v1",
        "Service",
        "balancer",
        spec={
            "type": "LoadBalancer",
            "selector": {"app": "a"},
            "externalTrafficPolicy": "Local",
            "loadBalancerClass": "example.org/lb",
            "loadBalancerSourceRanges": ["10.0.0.0/8"],
            "ports": [{"name": "web", "port": 80}, {"name": "tls", "port": 443}],
        },
    ),
    _object(
        "v1",
        "Service",
        "dual",
        spec={"ipFamilyPolicy": "PreferDualStack", "externalIPs": ["192.0.2.1"], "ports": [{"port": 80}]},
    ),
    _object(
        "v1",
        "Endpoints",
        "endpoints",
        subsets=[{"addresses": [{"ip": "10.0.0.1", "hostname": "h"}], "ports": [{"name": "p", "port": 1}]}],
    ),
    _object(
        "v1",
        "LimitRange",
        "limits",
        spec={
            "limits": [
                {
                    "type": "Container",
                    "max": {"cpu": "2"},
                    "min": {"cpu": "10m", "memory": "1Mi"},
                    "default": {"memory": "1Gi"},
                },
                {"type": "Pod", "max": {"cpu": "4"}},
            ]
        },
    ),
    _object("v1", "ResourceQuota", "quota", spec={"hard": {"pods": "4", "cpu": "1500m"}, "scopes": ["NotTerminating"]}),
    _object(
        "v1",
        "PersistentVolumeClaim",
        "claim",
        spec={**_CLAIM, "dataSource": {"kind": "PersistentVolumeClaim", "name": "other"}},
    ),
    _object(
        "v1",
        "PersistentVolume",
        "pv",
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "azureDisk": {"diskName": "d", "diskURI": "https://blob.example.org/d"},
            "storageClassName": "fast",
            "mountOptions": ["ro"],
        },
    ),
    _object(
        "v1",
        "PersistentVolume",
        "pv-iscsi",
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0},
        },
    ),
    _object("v1", "Namespace", "space"),
    _object(
        "v1",
        "Node",
        "node",
        spec={"podCIDR": "10.9.0.0/24", "unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]},
    ),
    _object(
        "v1",
        "Event",
        "event.a",
        involvedObject={"namespace": "default", "name": "x"},
        reason="r",
        message="m",
        count=2,
        type="Normal",
        firstTimestamp="2026-01-01T00:00:00Z",
        lastTimestamp="2026-01-01T00:00:00Z",
    ),
    _object(
        "events.k8s.io/v1",
        "Event",
        "event.b",
        regarding={"namespace": "default", "name": "x"},
        reason="r",
        note="m",
        type="Normal",
        eventTime="2026-01-01T00:00:00.000000Z",
        reportingController="example.org/c",
        reportingInstance="i",
        action="a",
    ),
    _object(
        "apps/v1",
        "Deployment",
        "deployment",
        spec={
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "replicas": 3,
            "minReadySeconds": 1,
            "paused": True,
            "strategy": {"rollingUpdate": {"maxSurge": 2}},
        },
    ),
    _object(
        "apps/v1",
        "Deployment",
        "recreate",
        spec={"selector": _SELECTOR, "template": _TEMPLATE, "strategy": {"type": "Recreate"}},
    ),
    _object("apps/v1", "ReplicaSet", "rs", spec={"selector": _SELECTOR, "template": _TEMPLATE, "replicas": 0}),
    _object(
        "apps/v1",
        "DaemonSet",
        "daemons",
        spec={
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
        },
    ),
    _object(
        "apps/v1",
        "DaemonSet",
        "on-delete",
        spec={"selector": _SELECTOR, "template": _TEMPLATE, "updateStrategy": {"type": "OnDelete"}},
    ),
    _object(
        "apps/v1",
        "StatefulSet",
        "stateful",
        spec={
            "selector": _SELECTOR,
            "template": _TEMPLATE,
            "serviceName": "s",
            "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": _CLAIM}],
            "updateStrategy": {"rollingUpdate": {"partition": 2}},
            "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"},
            "ordinals": {"start": 1},
        },
    ),
    _object("apps/v1", "ControllerRevision", "revision", data={"a": 1}, revision=1),
    _object("batch/v1", "Job", "job", spec={"template": _ONCE, "ttlSecondsAfterFinished": 5}),
    _object(
        "batch/v1",
        "Job",
        "indexed",
        spec={
            "template": _ONCE,
            "completions": 3,
            "parallelism": 2,
            "completionMode": "Indexed",
            "backoffLimitPerIndex": 1,
            "suspend": True,
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        },
    ),
    _object(
        "batch/v1",
        "CronJob",
        "cron",
        spec={
            "schedule": "0 * * * *",
            "timeZone": "Etc/UTC",
            "startingDeadlineSeconds": 5,
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": {"template": _ONCE, "backoffLimit": 2}},
        },
    ),
    _object(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "scaler",
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 5,
            "minReplicas": 2,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
                }
            ],
            "behavior": {
                "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}], "tolerance": "100m"}
            },
        },
    ),
    _object(
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        "scaler-v1",
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 5,
            "targetCPUUtilizationPercentage": 50,
        },
    ),
    _object(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "policy",
        spec={
            "podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
            "ingress": [
                {
                    "from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
                    "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "endPort": 60}],
                }
            ],
            "egress": [{"to": [{"namespaceSelector": {}}]}],
        },
    ),
    _object(
        "networking.k8s.io/v1",
        "Ingress",
        "ingress",
        spec={
            "ingressClassName": "nginx",
            "tls": [{"hosts": ["a.example.org"], "secretName": "tls"}],
            "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
            "rules": [
                {
                    "host": "a.example.org",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "s", "port": {"name": "web"}}},
                            }
                        ]
                    },
                }
            ],
        },
    ),
    _object(
        "networking.k8s.io/v1",
        "IngressClass",
        "class",
        spec={"controller": "example.org/c", "parameters": {"kind": "P", "name": "p", "apiGroup": "example.org"}},
    ),
    _object("networking.k8s.io/v1", "ServiceCIDR", "range", spec={"cidrs": ["10.77.0.0/24"]}),
    _object(
        "networking.k8s.io/v1",
        "IPAddress",
        "10.0.9.9",
        spec={"parentRef": {"resource": "services", "namespace": "default", "name": "x"}},
    ),
    _object(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "slice",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "nodeName": "n"}],
        ports=[{"name": "web", "port": 80}, {"port": 53, "protocol": "UDP"}],
    ),
    _object(
        "policy/v1",
        "PodDisruptionBudget",
        "budget",
        spec={"selector": _SELECTOR, "minAvailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow"},
    ),
    _object(
        "rbac.authorization.k8s.io/v1",
        "Role",
        "role",
        rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["x"]}],
    ),
    _object(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "cluster-role",
        rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}],
    ),
    _object(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "binding",
        roleRef={"kind": "Role", "name": "role"},
        subjects=[
            {"kind": "User", "name": "u"},
            {"kind": "Group", "name": "g"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "default"},
        ],
    ),
    _object(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "cluster-binding",
        roleRef={"kind": "ClusterRole", "name": "cluster-role"},
        subjects=[{"kind": "User", "name": "u"}],
    ),
    _object(
        "storage.k8s.io/v1",
        "StorageClass",
        "fast",
        provisioner="example.org/p",
        parameters={"a": "b"},
        allowVolumeExpansion=True,
        mountOptions=["ro"],
        allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    ),
    _object(
        "storage.k8s.io/v1",
        "CSIDriver",
        "driver",
        spec={
            "attachRequired": False,
            "tokenRequests": [{"audience": "a", "expirationSeconds": 3600}],
            "requiresRepublish": True,
        },
    ),
    _object(
        "storage.k8s.io/v1",
        "CSINode",
        "node",
        spec={"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["z"], "allocatable": {"count": 3}}]},
    ),
    _object(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        "capacity",
        storageClassName="fast",
        capacity="1Gi",
        maximumVolumeSize="1Gi",
        nodeTopology=_SELECTOR,
    ),
    _object(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "attachment",
        spec={
            "attacher": "a",
            "nodeName": "n",
            "source": {
                "inlineVolumeSpec": {
                    "accessModes": ["ReadWriteOnce"],
                    "csi": {"driver": "d", "volumeHandle": "h"},
                }
            },
        },
    ),
    _object("storage.k8s.io/v1", "VolumeAttributesClass", "attributes", driverName="d", parameters={"a": "b"}),
    _object("scheduling.k8s.io/v1", "PriorityClass", "important", value=5, description="d", preemptionPolicy="Never"),
    _object(
        "coordination.k8s.io/v1",
        "Lease",
        "lease",
        spec={"holderIdentity": "h", "leaseDurationSeconds": 5, "acquireTime": "2026-01-01T00:00:00.000000Z"},
    ),
    _object(
        "flowcontrol.apiserver.k8s.io/v1",
        "FlowSchema",
        "flow",
        spec={
            "priorityLevelConfiguration": {"name": "exempt"},
            "matchingPrecedence": 900,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "u"}}],
                    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
                }
            ],
        },
    ),
    _object(
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration",
        "level",
        spec={
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 5,
                "lendablePercent": 50,
                "limitResponse": {"type": "Queue", "queuing": {"queues": 32, "handSize": 4, "queueLengthLimit": 10}},
            },
        },
    ),
    _object(
        "node.k8s.io/v1",
        "RuntimeClass",
        "runtime",
        handler="h",
        overhead={"podFixed": {"cpu": "1m"}},
        scheduling={"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}]},
    ),
    _object(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "devices",
        spec={
            "devices": {
                "requests": [
                    {
                        "name": "a",
                        "exactly": {
                            "deviceClassName": "gpu",
                            "tolerations": [{"key": "t", "value": "v", "effect": "NoSchedule"}],
                        },
                    },
                    {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "gpu", "count": 2}]},
                ]
            }
        },
    ),
    _object(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "claims",
        spec={
            "metadata": {"labels": {"a": "b"}},
            "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}]}},
        },
    ),
    _object(
        "resource.k8s.io/v1",
        "DeviceClass",
        "gpu",
        spec={"selectors": [{"cel": {"expression": "true"}}], "extendedResourceName": "example.org/gpu"},
    ),
    _object(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "devices-slice",
        spec={
            "driver": "d.example.org",
            "nodeName": "n",
            "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1},
            "devices": [
                {
                    "name": "g0",
                    "attributes": {"model": {"string": "m"}},
                    "capacity": {"mem": {"value": "1Gi"}},
                    "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
                }
            ],
        },
    ),
    _object(
        "resource.k8s.io/v1beta1",
        "ResourceClaim",
        "devices-beta",
        spec={
            "devices": {
                "requests": [{"name": "a", "deviceClassName": "gpu", "tolerations": [{"key": "t", "value": "v"}]}]
            }
        },
    ),
    _object(
        _ADMISSION,
        "ValidatingWebhookConfiguration",
        "validating",
        webhooks=[
            _webhook(failurePolicy="Ignore", timeoutSeconds=5, matchConditions=[{"name": "m", "expression": "true"}])
        ],
    ),
    _object(
        _ADMISSION,
        "MutatingWebhookConfiguration",
        "mutating",
        webhooks=[_webhook(reinvocationPolicy="IfNeeded", objectSelector={"matchLabels": {"a": "b"}})],
    ),
    _object(
        _ADMISSION,
        "ValidatingAdmissionPolicy",
        "vap",
        spec={
            "failurePolicy": "Ignore",
            "matchConstraints": {
                "resourceRules": [{**_RULE, "scope": "Namespaced"}],
                "matchPolicy": "Exact",
                "objectSelector": {"matchLabels": {"x": "y"}},
            },
            "validations": [{"expression": "true", "message": "m", "reason": "Forbidden"}],
            "variables": [{"name": "v", "expression": "1"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}],
        },
    ),
    _object(
        _ADMISSION,
        "ValidatingAdmissionPolicyBinding",
        "vapb",
        spec={"policyName": "vap", "validationActions": ["Deny"], "matchResources": {"resourceRules": [_RULE]}},
    ),
    _object(
        _ADMISSION,
        "MutatingAdmissionPolicy",
        "map",
        spec={
            "matchConstraints": {"resourceRules": [_RULE], "objectSelector": {"matchLabels": {"x": "y"}}},
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}],
        },
    ),
    _object(
        _ADMISSION,
        "MutatingAdmissionPolicyBinding",
        "mapb",
        spec={"policyName": "map", "matchResources": {"namespaceSelector": {"matchLabels": {"x": "y"}}}},
    ),
    _object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "widgets.example.org",
        spec={
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["w"]},
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"service": {"namespace": "d", "name": "n"}},
                },
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "default": {},
                                    "properties": {"n": {"type": "integer", "minimum": 1, "default": 1}},
                                }
                            },
                        }
                    },
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "n", "type": "integer", "jsonPath": ".spec.n"}],
                }
            ],
        },
    ),
    _object(
        "apiregistration.k8s.io/v1",
        "APIService",
        "v1.away.example.org",
        spec={
            "group": "away.example.org",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "service": {"namespace": "d", "name": "n"},
            "insecureSkipTLSVerify": True,
        },
    ),
)
"""One or more objects of each kind, as a client creates them in the namespace `default`."""
