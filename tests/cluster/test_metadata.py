"""Facts about metadata-only lists: the requests, and the responses that have objects of the kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml

from scanner.cluster.files.snapshot import SnapshotCluster
from scanner.cluster.live.cluster import LiveCluster
from scanner.errors import ListFailed
from scanner.model.json import Json, JsonObject
from scanner.model.resource import Kind, Page
from tests.cluster.listed import names
from tests.cluster.server import FakeApi, Reply, listing, refusal

DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
OLD_SCALERS = Kind("autoscaling", "v2beta2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True)
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
PATH = "/apis/apps/v1/deployments"
REDUCED = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}


def reduced(*names: str, token: str = "", remaining: int = 0, namespace: str = "default", **fields: str) -> Reply:
    """A page of a metadata-only list; `fields` replace the kind or the apiVersion of its items."""
    metadata: JsonObject = {
        "resourceVersion": "7",
        **({"continue": token, "remainingItemCount": remaining} if token else {}),
    }
    within: JsonObject = {"namespace": namespace} if namespace else {}
    items: list[Json] = [
        {**REDUCED, **fields, "metadata": {"name": name, "uid": f"uid-of-{name}", **within}} for name in names
    ]
    return Reply({**REDUCED, "kind": "PartialObjectMetadataList", "metadata": metadata, "items": items})


def failure(pages: Iterator[Page]) -> ListFailed:
    """The reason why a list failed."""
    with pytest.raises(ListFailed) as raised:
        list(pages)
    return raised.value


def test_a_server_is_asked_for_the_metadata(api: FakeApi, cluster: LiveCluster) -> None:
    """In pages like every list; whole objects are the second choice."""
    api.says(PATH, reduced("a", "b", token="t1", remaining=1), reduced("c"))
    assert [["a", "b"], ["c"]] == names(cluster.metadata(DEPLOYMENTS))
    accepted = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    requests = [(request.header("accept"), dict(request.query)) for request in api.requests_for(PATH)]
    assert [([accepted], {"limit": "2"}), ([accepted], {"limit": "2", "continue": "t1"})] == requests


def test_a_server_may_send_whole_objects(api: FakeApi, cluster: LiveCluster) -> None:
    """An aggregated API server that knows no other form sends its own lists."""
    api.says(PATH, listing("Deployment", "a"))
    assert [["a"]] == names(cluster.metadata(DEPLOYMENTS))


def test_the_metadata_of_one_namespace(api: FakeApi, cluster: LiveCluster) -> None:
    """It has a path of its own; cluster-scoped kinds have none."""
    api.says("/apis/apps/v1/namespaces/shop/deployments", reduced("a", namespace="shop"))
    api.says("/api/v1/nodes", reduced("n", namespace=""))
    assert [["a"]] == names(cluster.metadata(DEPLOYMENTS, namespace="shop"))
    assert [["n"]] == names(cluster.metadata(NODES, namespace="shop"))


def test_a_list_of_whole_objects_is_no_metadata(api: FakeApi, cluster: LiveCluster) -> None:
    """Policies would pass objects whose content is missing."""
    api.says(PATH, reduced("a"))
    expected = "the response is meta.k8s.io/v1 PartialObjectMetadataList instead of apps/v1 DeploymentList"
    assert expected in failure(cluster.pages(DEPLOYMENTS)).why


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (listing("Pod", "a"), "the response is v1 PodList instead of apps/v1 DeploymentList"),
        (Reply(b"<html>please log in</html>"), "the response is not a list in JSON"),
        (
            Reply({**REDUCED, "metadata": {}, "items": []}),
            "the response is meta.k8s.io/v1 PartialObjectMetadata instead",
        ),
        (refusal(404, "no such resource"), "the server no longer serves this kind"),
    ],
)
def test_another_answer_ends_the_list(api: FakeApi, cluster: LiveCluster, reply: Reply, why: str) -> None:
    """The checks are those of every list."""
    api.says(PATH, reply)
    error = failure(cluster.metadata(DEPLOYMENTS))
    assert ("failed", True) == (error.state, why in error.why)


@pytest.mark.parametrize(
    ("reply", "inconsistency"),
    [
        (reduced("a", kind="Pod", apiVersion="v1"), "page 1 has objects of another kind (v1 Pod)"),
        (reduced("a", "a"), "page 1 has an object twice"),
        (reduced("a", namespace=""), "page 1 has objects without a namespace"),
        (reduced("a", token="t", remaining=3), "page 1 has 1 objects, although 2 were asked for"),
    ],
)
def test_an_item_that_cannot_be_of_the_kind_is_doubted(
    api: FakeApi, cluster: LiveCluster, reply: Reply, inconsistency: str
) -> None:
    """The page is requested again, and then marked."""
    api.says(PATH, reply)
    assert inconsistency in next(cluster.metadata(DEPLOYMENTS)).inconsistency
    assert 3 == len(api.requests_for(PATH))


def test_a_missing_right_is_named_without_a_flag(api: FakeApi, cluster: LiveCluster) -> None:
    """--skip-kind leaves out objects to evaluate, which these are not."""
    api.says(PATH, refusal(403, 'User "jane" cannot list resource "deployments"'))
    error = failure(cluster.metadata(DEPLOYMENTS))
    expected = "cannot list deployments.apps: forbidden for jane. Grant `list` on deployments.apps"
    assert ("forbidden", expected) == (error.state, error.why)


def test_files_have_metadata_in_every_version(tmp_path: Path) -> None:
    """No server needs to convert a kind that was written in another version."""
    scaler: JsonObject = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "labels": {"app": "cart"}},
        "spec": {"maxReplicas": 3},
    }
    elsewhere = {**scaler, "metadata": {"name": "b", "namespace": "shop"}}
    (tmp_path / "scalers.yaml").write_text(yaml.safe_dump_all([scaler, elsewhere]))
    files = SnapshotCluster([tmp_path])
    items = [
        item for page in files.metadata(OLD_SCALERS, namespace="default") for item in orjson.loads(page.data)["items"]
    ]
    assert [{"metadata": {"name": "a", "labels": {"app": "cart"}, "namespace": "default"}}] == items
    assert [["a", "b"]] == names(files.metadata(OLD_SCALERS))
