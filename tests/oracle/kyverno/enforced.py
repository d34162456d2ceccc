"""Random sets of Kyverno's policies as the webhooks of a real API server enforce them, and objects that such a server accepts."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tests.oracle.kyverno.policies import Policies
from tests.oracle.kyverno.vocabulary import ENTRIES, INVENTORY

_MOVED = (
    "true",
    "false",
    "object.metadata.name != 'web-1'",
    "object.metadata.labels.app == 'web'",
    "object.metadata.?labels.?app.orValue('') == 'web'",
    "has(object.spec)",
    "object.spec.missing == 1",
    "request.operation == 'CREATE'",
    "request.operation != 'CREATE' || oldObject == null",
    "request.userInfo.username == 'bob'",
    "'system:masters' in request.userInfo.groups",
    "oldObject == null",
    "has(oldObject.metadata)",
    "oldObject.metadata.name == object.metadata.name",
    "oldObject != null && oldObject.metadata.name == object.metadata.name",
    "namespaceObject.metadata.labels.env == 'prod'",
    "namespaceObject == null",
    "namespaceObject != null && object.metadata.name == 'web'",
    "object.metadata.namespace == 'team'",
    "request.namespace == 'team'",
    "object.kind in ['Pod', 'Deployment']",
    "request.kind.kind == 'Pod'",
    "request.object.metadata.name == object.metadata.name",
    "object.spec.template.metadata.labels.app == 'web'",
    "object.spec.containers.all(c, c.image.contains('/'))",
    "request.resource.resource in ['pods', 'deployments', 'configmaps']",
    "request.requestKind == request.kind",
    "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
    "object.metadata.name.matches('^web')",
    "dyn(object.metadata.name) == 1",
    "[1, 2].all(n, n > 0) && 'b'.lowerAscii() == 'b'",
)
_KEPT = (
    "!('x' in exceptions.allowedValues)",
    "image('nginx').registry() != ''",
    "resource.Get('v1', 'configmaps', 'team', 'settings').data.mode == 'strict'",
    "lists.range(2).size() == 2",
)
_VALIDATIONS = (
    "false",
    "object.metadata.name == 'web'",
    "object.metadata.?labels.?app.orValue('') == 'web'",
    "object.metadata.labels.app == 'web'",
    "oldObject == null",
    "has(oldObject.metadata)",
    "request.operation == 'UPDATE'",
    "namespaceObject.metadata.labels.env == 'prod'",
    "object.spec.containers.all(c, c.image.startsWith('reg/'))",
    "request.kind.version == 'v1'",
    "request.namespace == 'team'",
)
_ACTIONS = (["Deny"], ["Audit"], ["Warn"], ["Deny", "Audit"], ["Warn", "Audit"], ["Deny", "Warn"])
_EVALUATIONS = ({"admission": {"enabled": False}}, {"admission": {"enabled": True}})
_OF_DRY_RUNS = ("request.dryRun", "request.options")
"""What the requests of a dry run have, and no others."""
_OPERATIONS = (["CREATE", "DELETE"], ["CREATE", "CONNECT"], ["UPDATE", "DELETE"], ["CREATE", "UPDATE", "DELETE"])
_SELECTORS: tuple[Any, ...] = (
    {"matchLabels": {"app": "web"}},
    {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
    {"matchLabels": {"env": "prod"}},
)
_LABELS: tuple[dict[str, str], ...] = ({}, {"app": "web"}, {"skip": "true"})
_NAMES = ("web", "web-1", "web-2", "db")
_SCALERS = ("autoscaling", ("v1", "v2"), "HorizontalPodAutoscaler", "horizontalpodautoscalers")
_WRITTEN: tuple[tuple[str, str, str, str], ...] = (
    ("", "v1", "Pod", "pods"),
    ("", "v1", "Pod", "pods"),
    ("", "v1", "Pod", "pods"),
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "Namespace", "namespaces"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("apps", "v1", "ReplicaSet", "replicasets"),
    ("batch", "v1", "Job", "jobs"),
    ("batch", "v1", "CronJob", "cronjobs"),
    ("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
)
_SELECTED = {"selected": "yes"}
_RESTARTING = {"jobs", "cronjobs"}
_CONTROLLERS = {"deployments", "statefulsets", "daemonsets", "replicasets", *_RESTARTING}


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Policies that are the only ones of a cluster, with their exceptions."""

    policies: list[dict[str, Any]]
    exceptions: list[dict[str, Any]]

    def without(self, names: Iterable[str]) -> PolicySet:
        """Return the set without the policies of these names."""
        left = [policy for policy in self.policies if _full_name(policy) not in names]
        return replace(self, policies=left)

    def concerns(self, plural: str) -> bool:
        """Return whether a rule may match the objects of a resource, or autogen may make such a rule."""
        rules = (rule for policy in self.policies for rule in policy["spec"]["matchConstraints"]["resourceRules"])
        named = {resource.partition("/")[0] for rule in rules for resource in rule["resources"]}
        return plural in named or "*" in named or ("pods" in named and plural in _CONTROLLERS)

    def request(self, name: str, namespaces: list[Any]) -> dict[str, Any]:
        """Return the request to the program, which knows the set by its name."""
        return {
            "set": name,
            "policies": self.policies,
            "exceptions": self.exceptions,
            "namespaces": namespaces,
            "inventory": INVENTORY,
            "entries": ENTRIES,
        }


