"""Changes of rules whose previews are compared with a real server: each has a story, and a namespace of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from random import Random
from typing import Any, Final

from scanner.model.json import Json, JsonObject
from tests.integration.made import ADMISSION

_ENFORCE: Final = "pod-security.kubernetes.io/enforce"


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A change of rules in a namespace of its own: the rules before, the flags of the preview with their files, and the change, applied."""

    title: str
    namespace: str
    before: Sequence[JsonObject]
    flags: Sequence[str]
    after: Sequence[JsonObject]
    removed: Sequence[JsonObject] = ()
    files: dict[str, Sequence[JsonObject]] = field(default_factory=dict)


def namespace(name: str, **labels: str) -> JsonObject:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def policy(
    name: str, within: str, expression: str, resources: str = "pods", group: str = "", **spec: Json
) -> JsonObject:
    """A policy about one resource of one namespace."""
    rule: JsonObject = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [resources],
    }
    selector: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": within}}
    constraints: JsonObject = {"resourceRules": [rule], "namespaceSelector": selector}
    checks: list[Json] = [{"expression": expression, "message": f"{name} denies it"}]
    body = {"matchConstraints": constraints, "validations": checks, **spec}
    return {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": body}


def binding(name: str, action: str, **spec: Json) -> JsonObject:
    """The binding of the policy of the same name."""
    body = {"policyName": name, "validationActions": [action], **spec}
    kind = "ValidatingAdmissionPolicyBinding"
    return {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": body}


def mutation(name: str, within: str, expression: str) -> list[JsonObject]:
    """A mutating policy about the pods of one namespace, and its binding."""
    rules: list[Json] = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    selector: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": within}}
    spec: JsonObject = {
        "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    }
    kind = "MutatingAdmissionPolicy"
    return [
        {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec},
        {"apiVersion": ADMISSION, "kind": f"{kind}Binding", "metadata": {"name": name}, "spec": {"policyName": name}},
    ]


def config_map(within: str, highest: str) -> JsonObject:
    """The param of a policy about sizes."""
    metadata = {"name": "sizes", "namespace": within}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"max": highest}}


def _flip(name: str, expression: str, resources: str = "pods", group: str = "") -> RuleChange:
    rule = policy(name, name, expression, resources, group)
    flags = ("--action", f"{name}=Deny")
    return RuleChange(
        f"Audit to Deny: {expression}", name, [rule, binding(name, "Audit")], flags, [binding(name, "Deny")]
    )


def _flip_limits(name: str, _: Random) -> RuleChange:
    """The outage: a rule that was only audited denies, and pods that run die one by one."""
    return _flip(name, "object.spec.containers.all(c, has(c.resources.limits))")


def _raise_level(name: str, chance: Random) -> RuleChange:
    """A level of Pod Security is raised."""
    level = chance.choice(("baseline", "restricted"))
    after = [namespace(name, **{_ENFORCE: level})]
    return RuleChange(f"Pod Security {level}", name, [], ("--namespace-label", f"{name}={_ENFORCE}={level}"), after)


def _tighten_param(name: str, chance: Random) -> RuleChange:
    """A param is tightened."""
    kind: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
    rule = policy(name, name, "int(object.metadata.labels.size) <= int(params.data.max)", paramKind=kind)
    ref: JsonObject = {"name": "sizes", "namespace": name, "parameterNotFoundAction": "Deny"}
    after, file = config_map(name, str(chance.randint(2, 7))), f"{name}.json"
    before = [config_map(name, "9"), rule, binding(name, "Deny", paramRef=ref)]
    return RuleChange("a param tightened", name, before, ("--param", file), [after], files={file: [after]})


def _fail_on_errors(name: str, _: Random) -> RuleChange:
    """The failurePolicy of an expression that errs changes from Ignore to Fail."""
    expression = "object.spec.containers[0].resources.limits.cpu != '7'"
    before, after = (policy(name, name, expression, failurePolicy=each) for each in ("Ignore", "Fail"))
    file = f"{name}.json"
    return RuleChange(
        "Ignore to Fail, with an error",
        name,
        [before, binding(name, "Deny")],
        ("-f", file),
        [after],
        files={file: [after]},
    )


def _bring_into_scope(name: str, _: Random) -> RuleChange:
    """A label of the namespace brings a team into the scope of a rule."""
    rule = policy(name, name, "!has(object.spec.hostNetwork) || !object.spec.hostNetwork")
    spec: Any = rule["spec"]
    spec["matchConstraints"]["namespaceSelector"]["matchLabels"]["tier"] = "prod"
    flags = ("--namespace-label", f"{name}=tier=prod")
    return RuleChange(
        "a namespace comes into scope", name, [rule, binding(name, "Deny")], flags, [namespace(name, tier="prod")]
    )


def _deny_requester(name: str, chance: Random) -> RuleChange:
    """A rule about the requester denies the pods of one controller."""
    account = chance.choice(("replicaset", "statefulset", "daemon-set", "job"))
    user = f"system:serviceaccount:kube-system:{account}-controller"
    return _flip(name, f"request.operation != 'CREATE' || request.userInfo.username != '{user}'")


def _demand_labels_of_controllers(name: str, chance: Random) -> RuleChange:
    """A rule demands a label that some controllers set on their pods."""
    label = chance.choice(
        (
            "pod-template-hash",
            "controller-revision-hash",
            "statefulset.kubernetes.io/pod-name",
            "batch.kubernetes.io/job-name",
        )
    )
    return _flip(name, f"'{label}' in object.metadata.labels")


def _demand_what_controllers_set(name: str, chance: Random) -> RuleChange:
    """A rule about fields that some controllers set on their pods."""
    expression = chance.choice(
        (
            "has(object.spec.hostname)",
            "has(object.metadata.finalizers)",
            "has(object.spec.affinity)",
            "has(object.spec.tolerations) && object.spec.tolerations.exists(t, has(t.key) && t.key.contains('pressure'))",
            "object.metadata.ownerReferences[0].kind in ['ReplicaSet', 'Job']",
        )
    )
    return _flip(name, expression)


def _bind(name: str, _: Random) -> RuleChange:
    """A policy without a binding is put into force."""
    rule = policy(name, name, "int(object.metadata.labels.size) % 2 == 0")
    return RuleChange("a policy is bound", name, [rule], ("--bind", name), [binding(name, "Deny")])


def _remove_mutation(name: str, _: Random) -> RuleChange:
    """The policy that set what another policy demands is removed."""
    adds = mutation(f"{name}-add", name, 'Object{metadata: Object.metadata{labels: {"team": "red"}}}')
    rule = policy(name, name, "request.operation != 'CREATE' || 'team' in object.metadata.labels")
    before = [*adds, rule, binding(name, "Deny")]
    return RuleChange("a mutation removed", name, before, ("--without", f"{name}-add"), [], adds[::-1])


def _demand_of_workloads(name: str, chance: Random) -> RuleChange:
    """A rule about the workloads themselves: they can not be edited."""
    resources, group = chance.choice(
        (("deployments", "apps"), ("statefulsets", "apps"), ("daemonsets", "apps"), ("jobs", "batch"))
    )
    return _flip(name, "int(object.spec.template.metadata.labels.size) > 4", resources, group)


def _demand_of_replica_sets(name: str, _: Random) -> RuleChange:
    """A rule about ReplicaSets: some can not be scaled, nor made for the next template of their Deployment."""
    return _flip(name, "int(object.spec.template.metadata.labels.size) > 4", "replicasets", "apps")


def _freeze_pods(name: str, chance: Random) -> RuleChange:
    """No pod can be updated any more, so finalizers stay."""
    size = chance.randint(2, 6)
    return _flip(name, f"request.operation == 'CREATE' || int(object.metadata.labels.size) > {size}")


STORIES: Final[Sequence[Callable[[str, Random], RuleChange]]] = (
    _flip_limits,
    _raise_level,
    _tighten_param,
    _fail_on_errors,
    _bring_into_scope,
    _deny_requester,
    _demand_labels_of_controllers,
    _demand_what_controllers_set,
    _bind,
    _remove_mutation,
    _demand_of_workloads,
    _demand_of_replica_sets,
    _freeze_pods,
)
"""Each makes a change in a namespace of some name."""


def list_changes(number: int, chance: Random) -> list[RuleChange]:
    """So many changes, each in a namespace of its own."""
    return [make(f"change-{count}", chance) for count, make in enumerate(islice(cycle(STORIES), number))]
