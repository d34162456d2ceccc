"""Random policies, bindings and objects, the same for the same seed: small, odd, and all of them storable.

Messages are short, because a server cuts the warnings of a request that say more than 4,096 characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from scanner.model.json import Json, JsonObject
from tests.integration.made import ADMISSION

NAMESPACES = {"red": {"team": "a"}, "blue": {"team": "b", "env": "prod"}, "grey": {}}
GROUP = "mixed.example.com"
# Objects that no policy may match, and that no policy may deny.
OUTSIDE: Json = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}
TIERS = ("web", "db", "x")

# What policies ask of any object. Some of it cannot be answered for some objects.
ANYTHING = (
    "has(object.metadata.labels) && 'app' in object.metadata.labels",
    "object.metadata.name.size() % 2 == 0",
    "object.metadata.labels.tier == 'web'",
    "object.metadata.?labels.?tier.orValue('db') != 'web'",
    "object.metadata.labels.all(k, v, k != v)",
    "object.kind in ['ConfigMap', 'Pod', 'Gizmo']",
    "request.operation == 'UPDATE'",
    "oldObject == null || oldObject.metadata.name == object.metadata.name",
    "oldObject.metadata.labels == object.metadata.labels",
    "namespaceObject == null || 'env' in namespaceObject.metadata.labels",
    "namespaceObject.metadata.labels['team'] == 'a'",
    "request.namespace.endsWith('d')",
    "request.userInfo.groups.exists(g, g.startsWith('system:m'))",
    "request.kind.version == 'v1' && request.requestKind.version != 'v2'",
    "request.resource == request.requestResource",
    "request.dryRun && request.options.kind.startsWith('Create')",
    "object.apiVersion.split('/').size() == 1",
    "object.metadata.name > 3",
    "object.metadata.name.matches('^[a-m]')",
    "!(object.metadata.name in ['one', 'two']) || [1, 2].map(n, n * 2) == [2, 4]",
    "['k', string(object.metadata.name)].sort()[0] == 'k'",
    "'%s'.format([object.metadata.name]).upperAscii() != 'ABLE'",
    "object.metadata.namespace == request.namespace",
    "type(object.metadata.name) == string && dyn(object.metadata.name) != 1",
    "1 / (object.metadata.name.size() - 4) < 2",
    "!authorizer.group('').resource('pods').namespace('red').check('get').allowed()",
    "authorizer.requestResource.check('custom-verb').allowed()",
    "authorizer.serviceAccount('red', 'x').path('/healthz').check('get').reason() == ''",
)
# What they ask of objects of a kind, by the plural; asked of others, most of it is an error.
SPECIAL: Mapping[str, Sequence[str]] = {
    "configmaps": ("object.data.size() < 3", "object.data.all(k, v, v.size() > 0)", "int(object.data.n) > 2"),
    "secrets": ("object.data.size() == 1", "!has(object.immutable)"),
    "services": ("object.spec.ports.all(p, p.port < 1000)", "object.spec.type == 'ClusterIP'"),
    "pods": (
        "object.spec.containers.all(c, c.image.contains(':'))",
        "object.spec.containers.exists(c, has(c.resources.limits))",
        "quantity(object.spec.containers[0].resources.limits.memory).isLessThan(quantity('1Gi'))",
    ),
    "deployments": ("object.spec.replicas > 1", "object.spec.template.spec.containers[0].name == 'app'"),
    "horizontalpodautoscalers": (
        "object.spec.targetCPUUtilizationPercentage > 60",
        "object.spec.metrics.size() == 1",
        "object.spec.maxReplicas < 5",
    ),
    "events": ("object.message == 'm'", "object.note == 'm'", "object.type == 'Normal'"),
    "gizmos": ("object.spec.size > 2", "object.spec.?parts[0].orValue('none') == 'bolt'"),
    "namespaces": ("object.spec.finalizers == ['kubernetes']",),
    "clusterroles": ("object.rules.exists(r, '*' in r.verbs)",),
}
GROUPS = {
    "deployments": (("apps", ("v1",)),),
    "horizontalpodautoscalers": (("autoscaling", ("v1", "v2")),),
    "events": (("", ("v1",)), ("events.k8s.io", ("v1",))),
    "gizmos": ((GROUP, ("v1", "v2")),),
    "clusterroles": (("rbac.authorization.k8s.io", ("v1",)),),
}
VARIABLES = ("object.metadata.name.size()", "object.metadata.labels.tier", "request.operation", "[1, 2, 3]")
USES = {0: "variables.{} > 3", 1: "variables.{} == 'web'", 2: "variables.{} == 'CREATE'", 3: "variables.{}.sum() == 6"}
MESSAGES = ("'e ' + object.metadata.name", "string(object.spec.replicas)", "'  '", "request.operation + ' no'")
ABOUT_PARAMS = ("params == null || 'limit' in params.data", "int(params.data.limit) > object.metadata.name.size()")


def policies(chance: Random, names: Sequence[str]) -> Iterator[JsonObject]:
    """A policy for each name, with its bindings, whose names begin with the policy's."""
    for name in names:
        policy = _policy(chance, name)
        yield policy
        for suffix in "ab"[: chance.choice((1, 1, 2))]:
            yield _binding(chance, name, suffix, with_params="paramKind" in _spec(policy))


