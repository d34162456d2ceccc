"""Files as a cluster: the served kinds, the places of objects, and documents that are no objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from scanner.cluster.files.snapshot import PAGE_SIZE, SnapshotCluster
from scanner.errors import ListFailed, UsageError
from scanner.model.json import Json, JsonObject, dig
from scanner.model.resource import Kind, Page, UserInfo
from scanner.model.scans.scan import ClusterIdentity

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
EVENTS = Kind("", "v1", "Event", "events", namespaced=True)
NEWER_EVENTS = Kind("events.k8s.io", "v1", "Event", "events", namespaced=True)
HPA = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True)
OLD_HPA = Kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True)
GIZMO = Kind("mx.example.com", "v2", "Gizmo", "gizmos", namespaced=True)
OLD_GIZMO = Kind("mx.example.com", "v1", "Gizmo", "gizmos", namespaced=True)
POLICIES = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)

Snapshot = Callable[..., SnapshotCluster]


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """Make a cluster of documents, each in a file of its own."""

    def make(*documents: Json, **options: Any) -> SnapshotCluster:
        for number, document in enumerate(documents, start=1):
            (tmp_path / f"{number:05}.json").write_text(json.dumps(document))
        return SnapshotCluster([tmp_path], **options)

    return make


def an_object(api_version: str, kind: str, name: str = "a", **metadata: Json) -> dict[str, Json]:
    """A manifest."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}}


def definition(**spec: Json) -> dict[str, Json]:
    """The definition of Gizmo, in two served versions and one that is not served."""
    versions = [{"name": name, "served": name != "v3"} for name in ("v1", "v2", "v3")]
    names = {"kind": "Gizmo", "plural": "gizmos"}
    whole = {"group": "mx.example.com", "names": names, "scope": "Namespaced", "versions": versions, **spec}
    return {**an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "gizmos.mx.example.com"), "spec": whole}


def bodies(pages: Iterable[Page]) -> list[JsonObject]:
    """The objects on pages."""
    return [item for page in pages for item in orjson.loads(page.data)["items"]]


def names(pages: Iterable[Page]) -> list[Json]:
    """The names of the objects on pages."""
    return [dig(body, "metadata", "name") for body in bodies(pages)]


def test_a_snapshot_is_named_after_its_folder(snapshot: Snapshot, tmp_path: Path) -> None:
    """Without another name, the last part of the path; its source and its path tell which files these are."""
    expected = ClusterIdentity(tmp_path.name, server_version="v1.37", source="files", folder=str(tmp_path))
    assert expected == snapshot().identity()
    assert "staging" == snapshot(name="staging").identity().name


def test_the_requester_of_files_is_a_placeholder(snapshot: Snapshot) -> None:
    """The requester is a placeholder."""
    assert UserInfo("assay", groups=("system:authenticated",)) == snapshot().requester()


def test_the_builtin_kinds_are_served(snapshot: Snapshot) -> None:
    """The table is that of Kubernetes 1.36, a group's preferred version first."""
    kinds = snapshot().discover().kinds
    assert 82 == len(kinds)
    assert [HPA, OLD_HPA] == [kind for kind in kinds if kind.group == "autoscaling"]


def test_definitions_add_their_served_versions(snapshot: Snapshot) -> None:
    """The preferred version comes first; a version that is not served is absent."""
    kinds = snapshot(definition()).discover().kinds
    assert [GIZMO, OLD_GIZMO] == [kind for kind in kinds if kind.group == "mx.example.com"]


@pytest.mark.parametrize(
    ("versions", "order"),
    [
        (["v1", "v10", "v2"], ["v10", "v2", "v1"]),
        (["v1alpha1", "v1", "v2beta1", "v1beta2", "v3alpha1"], ["v1", "v2beta1", "v1beta2", "v3alpha1", "v1alpha1"]),
        (["foo10", "v1alpha1", "foo1"], ["v1alpha1", "foo1", "foo10"]),
        (["v" + "9" * 5000, "v1alpha1"], ["v1alpha1", "v" + "9" * 5000]),
    ],
)
def test_versions_are_ordered_as_the_server_orders_them(
    snapshot: Snapshot, versions: list[str], order: list[str]
) -> None:
    """Stable versions come before beta and alpha, higher before lower, other names last."""
    cluster = snapshot(definition(versions=[{"name": name, "served": True} for name in versions]))
    assert order == [kind.version for kind in cluster.discover().kinds if kind.group == "mx.example.com"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"group": ""}, "spec.group: Required value"),
        ({"names": {"kind": "Gizmo"}}, "spec.names.plural: Required value"),
        ({"names": None}, "spec.names.kind: Required value"),
        ({"scope": "Galaxy"}, 'spec.scope: Unsupported value: "Galaxy"'),
        ({"versions": [{"name": "v1", "served": False}]}, "spec.versions: Required value"),
        ({"versions": "v1"}, "spec.versions: Required value"),
    ],
)
def test_a_definition_that_defines_nothing_is_a_gap(snapshot: Snapshot, spec: dict[str, Json], field: str) -> None:
    """Without the gap, its objects would be unknown without a visible reason."""
    gaps = snapshot(definition(**spec)).discover().gaps
    assert [True] == [f"defines no kind: {field}" in gap.why for gap in gaps]


