"""A scan of a live cluster keeps the workload of every object, and the objects of which each check was evaluated.

One server has Pods below four chains of controllers, ConfigMaps in two namespaces, and policies of three languages.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scanner.model.json import Json, JsonObject, as_list, dig
from scanner.model.scans.tally import OutcomeName
from scanner.store import open_reader
from tests.command import Ran, assay_here
from tests.integration import made
from tests.integration.apiserver import ApiServer, running
from tests.integration.controlled import Filled
from tests.integration.definitions import DEFINITIONS, definition
from tests.integration.faults import wait_until
from tests.integration.manifests import apply
from tests.policies.kyverno.made import exception
from tests.policies.kyverno.made import policy as kyverno_policy
from tests.reconciled import counted, recomputed

TABLES = ("objects", "population", "workloads", "kept", "object_sets", "set_lists", "findings")
RULE: JsonObject = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["pods", "configmaps"],
}
MATCHED: JsonObject = {"resourceRules": [RULE]}
Scanned = tuple[Ran, Path]


def named(expression: str) -> Json:
    """Match conditions with one expression."""
    return [{"name": "named", "expression": expression}]


def policies() -> Iterator[JsonObject]:
    """Policies with conditions, params, audit annotations, selectors of namespaces, errors, mutations and an exception."""
    data: Json = [{"key": "mode", "valueExpression": "string(object.data.mode)"}]
    yield made.policy("pods", "pods", matchConstraints={"resourceRules": [{**RULE, "resources": ["pods"]}]})
    yield made.policy(
        "conditions",
        matchConstraints=MATCHED,
        matchConditions=named("object.kind == 'ConfigMap' && object.metadata.name != 'skipped'"),
        validations=[{"expression": "object.data.mode == 'strict'"}, {"expression": "'mode' in object.data"}],
        auditAnnotations=data,
        failurePolicy="Ignore",
    )
    yield made.policy(
        "params",
        matchConstraints=MATCHED,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        expression="object.metadata.name.startsWith(params.data.prefix)",
    )
    yield made.policy(
        "selected", matchConstraints=MATCHED, expression="namespaceObject.metadata.labels['env'] == 'test'"
    )
    params: JsonObject = {
        "namespace": "settings",
        "selector": {"matchLabels": {"use": "params"}},
        "parameterNotFoundAction": "Deny",
    }
    yield made.binding("pods", validationActions=["Audit"])
    yield made.binding("conditions", validationActions=["Audit"])
    yield made.binding("params", validationActions=["Audit"], paramRef=params)
    yield made.binding(
        "selected",
        validationActions=["Audit"],
        matchResources={"namespaceSelector": {"matchLabels": {"env": "prod"}}},
    )
    yield from mutating()
    expression = "has(object.metadata.labels) && 'owner' in object.metadata.labels"
    controllers = {"podControllers": {"controllers": ["deployments", "cronjobs"]}}
    yield kyverno_policy(expression, name="owned", autogen=controllers)
    references = [{"name": "owned", "kind": "ValidatingPolicy"}]
    conditions = named("object.metadata.name == 'orders-0'")
    yield exception(namespace="settings", policyRefs=references, matchConditions=conditions)


def mutating() -> Iterator[JsonObject]:
    """A policy that adds a label to every ConfigMap but one."""
    expression = "Object{metadata: Object.metadata{labels: {'managed': 'yes'}}}"
    body: JsonObject = {
        "matchConstraints": {"resourceRules": [{**RULE, "resources": ["configmaps"]}]},
        "matchConditions": named("object.metadata.name != 'skipped'"),
        "reinvocationPolicy": "Never",
        "failurePolicy": "Ignore",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    }
    for kind, spec in (("Policy", body), ("PolicyBinding", {"policyName": "managed"})):
        metadata: JsonObject = {"name": "managed"}
        yield {"apiVersion": made.ADMISSION, "kind": f"MutatingAdmission{kind}", "metadata": metadata, "spec": spec}


def objects() -> Iterator[JsonObject]:
    """Two namespaces, and ConfigMaps: params, those that pass, fail, are skipped and cannot be evaluated."""
    for space, env in (("settings", "test"), ("production", "prod")):
        yield {**made.namespace(space), "metadata": {"name": space, "labels": {"env": env}}}
    for name in ("a", "b"):
        yield config_map(name, "settings", {"use": "params"}, prefix=name)
    for name in ("also-good", "skipped"):
        yield config_map(name, "production", {"managed": "yes"}, mode="strict")
    yield config_map("bad", "production", {}, mode="lax")
    yield config_map("broken", "production", {})


def config_map(name: str, space: str, labels: JsonObject, **data: Json) -> JsonObject:
    """A ConfigMap."""
    metadata: JsonObject = {"name": name, "namespace": space, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of this module alone: other objects would be in the record."""
    with running(assets, tmp_path_factory.mktemp("population")) as server:
        Filled(server)
        apply(server, [*(definition(*fields) for fields in DEFINITIONS[:2]), *objects()])
        apply(server, policies())
        yield server


