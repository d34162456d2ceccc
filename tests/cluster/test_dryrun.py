"""Dry-run writes: the requests, and the parsed responses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.live.dryrun import DryRuns
from scanner.errors import ListFailed
from scanner.model.json import Json, JsonObject
from scanner.model.resource import Kind
from tests.cluster.server import FakeApi, Reply, refusal
from tests.documents import DEPLOYMENTS, NAMESPACES, PODS

METRICS = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", namespaced=True)
GIZMOS = Kind("example.com", "v1", "Gizmo", "gizmos", namespaced=True)
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
WEB: JsonObject = {"kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
MISTYPED = "Internal error occurred: unable to convert the object after the mutation"


def internal(message: str, reason: str = "InternalError") -> Reply:
    """The Status of a failure within the server."""
    return Reply({"kind": "Status", "apiVersion": "v1", "reason": reason, "message": message, "code": 500}, 500)


@pytest.fixture
def dry_runs(cluster: LiveCluster) -> DryRuns:
    """Dry runs against the prepared server."""
    return cluster.dry_runs()


def test_a_create_is_posted_to_its_collection(api: FakeApi, dry_runs: DryRuns) -> None:
    """The query has dryRun=All and nothing else."""
    api.says("/apis/apps/v1/namespaces/shop/deployments", Reply({"kind": "Deployment"}, 201))
    dry_runs.create(DEPLOYMENTS, WEB)

    [request] = api.requests
    assert ("POST", {"dryRun": "All"}) == (request.method, request.query)


def test_an_update_is_put_to_the_object(api: FakeApi, dry_runs: DryRuns) -> None:
    """The query has dryRun=All and nothing else."""
    api.says("/apis/apps/v1/namespaces/shop/deployments/web", Reply({"kind": "Deployment"}))
    dry_runs.update(DEPLOYMENTS, WEB)

    [request] = api.requests
    assert ("PUT", {"dryRun": "All"}) == (request.method, request.query)


def test_a_cluster_scoped_object_is_in_no_namespace(api: FakeApi, dry_runs: DryRuns) -> None:
    """The path quotes every character of a name."""
    api.says("/api/v1/namespaces", Reply({}, 201))
    api.says("/api/v1/namespaces/a%20b", Reply({}))
    dry_runs.create(NAMESPACES, {"metadata": {"name": "a b"}})
    dry_runs.update(NAMESPACES, {"metadata": {"name": "a b"}})

    assert ["/api/v1/namespaces", "/api/v1/namespaces/a%20b"] == [request.path for request in api.requests]


@pytest.mark.parametrize("value", [10**26, "\ud800"])
def test_what_json_hardly_holds_is_written_too(api: FakeApi, dry_runs: DryRuns, value: Json) -> None:
    """A manifest may have a number beyond 64 bits, or half of a surrogate pair: the server decides about them."""
    api.says("/apis/apps/v1/namespaces/shop/deployments/web", Reply({"kind": "Deployment"}))
    dry_runs.update(DEPLOYMENTS, {**WEB, "spec": {"replicas": value}})

    [request] = api.requests
    assert value == json.loads(request.body)["spec"]["replicas"]


@pytest.mark.parametrize("name", [".", "..", "a/b", "a%2Fb"])
def test_a_name_that_no_object_can_have_is_no_request(api: FakeApi, dry_runs: DryRuns, name: str) -> None:
    """Its path would be that of another object: `..` names the namespace, not a pod in it."""
    body: JsonObject = {"metadata": {"name": name, "namespace": "shop"}}
    assert [None, None] == [dry_runs.read(PODS, *names) for names in (("shop", name), (name, "web"))]
    for write in (dry_runs.create, dry_runs.update, dry_runs.apply):
        with pytest.raises(ListFailed, match="no object can have this name"):
            write(PODS, body)

    assert [] == api.requests


def test_no_write_leaves_without_dry_run(api: FakeApi, dry_runs: DryRuns) -> None:
    """A retried write is a dry run, too."""
    busy = refusal(503, "busy")
    api.says("/api/v1/namespaces/shop/pods", busy, busy, Reply({}, 201))
    api.says("/api/v1/namespaces/shop/pods/web", busy, Reply({}))
    dry_runs.create(PODS, {"metadata": {"name": "web", "namespace": "shop"}})
    dry_runs.update(PODS, {"metadata": {"name": "web", "namespace": "shop"}})

    assert 5 == len(api.requests)
    assert {"All"} == {request.query["dryRun"] for request in api.requests}


def test_a_failure_of_admission_is_an_answer(api: FakeApi, dry_runs: DryRuns, pauses: list[float]) -> None:
    """The server gives the same Status again at once, so no pause delays the comparison of the other objects."""
    api.says("/apis/apps/v1/namespaces/shop/deployments/web", internal(MISTYPED))
    response = dry_runs.update(DEPLOYMENTS, WEB)

    assert (500, "InternalError", MISTYPED, {}) == (response.status, response.reason, response.message, response.body)
    assert (2, 0) == (len(api.requests), sum(pauses))


@pytest.mark.parametrize(
    "busy",
    [
        pytest.param(internal("Internal error occurred: no route to host"), id="another failure"),
        pytest.param(Reply(b"<html>no server</html>", 500), id="no Status"),
        pytest.param(refusal(429, "slow down"), id="429"),
        pytest.param(refusal(502, "no server"), id="502"),
        pytest.param(refusal(503, "busy"), id="503"),
        pytest.param(refusal(504, "late"), id="504"),
        pytest.param(Reply(WEB, 201, cut=True), id="broken"),
    ],
)
def test_an_outage_is_no_answer(api: FakeApi, dry_runs: DryRuns, busy: Reply) -> None:
    """The write is sent again until the server decides, with any status of the outage."""
    between = internal("Internal error occurred: the webhook did not answer")
    api.says("/apis/apps/v1/namespaces/shop/deployments", busy, between, busy, between, busy, Reply(WEB, 201))

    assert 201 == dry_runs.create(DEPLOYMENTS, WEB).status


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_that_stays_busy_is_asked_again(api: FakeApi, dry_runs: DryRuns, status: int) -> None:
    """Equal answers are no decision if they are not those of admission; 500 of etcd has no reason."""
    busy = refusal(status, "etcdserver: leader changed")
    api.says("/apis/apps/v1/namespaces/shop/deployments", busy, busy, busy, busy, busy, Reply(WEB, 201))

    assert 201 == dry_runs.create(DEPLOYMENTS, WEB).status


def test_an_admitted_write_brings_the_object_and_warnings(api: FakeApi, dry_runs: DryRuns) -> None:
    """A warning is unquoted, and its UTF-8 is decoded."""
    text = '299 - "Validation failed: \\"na\u00efve\\" \\\\ no", 299 - "second"'.encode().decode("latin-1")
    api.says("/apis/apps/v1/namespaces/shop/deployments", Reply(WEB, 201, headers={"Warning": text}))
    response = dry_runs.create(DEPLOYMENTS, WEB)

    assert (201, WEB, "") == (response.status, response.body, response.message)
    assert ('Validation failed: "na\u00efve" \\ no', "second") == response.warnings


def test_a_refusal_keeps_its_text(api: FakeApi, dry_runs: DryRuns) -> None:
    """Line ends are part of a message."""
    status: JsonObject = {"kind": "Status", "apiVersion": "v1", "reason": "Invalid", "message": "a\n b", "code": 422}
    api.says("/apis/apps/v1/namespaces/shop/deployments", Reply(status, 422))
    response = dry_runs.create(DEPLOYMENTS, WEB)

    assert (422, "Invalid", "a\n b", {}) == (response.status, response.reason, response.message, response.body)


def test_an_object_is_read(api: FakeApi, dry_runs: DryRuns) -> None:
    """A deleted object is None."""
    api.says("/apis/apps/v1/namespaces/shop/deployments/web", Reply(WEB))

    assert WEB == dry_runs.read(DEPLOYMENTS, "shop", "web")
    assert dry_runs.read(DEPLOYMENTS, "shop", "gone") is None


@pytest.mark.parametrize(("status", "state"), [(403, "forbidden"), (500, "failed")])
def test_an_object_that_cannot_be_read(api: FakeApi, dry_runs: DryRuns, status: int, state: str) -> None:
    """The error names the missing permission, or the server's status."""
    api.says("/apis/apps/v1/namespaces/shop/deployments/web", refusal(status, "no"))

    with pytest.raises(ListFailed, match=r"cannot get deployments\.apps") as failed:
        dry_runs.read(DEPLOYMENTS, "shop", "web")
    assert state == failed.value.state


