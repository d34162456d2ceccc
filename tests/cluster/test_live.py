"""A live cluster: identity, discovery, lists, and the refusals of a server."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.live.first_reads import list_first_reads, list_reads_about
from scanner.cluster.requests.session import ApiSession
from scanner.errors import ClusterError, ListFailed
from scanner.model.json import Json, JsonObject, dig
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind, ObjectKey, UserInfo
from scanner.model.scans.scan import ClusterIdentity
from tests.cluster.listed import names, until_failure
from tests.cluster.server import FakeApi, Reply, listing, refusal

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
SECRETS = Kind("", "v1", "Secret", "secrets", namespaced=True)
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
POLICIES = Kind(
    "admissionregistration.k8s.io",
    "v1beta1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    namespaced=False,
)
VERBS = ["get", "list"]


# Identity and requester


def test_identity_has_kubeconfig_name_uid_and_version(api: FakeApi, cluster: LiveCluster) -> None:
    """The context's cluster gives the name, kube-system's UID the identity."""
    api.says("/version", Reply({"gitVersion": "v1.36.0"}))
    api.says("/api/v1/namespaces/kube-system", Reply({"metadata": {"name": "kube-system", "uid": "u-1"}}))
    assert ClusterIdentity("shop", "u-1", "v1.36.0") == replace(cluster.identity(), server="")


def test_identity_without_permission_has_a_name_only(api: FakeApi, cluster: LiveCluster) -> None:
    """Not being allowed to read kube-system or the version is no reason not to scan: the server identifies the cluster."""
    api.says("/version", refusal(403, "forbidden"))
    api.says("/api/v1/namespaces/kube-system", refusal(403, "forbidden"))
    identity = cluster.identity()
    assert ClusterIdentity("shop") == replace(identity, server="")
    assert re.fullmatch(r"server:[0-9a-f]{64}", identity.key)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (refusal(500, "etcd is down"), "answered 500"),
        (Reply(b"<html>"), "does not answer like a Kubernetes API server"),
        (Reply([1]), "does not answer like a Kubernetes API server"),
    ],
)
def test_a_cluster_without_a_readable_uid_is_not_scanned(
    api: FakeApi, cluster: LiveCluster, reply: Reply, expected: str
) -> None:
    """A scan without the cluster's UID would look like a scan of another cluster."""
    api.says("/version", Reply({"gitVersion": "v1.36.0"}))
    api.says("/api/v1/namespaces/kube-system", reply)
    with pytest.raises(ClusterError, match=f"cannot identify the cluster: .*{expected}"):
        cluster.identity()


@pytest.mark.parametrize("status", [200, 403, 404])
def test_the_time_of_the_api_server_is_the_date_of_a_response(api: FakeApi, cluster: LiveCluster, status: int) -> None:
    """With any status; a user without any permission gets a date, too."""
    api.says("/version", Reply({}, status, {"Date": "Sun, 01 Mar 2026 12:00:00 GMT"}))
    assert datetime(2026, 3, 1, 12, tzinfo=UTC) == cluster.now()


@pytest.mark.parametrize(
    "date",
    ["", "noon", "Sun, 01 Mar 2026 12:00:00 -0000", "Fri, 31 Dec 9999 23:59:59 GMT", "Tue, 31 Feb 2026 12:00:00 GMT"],
)
def test_a_response_without_a_valid_date_has_no_time(api: FakeApi, cluster: LiveCluster, date: str) -> None:
    """The scan has one clock less, and goes on."""
    api.says("/version", Reply({}, 200, {"Date": date}))
    assert cluster.now() is None


def test_the_requester_is_that_of_a_review(api: FakeApi, cluster: LiveCluster) -> None:
    """A self subject review names the requester."""
    user: JsonObject = {
        "username": "jane",
        "uid": "7",
        "groups": ["dev", "system:authenticated"],
        "extra": {"a": ["b"]},
    }
    api.says("/apis/authentication.k8s.io/v1/selfsubjectreviews", Reply({"status": {"userInfo": user}}, 201))
    expected = UserInfo("jane", "7", ("dev", "system:authenticated"), (("a", ("b",)),))
    assert expected == cluster.requester()