def test_a_namespaced_object_gets_a_namespace(snapshot: Snapshot) -> None:
    """The default is the user's namespace, else `default`."""
    pod = an_object("v1", "Pod")
    assert ["default"] == [dig(body, "metadata", "namespace") for body in bodies(snapshot(pod).pages(PODS))]
    assert ["x"] == [
        dig(body, "metadata", "namespace") for body in bodies(snapshot(pod, default_namespace="x").pages(PODS))
    ]


def test_a_cluster_scoped_object_loses_its_namespace(snapshot: Snapshot) -> None:
    """The API drops the namespace."""
    cluster = snapshot(an_object("v1", "Node", namespace="prod"))
    assert [{"name": "a"}] == [body["metadata"] for body in bodies(cluster.pages(NODES))]


def test_a_namespace_has_its_name_as_label(snapshot: Snapshot) -> None:
    """Every server adds the label, and selectors use it; other labels stay."""
    cluster = snapshot(an_object("v1", "Namespace", "prod", labels={"env": "p", "kubernetes.io/metadata.name": "x"}))
    expected = {"env": "p", "kubernetes.io/metadata.name": "prod"}
    assert [expected] == [dig(body, "metadata", "labels") for body in bodies(cluster.pages(NAMESPACES))]


def test_namespaces_that_only_objects_name_are_implied(snapshot: Snapshot) -> None:
    """Implied namespaces exist, and are no objects to evaluate."""
    pods = [an_object("v1", "Pod", namespace=namespace) for namespace in ("b", "a", "prod")]
    cluster = snapshot(*pods, an_object("v1", "Pod", "x"), an_object("v1", "Namespace", "prod"))
    assert (("a", "b", "default"), ["prod"]) == (cluster.list_implied_namespaces(), names(cluster.pages(NAMESPACES)))


def test_the_first_of_equal_names_counts(snapshot: Snapshot, tmp_path: Path) -> None:
    """The other document is a gap that names both."""
    cluster = snapshot(an_object("v1", "Pod", labels={"n": "1"}), an_object("v1", "Pod", namespace="default"))
    gap = cluster.discover().gaps[0]
    assert ("00002.json, document 1", True) == (gap.where, "00001.json, document 1" in gap.why)
    assert [{"n": "1"}] == [dig(body, "metadata", "labels") for body in bodies(cluster.pages(PODS))]


def test_equal_names_in_different_places_are_different_objects(snapshot: Snapshot) -> None:
    """Kind, namespace and name together identify an object."""
    objects = [an_object("v1", "Pod"), an_object("v1", "Pod", namespace="x"), an_object("v1", "Service")]
    assert () == snapshot(*objects).discover().gaps


@pytest.mark.parametrize(
    ("api_version", "kind", "advice"),
    [
        (
            "mx.example.com/v1",
            "Gizmo",
            "no kind Gizmo in version mx.example.com/v1 is known: add its CustomResourceDefinition",
        ),
        (
            "extensions/v1beta1",
            "Deployment",
            "no kind Deployment in version extensions/v1beta1 is known: write it as apps/v1, or",
        ),
        ("v1", "pod", "no kind pod in version v1 is known"),
    ],
)
def test_an_unknown_kind_is_a_gap_with_advice(snapshot: Snapshot, api_version: str, kind: str, advice: str) -> None:
    """The definition may be missing, or the version may no longer be served."""
    cluster = snapshot(an_object(api_version, kind), an_object("v1", "Pod"))
    assert [True] == [gap.why.startswith(advice) for gap in cluster.discover().gaps]
    assert ["a"] == names(cluster.pages(PODS))


def test_the_policies_among_the_documents_are_kept(snapshot: Snapshot) -> None:
    """A policy is kept in a version that the simulated server does not serve, too."""
    policy = an_object("admissionregistration.k8s.io/v1alpha1", "ValidatingAdmissionPolicy", "p")
    cluster = snapshot(an_object("v1", "Pod"), policy)
    assert [policy] == [document.body for document in cluster.policies]


# Pages


def test_objects_come_by_namespace_and_name(snapshot: Snapshot) -> None:
    """The order is that of a server, for any order of the files."""
    objects = [an_object("v1", "Pod", name, namespace=namespace) for namespace, name in ("zb", "aa", "zc", "ab")]
    assert ["a", "b", "b", "c"] == names(snapshot(*objects).pages(PODS))


