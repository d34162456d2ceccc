"""Facts about the objects between those that a scan evaluates and their workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from scanner.errors import ListFailed
from scanner.model.population import Controller, PopulationMember
from scanner.model.resource import Kind, Page
from scanner.model.scans.scan import Scope
from scanner.scan.intermediates import IntermediateNote, IntermediatePage, list_intermediate_pages
from scanner.scan.lists import ScanLists
from tests.documents import DEPLOYMENTS, NODES, PODS, Document
from tests.scan.fakes import FakeCluster, forbidden

REPLICA_SETS = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
OLD_DATABASES = Kind("db.example.com", "v1alpha1", "Database", "databases", namespaced=True)
DATABASES = Kind("db.example.com", "v1", "Database", "databases", namespaced=True)
KINDS = (PODS, NODES, REPLICA_SETS, DEPLOYMENTS, DATABASES, OLD_DATABASES)
HASH = "6b7f9c"


def document(kind: Kind, name: str, above: Document | None = None, *, namespace: str = "shop", **labels: str) -> Document:  # fmt: skip
    """An object below another object."""
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-of-{name}", "labels": labels}
    if kind.namespaced:
        metadata["namespace"] = namespace
    if above:
        owner = {**reference(above), "controller": True}
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {"size": 1}}


def reference(document: Document) -> dict[str, str]:
    """The reference to an object."""
    metadata = document["metadata"]
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def controller(document: Document) -> Controller:
    """The same reference, as a record has it."""
    owner = reference(document)
    return Controller(owner["apiVersion"], owner["kind"], owner["name"], owner["uid"])


DATABASE = document(DATABASES, "orders")
DEPLOYMENT = document(DEPLOYMENTS, "web", DATABASE, team="red")
REPLICA_SET = document(REPLICA_SETS, f"web-{HASH}", DEPLOYMENT, **{"pod-template-hash": HASH})
CHAIN = (DATABASE, DEPLOYMENT, REPLICA_SET)


def cluster(*documents: Document, **fields: Any) -> FakeCluster:
    """A cluster of these objects."""
    return FakeCluster(documents, kinds=KINDS, **fields)


def steps(
    source: FakeCluster,
    *controllers: Controller,
    scope: Scope | None = None,
    examined: Iterable[Kind] = (PODS,),
    served: Iterable[Kind] = KINDS,
) -> list[IntermediatePage | IntermediateNote]:
    """The pages and notes of a scan that examined some kinds."""
    listing = ScanLists(source, scope or Scope(), ahead=False)
    return list(list_intermediate_pages(listing, controllers, examined, served))


def records(listed: Iterable[IntermediatePage | IntermediateNote]) -> list[PopulationMember]:
    """The objects on all pages."""
    return [record for step in listed if isinstance(step, IntermediatePage) for record in step.objects]


def notes(listed: Iterable[IntermediatePage | IntermediateNote]) -> list[IntermediateNote]:
    """The notes."""
    return [step for step in listed if isinstance(step, IntermediateNote)]


def test_controllers_of_controllers_are_listed_round_by_round() -> None:
    """Every kind once; kinds that control nothing are not listed."""
    source = cluster(*CHAIN, document(NODES, "node-1"))
    listed = steps(source, controller(REPLICA_SET))
    assert [f"web-{HASH}", "web", "orders"] == [record.name for record in records(listed)]
    assert ["metadata/replicasets.apps", "metadata/deployments.apps", "metadata/databases.db.example.com"] == (
        source.listed
    )


def test_a_record_has_what_workloads_need() -> None:
    """Identity, controller and the hash of the template; labels are kept of examined objects only."""
    orphan = document(REPLICA_SETS, f"old-{HASH}", None, team="red", **{"pod-template-hash": HASH})
    expected = [
        PopulationMember(REPLICA_SETS, "shop", f"old-{HASH}", f"uid-of-old-{HASH}", template_hash=HASH),
        PopulationMember(REPLICA_SETS, "shop", f"web-{HASH}", f"uid-of-web-{HASH}", controller(DEPLOYMENT)),
    ]
    assert expected == records(steps(cluster(orphan, REPLICA_SET), controller(REPLICA_SET)))


def test_pages_come_as_they_were_sent() -> None:
    """With the records of their objects; the fake cluster sends two objects on a page."""
    sets = [document(REPLICA_SETS, name) for name in ("a", "b", "c")]
    listed = steps(cluster(*sets), controller(sets[0]))
    assert [(REPLICA_SETS, 1, 2), (REPLICA_SETS, 2, 1)] == [
        (step.page.kind, step.page.number, len(step.objects)) for step in listed if isinstance(step, IntermediatePage)
    ]


def test_examined_kinds_are_not_listed_again() -> None:
    """Their records exist."""
    source = cluster(*CHAIN)
    steps(source, controller(REPLICA_SET), examined=(PODS, REPLICA_SETS, DEPLOYMENTS))
    assert [] == source.listed


def test_a_scan_with_a_selector_lists_examined_kinds_again() -> None:
    """The ReplicaSet of a selected Pod need not have the same labels."""
    source = cluster(*CHAIN)
    listed = steps(source, controller(REPLICA_SET), scope=Scope(selector="tier=web"), examined=(PODS, REPLICA_SETS))
    assert f"web-{HASH}" in {record.name for record in records(listed)}


def test_a_kind_is_listed_in_its_preferred_version() -> None:
    """The version of a reference is that of its writer."""
    source = cluster(*CHAIN)
    old = Controller(OLD_DATABASES.api_version, "Database", "orders", "uid-of-orders")
    assert [DATABASES] == [record.kind for record in records(steps(source, old))]


def test_a_kind_that_is_not_served_is_not_listed() -> None:
    """Its definition was deleted; nothing can be granted, so there is no note."""
    source = cluster(*CHAIN)
    listed = steps(source, Controller("gone.example.com/v1", "Gone", "x", "u"))
    assert ([], []) == (listed, source.listed)


@pytest.mark.parametrize("scope", [Scope(kinds=("pods",)), Scope(skip_kinds=("replicasets.apps",))])
def test_kinds_that_the_user_left_out_are_listed_as_metadata(scope: Scope) -> None:
    """These flags choose objects to evaluate, and workloads stand above them."""
    source = cluster(*CHAIN)
    assert f"web-{HASH}" in {record.name for record in records(steps(source, controller(REPLICA_SET), scope=scope))}


def test_a_scan_of_namespaces_lists_in_these_namespaces() -> None:
    """Cluster-scoped kinds are listed once."""
    source = cluster(*CHAIN)
    node = Controller("v1", "Node", "node-1", "u")
    steps(source, node, controller(DATABASE), scope=Scope(namespaces=("shop", "bank")))
    expected = ["metadata/nodes", "metadata/shop/databases.db.example.com", "metadata/bank/databases.db.example.com"]
    assert expected == source.listed


def test_objects_in_excluded_namespaces_are_left_out() -> None:
    """They control no evaluated object."""
    elsewhere = document(DEPLOYMENTS, "other", namespace="kube-system")
    listed = steps(cluster(*CHAIN, elsewhere), controller(DEPLOYMENT), scope=Scope(exclude_namespaces=("kube-*",)))
    assert ["web", "orders"] == [record.name for record in records(listed)]


def test_a_missing_right_is_a_note() -> None:
    """It names the kind, the reason and the remedy; other kinds are listed."""
    node = Controller("v1", "Node", "node-1", "u")
    source = cluster(*CHAIN, refused={"metadata/nodes": forbidden("nodes")})
    listed = steps(source, node, controller(DATABASE))
    text = "workloads of objects that a Node controls are derived: cannot list nodes: forbidden"
    assert ([IntermediateNote(NODES, text)], ["orders"]) == (
        notes(listed),
        [record.name for record in records(listed)],
    )


def test_a_right_that_is_missing_in_one_namespace_is_one_note() -> None:
    """The other namespaces are listed."""
    source = cluster(*CHAIN, refused={"metadata/bank/databases.db.example.com": forbidden("databases")})
    listed = steps(source, controller(DATABASE), scope=Scope(namespaces=("bank", "shop")))
    assert (1, ["orders"]) == (len(notes(listed)), [record.name for record in records(listed)])


def test_a_list_that_breaks_off_is_a_note() -> None:
    """The pages before are used."""
    sets = [document(REPLICA_SETS, name) for name in ("a", "b", "c")]
    broken = ListFailed("failed", "cannot list replicasets.apps: the connection broke. Scan again")
    listed = steps(cluster(*sets, broken={"metadata/replicasets.apps": broken}), controller(sets[0]))
    expected = [f"workloads of objects that a ReplicaSet controls are derived: {broken.why}"]
    assert (expected, ["a", "b"]) == (
        [note.text for note in notes(listed)],
        [record.name for record in records(listed)],
    )


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]}', "is another object: v1 Pod"),
        (b'{"items": [{"metadata": {}}]}', "has no name"),
        (b'{"items": 3}', "it has no list of items"),
    ],
)
def test_a_page_that_cannot_be_read_is_a_note(raw: bytes, why: str) -> None:
    """Nothing of it is used."""
    listed = steps(cluster(raw={"metadata/deployments.apps": [raw]}), controller(DEPLOYMENT))
    assert ([], True) == (records(listed), why in notes(listed)[0].text)


def test_a_list_of_more_than_one_moment_is_a_note() -> None:
    """Objects may be missing from it."""

    class Changing(FakeCluster):
        def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
            del namespace
            yield Page(kind, 1, b'{"items": []}', inconsistency="the list expired after page 1")

    listed = steps(Changing(kinds=KINDS), controller(DEPLOYMENT))
    expected = "the list of deployments.apps is inconsistent: the list expired after page 1"
    assert notes(listed)[0].text.endswith(expected)


def test_objects_that_control_each_other_are_listed_once() -> None:
    """A cycle of kinds ends."""
    first = document(DEPLOYMENTS, "a", DATABASE)
    second = document(DATABASES, "orders", first)
    source = cluster(first, second)
    steps(source, controller(first))
    assert ["metadata/deployments.apps", "metadata/databases.db.example.com"] == source.listed


def test_without_controllers_nothing_is_listed() -> None:
    """Every object is its own workload."""
    source = cluster(*CHAIN)
    assert ([], []) == (steps(source), source.listed)
