"""Lists: pages, refusals, and servers that are busy, slow or broken."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.live.lists import read_envelope
from scanner.errors import UsageError
from scanner.model.resource import Kind
from tests.cluster.listed import names, until_failure
from tests.cluster.server import FakeApi, Reply, listing, refusal

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
SECRETS = Kind("", "v1", "Secret", "secrets", namespaced=True)
COMPUTED = Kind("", "v1", "ComponentStatus", "componentstatuses", namespaced=False)
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
EXPIRED = refusal(410, "The provided continue parameter is too old")
RESUMED = refusal(410, "The provided continue parameter is too old", **{"continue": "fresh"})


def announcing(*names: str, token: str = "", remaining: int = 0) -> Reply:
    """A page with the number of remaining objects."""
    page = listing("Pod", *names, token=token).body
    assert isinstance(page, dict)
    announced = {"remainingItemCount": remaining} if remaining else {}
    return Reply({**page, "metadata": {**page["metadata"], **announced}})


# Pages and refusals


def test_a_list_comes_in_pages(api: FakeApi, cluster: LiveCluster) -> None:
    """The continue token of one page requests the next."""
    api.says("/api/v1/pods", listing("Pod", "a", "b", token="t1"), listing("Pod", "c"))
    assert [["a", "b"], ["c"]] == names(cluster.pages(PODS))
    queries = [dict(request.query) for request in api.requests_for("/api/v1/pods")]
    assert [{"limit": "2"}, {"limit": "2", "continue": "t1"}] == queries


def test_a_page_is_the_bytes_that_came(api: FakeApi, cluster: LiveCluster) -> None:
    """The page has the uncompressed body, its number and the resource version."""
    item = b'{"metadata":{"name":"a","namespace":"b"}}'
    body = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42"},"items":[ %b ]}' % item
    api.says("/api/v1/pods", Reply(body))
    [page] = cluster.pages(PODS)
    assert (PODS, 1, body, "42", "") == (page.kind, page.number, page.data, page.resource_version, page.inconsistency)
    assert 0 < page.seconds < 10


def test_namespace_and_selector_narrow_the_list(api: FakeApi, cluster: LiveCluster) -> None:
    """A namespace has its own path; the selector is sent unchanged."""
    api.says("/apis/apps/v1/namespaces/prod/deployments", listing("Deployment", "web", namespace="prod"))
    assert [["web"]] == names(cluster.pages(DEPLOYMENTS, namespace="prod", selector="app in (web, api)"))
    assert "app in (web, api)" == api.requests[-1].query["labelSelector"]


def test_a_namespace_does_not_narrow_cluster_scoped_kinds(api: FakeApi, cluster: LiveCluster) -> None:
    """Nodes are in no namespace."""
    api.says("/api/v1/nodes", listing("Node", "n1"))
    assert [["n1"]] == names(cluster.pages(NODES, namespace="prod"))


def test_a_malformed_selector_is_refused_before_any_request(api: FakeApi, cluster: LiveCluster) -> None:
    """A wrong selector is an error of the user, not of the cluster."""
    with pytest.raises(UsageError):
        list(cluster.pages(PODS, selector="app in web"))
    assert [] == api.requests


@pytest.mark.parametrize("items", [b"null", b"[]"])
def test_an_empty_list_is_a_page_without_items(api: FakeApi, cluster: LiveCluster, items: bytes) -> None:
    """Some servers write an empty list as null."""
    page = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":%b}'
    api.says("/api/v1/pods", Reply(page % items))
    assert 1 == len(list(cluster.pages(PODS)))


def test_a_forbidden_list_names_the_user_and_the_way_out(api: FakeApi, cluster: LiveCluster) -> None:
    """The message has the user, the permission and the remedy."""
    message = 'secrets is forbidden: User "auditor" cannot list resource "secrets" in API group "" at the cluster scope'
    api.says("/api/v1/secrets", refusal(403, message))
    _, failure = until_failure(cluster.pages(SECRETS))
    expected = "cannot list secrets: forbidden for auditor. Grant `list` on secrets"
    assert ("forbidden", expected) == (failure.state, failure.why)


def test_a_refusal_without_a_name_is_completed_by_a_review(api: FakeApi, cluster: LiveCluster) -> None:
    """If the refusal does not name the user, a review does."""
    api.says("/apis/apps/v1/namespaces/prod/deployments", refusal(403, "denied by webhook"))
    api.says(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews", Reply({"status": {"userInfo": {"username": "j"}}}, 201)
    )
    _, failure = until_failure(cluster.pages(DEPLOYMENTS, namespace="prod"))
    assert failure.why.startswith("cannot list deployments.apps in namespace prod: forbidden for j. ")


@pytest.mark.parametrize("status", [401, 404, 400, 302])
def test_other_refusals_are_not_tried_again(
    api: FakeApi, cluster: LiveCluster, pauses: list[float], status: int
) -> None:
    """A permanent error ends the list at once."""
    api.says("/api/v1/pods", refusal(status, "no"))
    count, failure = until_failure(cluster.pages(PODS))
    assert (0, "failed", []) == (count, failure.state, pauses)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_requests_to_a_busy_server_are_retried(
    api: FakeApi, cluster: LiveCluster, pauses: list[float], status: int
) -> None:
    """Temporary errors are retried: at once, then after growing, jittered pauses."""
    later = [refusal(status, "later")] * 4
    api.says("/api/v1/pods", *later, listing("Pod", "a"))
    assert [["a"]] == names(cluster.pages(PODS))
    assert [True] * 4 == [low <= pause <= low + 0.5 for low, pause in zip((0, 1, 2, 4), pauses, strict=True)]


def test_the_server_may_name_the_pause(api: FakeApi, cluster: LiveCluster, pauses: list[float]) -> None:
    """Retry-After is used up to half a minute; a past date and an invalid value are not."""
    waits = [Reply({}, 429, {"Retry-After": pause}) for pause in ("3", "9000", "Wed, 21 Oct 2015 07:28:00 GMT", "soon")]
    api.says("/api/v1/pods", *waits, listing("Pod", "a"))
    assert [["a"]] == names(cluster.pages(PODS))
    assert [3.0, 30.0] == pauses[:2]
    assert [True, True] == [low <= pause <= low + 0.5 for low, pause in zip((2, 4), pauses[2:], strict=True)]


def test_a_server_that_stays_broken_fails_the_list(api: FakeApi, cluster: LiveCluster, pauses: list[float]) -> None:
    """After six attempts the kind is a gap; earlier pages remain valid."""
    api.says("/api/v1/pods", listing("Pod", "a", token="t"), refusal(500, "etcdserver: no leader"))
    count, failure = until_failure(cluster.pages(PODS))
    assert (1, 5, 7) == (count, len(pauses), len(api.requests_for("/api/v1/pods")))
    assert "the server answered 500: etcdserver: no leader" in failure.why


def test_a_connection_that_breaks_in_mid_body_is_tried_again(
    api: FakeApi, cluster: LiveCluster, pauses: list[float]
) -> None:
    """A part of a page is not used."""
    whole = listing("Pod", "a")
    api.says("/version", Reply({"gitVersion": "v1.36.0"}))
    cluster.identity()
    api.says("/api/v1/pods", Reply(whole.body, cut=True), whole)
    assert [["a"]] == names(cluster.pages(PODS))
    assert [0.0] == pauses


def test_a_connection_that_always_breaks_fails_the_list(api: FakeApi, cluster: LiveCluster) -> None:
    """The failure has the reason, without addresses of Python objects."""
    api.says("/api/v1/pods", Reply(listing("Pod", "a").body, cut=True))
    _, failure = until_failure(cluster.pages(PODS))
    assert failure.why.startswith(f"cannot list pods: the connection to {api.url} broke (")
    assert "0x" not in failure.why


@pytest.mark.parametrize(
    "body",
    [
        b"<html>busy</html>",
        b"",
        b'{"kind":"PodList","items":[',
        b"[]",
        b'{"kind":"PodList","items":{}}',
        b'{"kind":"Pod"}',
    ],
)
def test_an_answer_that_is_no_list_fails_the_list(api: FakeApi, cluster: LiveCluster, body: bytes) -> None:
    """A status of 200 alone is not enough."""
    api.says("/api/v1/pods", Reply(body))
    _, failure = until_failure(cluster.pages(PODS))
    assert failure.why.startswith("cannot list pods: the response is not a list in JSON.")


@pytest.mark.parametrize(
    "broken", [b"<html>busy</html>", b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{']
)
def test_a_response_that_is_no_list_is_requested_again(api: FakeApi, cluster: LiveCluster, broken: bytes) -> None:
    """A proxy may fail temporarily."""
    api.says("/api/v1/pods", Reply(broken), Reply(broken), listing("Pod", "a"))
    assert [["a"]] == names(cluster.pages(PODS))


# A server that forgets


def test_an_expired_list_goes_on_with_the_fresh_token(api: FakeApi, cluster: LiveCluster) -> None:
    """A 410 offers a token; the rest of the list is of a later moment, which its first page notes."""
    api.says("/api/v1/pods", listing("Pod", "a", token="old"), RESUMED, listing("Pod", "b", version="9"))
    pages = list(cluster.pages(PODS))
    assert [["a"], ["b"]] == names(iter(pages))
    assert ["", "the list expired after page 1 and was continued at a later moment"] == [
        page.inconsistency for page in pages
    ]
    assert ["7", "9"] == [page.resource_version for page in pages]
    assert ["old", "fresh"] == [r.query["continue"] for r in api.requests_for("/api/v1/pods")[1:]]


def test_an_expired_list_without_a_token_begins_again(api: FakeApi, cluster: LiveCluster) -> None:
    """No object is lost; the reader recognizes repeated objects."""
    api.says(
        "/api/v1/pods", listing("Pod", "a", token="t"), EXPIRED, listing("Pod", "a", token="t"), listing("Pod", "b")
    )
    pages = list(cluster.pages(PODS))
    assert [(1, ["a"]), (2, ["a"]), (3, ["b"])] == list(zip([1, 2, 3], names(iter(pages)), strict=True))
    assert ["", "the list expired after page 1 and was started again", ""] == [page.inconsistency for page in pages]


def test_a_list_begins_again_once_only(api: FakeApi, cluster: LiveCluster) -> None:
    """A server whose lists always expire would be requested for ever."""
    api.says("/api/v1/pods", listing("Pod", "a", token="t"), EXPIRED, listing("Pod", "a", token="t"), EXPIRED)
    count, failure = until_failure(cluster.pages(PODS))
    assert (2, "failed") == (count, failure.state)
    assert "the list expired after page 2: The provided continue parameter is too old." in failure.why


def test_a_continuation_that_has_expired_too_begins_again(api: FakeApi, cluster: LiveCluster) -> None:
    """The offered token may have expired."""
    api.says("/api/v1/pods", listing("Pod", "a", token="t"), RESUMED, EXPIRED, listing("Pod", "a"))
    assert [["a"], ["a"]] == names(cluster.pages(PODS))


def test_a_server_that_only_offers_tokens_does_not_hold_the_scan(api: FakeApi, cluster: LiveCluster) -> None:
    """A list without progress is ended."""
    api.says("/api/v1/pods", listing("Pod", "a", token="t"), RESUMED)
    count, failure = until_failure(cluster.pages(PODS))
    assert (1, "failed", 5) == (count, failure.state, len(api.requests_for("/api/v1/pods")))


def test_pages_of_different_moments_are_noticed(api: FakeApi, cluster: LiveCluster) -> None:
    """All pages of a list have one resource version; another one is an inconsistency."""
    api.says("/api/v1/pods", listing("Pod", "a", token="t"), listing("Pod", "b", version="8"))
    assert ["", "page 2 shows resource version 8, those before it 7"] == [
        page.inconsistency for page in cluster.pages(PODS)
    ]


# A server that repeats itself, or stops short


def test_a_repeated_page_is_requested_again(api: FakeApi, cluster: LiveCluster) -> None:
    """The missing page is neither lost nor counted twice."""
    first, second = listing("Pod", "a", token="t1"), listing("Pod", "b", token="t2")
    api.says("/api/v1/pods", first, first, second, first, listing("Pod", "c"))
    assert [["a"], ["b"], ["c"]] == names(cluster.pages(PODS))


def test_a_server_that_repeats_a_token_does_not_hold_the_scan(api: FakeApi, cluster: LiveCluster) -> None:
    """A list without end is ended."""
    api.says("/api/v1/pods", listing("Pod", "a", token="t"))
    count, failure = until_failure(cluster.pages(PODS))
    assert (1, True) == (count, "the server repeats pages after page 1" in failure.why)


def test_a_list_that_ends_too_early_is_requested_again(api: FakeApi, cluster: LiveCluster) -> None:
    """The last page in place of another one would hide the objects between them."""
    api.says(
        "/api/v1/pods",
        announcing("a", "b", token="t1", remaining=3),
        announcing("z"),
        announcing("c", "d", token="t2", remaining=1),
        announcing("z"),
    )
    assert [["a", "b"], ["c", "d"], ["z"]] == names(cluster.pages(PODS))


def test_a_list_that_always_ends_too_early_fails(api: FakeApi, cluster: LiveCluster) -> None:
    """A list without its announced objects does not count as listed."""
    api.says("/api/v1/pods", announcing("a", "b", token="t1", remaining=3), announcing("z"))
    count, failure = until_failure(cluster.pages(PODS))
    assert (1, True) == (count, "the list ends after page 2, although the server had announced more" in failure.why)


# A server that is slow


def test_a_late_response_is_requested_once_more(api: FakeApi, tmp_path: Path, pauses: list[float]) -> None:
    """The server gets the user's whole timeout twice."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path), request_timeout=0.2, sleep=pauses.append)
    api.says("/api/v1/pods", Reply({}, hang=30))
    _, failure = until_failure(cluster.pages(PODS))
    assert (1, 2) == (len(pauses), len(api.requests_for("/api/v1/pods")))
    assert "did not respond in time; raise --request-timeout" in failure.why


