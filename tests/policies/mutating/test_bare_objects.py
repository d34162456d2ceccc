"""Objects from files lack what a server fills in: none of that is a change of the policy that touches something else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scanner.api import Auditor
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.json import JsonObject
from scanner.model.outcome import Outcome, Skipped, WouldChange
from tests.policies.mutating.test_mutating import BINDING, applied, patched, policy

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "cluster"
UNREADABLE = "broken-tabs.yaml"
RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"]}
ADDED = 'Object{metadata: Object.metadata{labels: {"added": "1"}}}'
PATCHED = """has(object.metadata.labels)
    ? [JSONPatch{op: "add", path: "/metadata/labels/added", value: "1"}]
    : [JSONPatch{op: "add", path: "/metadata/labels", value: {"added": "1"}}]"""
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "x", "resources": {}}]},
}
SELECTED: dict[str, Any] = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
BARE: list[tuple[str, str, dict[str, Any]]] = [
    ("v1", "Pod", {"spec": {**TEMPLATE["spec"], "serviceAccount": "x", "hostNetwork": True, "nodeSelector": {}}}),
    ("apps/v1", "Deployment", {"spec": {**SELECTED, "strategy": {}}, "status": {}}),
    ("apps/v1", "DaemonSet", {"spec": {**SELECTED, "updateStrategy": {"rollingUpdate": {}}}}),
    ("apps/v1", "StatefulSet", {"spec": {**SELECTED, "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {}}]}}),
    ("batch/v1", "CronJob", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}}),
    ("v1", "Service", {"spec": {"ports": [{"port": 80}]}}),
    ("v1", "Service", {"spec": {"clusterIP": "None", "selector": {"a": "b"}}}),
    ("v1", "Service", {"spec": {"type": "ExternalName", "externalName": "a.b"}}),
    ("v1", "Service", {"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}}),
    ("v1", "Secret", {"stringData": {"a": "b"}}),
    ("v1", "ConfigMap", {"data": {}}),
    ("v1", "PersistentVolumeClaim", {"spec": {"resources": {"requests": {"storage": "0.5Gi"}}}}),
    ("v1", "Node", {"spec": {"podCIDR": "10.0.0.0/24"}}),
    ("v1", "Namespace", {}),
    ("autoscaling/v2", "HorizontalPodAutoscaler", {"spec": {"maxReplicas": 3, "behavior": {"scaleUp": {}}}}),
    ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {"ingress": [{"ports": [{"port": 80}]}]}}),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", {"subjects": [{"kind": "User", "name": "u"}]}),
]  # fmt: skip


def objects() -> Iterator[Any]:
    """All objects of built-in kinds in the examples, and the bare ones."""
    served = {(kind.api_version, kind.kind) for kind in builtin_kinds()}
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()) if path.name != UNREADABLE else ():
            listed = document.get("items", [document]) if isinstance(document, dict) else []
            yield from (item for item in listed if (item.get("apiVersion"), item.get("kind")) in served)
    for version, kind, body in BARE:
        yield {"apiVersion": version, "kind": kind, "metadata": {"name": "bare"}, **body}


def outcomes(mutation: dict[str, Any], operation: Any) -> Iterator[tuple[Any, Outcome]]:
    """What becomes of each object by one mutation."""
    auditor = Auditor(
        policies=[policy(mutation, matchConstraints={"resourceRules": [RULE]}, reinvocationPolicy="IfNeeded")],
        bindings=[BINDING],
        kinds=builtin_kinds(),
        schemas=KnownSchemas(builtin_schemas()),
    )
    for document in objects():
        for invocation_result in auditor.evaluate(document, operation=operation):
            yield document, invocation_result.check_results[0].outcome


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
@pytest.mark.parametrize("mutation", [applied(ADDED), patched(PATCHED)], ids=["configuration", "patch"])
def test_a_mutation_that_adds_a_label_is_one_change(mutation: dict[str, Any], operation: str) -> None:
    """Of every object of the examples, and of bare objects of many kinds."""
    changes = [(document, outcome) for document, outcome in outcomes(mutation, operation)]
    others = [
        (document["kind"], document["metadata"]["name"], outcome)
        for document, outcome in changes
        if not (
            isinstance(outcome, WouldChange) and _paths(outcome) in (["/metadata/labels"], ["/metadata/labels/added"])
        )
    ]

    assert len(BARE) + 100 < len(changes)
    assert [] == others


def _paths(outcome: WouldChange) -> list[str]:
    return [change.path for change in outcome.patch]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_mutation_inside_a_list_is_one_change(operation: str) -> None:
    """The other members of the element, and the elements beside it, have no defaults in the difference either."""
    image = applied(
        """has(object.spec) && has(object.spec.template) ? Object{spec: Object.spec{template: Object.spec.template{
        spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{
        name: object.spec.template.spec.containers[0].name, image: "added"}]}}}} : Object{}"""
    )
    changes = [outcome for _, outcome in outcomes(image, operation) if isinstance(outcome, WouldChange | Skipped)]

    assert [["/spec/template/spec/containers/0/image"]] * len(changes) == [
        _paths(outcome) if isinstance(outcome, WouldChange) else [] for outcome in changes
    ]
    assert 10 < len(changes)


LIMITED: JsonObject = {"containers": [{"name": "c", "image": "x:1", "resources": {"limits": {"cpu": "1"}}}]}


@pytest.mark.parametrize(
    ("path", "value"), [("/spec/containers/0/image", "y"), ("/spec/containers/0/resources/limits/cpu", "2")]
)
def test_a_default_that_depends_on_another_member_was_set_before_the_mutation(path: str, value: str) -> None:
    """The pull policy came from the tag that the image had, the request from the limit that there was."""
    mutation = patched(f'[JSONPatch{{op: "replace", path: "{path}", value: "{value}"}}]')
    auditor = Auditor(
        policies=[policy(mutation, matchConstraints={"resourceRules": [RULE]})],
        bindings=[BINDING],
        kinds=builtin_kinds(),
        schemas=KnownSchemas(builtin_schemas()),
    )
    (invocation_result,) = auditor.evaluate(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": LIMITED}
    )
    outcome = invocation_result.check_results[0].outcome

    assert isinstance(outcome, WouldChange)
    assert [path] == _paths(outcome)
