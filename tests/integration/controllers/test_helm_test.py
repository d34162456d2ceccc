"""`helm test` runs the pod of the chart's test, which fails when a right is missing (`make nightly`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_object, dig
from tests.deploy.objects import of_kind
from tests.deploy.programs import CHART, NAMESPACE, against_a_server, rendered
from tests.integration.controllers.cluster import Cluster
from tests.integration.controllers.installation import CUSTOM_KINDS, Installed
from tests.integration.faults import wait_until
from tests.integration.test_deploy import may

pytestmark = pytest.mark.skipif(
    not os.environ.get("LONG_JOBS"), reason="helm waits for each pod of a test: `make nightly` sets LONG_JOBS"
)
RELEASE = "assay-tested"
POD = f"{RELEASE}-rbac-check"
IDENTITY = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"


class Case(NamedTuple):
    """Values that take a right away, and the resource that the test then misses."""

    rbac: Callable[[], JsonObject]
    group: str
    resource: str


def without(resource: str) -> JsonObject:
    """The values of the default rules without a resource."""
    rules = [as_object(rule) for rule in as_list(of_kind(rendered(), "ClusterRole")["rules"])]
    left: list[Json] = [
        {**rule, "resources": [name for name in as_list(rule["resources"]) if name != resource]}
        if "resources" in rule
        else rule
        for rule in rules
    ]
    return {**CUSTOM_KINDS, "rules": left}


CASES = {
    "custom": Case(lambda: {"extraRules": []}, "ops.example.com", "backups"),
    "built-in": Case(lambda: without("pods"), "", "pods"),
}


@pytest.fixture(scope="module")
def release(installed: Installed) -> Iterator[Cluster]:
    """A cluster in which helm has installed the chart, with the rights for the custom resources of the example cluster."""
    helm(installed.cluster, "install", str(CHART), rbac=CUSTOM_KINDS)
    yield installed.cluster
    helm(installed.cluster, "uninstall")


def helm(cluster: Cluster, command: str, *arguments: str, rbac: JsonObject | None = None) -> tuple[int, str]:
    """The exit code of a command of helm about the release, and what it prints."""
    values: JsonObject | None = {"suspend": True, "rbac": rbac} if rbac else None
    flags = ("--namespace", NAMESPACE, "--kubeconfig", str(cluster.server.kubeconfig))
    ran = against_a_server(command, RELEASE, *arguments, *flags, values=values)
    return ran.returncode, ran.stdout + ran.stderr


def check(cluster: Cluster) -> tuple[int, str]:
    """The exit code of `helm test`, and what it prints."""
    return helm(cluster, "test", "--logs", "--timeout=50s")


def ended(cluster: Cluster) -> Json:
    """The end of the container of the newest test."""
    pod = cluster.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}")
    [status] = as_list(dig(pod, "status", "containerStatuses"))
    return dig(status, "state", "terminated")


def test_helm_test_passes_with_the_rights_of_the_chart(release: Cluster) -> None:
    """The pod ends with exit code 0, and helm prints its log."""
    code, printed = check(release)
    assert (0, 0) == (code, dig(ended(release), "exitCode")), printed
    assert "All required permissions are granted" in printed


@pytest.mark.parametrize("name", CASES)
def test_helm_test_fails_when_a_right_is_taken_away(release: Cluster, name: str) -> None:
    """The pod ends with exit code 3, and its log, which helm prints, names what is missing; with the right, the next test passes."""
    case = CASES[name]
    helm(release, "upgrade", str(CHART), rbac=case.rbac())
    wait_until(lambda: not may(release.server, IDENTITY, case.group, case.resource, "list"))
    code, printed = check(release)
    assert (1, 3) == (code, dig(ended(release), "exitCode")), printed
    assert case.resource in printed

    helm(release, "upgrade", str(CHART), rbac=CUSTOM_KINDS)
    wait_until(lambda: may(release.server, IDENTITY, case.group, case.resource, "list"))
    assert 0 == check(release)[0]
