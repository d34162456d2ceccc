"""Objects that are served in several versions are listed and evaluated in the version that the policy names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.integration import generated
from tests.integration.apiserver import ApiServer, running
from tests.integration.made import LABEL, binding, namespace, policy
from tests.integration.manifests import Violation, apply, dry_run_create, violations, wait_until_enforced

HERE = "versions"
CPU: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
}
TARGET: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
POD: Json = {"kind": "Pod", "name": "shop", "namespace": HERE}


@dataclass(frozen=True, slots=True)
class Case:
    """An object in the version of its manifest, a policy that matches another version, its message, and the version of the list.

    A custom resource is listed in the version of the request, which is the preferred one.
    """

    name: str
    written: JsonObject
    wanted: str
    resource: str
    asks: str
    says: str
    listed: str


def _document(api_version: str, kind: str, name: str, **rest: Json) -> JsonObject:
    metadata: Json = {"name": name, "namespace": HERE, "labels": {LABEL: name}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _scaler(name: str, api_version: str, **spec: Json) -> JsonObject:
    full: Json = {"maxReplicas": 3, "scaleTargetRef": TARGET, **spec}
    return _document(api_version, "HorizontalPodAutoscaler", name, spec=full)


CASES = (
    Case(
        "scaler-down",
        _scaler("scaler-down", "autoscaling/v2", metrics=[CPU]),
        "autoscaling/v1",
        "horizontalpodautoscalers",
        "string(object.spec.targetCPUUtilizationPercentage)",
        "autoscaling/v1 70",
        "autoscaling/v1",
    ),
    Case(
        "scaler-up",
        _scaler("scaler-up", "autoscaling/v1", targetCPUUtilizationPercentage=70),
        "autoscaling/v2",
        "horizontalpodautoscalers",
        "string(object.spec.metrics[0].resource.target.averageUtilization)",
        "autoscaling/v2 70",
        "autoscaling/v2",
    ),
    Case(
        "event-new",
        _document("v1", "Event", "event-new", involvedObject=POD, message="old words", reason="R", type="Normal"),
        "events.k8s.io/v1",
        "events",
        "object.note",
        "events.k8s.io/v1 old words",
        "events.k8s.io/v1",
    ),
    Case(
        "event-old",
        _document(
            "events.k8s.io/v1",
            "Event",
            "event-old",
            regarding=POD,
            note="new words",
            reason="R",
            type="Normal",
            action="A",
            eventTime="2026-03-01T12:00:00.000000Z",
            reportingController="example.com/c",
            reportingInstance="c-1",
        ),
        "v1",
        "events",
        "object.message",
        "v1 new words",
        "v1",
    ),
    Case(
        "gizmo-up",
        _document(f"{generated.GROUP}/v1", "Gizmo", "gizmo-up", spec={"size": 1}),
        f"{generated.GROUP}/v2",
        "gizmos",
        "string(object.spec.size)",
        f"{generated.GROUP}/v2 1",
        f"{generated.GROUP}/v2",
    ),
    Case(
        "gizmo-down",
        _document(f"{generated.GROUP}/v2", "Gizmo", "gizmo-down", spec={"size": 2}),
        f"{generated.GROUP}/v1",
        "gizmos",
        "string(object.spec.size)",
        f"{generated.GROUP}/v1 2",
        f"{generated.GROUP}/v2",
    ),
)


def about(case: Case) -> list[JsonObject]:
    """The policy of a case, and its binding."""
    group, _, version = case.wanted.rpartition("/")
    rule: Json = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE"],
        "resources": [case.resource],
    }
    constraints: Json = {"resourceRules": [rule], "objectSelector": {"matchLabels": {LABEL: case.name}}}
    validation: Json = {"expression": "false", "messageExpression": f"object.apiVersion + ' ' + {case.asks}"}
    return [policy(case.name, matchConstraints=constraints, validations=[validation]), binding(case.name)]


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with every case at once."""
    with running(assets, tmp_path_factory.mktemp("versions")) as server:
        documents = [document for case in CASES for document in (case.written, *about(case))]
        apply(server, [namespace(HERE), generated.definition(), *documents])
        wait_until_enforced(server)
        yield server


def test_every_object_is_evaluated_in_the_version_that_the_policy_names(server: ApiServer, assay: Assay) -> None:
    """Autoscalers, events of both groups and a custom kind: the scan has the server's messages, in that version."""
    warned = {case.name: violations(dry_run_create(server, case.written)) for case in CASES}
    ran = assay("scan", "--kubeconfig", server.kubeconfig, "-n", HERE, "-o", "json", "-q")
    findings = [as_object(finding) for finding in as_list(ran.report["findings"])]

    assert {case.name: [Violation(case.name, case.name, case.says)] for case in CASES} == warned
    assert {case.name: (case.listed, case.says) for case in CASES} == {
        as_text(finding["policy"]): (as_text(dig(finding, "object", "apiVersion")), as_text(finding["message"]))
        for finding in findings
    }
    assert (0, len(CASES)) == (ran.code, len(findings))


def test_verify_parity_asks_in_the_version_of_the_request(server: ApiServer, assay: Assay) -> None:
    """Every one of these verdicts is replayed, and the server agrees."""
    ran = assay(
        "verify-parity", "--kubeconfig", server.kubeconfig, "-n", HERE, "-o", "json", "-q", "--operation", "create"
    )

    assert (0, []) == (ran.code, ran.report["differences"])
    assert len(CASES) == ran.report["agreed"]