@pytest.fixture(scope="module")
def scanned(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Scanned:
    """The first scan, by the administrator, and its database."""
    home = tmp_path_factory.mktemp("admin")
    return scan(server, "admin", home), home / "assay.db"


@pytest.fixture(scope="module")
def limited(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Scanned:
    """A scan by a user with every right that it needs but the one to list ReplicaSets."""
    groups: dict[str, tuple[str, ...]] = {
        "": ("*",),
        "apps": ("deployments", "statefulsets", "daemonsets"),
        "batch": ("*",),
        "db.example.com": ("*",),
        "admissionregistration.k8s.io": ("*",),
        "policies.kyverno.io": ("*",),
    }
    for number, (group, resources) in enumerate(groups.items()):
        apply(server, made.may("auditor", f"reads-{number}", *resources, group=group))
    token = server.tokens["auditor"]
    path = "/apis/policies.kyverno.io/v1/policyexceptions"
    wait_until(lambda: server.request("GET", path, token=token).status == 200)
    home = tmp_path_factory.mktemp("auditor")
    return scan(server, "auditor", home), home / "assay.db"


def scan(server: ApiServer, user: str, home: Path) -> Ran:
    """Scan the cluster."""
    return assay_here("scan", "--kubeconfig", server.kubeconfig_for(user), "--db", "assay.db", "-o", "json", home=home)


def workloads(ran: Ran) -> dict[Json, tuple[Json, ...]]:
    """Kind, namespace, name and `derived` of the workload of each Pod that violates the policy `pods`."""
    return {
        dig(finding, "object", "name"): tuple(
            dig(finding, "workload", field) for field in ("apiVersion", "kind", "namespace", "name", "derived")
        )
        for finding in as_list(ran.report["findings"])
        if dig(finding, "policy") == "pods"
    }


def test_findings_name_the_workloads_of_their_objects(scanned: Scanned) -> None:
    """Deployment, CronJob, an operator's resource and a Node, all of which were read."""
    expected = {
        "web-6b7f9c-x2x4z": ("apps/v1", "Deployment", "shop", "web", False),
        "nightly-29340-abcde": ("batch/v1", "CronJob", "shop", "nightly", False),
        "orders-0": ("db.example.com/v1", "Database", "shop", "orders", False),
        "etcd-node-1": ("v1", "Node", "", "node-1", False),
    }
    ran, _ = scanned
    assert (0, "complete", expected) == (ran.code, dig(ran.report, "provenance", "state"), workloads(ran))
    assert not [note for note in notes(ran) if "workload" in note]


def test_a_workload_below_a_kind_that_may_not_be_listed_is_derived(limited: Scanned, scanned: Scanned) -> None:
    """The scan is complete, and a note names the missing right; all other workloads are those of the administrator."""
    ran, _ = limited
    derived: dict[Json, tuple[Json, ...]] = {"web-6b7f9c-x2x4z": ("apps/v1", "Deployment", "shop", "web", True)}
    assert (0, "complete", []) == (ran.code, dig(ran.report, "provenance", "state"), ran.report["gaps"])
    assert {**workloads(scanned[0]), **derived} == workloads(ran)
    [note] = [note for note in notes(ran) if "workload" in note]
    assert "cannot list replicasets.apps" in note
    assert "`list` on replicasets.apps" in note


def notes(ran: Ran) -> list[str]:
    """The notes of a report."""
    return [str(note) for note in as_list(dig(ran.report, "provenance", "notes"))]


def test_a_finding_is_explained_with_its_workload(limited: Scanned, scanned: Scanned) -> None:
    """A workload that was derived is marked."""
    lines = {}
    for name, (ran, database) in {"all rights": scanned, "without ReplicaSets": limited}.items():
        [finding_id] = [
            dig(finding, "id")
            for finding in as_list(ran.report["findings"])
            if (dig(finding, "policy"), dig(finding, "object", "name")) == ("pods", "web-6b7f9c-x2x4z")
        ]
        shown = assay_here("explain", str(finding_id), "--db", "assay.db", home=database.parent)
        lines[name] = (shown.code, shown.stdout.decode().splitlines()[1])
    assert {
        "all rights": (0, "Workload Deployment web"),
        "without ReplicaSets": (0, "Workload Deployment web (derived)"),
    } == lines


@pytest.mark.server
@pytest.mark.parametrize("fixture", ["scanned", "limited"])
def test_every_outcome_can_be_computed_from_the_stored_objects(fixture: str, request: pytest.FixtureRequest) -> None:
    """Matched objects without those not evaluated and those of findings pass, for every check of every language."""
    ran, database = request.getfixturevalue(fixture)
    with open_reader(f"sqlite:///{database}") as store:
        record = store.read_scan(str(dig(ran.report, "provenance", "scanId")))
        assert counted(record) == recomputed(record)
        assert sum(line.objects for line in record.coverage) == len(list(record.population()))
        policies_by_outcome: dict[OutcomeName, set[str]] = {}
        for key, _, outcome in counted(record):
            policies_by_outcome.setdefault(outcome, set()).add(key.policy)
    assert {
        OutcomeName.PASSED: {"conditions", "params", "managed"},
        OutcomeName.VIOLATED: {"pods", "conditions", "params", "selected", "owned"},
        OutcomeName.SKIPPED: {"conditions", "managed"},
        OutcomeName.ERRORED_ADMIT: {"conditions"},
        OutcomeName.WOULD_CHANGE: {"managed"},
        OutcomeName.EXCEPTED: {"owned"},
    } == policies_by_outcome


def test_a_second_scan_of_the_same_cluster_adds_no_row(
    scanned: Scanned, server: ApiServer, tmp_path: Path, rows: Callable[[Path], dict[str, Any]]
) -> None:
    """Objects, their intervals, sets and findings keep their rows."""
    _, database = scanned
    before = rows(database)
    again = scan(server, "admin", database.parent)
    assert (0, before) == (again.code, rows(database))
    assert all(before.values())


@pytest.fixture
def rows() -> Callable[[Path], dict[str, Any]]:
    """Count the rows of a database by table."""

    def count(database: Path) -> dict[str, Any]:
        connection = sqlite3.connect(database)
        counts = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
        connection.close()
        return counts

    return count
