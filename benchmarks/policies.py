"""Forty-two bound policies like those that clusters have; about one evaluation in a hundred fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scanner.model.json import Json

PODS: Final = ("", "v1", "pods")
WORKLOADS: Final = ("apps", "v1", "deployments", "replicasets")
CONTAINERS: Final = "object.spec.containers"
TEMPLATES: Final = "object.spec.template.spec.containers"
SECURITY: Final = {
    "escalation": "{}.all(c, has(c.securityContext) && has(c.securityContext.allowPrivilegeEscalation) && !c.securityContext.allowPrivilegeEscalation)",
    "registry": "{}.all(c, c.image.startsWith('registry.example.com/'))",
    "tag": "{}.all(c, !c.image.endsWith(':latest') && c.image.contains(':'))",
    "memory": "{}.all(c, has(c.resources.limits) && 'memory' in c.resources.limits && quantity(c.resources.limits['memory']).isLessThan(quantity('16Gi')))",
    "requests": "{}.all(c, has(c.resources.requests) && quantity(c.resources.requests['cpu']).isLessThan(quantity('500m')))",
    "read-only": "{}.all(c, has(c.securityContext) && c.securityContext.?readOnlyRootFilesystem.orValue(false))",
    "non-root": "{}.all(c, c.?securityContext.?runAsNonRoot.orValue(false))",
    "capabilities": "{}.all(c, c.?securityContext.?capabilities.?drop.orValue([]).exists(d, d == 'ALL'))",
    "probes": "{}.all(c, has(c.livenessProbe) && has(c.readinessProbe))",
    "names": "{}.all(c, c.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))",
}
POD: Final = {
    "host-network": "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "host-path": "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))",
    "seccomp": "object.spec.?securityContext.?seccompProfile.?type.orValue('') == 'RuntimeDefault'",
    "token": "has(object.spec.automountServiceAccountToken) && !object.spec.automountServiceAccountToken",
    "node": "!has(object.spec.nodeName) || object.spec.nodeName.startsWith('node-')",
    "grace": "!has(object.spec.terminationGracePeriodSeconds) || object.spec.terminationGracePeriodSeconds <= 300",
}
OTHERS: Final = {
    "replicas": (("apps", "v1", "deployments", "replicasets"), "object.spec.replicas <= 50"),
    "template-owner": (WORKLOADS, "has(object.spec.template.metadata.labels) && 'owner' in object.spec.template.metadata.labels"),
    "template-host-network": (WORKLOADS, "!has(object.spec.template.spec.hostNetwork) || !object.spec.template.spec.hostNetwork"),
    "passwords": (("", "v1", "configmaps"), "!has(object.data) || object.data.all(k, !k.matches('(?i)password|token'))"),
    "map-size": (("", "v1", "configmaps"), "!has(object.data) || object.data.size() <= 100"),
    "secret-types": (("", "v1", "secrets"), "object.type in ['Opaque', 'kubernetes.io/tls', 'kubernetes.io/dockerconfigjson', 'helm.sh/release.v1']"),
    "external-names": (("", "v1", "services"), "object.spec.type != 'ExternalName'"),
    "node-ports": (("", "v1", "services"), "object.spec.type != 'NodePort' && object.spec.type != 'LoadBalancer'"),
    "port-names": (("", "v1", "services"), "!has(object.spec.ports) || object.spec.ports.all(p, has(p.name))"),
    "endpoint-ports": (("discovery.k8s.io", "v1", "endpointslices"), "object.ports.all(p, p.port != 22)"),
    "account-tokens": (("", "v1", "serviceaccounts"), "has(object.automountServiceAccountToken) && !object.automountServiceAccountToken"),
    "job-retries": (("batch", "v1", "jobs"), "object.spec.backoffLimit <= 10"),
    "job-leftovers": (("batch", "v1", "jobs"), "has(object.spec.ttlSecondsAfterFinished) && object.spec.ttlSecondsAfterFinished <= 86400"),
    "everybody": (("rbac.authorization.k8s.io", "v1", "rolebindings"), "object.subjects.all(s, s.name != 'system:authenticated' && s.name != 'system:unauthenticated')"),
    "ingress-tls": (("networking.k8s.io", "v1", "ingresses"), "has(object.spec.tls) && object.spec.tls.size() > 0"),
    "ingress-hosts": (("networking.k8s.io", "v1", "ingresses"), "object.spec.rules.all(r, r.host.endsWith('.shop.example.com'))"),
    "claim-size": (("", "v1", "persistentvolumeclaims"), "quantity(object.spec.resources.requests['storage']).isLessThan(quantity('500Gi'))"),
}  # fmt: skip


def policies() -> Iterator[dict[str, Json]]:
    """Yield the policies and their bindings."""
    for name, text in SECURITY.items():
        yield from _bound(f"pod-{name}", PODS, text.format(CONTAINERS))
    for name, text in POD.items():
        yield from _bound(f"pod-{name}", PODS, text)
    for name, text in list(SECURITY.items())[:8]:
        yield from _bound(f"workload-{name}", WORKLOADS, text.format(TEMPLATES))
    for name, (resources, text) in OTHERS.items():
        yield from _bound(name, resources, text)
    yield from _bound("owner", ("*", "*", "*"), "has(object.metadata.labels) && 'owner' in object.metadata.labels")


def _bound(name: str, resources: tuple[str, ...], expression: str) -> Iterator[dict[str, Json]]:
    group, _, *plurals = resources
    everything = group == "*"
    rules: list[Json] = [
        {
            "apiGroups": ["", "apps", "batch", "networking.k8s.io"] if everything else [group],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["pods", "deployments", "jobs", "services", "ingresses", "configmaps"]
            if everything
            else [*plurals],
        }
    ]
    admission = "admissionregistration.k8s.io/v1"
    teams: Json = {"matchExpressions": [{"key": "team", "operator": "Exists"}]}
    yield {
        "apiVersion": admission,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": rules, "namespaceSelector": teams},
            "validations": [
                {"expression": expression, "messageExpression": f"'{name} says no to ' + object.metadata.name"}
            ],
        },
    }
    yield {
        "apiVersion": admission,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
