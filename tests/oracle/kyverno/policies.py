"""Random policies of Kyverno with exceptions, objects and namespaces: every field that decides, with edge values."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from scanner.model.resource import Kind
from tests.oracle.grammar import Generator
from tests.oracle.kyverno.vocabulary import ENTRIES, EXTRA, INVENTORY

_EVERY = ("CREATE", "UPDATE")
_LABELS: tuple[dict[str, str], ...] = ({}, {"app": "web"}, {"app": "db", "tier": "back"}, {"skip": "true"})
_RESOURCES: dict[str, tuple[str, str, str, str]] = {
    "pods": ("", "v1", "Pod", "pods"),
    "configmaps": ("", "v1", "ConfigMap", "configmaps"),
    "namespaces": ("", "v1", "Namespace", "namespaces"),
    "deployments": ("apps", "v1", "Deployment", "deployments"),
    "statefulsets": ("apps", "v1", "StatefulSet", "statefulsets"),
    "jobs": ("batch", "v1", "Job", "jobs"),
    "cronjobs": ("batch", "v1", "CronJob", "cronjobs"),
    "jobsets": ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
}
CUSTOM_KINDS = (Kind("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", namespaced=True),)
"""The kinds of objects beside those of Kubernetes."""
_CUSTOM_CONTROLLER = "jobsets.v1alpha2.jobset.x-k8s.io"
_CONTROLLERS = (
    "deployments",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
    "replicasets",
    "nonsense",
    "Deployment",
    "jobsets",
    _CUSTOM_CONTROLLER,
    "statefulsets.v1.apps",
)
_CONDITIONS = (
    "true",
    "false",
    "object.metadata.name != 'web-1'",
    "object.metadata.?labels.?app.orValue('') == 'web'",
    "has(object.spec)",
    "object.spec.missing == 1",
    "request.operation == 'CREATE'",
    "request.userInfo.username == 'bob'",
    "oldObject == null",
    "has(oldObject.metadata)",
    "namespaceObject.metadata.labels.env == 'prod'",
    "object.metadata.namespace == 'team'",
    "!('x' in exceptions.allowedValues)",
    "object.kind in ['Pod', 'Deployment']",
    "request.object.metadata.name == object.metadata.name",
    "has(request.object.spec)",
    "request.oldObject == null",
    "request.namespace == 'team'",
    "request.kind.kind == 'Pod'",
    "request.resource.resource in ['pods', 'deployments']",
    "variables.a == 1",
)
_EXPRESSIONS = (
    *_CONDITIONS,
    "object.spec.containers.all(c, !c.image.endsWith(':latest'))",
    "object.spec.containers.all(c, image(c.image).tag() != '')",
    "object.spec.containers.all(c, c.image in exceptions.allowedImages || c.image.startsWith('reg/'))",
    "object.spec.?hostNetwork.orValue(false) == false",
    "object.spec.hostNetwork",
    "variables.a == 1",
    "variables.b",
    "variables.names.exists(n, n == 'main')",
    "object.metadata.labels.app == 'web'",
    "object.metadata.namespace in ['team', 'default']",
    "size(object.spec.containers) < 2",
    "object.data.mode == 'strict'",
    "resource.List('v1', 'configmaps', 'team').items.all(i, i.metadata.name == 'p')",
    "resource.Get('v1', 'configmaps', 'team', 'settings').data.mode == 'strict'",
    "object.metadata.annotations.`a/b` == 'c'",
    "1 / (size(object.metadata.name) - 3) > 0",
    "oldObject.spec == object.spec",
    "lists.range(2).all(i, i < 2)",
    "regex.replace(object.metadata.name, '-', '') != ''",
    "namespaceObject == null",
    "request.object.spec.containers.all(c, c.image != 'nginx')",
    "request.oldObject.spec == object.spec",
    "request.object == object",
    "request.name == object.metadata.name && !request.dryRun && request.options == null",
    "object.spec.template.spec.containers.all(c, c.image != 'nginx')",
    "object.spec.replicatedJobs.all(j, j.name == 'main')",
    "image(object.spec.containers[0].image).registry() == 'reg'",
    "image(object.spec.containers[0].image).digest() == ''",
    "isImage(object.spec.containers[0].image)",
    "json.marshal(object.metadata.labels) != '{}'",
    "json.unmarshal('{\"a\": 1}').a == 1",
    "yaml.parse('a: 1').a == 1",
    "sha256(object.metadata.name) != ''",
    "hash.sha1(object.metadata.name) != ''",
    "sha1(object.metadata.name) != ''",
    "base64.decode('aGk=') == b'hi'",
    "globalContext.Get('entry', '').a == 1",
    "globalContext.Get('entry').a == 1",
    "resource.Get('v1', 'configmaps', 'settings').data.mode == 'strict'",
    "resource.List('v1', 'configmaps').items.size() == 1",
    "size(resource.List('v1', 'configmaps', 'team').items) == 1",
    "dyn(resource.List('v1', 'configmaps', 'team')).items.all(i, i.metadata.name == 'settings')",
    "resource.get('v1', 'configmaps', 'team', 'other') == null",
    "parseServiceAccount('system:serviceaccount:a:b').Name == 'b'",
    "time.toCron(timestamp('2026-01-01T00:00:00+02:00')) != ''",
    "time.now() > timestamp('2020-01-01T00:00:00Z')",
    "math.round(1.25, 1) == 1.3",
    "listObjToMap([{'k': 'a'}], [{'v': 1}], 'k', 'v').a == 1",
    "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
    "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.0.0.1')",
    "object.metadata.?labels[?'app'].orValue('') == 'web'",
    "string(object.metadata.?labels.app.orValue('none')) == 'none'",
    "object.metadata.labels.app.orValue('none') == 'none'",
    "cel.bind(n, object.metadata.name, n == 'web' || n.startsWith('web-'))",
    "exceptions.allowedImages.size() == 0",
    "'x' in exceptions.allowedValues",
    "http.Put('https://example.com', {'a': 1}) == null",
)
_VARIABLES = (
    ("a", ("1", "object.spec.missing", "size(object.metadata.name)", "dyn(1)")),
    ("b", ("true", "object.spec.hostNetwork", "variables.a == 1", "has(object.spec.containers)")),
    (
        "names",
        ("object.spec.containers.map(c, c.name)", "['main']", "object.spec.?containers.orValue([]).map(c, c.name)"),
    ),
)
_MESSAGES = (
    "object.spec.containers[0].image + ' of ' + request.namespace",
    "'no: ' + object.metadata.name",
    "''",
    "object.spec.missing",
    "string(variables.a)",
    "'in ' + object.spec.x",
    "1",
)
_ANNOTATIONS = (("k", "'v'"), ("message", "'own'"), ("e", "string(object.nope)"), ("n", "null"), ("empty", "''"))
_SELECTORS: tuple[Any, ...] = (
    {},
    {"matchLabels": {"app": "web"}},
    {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
)
_NAMESPACE_SELECTORS: tuple[Any, ...] = (
    {"matchLabels": {"env": "prod"}},
    {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]},
    {"matchLabels": {"kubernetes.io/metadata.name": "team"}},
)
_ALL_NAMESPACES: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, "env": env}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    for name, env in (("team", "prod"), ("other", "test"), ("new", "prod"), ("newer", "test"))
]
NAMESPACES, _NEW_NAMESPACES = _ALL_NAMESPACES[:2], _ALL_NAMESPACES[2:]


@dataclass(frozen=True, slots=True)
class Example:
    """A policy, its exceptions, and admission requests, in the form of the programs (see policies.go)."""

    policy: dict[str, Any]
    exceptions: list[dict[str, Any]]
    requests: list[dict[str, Any]]

    def request(self) -> dict[str, Any]:
        """Return the request to the program."""
        return {
            "policies": [self.policy],
            "exceptions": self.exceptions,
            "namespaces": NAMESPACES,
            "requests": self.requests,
            "inventory": INVENTORY,
            "entries": ENTRIES,
        }


class Policies:
    """Makes policies from one source of chance."""

    def __init__(self, source: random.Random) -> None:
        self._chance = source
        self._expressions = Generator(source, EXTRA)

    def example(self) -> Example:
        """Return a random policy with requests."""
        policy = self._policy()
        exceptions = [self._exception(number, policy) for number in range(self._weighted((0, 0, 0, 1, 1, 2, 3)))]
        # Kyverno's lister has no order; Assay has this one.
        exceptions.sort(key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"]))
        requests = [self._admission() for _ in range(4)]
        return Example(policy, exceptions, [*requests, *self._of_custom_controller(policy)])

    def _of_custom_controller(self, policy: dict[str, Any]) -> list[dict[str, Any]]:
        """Return requests on workloads that the policy alone makes a matter of autogen."""
        autogen = policy["spec"].get("autogen", {"podControllers": {"controllers": ()}})
        is_named = _CUSTOM_CONTROLLER in autogen["podControllers"]["controllers"]
        return [self._admission("jobsets"), self._admission("jobsets")] if is_named else []

    def _weighted(self, numbers: tuple[int, ...]) -> int:
        return self._chance.choice(numbers)

    def _maybe(self, chance: float) -> bool:
        return self._chance.random() < chance

    def _policy(self) -> dict[str, Any]:
        namespaced = self._maybe(0.2)
        kind = "NamespacedValidatingPolicy" if namespaced else "ValidatingPolicy"
        metadata = {"name": "checks", **({"namespace": "team"} if namespaced else {})}
        return {
            "apiVersion": "policies.kyverno.io/v1beta1",
            "kind": kind,
            "metadata": metadata,
            "spec": self._spec(),
        }

    def _spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"matchConstraints": self._constraints(), "validations": self._validations()}
        if self._maybe(0.4):
            spec["variables"] = [
                {"name": name, "expression": self._chance.choice(texts)}
                for name, texts in _VARIABLES
                if self._maybe(0.8)
            ]
        if self._maybe(0.35):
            spec["matchConditions"] = [
                {"name": f"c{number}", "expression": self._chance.choice(_CONDITIONS)}
                for number in range(self._weighted((1, 1, 2, 3)))
            ]
        if self._maybe(0.25):
            spec["auditAnnotations"] = [
                {"key": key, "valueExpression": text} for key, text in self._chance.sample(_ANNOTATIONS, 2)
            ]
        if self._maybe(0.4):
            spec["failurePolicy"] = self._chance.choice(("Fail", "Ignore"))
        if self._maybe(0.3):
            chosen = self._chance.sample(_CONTROLLERS, self._weighted((0, 1, 2, 4)))
            spec["autogen"] = {"podControllers": {"controllers": chosen}}
        return spec

    def _constraints(self) -> dict[str, Any]:
        constraints: dict[str, Any] = {"resourceRules": [self._rule() for _ in range(self._weighted((1, 1, 1, 2)))]}
        if self._maybe(0.2):
            constraints["objectSelector"] = self._chance.choice(_SELECTORS)
        if self._maybe(0.2):
            constraints["namespaceSelector"] = self._chance.choice(_NAMESPACE_SELECTORS)
        if self._maybe(0.1):
            constraints["excludeResourceRules"] = [self._rule()]
        if self._maybe(0.1):
            constraints["matchPolicy"] = self._chance.choice(("Exact", "Equivalent"))
        return constraints

    def _rule(self) -> dict[str, Any]:
        chance = self._chance
        plural = chance.choice(("pods", "pods", "pods", *_RESOURCES, "*", "pods/*", "*/*", "pods/status"))
        group, version = _RESOURCES.get(plural, ("", "v1"))[:2]
        rule: dict[str, Any] = {
            "apiGroups": ["*"] if self._maybe(0.1) else [group],
            "apiVersions": ["*"] if self._maybe(0.1) else [version],
            "operations": chance.choice((["CREATE", "UPDATE"], ["CREATE"], ["UPDATE"], ["*"], ["DELETE"])),
            "resources": [plural],
        }
        if self._maybe(0.05):
            rule["resourceNames"] = ["web-1"]
        if self._maybe(0.1):
            rule["scope"] = chance.choice(("*", "Namespaced", "Cluster"))
        return rule

    def _validations(self) -> list[dict[str, Any]]:
        return [self._validation() for _ in range(self._weighted((1, 1, 1, 2, 3)))]

    def _validation(self) -> dict[str, Any]:
        text = str(self._expressions.case_of("bool").term) if self._maybe(0.3) else self._chance.choice(_EXPRESSIONS)
        validation = {"expression": text}
        if self._maybe(0.4):
            validation["message"] = "written"
        if self._maybe(0.2):
            validation["messageExpression"] = self._chance.choice(_MESSAGES)
        return validation

    def _exception(self, number: int, policy: dict[str, Any]) -> dict[str, Any]:
        spec: dict[str, Any] = {"policyRefs": [{"name": "checks", "kind": policy["kind"]}]}
        if self._maybe(0.1):
            spec["policyRefs"] = [
                {"name": "checks", "kind": "MutatingPolicy"},
                {"name": "other", "kind": policy["kind"]},
            ]
        if self._maybe(0.7):
            spec["matchConditions"] = [{"name": "c", "expression": self._chance.choice(_CONDITIONS)}]
        if self._maybe(0.3):
            spec["images"] = ["nginx:latest", "reg/app:1"][: self._weighted((1, 2))]
        if self._maybe(0.2):
            spec["allowedValues"] = ["x"]
        if self._maybe(0.3):
            spec["reportResult"] = self._chance.choice(("pass", "skip"))
        labels = {"polex.kyverno.io/priority": str(self._weighted((0, 1, 5, -1)))} if self._maybe(0.3) else {}
        return {
            "apiVersion": "policies.kyverno.io/v1beta1",
            "kind": "PolicyException",
            "metadata": {"name": f"e{number}", "namespace": self._chance.choice(("team", "other")), "labels": labels},
            "spec": spec,
        }

    def _admission(self, plural: str = "") -> dict[str, Any]:
        chance = self._chance
        plural = plural or chance.choice(("pods", "pods", *_RESOURCES))
        group, version, kind, _ = _RESOURCES[plural]
        operation = chance.choice(("CREATE", "CREATE", "UPDATE"))
        # Only a Namespace that exists is found, and only one that does not exist can be created.
        body = (
            {**chance.choice(NAMESPACES if operation == "UPDATE" else _NEW_NAMESPACES)}
            if kind == "Namespace"
            else self._object(plural, kind, f"{group}/{version}" if group else version)
        )
        namespace = body["metadata"].get("namespace", "")
        return {
            "operation": operation,
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": plural},
            "name": body["metadata"]["name"],
            "namespace": body["metadata"]["name"] if kind == "Namespace" else namespace,
            "userInfo": {},
            "object": body,
            "oldObject": body if operation == "UPDATE" else None,
        }

    def _object(self, plural: str, kind: str, api_version: str) -> dict[str, Any]:
        chance = self._chance
        metadata: dict[str, Any] = {
            "name": chance.choice(("web", "web-1")),
            "namespace": chance.choice(("team", "other")),
        }
        if labels := chance.choice(_LABELS):
            metadata["labels"] = labels
        if self._maybe(0.2):
            metadata["annotations"] = {"a/b": "c"}
        body: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
        match plural:
            case "configmaps":
                body["data"] = {"mode": chance.choice(("strict", "lax"))}
            case "pods":
                body["spec"] = self._pod_spec()
            case "jobsets":
                jobs = [
                    {"name": name, "template": {"spec": {"template": self._template()}}} for name in ("main", "other")
                ]
                body["spec"] = {"replicatedJobs": jobs[: self._weighted((0, 1, 1, 2))]}
            case "cronjobs":
                body["spec"] = {"jobTemplate": {"spec": {"template": self._template()}}}
            case _:
                body["spec"] = {"template": self._template()}
        return body

    def _template(self) -> dict[str, Any]:
        template: dict[str, Any] = {"spec": self._pod_spec()}
        if self._maybe(0.7):
            template["metadata"] = {"labels": self._chance.choice(_LABELS)}
        return template

    def _pod_spec(self) -> dict[str, Any]:
        images = ("nginx:latest", "reg/app:1", "nginx", "nginx:1.25@sha256:" + "a" * 64, "BAD IMAGE")
        containers = [
            {"name": name, "image": self._chance.choice(images)}
            for name in ("main", "side")[: self._weighted((1, 1, 2))]
        ]
        spec: dict[str, Any] = {"containers": containers}
        if self._maybe(0.3):
            spec["hostNetwork"] = self._maybe(0.5)
        return spec