def _spec(document: JsonObject) -> Mapping[str, Json]:
    spec = document["spec"]
    assert isinstance(spec, dict)
    return spec


def _policy(chance: Random, name: str) -> JsonObject:
    resources = chance.sample(sorted(SPECIAL), chance.choice((1, 2, 3, len(SPECIAL))))
    with_params = chance.random() < 0.25
    pool = [*ANYTHING, *(expression for resource in resources for expression in SPECIAL[resource])]
    variables = chance.sample(range(len(VARIABLES)), chance.choice((0, 0, 1, 2)))
    pool += [USES[number].format(f"v{number}") for number in variables] * 3
    pool += ABOUT_PARAMS * 5 if with_params else ()
    spec: dict[str, Json] = {
        "failurePolicy": chance.choice(("Fail", "Fail", "Ignore")),
        "matchConstraints": _match(chance, resources),
        "variables": [{"name": f"v{number}", "expression": VARIABLES[number]} for number in variables],
        "validations": [_validation(chance, pool) for _ in range(chance.choice((1, 1, 2)))],
    }
    if chance.random() < 0.25:
        condition = chance.choice([expression for expression in pool if "variables" not in expression])
        spec["matchConditions"] = [{"name": "c", "expression": condition}]
    if chance.random() < 0.1:
        spec["auditAnnotations"] = [
            {"key": "k", "valueExpression": chance.choice(("string(object.metadata.labels.tier)", "null"))}
        ]
    if with_params:
        kind = "ConfigMap" if chance.random() < 0.9 else "Nothing"
        spec["paramKind"] = {"apiVersion": "v1", "kind": kind}
    return {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


def _validation(chance: Random, pool: Sequence[str]) -> Json:
    validation: dict[str, Json] = {"expression": chance.choice(pool)}
    if chance.random() < 0.8:
        validation["message"] = f"m{chance.randrange(90)}"
    if chance.random() < 0.3:
        validation["messageExpression"] = chance.choice(MESSAGES)
    if chance.random() < 0.2:
        validation["reason"] = chance.choice(("Forbidden", "Invalid", "RequestEntityTooLarge"))
    return validation


def _match(chance: Random, resources: Sequence[str]) -> Json:
    rules = [_rule(chance, resource, group, versions) for resource, group, versions in _groups(resources)]
    match: dict[str, Json] = {
        "resourceRules": rules,
        "matchPolicy": chance.choice(("Exact", "Equivalent", "Equivalent")),
    }
    if chance.random() < 0.2:
        match["excludeResourceRules"] = [_rule(chance, *chance.choice([*_groups(resources)]))]
    return {**match, **_selectors(chance, OUTSIDE)}


def _groups(resources: Sequence[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for resource in resources:
        for group, versions in GROUPS.get(resource, (("", ("v1",)),)):
            yield resource, group, versions


def _rule(chance: Random, resource: str, group: str, versions: Sequence[str]) -> Json:
    rule: dict[str, Json] = {
        "apiGroups": ["*"] if chance.random() < 0.1 else [group],
        "apiVersions": ["*"] if chance.random() < 0.2 else [chance.choice(versions)],
        "operations": list(
            chance.choice((("CREATE",), ("UPDATE",), ("CREATE", "UPDATE"), ("*",), ("DELETE", "UPDATE")))
        ),
        "resources": [chance.choice((resource, resource, f"{resource}/*"))],
        "scope": chance.choice(("*", "*", "*", "Namespaced", "Cluster")),
    }
    if chance.random() < 0.1:
        rule["resourceNames"] = ["able", "baker", "red"]
    return rule


def _selectors(chance: Random, *always: Json) -> dict[str, Json]:
    """Selectors of namespaces and of objects; `always` are requirements that every namespaceSelector has."""
    wanted = [*always, *([_requirement(chance, "team", ("a", "b"))] if chance.random() < 0.25 else [])]
    selectors: dict[str, Json] = {"namespaceSelector": {"matchExpressions": wanted}} if wanted else {}
    if chance.random() < 0.25:
        selectors["objectSelector"] = {"matchExpressions": [_requirement(chance, "tier", TIERS)]}
    return selectors


def _requirement(chance: Random, key: str, values: Sequence[str]) -> Json:
    operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    wanted: list[Json] = [chance.choice(values)] if operator in ("In", "NotIn") else []
    return {"key": key, "operator": operator, **({"values": wanted} if wanted else {})}


def _binding(chance: Random, policy: str, suffix: str, *, with_params: bool) -> JsonObject:
    actions = chance.choice((("Warn",), ("Warn",), ("Warn",), ("Warn", "Audit"), ("Audit",), ("Deny",)))
    spec: dict[str, Json] = {"policyName": policy, "validationActions": list(actions)}
    if chance.random() < 0.2:
        spec["matchResources"] = _selectors(chance)
    if with_params and chance.random() < 0.9:
        spec["paramRef"] = _param_ref(chance)
    return {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{policy}{suffix}"},
        "spec": spec,
    }


def _param_ref(chance: Random) -> Json:
    which: dict[str, Json] = {"name": chance.choice(("able", "baker", "none"))}
    if chance.random() < 0.4:
        which = {"selector": {"matchExpressions": [_requirement(chance, "tier", TIERS)]}}
    if chance.random() < 0.6:
        which["namespace"] = chance.choice(sorted(NAMESPACES))
    return {**which, "parameterNotFoundAction": chance.choice(("Allow", "Allow", "Allow", "Deny"))}


def definition() -> JsonObject:
    """Gizmos, served in two versions that differ in nothing but the name."""
    schema: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions: list[Json] = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    names: Json = {"kind": "Gizmo", "plural": "gizmos", "singular": "gizmo"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gizmos.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": versions},
    }


def objects(chance: Random) -> Iterator[JsonObject]:
    """Namespaces, and in each of them objects of every kind, with and without what policies ask for."""
    for name, labels in NAMESPACES.items():
        yield _object("v1", "Namespace", chance, name, labels=labels)
    for namespace in NAMESPACES:
        for name in ("able", "baker", "coy"):
            yield from _namespaced(chance, namespace, name)
    for name in ("able", "baker"):
        rules: Json = [{"apiGroups": [""], "resources": ["pods"], "verbs": [chance.choice(("get", "*"))]}]
        yield _object("rbac.authorization.k8s.io/v1", "ClusterRole", chance, name, rules=rules)


def _namespaced(chance: Random, namespace: str, name: str) -> Iterator[JsonObject]:
    def made(api_version: str, kind: str, **rest: Json) -> JsonObject:
        return {**_object(api_version, kind, chance, name, namespace=namespace), **rest}

    data: Json = {key: str(chance.randrange(5)) for key in chance.sample(("n", "limit", "empty"), chance.randrange(4))}
    yield made("v1", "ConfigMap", data=data)
    if chance.random() < 0.6:
        yield made("v1", "Secret", data={"token": "c2VjcmV0LXZhbHVl"}, type="Opaque")
    if chance.random() < 0.6:
        port: Json = {"port": chance.choice((80, 8080)), "targetPort": 80}
        yield made("v1", "Service", spec={"ports": [port], "selector": {"app": name}})
    limits: Json = {"limits": {"memory": chance.choice(("64Mi", "2Gi"))}} if chance.random() < 0.6 else {}
    container: Json = {
        "name": chance.choice(("app", "main")),
        "image": chance.choice(("shop", "shop:1")),
        "resources": limits,
    }
    if chance.random() < 0.6:
        yield made("v1", "Pod", spec={"containers": [container]})
    template: Json = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    replicas: Json = {"replicas": chance.randrange(3)} if chance.random() < 0.7 else {}
    assert isinstance(replicas, dict)
    yield made(
        "apps/v1", "Deployment", spec={"selector": {"matchLabels": {"app": name}}, "template": template, **replicas}
    )
    yield from _versioned(chance, namespace, name)


def _versioned(chance: Random, namespace: str, name: str) -> Iterator[JsonObject]:
    """Objects that are served in two versions, written in either."""
    target: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    metric: Json = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": chance.choice((50, 70))}},
    }
    scaler: Json = {"maxReplicas": chance.randrange(1, 9), "scaleTargetRef": target, "metrics": [metric]}
    kind = "HorizontalPodAutoscaler"
    yield _object("autoscaling/v2", kind, chance, name, namespace=namespace, spec=scaler)
    regarding: Json = {"kind": "Pod", "name": name, "namespace": namespace}
    event: JsonObject = {
        "involvedObject": regarding,
        "message": "m",
        "reason": "R",
        "type": chance.choice(("Normal", "Warning")),
    }
    yield {**_object("v1", "Event", chance, name, namespace=namespace), **event}
    size: Json = {"size": chance.randrange(5), "parts": chance.sample(["bolt", "nut"], chance.randrange(3))}
    version = chance.choice(("v1", "v2"))
    yield _object(f"{GROUP}/{version}", "Gizmo", chance, name, namespace=namespace, spec=size)


def _object(
    api_version: str,
    kind: str,
    chance: Random,
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    **rest: Json,
) -> JsonObject:
    own = {"tier": chance.choice(TIERS), "app": name}
    kept: Json = dict(labels or {}) | {key: own[key] for key in chance.sample(sorted(own), chance.randrange(3))}
    metadata: dict[str, Json] = {"name": name, **({"labels": kept} if kept else {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