def _full_name(policy: dict[str, Any]) -> str:
    metadata = policy["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


class EnforcedPolicies(Policies):
    """Makes sets of policies, and objects, from one source of chance."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self._made = 0

    def policy_set(self) -> PolicySet:
        """Return a random set: mostly one policy alone."""
        example = self.example()
        policies = [example.policy]
        for number in range(self._weighted((0, 0, 0, 0, 1, 2))):
            policy = self._policy()
            policy["metadata"]["name"] = f"checks-{number}"
            policies.append(policy)
        return PolicySet(policies, example.exceptions)

    def document(self) -> dict[str, Any]:
        """Return a random object that the API accepts."""
        group, version, kind, plural = self._chance.choice(_WRITTEN)
        if kind == "Namespace":
            return self._namespace()
        body = self._object(plural, kind, f"{group}/{version}" if group else version)
        metadata = {**body["metadata"], "name": self._chance.choice(_NAMES)}
        match plural:
            case "clusterroles":
                del body["spec"], metadata["namespace"]
            case "horizontalpodautoscalers":
                body["spec"] = self._scaler_spec(version)
            case "pods" | "configmaps":
                pass
            case _:
                self._complete(plural, body["spec"])
        return {**body, "metadata": metadata}

    def _namespace(self) -> dict[str, Any]:
        self._made += 1
        labels = {**self._chance.choice(_LABELS), "env": self._chance.choice(("prod", "test"))}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"fresh-{self._made}", "labels": labels}}

    def _scaler_spec(self, version: str) -> dict[str, Any]:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec: dict[str, Any] = {"scaleTargetRef": target, "maxReplicas": self._chance.choice((1, 3))}
        if version == "v1" and self._maybe(0.5):
            spec["targetCPUUtilizationPercentage"] = 80
        return spec

    def _complete(self, plural: str, spec: dict[str, Any]) -> None:
        """Add the fields that the API requires."""
        template = spec["jobTemplate"]["spec"]["template"] if plural == "cronjobs" else spec["template"]
        if plural in _RESTARTING:
            template["spec"]["restartPolicy"] = "Never"
        else:
            labels = template.get("metadata", {}).get("labels", {})
            template["metadata"] = {"labels": {**labels, **_SELECTED}}
            spec["selector"] = {"matchLabels": _SELECTED}
        if plural == "cronjobs":
            spec["schedule"] = "0 * * * *"
        if plural == "statefulsets":
            spec["serviceName"] = "web"

    def _policy(self) -> dict[str, Any]:
        policy = super()._policy()
        if "namespace" in policy["metadata"] and self._maybe(0.2):
            policy["metadata"]["namespace"] = "other"
        return policy

    def _spec(self) -> dict[str, Any]:
        spec = super()._spec()
        chance = self._chance
        spec.pop("matchConditions", None)
        if self._maybe(0.6):
            pool = _MOVED if self._maybe(0.8) else (*_MOVED, *_KEPT)
            spec["matchConditions"] = [
                {
                    "name": f"c{number}" if self._maybe(0.98) else f"condition {number}",
                    "expression": chance.choice(pool),
                }
                for number in range(self._weighted((1, 1, 1, 2, 3)))
            ]
        if self._maybe(0.6):
            spec["validationActions"] = chance.choice(_ACTIONS)
        if self._maybe(0.08):
            spec["evaluation"] = chance.choice(_EVALUATIONS)
        if self._maybe(0.1):
            spec["webhookConfiguration"] = {"timeoutSeconds": 10}
        return spec

    def _validation(self) -> dict[str, Any]:
        validation = super()._validation()
        if self._maybe(0.6) or any(text in validation["expression"] for text in _OF_DRY_RUNS):
            return {**validation, "expression": self._chance.choice(_VALIDATIONS)}
        return validation

    def _constraints(self) -> dict[str, Any]:
        constraints = super()._constraints()
        if self._maybe(0.2):
            constraints["objectSelector"] = self._chance.choice(_SELECTORS)
        if self._maybe(0.3):
            constraints["matchPolicy"] = self._chance.choice(("Exact", "Equivalent"))
        return constraints

    def _rule(self) -> dict[str, Any]:
        rule = super()._rule()
        if self._maybe(0.1):
            group, versions, _, plural = _SCALERS
            rule |= {"apiGroups": [group], "apiVersions": [self._chance.choice(versions)], "resources": [plural]}
        if self._maybe(0.15):
            rule["operations"] = self._chance.choice(_OPERATIONS)
        if self._maybe(0.1) and rule["apiGroups"] == [""]:
            rule["resources"] = ["pods", "configmaps"]
        return rule