@pytest.mark.parametrize(
    "reply", [Reply({}, 201), Reply({"status": {"userInfo": {}}}, 201), refusal(500, "etcd is down")]
)
def test_an_unreadable_requester_is_an_error(api: FakeApi, cluster: LiveCluster, reply: Reply) -> None:
    """Policies that read the user would be evaluated for another user."""
    api.says("/apis/authentication.k8s.io/v1/selfsubjectreviews", reply)
    with pytest.raises(ClusterError, match="does not report the user of these credentials"):
        cluster.requester()


@pytest.mark.parametrize("status", [403, 404])
def test_a_requester_without_review_is_empty(api: FakeApi, cluster: LiveCluster, status: int) -> None:
    """If the review is refused or not served, the requester is empty."""
    api.says("/apis/authentication.k8s.io/v1/selfsubjectreviews", refusal(status, "no"))
    assert UserInfo() == cluster.requester()


# Discovery


def aggregated(*groups: Json) -> Reply:
    """A document in the aggregated form."""
    return Reply({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list(groups)})


def group(name: str, *versions: Json) -> Json:
    """One group of it; the core group has no name."""
    return {"metadata": {"name": name} if name else {}, "versions": list(versions)}


def version(name: str, *resources: Json, freshness: str = "Current") -> Json:
    """One version of a group."""
    return {"version": name, "resources": list(resources), "freshness": freshness}


def resource(plural: str, kind: str, scope: str = "Namespaced", verbs: list[str] | None = None) -> Json:
    """One resource of a version, with a subresource."""
    answer: JsonObject = {"group": "", "version": "", "kind": kind}
    sub: list[Json] = [{"subresource": "status", "responseKind": answer, "verbs": VERBS}]
    return {"resource": plural, "responseKind": answer, "scope": scope, "verbs": verbs or VERBS, "subresources": sub}


