"""Objects from files lack the values that a server sets: these values are no change of a policy for another field."""

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
    """Pairs of each object and the outcome of one mutation for it."""
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
    """The change of every example and of bare objects of many kinds is the label alone."""
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
    """The difference has no defaults of the element's other members or of other elements."""
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
    """The pull policy follows the tag, and the request follows the limit, that the object had before."""
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