def test_a_body_that_drips_is_cut_off(api: FakeApi, tmp_path: Path, pauses: list[float]) -> None:
    """Every byte is in time for the socket, and the page is late."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path), request_timeout=0.4, sleep=pauses.append)
    api.says("/api/v1/pods", Reply(listing("Pod", "a").body, drip=0.1))
    _, failure = until_failure(cluster.pages(PODS))
    assert "did not respond in time" in failure.why


def test_a_kind_has_its_time(api: FakeApi, tmp_path: Path) -> None:
    """A list with slow pages ends at the time limit; earlier pages remain valid."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path), kind_timeout=0.5)
    slow = [Reply(listing("Pod", "a", token=f"t{number}").body, hang=0.2) for number in range(20)]
    api.says("/api/v1/pods", *slow)
    count, failure = until_failure(cluster.pages(PODS))
    assert 1 <= count <= 2
    assert "did not finish it within 0.5 s; raise --kind-timeout" in failure.why


def test_the_time_of_a_kind_excludes_the_evaluation(api: FakeApi, tmp_path: Path) -> None:
    """The limit covers the server's time, not the evaluation."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path), kind_timeout=0.3)
    first = [listing("Pod", f"p{number}", token=f"t{number}") for number in range(3)]
    api.says("/api/v1/pods", *first, listing("Pod", "z"))
    pages = cluster.pages(PODS)
    assert [["p0"], ["p1"], ["p2"], ["z"]] == [names(iter([page]))[0] for page in pages if not api.released.wait(0.15)]


def test_announcements_begin_anew_where_the_list_goes_on_later(api: FakeApi, cluster: LiveCluster) -> None:
    """The later moment has more objects than were announced, and its own number of remaining objects."""
    api.says(
        "/api/v1/pods",
        announcing("a", "b", token="t1", remaining=1),
        RESUMED,
        announcing("c", "d", token="t2", remaining=1),
        announcing("e"),
    )
    inconsistencies = [page.inconsistency for page in cluster.pages(PODS)]
    assert ["", "the list expired after page 1 and was continued at a later moment", ""] == inconsistencies


def test_a_selector_leaves_out_what_is_counted(api: FakeApi, cluster: LiveCluster) -> None:
    """With a selector, a server may announce more objects than it sends."""
    api.says("/api/v1/pods", announcing("a", token="t1", remaining=5), announcing("b"))
    assert ["", ""] == [page.inconsistency for page in cluster.pages(PODS, selector="app=web")]


def test_a_page_may_be_smaller_where_nothing_is_announced(api: FakeApi, cluster: LiveCluster) -> None:
    """A token means only that there are more pages."""
    api.says("/api/v1/pods", listing("Pod", "a", token="t1"), listing("Pod", token="t2"), listing("Pod", "b"))
    assert [("", 1), ("", 0), ("", 1)] == [
        (page.inconsistency, len(orjson.loads(page.data)["items"])) for page in cluster.pages(PODS)
    ]


@pytest.mark.parametrize(
    ("kind", "inconsistencies"),
    [(COMPUTED, [""]), (PODS, ["page 1 names no resource version"])],
    ids=["computed", "stored"],
)
def test_lists_of_computed_objects_name_no_moment(
    api: FakeApi, cluster: LiveCluster, kind: Kind, inconsistencies: list[str]
) -> None:
    """Component statuses are not stored; every other list must have a resource version."""
    items = [{"metadata": {"name": "scheduler", **({"namespace": "a"} if kind.namespaced else {})}}]
    api.says(kind.path, Reply({"kind": f"{kind.kind}List", "apiVersion": "v1", "metadata": {}, "items": items}))
    assert inconsistencies == [page.inconsistency for page in cluster.pages(kind)]


WIDGETS = Kind("x.io", "v1", "Widget", "widgets", namespaced=True)


def openapi(list_kind: str) -> Reply:
    """The server's OpenAPI document with the list of widgets."""
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/io.x.v1.Many"}}}}
    stated = [{"group": "x.io", "kind": list_kind, "version": "v1"}]
    return Reply(
        {
            "paths": {"/apis/x.io/v1/widgets": {"get": {"responses": {"200": answer}}}},
            "components": {"schemas": {"io.x.v1.Many": {"x-kubernetes-group-version-kind": stated}}},
        }
    )