ADMISSION = group(
    "admissionregistration.k8s.io",
    version("v1", resource("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "Cluster", ["get"])),
    version("v1beta1", resource("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "Cluster")),
)
WEBHOOKS: JsonObject = {
    "name": "validatingwebhookconfigurations",
    "kind": "ValidatingWebhookConfiguration",
    "namespaced": False,
}


def test_aggregated_discovery_keeps_the_servers_order(api: FakeApi, cluster: LiveCluster) -> None:
    """The core group comes first, and each group's preferred version first."""
    api.says("/api", aggregated(group("", version("v1", resource("nodes", "Node", "Cluster")))))
    hpa = resource("horizontalpodautoscalers", "HorizontalPodAutoscaler")
    api.says("/apis", aggregated(group("autoscaling", version("v2", hpa), version("v1", hpa))))
    expected = [("v1", "Node", False), ("autoscaling/v2", "HorizontalPodAutoscaler", True)]
    expected += [("autoscaling/v1", "HorizontalPodAutoscaler", True)]
    assert expected == [(kind.api_version, kind.kind, kind.namespaced) for kind in cluster.discover().kinds]


def test_kinds_that_cannot_be_listed_are_left_out(api: FakeApi, cluster: LiveCluster) -> None:
    """A kind without the list verb has no objects for a scan; subresources are no kinds."""
    api.says("/api", aggregated(group("", version("v1", resource("bindings", "Binding", verbs=["create"])))))
    api.says("/apis", aggregated(group("apps", version("v1", resource("deployments", "Deployment")))))
    assert (DEPLOYMENTS,) == cluster.discover().kinds


def test_a_stale_group_version_is_a_gap(api: FakeApi, cluster: LiveCluster) -> None:
    """The kinds of an aggregated API server that does not respond are unknown."""
    stale = version("v1beta1", resource("pods", "PodMetrics"), freshness="Stale")
    api.says("/api", aggregated(group("", version("v1", resource("pods", "Pod")))))
    api.says("/apis", aggregated(group("metrics.k8s.io", stale), ADMISSION))
    discovery = cluster.discover()
    assert ((PODS, POLICIES), [(GapKind.DISCOVERY, "metrics.k8s.io/v1beta1")]) == (
        discovery.kinds,
        [(gap.kind, gap.where) for gap in discovery.gaps],
    )


ESCAPING = ["../../secrets", "pods?limit=1", "pods/../x", "..", "a b", "pods%2fexec", "p\u00f6ds", "pods#"]


@pytest.mark.parametrize("name", ESCAPING)
def test_a_resource_with_a_name_that_no_path_has_is_a_gap(api: FakeApi, cluster: LiveCluster, name: str) -> None:
    """No request is made of it; the other resources are known."""
    api.says("/api", aggregated(group("", version("v1", resource("pods", "Pod"), resource(name, "Odd")))))
    api.says("/apis", aggregated(ADMISSION))
    discovery = cluster.discover()

    assert (PODS, POLICIES) == discovery.kinds
    assert [(GapKind.DISCOVERY, "v1")] == [(gap.kind, gap.where) for gap in discovery.gaps]


@pytest.mark.parametrize("name", ESCAPING)
@pytest.mark.parametrize("place", ["{}", "{}/v1", "example.com/{}"])
def test_a_group_version_with_a_name_that_no_path_has_is_not_asked(
    api: FakeApi, cluster: LiveCluster, place: str, name: str
) -> None:
    """Neither in the older form of discovery, nor by the lists of its kinds."""
    legacy(api)
    own = place.format(name)
    api.says("/apis", Reply({"kind": "APIGroupList", "groups": [{"name": "x", "versions": [{"groupVersion": own}]}]}))
    discovery = cluster.discover()

    assert own in [gap.where for gap in discovery.gaps]
    assert [PODS] == list(discovery.kinds)


def legacy(api: FakeApi) -> None:
    """Prepare documents in the older form: pods, and jobs in two versions."""
    api.says("/api", Reply({"kind": "APIVersions", "versions": ["v1"]}))
    batch = [{"groupVersion": "batch/v1beta1"}, {"groupVersion": "batch/v1"}]
    groups: list[Json] = [{"name": "batch", "versions": batch, "preferredVersion": {"groupVersion": "batch/v1"}}]
    admission = "admissionregistration.k8s.io/v1"
    groups.append({"name": "admissionregistration.k8s.io", "versions": [{"groupVersion": admission}]})
    api.says("/apis", Reply({"kind": "APIGroupList", "groups": groups}))
    api.says(f"/apis/{admission}", Reply({"kind": "APIResourceList", "resources": [{**WEBHOOKS, "verbs": VERBS}]}))
    pods: JsonObject = {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": VERBS}
    status: JsonObject = {"name": "pods/status", "kind": "Pod", "namespaced": True, "verbs": VERBS}
    api.says("/api/v1", Reply({"kind": "APIResourceList", "resources": [pods, status]}))
    for name in ("batch/v1", "batch/v1beta1"):
        jobs: JsonObject = {"name": "jobs", "kind": "Job", "namespaced": True, "verbs": VERBS}
        api.says(f"/apis/{name}", Reply({"kind": "APIResourceList", "resources": [jobs]}))


def test_older_servers_are_read_group_by_group(api: FakeApi, cluster: LiveCluster) -> None:
    """A server without aggregated discovery has one document for each group-version, preferred first."""
    legacy(api)
    expected = [("v1", "pods"), ("batch/v1", "jobs"), ("batch/v1beta1", "jobs")]
    expected += [("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations")]
    assert expected == [(kind.api_version, kind.plural) for kind in cluster.discover().kinds]


def test_a_group_version_that_does_not_answer_is_a_gap(api: FakeApi, cluster: LiveCluster) -> None:
    """A missing API group hides its own kinds only."""
    legacy(api)
    api.says("/apis/batch/v1", refusal(503, "service unavailable"))
    discovery = cluster.discover()
    why = "the server answered 503: service unavailable, so the kinds it serves are unknown"
    assert (Gap(GapKind.DISCOVERY, "batch/v1", why),) == discovery.gaps
    expected = ["v1", "batch/v1beta1", "admissionregistration.k8s.io/v1"]
    assert expected == [kind.api_version for kind in discovery.kinds]


def test_discovery_that_is_forbidden_names_the_role(api: FakeApi, cluster: LiveCluster) -> None:
    """A scan needs discovery; the message names the role that grants it."""
    api.says("/api", refusal(403, "forbidden"))
    with pytest.raises(ClusterError, match="Bind the ClusterRole system:discovery"):
        cluster.discover()


def test_a_web_page_is_no_cluster(api: FakeApi, cluster: LiveCluster) -> None:
    """A login page has status 200 as well."""
    api.says("/api", Reply(b"<html>please log in</html>"))
    with pytest.raises(ClusterError, match="no discovery document"):
        cluster.discover()


def test_a_server_without_any_api_is_no_cluster(cluster: LiveCluster) -> None:
    """A server that knows neither root is not a Kubernetes API server."""
    with pytest.raises(ClusterError, match="does not respond like a Kubernetes API server"):
        cluster.discover()


def test_a_missing_root_is_a_gap(api: FakeApi, cluster: LiveCluster) -> None:
    """A server without the core group is scanned, with a gap."""
    api.says("/apis", aggregated(group("apps", version("v1", resource("deployments", "Deployment"))), ADMISSION))
    assert [(GapKind.DISCOVERY, "/api")] == [(gap.kind, gap.where) for gap in cluster.discover().gaps]


@pytest.mark.parametrize(
    "named",
    [
        {"kind": "Namespace", "metadata": {"name": "bank"}},
        {"kind": "Secret", "metadata": {"name": "shop"}},
        {"metadata": {"name": "shop"}},
        {},
    ],
)
def test_another_object_is_not_the_namespace(api: FakeApi, cluster: LiveCluster, named: Json) -> None:
    """A user with permission for one namespace gets that Namespace, or none."""
    api.says("/api/v1/namespaces/shop", Reply(named))
    _, failure = until_failure(cluster.pages(NAMESPACES, namespace="shop"))
    assert "cannot get namespace shop: the server answered 200 and no such Namespace" in failure.why


# Promises about what is sent


def test_every_request_names_the_tool(api: FakeApi, cluster: LiveCluster) -> None:
    """The audit log of the cluster shows Assay."""
    api.says("/api/v1/pods", listing("Pod", "a"))
    list(cluster.pages(PODS))
    request = api.requests[-1]
    assert ["Bearer t0ken"] == request.header("authorization")
    assert request.header("user-agent")[0].startswith("assay/")


def test_impersonation_is_sent_with_every_group(api: FakeApi, tmp_path: Path) -> None:
    """--as and --as-group are headers; groups repeat the header."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path), as_user="jane", as_groups=("dev", "ops"))
    api.says("/api/v1/pods", listing("Pod"))
    list(cluster.pages(PODS))
    request = api.requests[-1]
    assert (["jane"], ["dev", "ops"]) == (request.header("impersonate-user"), request.header("impersonate-group"))


def test_a_path_in_the_servers_url_is_kept(api: FakeApi, tmp_path: Path) -> None:
    """Some clusters have a path on a shared host."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path, server=f"{api.url}/k8s/clusters/c-1/"))
    api.says("/k8s/clusters/c-1/api/v1/pods", listing("Pod", "a"))
    assert [["a"]] == names(cluster.pages(PODS))


def test_nothing_is_written(api: FakeApi, cluster: LiveCluster) -> None:
    """A scan sends GET, and one review that the server does not store."""
    legacy(api)
    api.says("/api/v1/pods", listing("Pod", "a"))
    cluster.identity()
    cluster.requester()
    cluster.discover()
    list(cluster.pages(PODS))
    writes = [(request.method, request.path) for request in api.requests if request.method != "GET"]
    assert [("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews")] == writes


def test_requests_are_counted(api: FakeApi, cluster: LiveCluster) -> None:
    """Retried requests count again."""
    api.says("/api/v1/pods", refusal(500, "later"), listing("Pod", "a", token="t"), listing("Pod", "b"))
    list(cluster.pages(PODS))
    assert (3, 3) == (cluster.requests, len(api.requests))


def begin(api: FakeApi, folder: Path) -> LiveCluster:
    """A cluster whose first reads were sent before anything needs them."""
    session = ApiSession(kubeconfig=api.kubeconfig(folder))
    session.begin(list_first_reads(2))
    return LiveCluster(session=session, chunk_size=2)


def test_a_read_that_was_begun_is_not_sent_again(api: FakeApi, tmp_path: Path) -> None:
    """Identity, discovery and a list of policies take its response, and a second list is sent."""
    legacy(api)
    api.says("/version", Reply({"gitVersion": "v1.36.0"}))
    admission = "admissionregistration.k8s.io/v1"
    path = f"/apis/{admission}/validatingadmissionpolicies"
    page: JsonObject = {
        "kind": "ValidatingAdmissionPolicyList",
        "apiVersion": admission,
        "metadata": {"resourceVersion": "7"},
    }
    api.says(path, Reply({**page, "items": [{"metadata": {"name": "a", "uid": "u"}}]}))
    cluster = begin(api, tmp_path)
    cluster.identity()
    cluster.discover()
    policies = replace(POLICIES, version="v1")

    assert [["a"]] == names(cluster.pages(policies)) == names(cluster.pages(policies))
    sent = Counter(request.path for request in api.requests)
    assert {path: 2} == {name: number for name, number in sent.items() if number > 1}


def test_a_read_that_was_begun_fails_where_it_is_needed(api: FakeApi, tmp_path: Path) -> None:
    """The error of the other thread is the error of the command."""
    api.says("/api/v1/namespaces/kube-system", refusal(401, "expired"))
    with pytest.raises(ClusterError, match="does not accept the credentials"):
        begin(api, tmp_path).identity()


DEFINITION = {
    "type": "object",
    "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
}


def described(api_version: Json, kind: Json, namespace: Json = None) -> JsonObject:
    """An object as a user wrote it."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": namespace}}


ABOUT_PODS = (
    "/openapi/v3/apis/apps/v1",
    "/openapi/v3/api/v1",
    "/api/v1/namespaces/shop",
    "/api/v1/namespaces/shop/limitranges?limit=500",
    "/apis/scheduling.k8s.io/v1/priorityclasses?limit=500",
)


@pytest.mark.parametrize(
    ("objects", "paths"),
    [
        ([described("apps/v1", "Deployment")], ABOUT_PODS),
        ([described("apps/v1", "Deployment", "shop"), described("apps/v1", "Deployment")], ABOUT_PODS),
        ([described("v1", "ConfigMap", "web")], ("/openapi/v3/api/v1", "/api/v1/namespaces/web")),
        ([described("v1", "ConfigMap")], ("/openapi/v3/api/v1",)),
        ([described("v1", "ConfigMap", "web"), described("v1", "Secret", "shop")], ("/openapi/v3/api/v1",)),
        (
            [described("a.example.com/v1", "Deployment", "a/../b")],
            (*("/openapi/v3/apis/a.example.com/v1", ABOUT_PODS[1]),),
        ),
        ([described("../api/v1/secrets", "ConfigMap"), described("apps/v1/x?y", 3), described(None, {}), {}], ()),
        ([described("../v1", "ConfigMap", ".."), described("v1#", [], ["a"])], ()),
        (
            [described(f"x{number}/v1", "X") for number in range(500)],
            tuple(f"/openapi/v3/apis/x{n}/v1" for n in range(8)),
        ),
    ],
)
def test_reads_about_new_objects_are_known_from_their_manifests(
    objects: list[JsonObject], paths: tuple[str, ...]
) -> None:
    """Schemas and the namespace of objects, and for pods what plug-ins read; no text of a manifest leads to another path."""
    assert paths == tuple(path for path, _ in list_reads_about(objects, "shop", 500))


@pytest.mark.parametrize(
    ("document", "has_schema"),
    [
        ({"paths": {"/x": [1, "é"]}, "components": {"schemas": {"Pod": DEFINITION}}}, True),
        ({"components": {"schemas": {"Pod": {}}}}, False),
        ({"components": {"schemas": [DEFINITION]}}, False),
        ({"components": None}, False),
        ([], False),
        ({}, False),
    ],
)
def test_a_schema_needs_the_definitions_of_a_document_alone(
    api: FakeApi, cluster: LiveCluster, document: Any, *, has_schema: bool
) -> None:
    """Other parts are left out, and a document without definitions has no schema."""
    api.says("/openapi/v3/api/v1", Reply(document))
    assert has_schema is (cluster.schemas().schema(PODS) is not None)


def test_requests_keep_a_pace(api: FakeApi, tmp_path: Path, pauses: list[float]) -> None:
    """After the burst, requests have the interval of --qps."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path), qps=0.01, burst=2, sleep=pauses.append)
    tokens = ("t1", "t2", "t3")
    api.says("/api/v1/pods", *(listing("Pod", "a", token=token) for token in tokens), listing("Pod", "b"))
    list(cluster.pages(PODS))
    assert [True, True] == [low - 1 < pause <= low for low, pause in zip((100, 200), pauses, strict=True)]


# Single objects


def many(number: int) -> list[ObjectKey]:
    """The names of so many pods."""
    return [ObjectKey(PODS, "default", f"p{index}") for index in range(number)]


def as_names(bodies: list[JsonObject | ListFailed | None]) -> list[object]:
    """The names of objects that were read."""
    return [dig(body, "metadata", "name") if isinstance(body, dict) else body for body in bodies]


def test_many_objects_are_read_with_one_page(api: FakeApi, tmp_path: Path) -> None:
    """A page that is the whole list decides about all names, also about those that do not exist."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path))
    api.says("/api/v1/namespaces/default/pods", listing("Pod", "p3", "q"))
    assert [None, None, None, "p3", *[None] * 16] == as_names(cluster.read_objects(many(20)))
    assert 1 == len(api.requests)


@pytest.mark.parametrize("page", [listing("Pod", "p3", "p4", token="more"), refusal(403, "forbidden")])
def test_what_a_page_does_not_decide_is_read_one_by_one(api: FakeApi, cluster: LiveCluster, page: Reply) -> None:
    """Objects after the page, and all objects of a kind that may not be listed."""
    api.says("/api/v1/namespaces/default/pods", page)
    api.says("/api/v1/namespaces/default/pods/p3", Reply({"metadata": {"name": "p3"}}))
    api.says("/api/v1/namespaces/default/pods/p4", Reply({"metadata": {"name": "p4"}}))
    api.says("/api/v1/namespaces/default/pods/p19", Reply({"metadata": {"name": "p19"}}))
    wanted = [None, None, None, "p3", "p4", *[None] * 14, "p19"]
    assert wanted == as_names(cluster.read_objects(many(20)))


def test_few_objects_are_read_one_by_one(api: FakeApi, cluster: LiveCluster) -> None:
    """No list is requested for them."""
    api.says("/api/v1/namespaces/default/pods/p1", Reply({"metadata": {"name": "p1"}}))
    assert [None, "p1", None] == as_names(cluster.read_objects(many(3)))
    assert not api.requests_for("/api/v1/namespaces/default/pods")