def test_a_server_that_does_not_answer(api: FakeApi, dry_runs: DryRuns) -> None:
    """A write without a response is no verdict."""
    api.says("/apis/apps/v1/namespaces/shop/deployments", Reply(WEB, 201, cut=True))

    with pytest.raises(ListFailed, match=r"no response about deployments\.apps web"):
        dry_runs.create(DEPLOYMENTS, WEB)


def test_kinds_of_other_servers_are_foreign(api: FakeApi, dry_runs: DryRuns) -> None:
    """The service of an APIService serves its kinds; the list is requested once."""
    items: list[Json] = [
        {"spec": {"group": "metrics.k8s.io", "version": "v1beta1", "service": {"name": "metrics-server"}}},
        {"spec": {"group": "example.com", "version": "v1"}},
        {"spec": {"version": "v1"}},
    ]
    api.says(SERVICES, Reply({"items": items}))

    assert [True, False, False] == [dry_runs.is_foreign(kind) for kind in (METRICS, GIZMOS, PODS)]
    assert 1 == len(api.requests_for(SERVICES))


def test_without_the_list_only_builtin_kinds_are_known(api: FakeApi, dry_runs: DryRuns) -> None:
    """All other kinds count as foreign, because their server may ignore dry runs."""
    api.says(SERVICES, refusal(403, "no"))

    assert [True, True, False] == [dry_runs.is_foreign(kind) for kind in (METRICS, GIZMOS, DEPLOYMENTS)]


def test_nothing_but_dry_runs_writes() -> None:
    """Only this class and the method below it use a verb that changes objects."""
    source = Path(__file__).parents[2] / "scanner" / "cluster"
    verbs = ('"PUT"', '"PATCH"', '"DELETE"')
    writing = {path.name for path in source.rglob("*.py") if any(verb in path.read_text() for verb in verbs)}

    assert {"session.py", "dryrun.py"} == writing
