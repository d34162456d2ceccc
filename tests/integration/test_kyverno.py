"""A cluster with Kyverno's definitions: a scan evaluates its policies, and the server stores the reports.

Kyverno itself does not run. The definitions have the fields of the real ones, so that a field which they do not know is refused
with `fieldValidation=Strict`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from scanner.model.json import dig
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration.apiserver import ApiServer, running
from tests.integration.client import Answer
from tests.integration.definitions import DEFINITIONS, definition
from tests.integration.manifests import apply
from tests.policies.kyverno.made import deployment, exception, pod, policy
from tests.report.records import large_record

TEAM: Any = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
SETTINGS: Any = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "team"},
    "data": {"mode": "strict"},
}


def _objects() -> list[Any]:
    account: Any = {"automountServiceAccountToken": False}
    made = deployment("api", labels={"app": "api"}, **account)
    made["spec"]["selector"] = {"matchLabels": {"app": "api"}}
    return [pod("web", **account), pod("bare", labels={"owner": "a"}, **account), made]


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of our own, with the definitions, two policies, an exception and some objects."""
    with running(assets, tmp_path_factory.mktemp("kyverno")) as server:
        apply(server, [TEAM, *(definition(*fields) for fields in DEFINITIONS)])
        owned = policy("has(object.metadata.labels) && 'owner' in object.metadata.labels", name="owned")
        read = policy("resource.Get('v1', 'configmaps', 'team', 'settings').data.mode == 'lax'", name="reads")
        by_name = [{"name": "n", "expression": "object.metadata.name == 'web'"}]
        excepted = exception(matchConditions=by_name, policyRefs=[{"name": "owned", "kind": "ValidatingPolicy"}])
        apply(server, [SETTINGS, *_objects(), owned, read, excepted])
        yield server


def _scan(server: ApiServer, assay: Assay, output: str) -> Ran:
    return assay("scan", "--kubeconfig", server.kubeconfig, "--db", "assay.db", "-o", output)


def test_kyvernos_policies_are_evaluated_on_a_live_cluster(server: ApiServer, assay: Assay) -> None:
    """Pods, what makes them, what is excepted, and what an expression reads of the cluster."""
    ran = _scan(server, assay, "json")
    report: Any = ran.report
    exceptions = {
        (finding["policy"], finding["binding"], finding["object"]["name"]): finding["exceptedBy"]
        for finding in report["findings"]
    }
    assert {
        ("owned", "as-written", "web"): ["team/let-be"],
        ("owned", "autogen-defaults", "api"): [],
        ("reads", "as-written", "web"): [],
        ("reads", "as-written", "bare"): [],
        ("reads", "autogen-defaults", "api"): [],
    } == exceptions
    assert (0, "complete") == (ran.code, report["provenance"]["state"])


@pytest.mark.parametrize("output", ["policyreport", "openreports"])
def test_reports_can_be_stored(server: ApiServer, assay: Assay, output: str) -> None:
    """The API server takes every report, and knows every field."""
    reports = json.loads(_scan(server, assay, output).stdout)["items"]
    plurals = {kind: plural for _, _, kind, plural, _, _ in DEFINITIONS}
    for report in reports:
        namespace = report["metadata"].get("namespace")
        place = f"namespaces/{namespace}/" if namespace else ""
        path = f"/apis/{report['apiVersion']}/{place}{plurals[report['kind']]}"
        answer = server.request("POST", path, report, {"fieldValidation": "Strict"})
        assert (201, []) == (answer.status, answer.warnings())
    assert reports


@pytest.mark.parametrize("output", ["policyreport", "openreports"])
def test_split_reports_can_be_applied_again_and_again(server: ApiServer, output: str) -> None:
    """`kubectl apply --server-side` sends these requests: a report at its largest is stored, and the next one replaces it."""
    out = BytesIO()
    FORMATS[output].render(document_of(large_record(3_000, policies=1, namespaces=1)), out)
    reports = json.loads(out.getvalue())["items"]
    apply(server, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-0000"}}])

    first, second = ([_applied(server, report) for report in reports] for _ in range(2))

    assert [201] * len(reports) == [answer.status for answer in first]
    assert [200] * len(reports) == [answer.status for answer in second]
    assert [report["results"] for report in reports] == [dig(answer.body, "results") for answer in second]
    assert 2 < len(reports)


def _applied(server: ApiServer, report: Any) -> Answer:
    """The response to a server-side apply."""
    plurals = {kind: plural for _, _, kind, plural, _, _ in DEFINITIONS}
    namespace = report["metadata"].get("namespace")
    place = f"namespaces/{namespace}/" if namespace else ""
    path = f"/apis/{report['apiVersion']}/{place}{plurals[report['kind']]}/{report['metadata']['name']}"
    params = {"fieldManager": "kubectl", "fieldValidation": "Strict"}
    return server.client.request("PATCH", path, report, params, content_type="application/apply-patch+yaml")