def test_pages_hold_a_limited_number(snapshot: Snapshot) -> None:
    """A page has 500 objects, the default page size of a live scan."""
    items = [an_object("v1", "Pod", f"p{number:04}") for number in range(2 * PAGE_SIZE + 1)]
    pages = list(snapshot({"apiVersion": "v1", "kind": "List", "items": items}).pages(PODS))
    assert [(1, 500), (2, 500), (3, 1)] == [(page.number, len(bodies([page]))) for page in pages]


def test_a_kind_without_objects_has_no_pages(snapshot: Snapshot) -> None:
    """An empty list does not fail."""
    assert [] == list(snapshot().pages(PODS))


def test_namespace_and_selector_narrow_the_pages(snapshot: Snapshot) -> None:
    """Both apply, as on a server; a namespace does not narrow cluster-scoped kinds."""
    objects = [
        an_object("v1", "Pod", "a", namespace="x", labels={"app": "web"}),
        an_object("v1", "Pod", "b", namespace="x"),
        an_object("v1", "Pod", "c", namespace="y", labels={"app": "web"}),
        an_object("v1", "Node", "n"),
    ]
    cluster = snapshot(*objects)
    assert ["a"] == names(cluster.pages(PODS, namespace="x", selector="app in (web)"))
    assert ["n"] == names(cluster.pages(NODES, namespace="x"))


def test_a_malformed_selector_is_a_usage_error(snapshot: Snapshot) -> None:
    """The error does not need any object."""
    with pytest.raises(UsageError):
        list(snapshot().pages(PODS, selector="a in b"))


# Versions


@pytest.mark.parametrize("conversion", [None, {"strategy": "None"}])
def test_custom_objects_are_relabelled(snapshot: Snapshot, conversion: Json) -> None:
    """Without a webhook, versions of a custom kind differ in apiVersion alone."""
    cluster = snapshot(definition(conversion=conversion), an_object("mx.example.com/v1", "Gizmo"))
    assert ["mx.example.com/v2"] == [body["apiVersion"] for body in bodies(cluster.pages(GIZMO))]
    assert ["mx.example.com/v1"] == [body["apiVersion"] for body in bodies(cluster.pages(OLD_GIZMO))]


def test_the_same_custom_object_in_two_versions_is_one(snapshot: Snapshot) -> None:
    """A server stores the object once."""
    cluster = snapshot(definition(), an_object("mx.example.com/v1", "Gizmo"), an_object("mx.example.com/v2", "Gizmo"))
    assert (1, ["a"]) == (len(cluster.discover().gaps), names(cluster.pages(GIZMO)))


def test_what_only_a_webhook_converts_fails_the_list(snapshot: Snapshot) -> None:
    """The list has the objects in the requested version, and fails for the others."""
    webhook = definition(conversion={"strategy": "Webhook"})
    cluster = snapshot(webhook, an_object("mx.example.com/v1", "Gizmo"), an_object("mx.example.com/v2", "Gizmo", "b"))
    pages = cluster.pages(GIZMO)
    assert ["b"] == names([next(pages)])
    with pytest.raises(
        ListFailed, match=r"^1 objects are written as mx\.example\.com/v1 and only a server can convert"
    ):
        next(pages)


@pytest.mark.parametrize(
    ("document", "wanted", "other"),
    [
        (an_object("autoscaling/v1", "HorizontalPodAutoscaler"), HPA, OLD_HPA),
        (an_object("autoscaling/v2", "HorizontalPodAutoscaler"), OLD_HPA, HPA),
        (an_object("v1", "Event"), NEWER_EVENTS, EVENTS),
        (an_object("events.k8s.io/v1", "Event"), EVENTS, NEWER_EVENTS),
    ],
)
def test_some_builtin_objects_are_offered_in_both_their_versions(
    snapshot: Snapshot, document: Json, wanted: Kind, other: Kind
) -> None:
    """Objects that a policy would evaluate on a server are listed."""
    cluster = snapshot(document)
    assert [wanted.api_version] == [body["apiVersion"] for body in bodies(cluster.pages(wanted))]
    assert [other.api_version] == [body["apiVersion"] for body in bodies(cluster.pages(other))]


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_admission_policies_of_every_version_are_policies(snapshot: Snapshot, version: str) -> None:
    """The fields of all versions are equal; older versions are offered as v1."""
    cluster = snapshot(an_object(f"admissionregistration.k8s.io/{version}", "ValidatingAdmissionPolicy"))
    assert () == cluster.discover().gaps
    assert ["admissionregistration.k8s.io/v1"] == [body["apiVersion"] for body in bodies(cluster.pages(POLICIES))]


def test_the_same_files_give_the_same_pages(snapshot: Snapshot) -> None:
    """The order of dictionaries and folders has no effect."""
    objects = [an_object("v1", "Pod", name, namespace="x") for name in "cab"]
    assert list(snapshot(*objects).pages(PODS)) == list(snapshot().pages(PODS))