@pytest.mark.parametrize(("stated", "pages"), [("Widgets", 1), ("WidgetList", 0), ("", 0)])
def test_a_definition_may_choose_the_kind_of_its_lists(
    api: FakeApi, cluster: LiveCluster, stated: str, pages: int
) -> None:
    """The OpenAPI document has `spec.names.listKind`; it is read if the usual kind does not match."""
    metadata = {"resourceVersion": "7"}
    api.says(WIDGETS.path, Reply({"kind": "Widgets", "apiVersion": "x.io/v1", "metadata": metadata, "items": []}))
    api.says("/openapi/v3/apis/x.io/v1", openapi(stated) if stated else refusal(404, "no"))
    pages_read = cluster.pages(WIDGETS)
    count = len(list(pages_read)) if pages else until_failure(pages_read)[0]
    assert (pages, 1) == (count, len(api.requests_for("/openapi/v3/apis/x.io/v1")))


# Envelopes


def test_an_object_cannot_pass_for_the_end_of_the_list() -> None:
    """Text inside an object is never part of the list's metadata."""
    fake = b'],"kind":"AList","metadata":{"continue":"evil"}}'
    item = orjson.dumps({"metadata": {"name": "a", "namespace": "b"}, "data": {"x": fake.decode()}})
    body = b'{"apiVersion":"x.io/v1","items":[%b],"kind":"WidgetList","metadata":{"continue":"good"}}\n' % item
    page = read_envelope(body, WIDGETS)
    assert page is not None
    assert ("x.io/v1", "WidgetList", "good", 1, ()) == (
        page.api_version,
        page.kind,
        page.token,
        page.count,
        page.faults,
    )


def test_an_object_may_nest_deeply() -> None:
    """An object may have the depth that the server allows; its content is decoded later."""
    deep = b"[" * 5000 + b"]" * 5000
    item = b'{"metadata":{"name":"a","namespace":"b"},"spec":%b}' % deep
    page = read_envelope(b'{"kind":"WidgetList","apiVersion":"x.io/v1","metadata":{},"items":[%b]}' % item, WIDGETS)
    assert page is not None
    assert (1, ()) == (page.count, page.faults)
