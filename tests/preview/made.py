"""Random rules of every language, random changes of them, and random objects as an API server stores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.resource import Kind, Page, resource_of
from scanner.policies.pod_security.labels import Mode
from scanner.preview.requested import make_request
from scanner.preview.rule_change import RuleChange
from scanner.scan.documents import Manifest
from tests.documents import Document
from tests.scan.fakes import FakeCluster

_GROUP: Final = "admissionregistration.k8s.io/v1"
_KYVERNO: Final = ("ValidatingPolicy", "NamespacedValidatingPolicy", "PolicyException")
_SERVED: Final = ("", "apps", "batch", "admissionregistration.k8s.io", "scheduling.k8s.io", "node.k8s.io")
KINDS: Final = (
    *(kind for kind in builtin_kinds() if kind.group in _SERVED and kind.version == "v1"),
    Kind("policies.kyverno.io", "v1", "ValidatingPolicy", "validatingpolicies", namespaced=False),
    Kind("policies.kyverno.io", "v1", "NamespacedValidatingPolicy", "namespacedvalidatingpolicies", namespaced=True),
    Kind("policies.kyverno.io", "v1", "PolicyException", "policyexceptions", namespaced=True),
)
_BY_NAME: Final = {kind.kind: kind for kind in KINDS}
SCHEMAS: Final = KnownSchemas(builtin_schemas())
SPACES: Final = ("shop", "team", "kube-system")
NAMES: Final = ("a", "b", "c")
LEVELS: Final = ("privileged", "baseline", "restricted")
LABELLED: Final = "has(object.metadata.labels) && 'team' in object.metadata.labels"
OF_EVERYTHING: Final = (
    LABELLED,
    "true",
    "false",
    "object.metadata.name != 'a-1'",
    "request.operation == 'UPDATE'",
    "!request.userInfo.username.startsWith('system:')",
    "has(object.metadata.labels) && object.metadata.labels.team == 'red'",
    "object.metadata.none == 'x'",
    "oldObject == null || has(oldObject.metadata.labels)",
    "!has(object.metadata.uid)",
    "namespaceObject.metadata.labels.tier == 'prod'",
)
OF_PODS: Final = (
    "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits))",
    "object.spec.containers.all(c, has(c.resources) && has(c.resources.requests) && 'cpu' in c.resources.requests)",
    "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "!has(object.spec.enableServiceLinks) || !object.spec.enableServiceLinks",
    "object.spec.tolerations.exists(t, t.key == 'node.kubernetes.io/not-ready')",
    "has(object.spec.priority)",
    "!has(object.metadata.uid)",
)
RESOURCES: Final = (
    ("", "pods"),
    ("", "configmaps"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
)


@dataclass(frozen=True)
class RuleSet:
    """Policies with their bindings, the param of some, and the labels of namespaces that are rules."""

    documents: tuple[Document, ...]
    param: Document
    labels: dict[str, dict[str, str]]


def make_rules(chance: Random) -> RuleSet:
    """A policy of a random language under each of three names."""
    documents: list[Document] = []
    for name in NAMES:
        documents += chance.choices((_make_validating, _make_mutating, _make_kyverno), (5, 2, 2))[0](chance, name)
    return RuleSet(
        tuple(documents),
        _make_param(chance),
        {
            space: {Mode.ENFORCE.level_key: chance.choice(LEVELS), "tier": chance.choice(("prod", "test"))}
            for space in SPACES
        },
    )


def make_next(chance: Random, rules: RuleSet) -> RuleSet:
    """Other rules, of which each part is that of the first rules or another one."""
    other = make_rules(chance)
    kept = {name for name in NAMES if chance.random() < 0.4}
    documents = [each for each in rules.documents if _name_of(each) in kept]
    documents += [each for each in other.documents if _name_of(each) not in kept]
    labels = {space: chance.choice((rules, other, rules)).labels[space] for space in SPACES}
    return RuleSet(tuple(documents), other.param, labels)


def make_change(before: RuleSet, after: RuleSet) -> RuleChange:
    """The change that makes the second rules of the first ones."""
    names = {(each["kind"], _name_of(each)) for each in after.documents}
    reads_param = any("paramKind" in each["spec"] for each in after.documents)
    manifests = (*after.documents, *([after.param] if reads_param else []))
    gone = (f"{each['kind']}/{_name_of(each)}" for each in before.documents)
    return RuleChange(
        manifests=tuple(Manifest(f"{number}.yaml", each) for number, each in enumerate(manifests)),
        without=tuple(name for name in gone if tuple(name.split("/")) not in names),
        namespace_labels=after.labels,
    )


def make_cluster(rules: RuleSet, objects: Iterable[Document], source: str = "cluster") -> FakeCluster:
    """A cluster with rules and objects, or files with both."""
    namespaces = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": space,
                "uid": f"uid-{space}",
                "labels": {"kubernetes.io/metadata.name": space, **rules.labels[space]},
            },
        }
        for space in SPACES
    ]
    return FakeCluster([*namespaces, *rules.documents, rules.param, *objects], kinds=KINDS, page_size=5, source=source)


def _name_of(document: Document) -> str:
    return str(document["metadata"]["name"])


def _match(chance: Random) -> Document:
    resources = chance.sample(RESOURCES, chance.randint(1, 3))
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "operations": chance.choice((["CREATE", "UPDATE"], ["CREATE"], ["UPDATE"])),
            "resources": [plural],
        }
        for group, plural in resources
    ]
    match: Document = {"resourceRules": rules}
    if chance.random() < 0.3:
        match["namespaceSelector"] = {"matchLabels": {"tier": "prod"}}
    if chance.random() < 0.2:
        match["objectSelector"] = {"matchExpressions": [{"key": "team", "operator": "Exists"}]}
    return match


def _pick(chance: Random, match: Document) -> str:
    """An expression that fits the resources, or raises."""
    only_pods = all(rule["resources"] == ["pods"] for rule in match["resourceRules"])
    return chance.choice(OF_PODS if only_pods else OF_EVERYTHING)


def _make_param(chance: Random) -> Document:
    metadata = {"name": "settings", "namespace": "shop", "labels": {"name": chance.choice(("a-1", "b-2", "c-3"))}}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": {}}


def _make_validating(chance: Random, name: str) -> Iterator[Document]:
    match = _match(chance) if chance.random() < 0.6 else {"resourceRules": [_rule_of_pods()]}
    checks = [
        {"expression": _pick(chance, match), "message": f"{name} says no"} for _ in range(chance.choice((1, 1, 2)))
    ]
    spec: Document = {"failurePolicy": chance.choice(("Fail", "Ignore")), "matchConstraints": match}
    binding: Document = {"policyName": name, "validationActions": chance.choice((["Deny"], ["Warn"], ["Audit"]))}
    if chance.random() < 0.2:
        spec["matchConditions"] = [{"name": "some", "expression": "object.metadata.name != 'b-2'"}]
    if chance.random() < 0.2:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "PodTemplate"}
        checks[0]["expression"] = "object.metadata.name != params.metadata.labels.name"
        ref = {"name": "settings", "namespace": "shop"}
        binding["paramRef"] = {**ref, "parameterNotFoundAction": chance.choice(("Deny", "Allow"))}
    yield _document("ValidatingAdmissionPolicy", name, {**spec, "validations": checks})
    yield _document("ValidatingAdmissionPolicyBinding", name, binding)


def _make_mutating(chance: Random, name: str) -> Iterator[Document]:
    text = f'Object{{metadata: Object.metadata{{labels: {{"{chance.choice(("team", "tier"))}": "{chance.choice(("red", "blue"))}"}}}}}}'
    patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
    spec = {"matchConstraints": _match(chance), "reinvocationPolicy": "Never", "mutations": [patch]}
    yield _document("MutatingAdmissionPolicy", name, spec)
    yield _document("MutatingAdmissionPolicyBinding", name, {"policyName": name})


def _make_kyverno(chance: Random, name: str) -> Iterator[Document]:
    match = {"resourceRules": [_rule_of_pods()]}
    spec = {
        "matchConstraints": match,
        "validations": [{"expression": _pick(chance, match), "message": f"{name} says no"}],
        "validationActions": [chance.choice(("Deny", "Audit"))],
    }
    yield {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def _rule_of_pods() -> Document:
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}


def _document(kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": _GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}


# Objects, with the fields and the defaults that a server gives them.


def make_objects(chance: Random) -> list[Document]:
    """Workloads with their pods, pods of no controller and of others, and what plug-ins read."""
    objects = [*_make_surroundings(chance)]
    for number in range(chance.randint(4, 8)):
        name, space = f"{chance.choice(NAMES)}-{number}", chance.choice(SPACES)
        objects += chance.choice((_make_deployment, _make_stateful, _make_job, _make_alone, _make_map))(
            chance, name, space
        )
    return objects


def _make_surroundings(chance: Random) -> Iterator[Document]:
    for space in SPACES:
        if chance.random() < 0.9:
            yield store("ServiceAccount", "v1", "default", space, {})
    if chance.random() < 0.3:
        limit = {"type": "Container", "default": {"memory": "64Mi", "cpu": "1"}}
        yield store("LimitRange", "v1", "limits", "team", {"spec": {"limits": [limit]}})
    if chance.random() < 0.2:
        hook = {
            "name": "inject.example.com",
            "rules": [_rule_of_pods()],
            "clientConfig": {"url": "https://127.0.0.1:1"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        yield {
            "apiVersion": _GROUP,
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "sidecars"},
            "webhooks": [hook],
        }


def _make_metadata(chance: Random, owner: Document | None = None) -> Document:
    metadata: Document = {}
    if chance.random() < 0.6:
        metadata["labels"] = {"team": chance.choice(("red", "blue"))}
    if chance.random() < 0.2:
        metadata["finalizers"] = [chance.choice(("example.com/keep", "foregroundDeletion"))]
    if owner is not None:
        names = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **names, "controller": True}
        metadata["ownerReferences"] = [reference]
    return metadata


def _make_spec(chance: Random) -> Document:
    container: Document = {"name": "c", "image": "web:1"}
    if chance.random() < 0.5:
        container["resources"] = {"limits": {"cpu": chance.choice(("1", "1000m"))}}
    if chance.random() < 0.2:
        container["securityContext"] = {"privileged": True}
    network = {"hostNetwork": True} if chance.random() < 0.2 else {}
    return {"containers": [container], **network}


def _make_template(chance: Random, name: str) -> Document:
    labels = {"app": name, **({"team": "red"} if chance.random() < 0.5 else {})}
    return {"metadata": {"labels": labels}, "spec": _make_spec(chance)}


def _make_pods(chance: Random, owner: Document | None, name: str, space: str) -> Iterator[Document]:
    for number in range(chance.randint(0, 2) if owner else 1):
        pod = store("Pod", "v1", f"{name}-{number}", space, {"spec": _make_spec(chance)}, _make_metadata(chance, owner))
        yield pod | {"status": {"phase": chance.choice(("Running", "Pending"))}}


def _make_deployment(chance: Random, name: str, space: str) -> Iterator[Document]:
    template = _make_template(chance, name)
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    deployment = store("Deployment", "apps/v1", name, space, {"spec": spec}, _make_metadata(chance))
    replicas = store("ReplicaSet", "apps/v1", f"{name}-7d4", space, {"spec": spec}, _make_metadata(chance, deployment))
    yield from (deployment, replicas)
    yield from _make_pods(chance, replicas, f"{name}-7d4", space)


def _make_stateful(chance: Random, name: str, space: str) -> Iterator[Document]:
    spec = {
        "serviceName": name,
        "selector": {"matchLabels": {"app": name}},
        "template": _make_template(chance, name),
    }
    owner = store("StatefulSet", "apps/v1", name, space, {"spec": spec}, _make_metadata(chance))
    yield owner
    yield from _make_pods(chance, owner, name, space)


def _make_job(chance: Random, name: str, space: str) -> Iterator[Document]:
    template = _make_template(chance, name)
    spec = {"template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}}
    if chance.random() < 0.5:
        body = {"spec": {"schedule": "@daily", "jobTemplate": {"spec": spec}}}
        yield store("CronJob", "batch/v1", name, space, body, _make_metadata(chance))
        return
    owner = store("Job", "batch/v1", name, space, {"spec": spec}, _make_metadata(chance))
    yield owner
    yield from _make_pods(chance, owner, name, space)


def _make_alone(chance: Random, name: str, space: str) -> Iterator[Document]:
    """A pod without a controller, of an operator's resource, or static."""
    uid = {"name": name, "uid": f"uid-of-owner-{name}"}
    operator = {"apiVersion": "example.com/v1", "kind": "Database", "metadata": uid}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": uid}
    owner = chance.choice((None, None, operator, node))
    yield from _make_pods(chance, owner, name, space)


def _make_map(chance: Random, name: str, space: str) -> Iterator[Document]:
    yield store("ConfigMap", "v1", name, space, {"data": {"a": "b"}}, _make_metadata(chance))


def store(kind: str, version: str, name: str, space: str, body: Document, metadata: Document | None = None) -> Document:
    """The object as a server stores it."""
    names = {**(metadata or {}), "name": name, "namespace": space}
    resource = resource_of(_BY_NAME[kind], {"apiVersion": version, "kind": kind, "metadata": names, **body})
    requested = make_request(resource, None, SCHEMAS.schema(resource.kind))
    stored: Any = requested.after_mutation(requested.resource.body).body
    server_set = {
        "uid": f"uid-{kind}-{space}-{name}",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {**stored, "metadata": {**stored["metadata"], **server_set}}


def list_pages(cluster: FakeCluster, kinds: Iterable[Kind]) -> Iterator[Page]:
    """The pages of some kinds."""
    for kind in kinds:
        yield from cluster.pages(kind)
